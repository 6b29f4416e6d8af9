"""Who uses which GPU, over all boxes in one list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tui.screens.list_view import ListView
from tui.widgets import card_rows as rows
from tui.widgets.footer import Verb
from tui.widgets.lines import Line, Span
from tui.widgets.picker import Item, Picker


class CardsScreen(ListView):
    """Every process on every card; `enter` opens its box, `y` copies its pid."""

    VIEW = "cards"
    HEADING: ClassVar[str] = "who uses which GPU"

    def __init__(self) -> None:
        super().__init__()
        self._uses: dict[object, rows.Use] = {}

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        host = self.host
        found = rows.uses(host.snapshot, host.clock(), host.period_s)
        self._uses = {use.key: use for use in found}
        items = [Item(key, rows.use_line(use, width, host.glyphs)) for key, use in self._uses.items()]
        return rows.head_line(width), items

    def below(self, width: int) -> Sequence[Line]:
        use = self._selected
        return rows.detail_lines(use, width, self.host.clock(), self.host.period_s) if use else ()

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        return ((self.HEADING, "title"),), ((rows.sum_words(list(self._uses.values())), "dim"),)

    def nothing(self) -> str:
        return "No box is known, so no card is."

    def keys(self) -> list[Verb]:
        return self.verbs("back", "open", "shell", "copy")

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

    def action_copy(self) -> None:
        use = self._selected
        pid = str(use.process.pid) if use is not None and use.process is not None else ""
        self.host.say(self.host.copy_text(pid) if pid else "No process is listed here.")
