"""GPU use: who is on which card, over all boxes in one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tui.model.failure import Failure
from tui.screens.list_view import FilteredList
from tui.widgets import card_rows as rows
from tui.widgets.footer import Verb
from tui.widgets.lines import Line, Span
from tui.widgets.picker import Item, Picker


class CardsScreen(FilteredList):
    """Every process on every card; `enter` opens its run, `y` copies its pid."""

    VIEW = "cards"
    HEADING: ClassVar[str] = "GPU use"

    def __init__(self) -> None:
        super().__init__()
        self._uses: dict[object, rows.Use] = {}
        self._sum = ""
        self._order = rows.SORTS[0]

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        host = self.host
        found = list(rows.uses(host.snapshot, host.clock(), host.period_s))
        self._sum = rows.sum_words(found, 4 if width >= rows.ROOMY else 2)
        self._uses = {use.key: use for use in rows.arranged(found, self._order, self.keep)}
        items = [Item(key, rows.use_line(use, width, host.glyphs)) for key, use in self._uses.items()]
        return rows.head_line(width), items

    def below(self, width: int) -> Sequence[Line]:
        use = self._selected
        return rows.detail_lines(use, width, self.host.clock(), self.host.period_s) if use else ()

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        order: Sequence[Span] = ((self.key_of("sort"), "strong"), (f" by {self._order}", "dim"))
        if self.size.width >= rows.ROOMY:
            hint: Sequence[Span] = ((self.key_of("filter"), "strong"), (" filter   ", "dim"))
            order = (*hint, order[0], (f" sorted by {self._order}", "dim"))
        return ((self.HEADING, "title"), (f"  {self._sum}", ""), *self.filter_spans()), order

    def nothing(self) -> str:
        return self.none_matches() if self.query_text else "No box is known, so no card is."

    def keys(self) -> list[Verb]:
        return self.verbs("back", "open", "filter", "sort", "shell", "copy")

    @property
    def _selected(self) -> rows.Use | None:
        return self._uses.get(self.query_one(Picker).selected)

    def here(self) -> tuple[str, str | None] | None:
        """Box and run that an action means now."""
        use = self._selected
        return None if use is None else (use.box.name, use.run.name if use.run is not None else None)

    def action_open(self) -> None:
        """The run of the selected process where it is watched, else its box."""
        if (here := self.here()) is not None:
            runs = self.host.snapshot.runs_on(here[0])
            self.host.open_run(here[0], here[1] or (runs[0].name if runs else None))

    def action_sort(self, text: str = "") -> None:
        """By the next order, or by the one that is named. Raises Failure."""
        if text and text not in rows.SORTS:
            raise Failure(f"There is no order {text!r}.", do=f"Orders: {', '.join(rows.SORTS)}.")
        self._order = text or rows.SORTS[(rows.SORTS.index(self._order) + 1) % len(rows.SORTS)]
        self._refresh()
        if not (picker := self.query_one(Picker)).moved:
            picker.place(0)  # what the order was asked for

    def action_copy(self) -> None:
        use = self._selected
        pid = str(use.process.pid) if use is not None and use.process is not None else ""
        self.host.say(self.host.copy_text(pid) if pid else "No process is listed here.")
