"""The cells of a queue: one line each, and what every witness says of the selected one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from tui.fleet.age import age_word
from tui.model.command import LeaveMatrix, LookAtMatrix, WatchMatrix
from tui.model.failure import Failure
from tui.model.queue import CellView, MatrixView
from tui.model.snapshot import FleetSnapshot
from tui.screens.typed_line import TypedLine
from tui.screens.view import View
from tui.widgets import matrix_rows as rows
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Line, Lines, Span, wrap
from tui.widgets.match import matcher
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule

LOW = 24
"""Below this height the selected cell is told in its state alone."""


class MatrixScreen(View):
    """One queue's cells.

    Args:
        queue: its name; empty: the newest one.
    """

    VIEW = "matrix"
    TITLE: ClassVar[str | None] = "matrix"

    def __init__(self, queue: str = "") -> None:
        super().__init__()
        self._queue = queue
        self._order = rows.SORTS[0]
        self._query = ""
        self._keep: Callable[[str], bool] = matcher("")
        self._cells: dict[str, CellView] = {}
        self._listed: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        yield Rule("matrix", id="top")
        yield Picker(id="cells")
        yield Rule(id="middle")
        yield Lines(id="below")
        yield TypedLine()
        yield Footer()

    def on_screen_resume(self) -> None:
        """Boxes are asked while this view is in front, and only then."""
        self.host.send(WatchMatrix(self._queue))
        super().on_screen_resume()

    def on_screen_suspend(self) -> None:
        self.host.send(LeaveMatrix())

    def on_unmount(self) -> None:
        self.host.send(LeaveMatrix())

    def on_resize(self) -> None:
        self._draw()

    # -- the picture -----------------------------------------------------------------------------------

    @property
    def view(self) -> MatrixView:
        """What is known of the queue; nothing before the worker has looked."""
        view = self.host.snapshot.matrix
        if view is None or (self._queue and view.queue and view.queue != self._queue):
            return MatrixView(asking=True)
        return view

    @property
    def picker(self) -> Picker:
        return self.query_one("#cells", Picker)

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.size.width
        if not width:
            return
        view = self.view
        shown = (view.cells, width, self._order, self._query, view.problem)
        if not self._listed or any(a is not b and a != b for a, b in zip(shown, self._listed, strict=True)):
            self._listed = shown
            self._list(view, width)
        self._label(view, width)
        self._below()

    def _list(self, view: MatrixView, width: int) -> None:
        """The lines, made anew only when a cell, the width, the order or the filter is another."""
        columns, glyphs = rows.columns_of(view, width), self.host.glyphs
        found = rows.arranged(view.cells, self._order, self._keep)
        self._cells = {one.name: one for one in found}
        items = [Item(one.name, rows.cell_line(one, columns, width, glyphs)) for one in found]
        head = rows.head_line(view, columns, width, glyphs) if view.names else ()
        if not items:  # the sentence that stands in for them is where they would be
            items = [Item(None, line) for line in self._nothing(view, width)]
            head = head if view.cells else ()
        self.picker.show_items(items, head)

    def _label(self, view: MatrixView, width: int) -> None:
        glyphs = self.host.glyphs
        title: list[Span] = [("matrix", "title"), (f": {view.queue}" if view.queue else "", "")]
        if self._query:
            title += [
                ("  filter ", "dim"),
                (self._query, "accent"),
                (f"  {len(self._cells)} of {len(view.cells)}", "strong"),
            ]
        room = width - sum(len(text) for text, _ in title) - 8
        self.query_one("#top", Rule).label(title, rows.counts_spans(view, glyphs, room))
        self.query_one("#middle", Rule).label(self._when(view), self._silent(view))
        always = [] if self.query_one(TypedLine).open else self.verbs("help", "command")  # there, letters
        self.query_one(Footer).offer(self._verbs(), always)

    def _when(self, view: MatrixView) -> list[Span]:
        if view.at is None and view.problem and not view.asking:
            return [("no queue", "dim")]
        if view.at is None:
            return [
                ("asks the boxes" if view.asking else "not asked yet", "strong" if view.asking else "dim")
            ]
        word = age_word(view.at, self.host.clock(), self.host.period_s)
        told: list[Span] = [("asked just now" if word == "live" else f"asked {word} ago", "dim")]
        if view.asking:
            told.append((", and again now", "dim"))
        own = self._order == rows.SORTS[0]
        return told if own else [*told, (f", {rows.ORDERS[self._order]}", "dim")]

    def _silent(self, view: MatrixView) -> list[Span]:
        if not view.silent:
            return []
        many = len(view.silent)
        return [(f"{many} {'box does' if many == 1 else 'boxes do'} not answer", "attention")]

    @on(Picker.Moved)
    def _below(self) -> None:
        cell = self.cell
        lines = [] if cell is None else self._detail(self.view, cell, self.size.width)
        box = self.query_one("#below", Lines)
        box.styles.height = max(1, min(len(lines), self.size.height // 2))
        box.show(lines)

    def _detail(self, view: MatrixView, cell: CellView, width: int) -> list[Line]:
        found = list(rows.detail_lines(view, cell, width, low=self.size.height < LOW))
        return [*found, *_wrapped(view.problem, width, "danger")] if view.problem else found

    def _nothing(self, view: MatrixView, width: int) -> list[Line]:
        """Why there is no cell to be seen."""
        text = view.problem or (
            "No cell matches the filter." if view.cells else "Looking for a queue that was started from here."
        )
        missed = view.problem and self._queue  # one that was asked for; none at all is no trouble
        return _wrapped(text, width, "attention" if missed else "" if view.problem else "dim")

    @property
    def cell(self) -> CellView | None:
        """The cell under the cursor."""
        key = self.picker.selected
        return self._cells.get(key) if isinstance(key, str) else None

    def _verbs(self) -> list[Verb]:
        if self.query_one(TypedLine).open:
            return [Verb("enter", "filter", 1), Verb("esc", "leave", 2)]
        if self.cell is None:  # nothing that the other keys could be about
            found = self.verbs("filter", "back") if self._query else self.verbs("back")
        else:
            found = self.verbs("open", "filter", "sort", "handbook", "copy", "back")
        return [*found, *(replace(verb, label="ask now") for verb in self.verbs("probe"))]

    # -- actions ---------------------------------------------------------------------------------------

    def here(self) -> tuple[str, str | None] | None:
        """Box and run that an action means now."""
        cell = self.cell
        return None if cell is None else (str(cell.box), str(cell.name))

    def action_open(self) -> None:
        """The cell's run where it is watched, else its handbook."""
        cell = self.cell
        if cell is None:
            return
        if self.host.snapshot.run(cell.name) is not None:
            self.host.open_run(cell.box, cell.name)
        else:
            self.action_handbook()

    def action_handbook(self) -> None:
        from tui.screens.handbook import HandbookScreen

        cell = self.cell
        if cell is None:
            raise Failure("No cell is selected.")
        self.app.push_screen(HandbookScreen(cell.name))

    def action_probe(self) -> None:
        if self.host.send(LookAtMatrix()):
            self.host.say("Asking the boxes now.")

    def action_sort(self, text: str = "") -> None:
        if text and text not in rows.SORTS:
            raise Failure(f"There is no order {text!r}.", do=f"Orders: {', '.join(rows.SORTS)}.")
        after = rows.SORTS[(rows.SORTS.index(self._order) + 1) % len(rows.SORTS)]
        self._order = text or after
        self._draw()

    def action_filter(self, text: str = "") -> None:
        """Show only the cells that match; an empty line shows all."""
        if text:
            self._filter(text)
            return
        hint = "text   !not this   /regex/   such as failed, or box-1"
        self.query_one(TypedLine).ask("filter", "/", hint, self._filter)
        self._label(self.view, self.size.width)

    def _filter(self, text: str) -> None:
        self._keep, self._query = matcher(text), text.strip()
        self._draw()

    @on(TypedLine.Closed)
    def _typed(self, message: TypedLine.Closed) -> None:
        self.picker.focus()
        self.query_one(TypedLine).carry_out(message, self.host.say)
        self._label(self.view, self.size.width)

    async def action_back(self) -> None:
        """Close the line, drop the filter, else leave."""
        if self.query_one(TypedLine).open:
            self.query_one(TypedLine).close()
        elif self._query:
            self._filter("")
        else:
            self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the name of the selected cell, which is its run's."""
        cell = self.cell
        self.host.say(self.host.copy_text(cell.name) if cell else "There is nothing here to copy.")


def _wrapped(text: str, width: int, style: str) -> list[Line]:
    return [((f"  {part}", style),) for part in wrap(text, max(10, width - 4))]
