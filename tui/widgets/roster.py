"""The instance roster on screen. Only rows that changed are painted again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType

from tui.model.snapshot import FleetSnapshot
from tui.widgets.glyphs import glyphs_of
from tui.widgets.lines import Line, Span, fit
from tui.widgets.match import matcher
from tui.widgets.picker import Item, Picker
from tui.widgets.roster_columns import STRIP, Column, currency_sign, gap, layout, needs_of, title_of
from tui.widgets.roster_rows import SORTS, Key, Row, arranged, loss_strip, mark_changes, rows_of


class Roster(Picker):
    """Boxes and runs, worst first; sorted, filtered and marked by the operator.

    The cursor is on a row and, for *explain* and *copy*, on a column.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "column(-1)", "value to the left", show=False),
        Binding("right", "column(1)", "value to the right", show=False),
    ]

    def __init__(self, *, clock: Callable[[], float], id: str | None = None) -> None:
        super().__init__(id=id, head=())
        self._clock = clock
        self._period_s = 2.0
        self._snapshot = FleetSnapshot()
        self._rows: dict[Key, Row] = {}
        self._keep: Callable[[str], bool] = matcher("")
        self._needs: dict[str, int] = {}
        self.query_text = ""
        self.sort_by = SORTS[0]
        self.turned = False
        self.column = "STATE"
        self.marks: frozenset[Key] = frozenset()

    @property
    def key(self) -> Key | None:
        """Box and run under the cursor."""
        selected = self.selected
        return selected if isinstance(selected, tuple) else None

    @property
    def counts(self) -> tuple[int, int]:
        """Rows shown, and rows there are."""
        return len(self.items), len(self._rows)

    def place_for(self, key: Hashable | None) -> int:
        """The worst row until the operator chooses one; then that row, or another one of the same box."""
        if not self.moved:
            return 0
        keys = [item.key for item in self.items]
        if key in keys or not isinstance(key, tuple):
            return super().place_for(key)
        same_box = (i for i, k in enumerate(keys) if isinstance(k, tuple) and k[0] == key[0])
        return next(same_box, super().place_for(key))

    def row(self, key: Key) -> Row | None:
        return self._rows.get(key)

    def apply(self, snapshot: FleetSnapshot, period_s: float = 2.0) -> None:
        """Take in a snapshot and paint what differs."""
        self._snapshot, self._period_s = snapshot, period_s
        fresh = rows_of(snapshot, self._clock(), glyphs_of(self), self._period_s)
        self._rows = {row.key: row for row in mark_changes(fresh, self._rows)}
        self.marks &= frozenset(self._rows)
        self._arrange()

    def filter(self, query: str) -> None:
        """Show only rows that match. Raises Failure for a bad regular expression; the old filter stays."""
        keep = matcher(query)
        self._keep, self.query_text = keep, query.strip()
        self._arrange()

    def sort(self, name: str | None = None) -> str:
        """Sort by `name`, or by the next order in turn."""
        self.sort_by = name if name in SORTS else SORTS[(SORTS.index(self.sort_by) + 1) % len(SORTS)]
        self._arrange()
        return self.sort_by

    def turn(self) -> None:
        """Turn the order round."""
        self.turned = not self.turned
        self._arrange()

    def mark(self) -> None:
        """Mark the row under the cursor, or take its mark away."""
        key = self.key
        if key is not None:
            self.marks ^= {key}
            self._arrange()

    def chosen(self) -> list[Key]:
        """The marked rows in sight, else the one under the cursor."""
        marked = [item.key for item in self.items if item.key in self.marks]
        under = [item.key for item in self.items if item.key == self.selected]
        return [key for key in marked or under if isinstance(key, tuple)]

    def on_resize(self) -> None:
        self._arrange()  # the list scrolls itself after this

    def action_column(self, step: int) -> None:
        """Move to the value on the left or right."""
        ids = [column.id for column, _ in self._columns()]
        if ids:
            place = ids.index(self.column) if self.column in ids else 0
            self.column = ids[(place + step) % len(ids)]
            self._arrange()
            self.post_message(self.Moved(self))

    def _columns(self) -> list[tuple[Column, int]]:
        return layout(self.size.width, self._needs) if self.size.width else []

    def _arrange(self) -> None:
        rows = arranged(self._rows.values(), self.sort_by, reverse=self.turned, keep=self._keep)
        self._needs = needs_of(self._rows.values())
        columns = self._columns()
        shown = [column.id for column, _ in columns]
        if self.column not in shown and shown:
            self.column = next((name for name in shown if name.endswith("STATE")), shown[0])
        self.show_items([Item(row.key, self._line(row, columns)) for row in rows], self._title(columns))

    def _title(self, columns: list[tuple[Column, int]]) -> Line:
        glyphs = glyphs_of(self)
        spans: list[Span] = [("  ", "")]
        left: Column | None = None
        currency = currency_sign(self._snapshot)
        for column, width in columns:
            spans.append((" " * gap(left, column, self.size.width), ""))
            title = title_of(column, currency)
            sorted_by = column.sort == self.sort_by
            if sorted_by:
                falls = (self.sort_by != "name") != self.turned
                arrow = glyphs.down if falls else glyphs.up
                if cell_len(title) < width:
                    title = f"{title}{arrow}"
            style = "strong" if sorted_by else "dim"
            if column.id == self.column:
                style += " under"
            spans.append((fit(title, width, right=column.right, ellipsis=glyphs.ellipsis), style))
            left = column
        return tuple(spans)

    def _line(self, row: Row, columns: list[tuple[Column, int]]) -> Line:
        glyphs = glyphs_of(self)
        mark = (glyphs.mark, "accent") if row.key in self.marks else (" ", "")
        spans: list[Span] = [(" ", ""), mark]
        left: Column | None = None
        for column, width in columns:
            space = gap(left, column, self.size.width)
            if column.right:
                width += space  # numbers side by side in one style are written as one piece
            else:
                spans.append((" " * space, ""))
            spans.extend(self._cell(row, column, width))
            left = column
        return tuple(spans)

    def _cell(self, row: Row, column: Column, width: int) -> list[Span]:
        glyphs = glyphs_of(self)
        cell = row.cells[column.id]
        style = cell.style
        if row.stale and style not in ("attention", "danger", "money"):
            style = "dim"
        if column.id in row.changed and not row.stale:
            style = f"{style} strong".strip()
        tail: list[Span] = []
        if column.id == "PROGRESS" and width >= 10 + 1 + STRIP:
            words = max(10, min(self._needs.get("PROGRESS", 10), width - 1 - STRIP))
            tail = [(" ", ""), (self._losses(row.key, width - words - 1), "graph")]
            width = words
        text = fit(cell.text, width, right=column.right, ellipsis=glyphs.ellipsis)
        return [(text, style), *tail]

    def _losses(self, key: Key, width: int) -> str:
        run = self._snapshot.run(key[1]) if key[1] else None
        return loss_strip(run.progress if run else None, width, glyphs_of(self))
