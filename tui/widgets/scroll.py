"""A page of lines in sight, turned by whole pages: for text that stands below a list which has the keys."""

from __future__ import annotations

from collections.abc import Sequence

from tui.widgets.lines import Line, Lines


class Scroll(Lines):
    """Lines of which a page is in sight."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._all: tuple[Line, ...] = ()
        self._top = 0

    def fill(self, lines: Sequence[Line], *, anew: bool) -> None:
        """Replace the lines; `anew` begins at the first one again."""
        self._all = tuple(lines)
        self._top = 0 if anew else self._top
        self.page(0)

    def page(self, step: int) -> None:
        """Show the next page, or the one before; 0 stays."""
        room = max(1, self.size.height)
        last = max(0, len(self._all) - room)
        self._top = max(0, min(last, self._top + step * max(1, room - 2)))
        shown = list(self._all[self._top : self._top + room])
        left = len(self._all) - self._top - room
        if left > 0 and shown:
            shown[-1] = ((f"  {left + 1} more lines, PgDn", "dim"),)
        self.show(shown)

    def on_resize(self) -> None:
        self.page(0)
