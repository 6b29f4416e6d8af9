"""What rgt had to say in this session: what a toast showed for a few seconds stays to be read here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tui.model.snapshot import FleetSnapshot
from tui.screens.list_view import ListView
from tui.widgets.footer import Verb
from tui.widgets.lines import Line, Span, fit, wrap
from tui.widgets.picker import Item, Picker


class MessagesScreen(ListView):
    """The newest messages, the last one at the end; `y` copies the one under the cursor."""

    VIEW = "messages"
    HEADING: ClassVar[str] = "messages"

    def __init__(self) -> None:
        super().__init__()
        self._opened = False

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        picker = self.query_one(Picker)
        at_end = not self._opened or picker.cursor >= len(picker.items) - 1
        self._refresh()
        if at_end:
            picker.action_last()
        self._opened = True

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        glyphs = self.host.glyphs
        rows: list[Item] = []
        for number, notice in enumerate(self.host.snapshot.notices):
            mark = glyphs.attention if notice.level in ("attention", "danger") else " "
            text = fit(notice.text, max(1, width - 4), ellipsis=glyphs.ellipsis)
            style = notice.level if mark.strip() else ""
            rows.append(Item(number, ((f"  {mark} ", style), (text.rstrip(), ""))))
        return None, rows

    def below(self, width: int) -> Sequence[Line]:
        text = self._selected()
        return [((f"  {part}", ""),) for part in wrap(text, max(20, width - 4))[:6]]

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        count = len(self.host.snapshot.notices)
        return ((self.HEADING, "title"),), ((f"the newest {count}", "dim"),) if count else ()

    def nothing(self) -> str:
        return "Nothing has happened yet that had to be told."

    def keys(self) -> list[Verb]:
        return self.verbs("back", "copy")

    def _selected(self) -> str:
        key = self.query_one(Picker).selected
        notices = self.host.snapshot.notices
        return notices[key].text if isinstance(key, int) and key < len(notices) else ""

    def action_copy(self) -> None:
        text = self._selected()
        self.host.say(self.host.copy_text(text) if text else "There is nothing here to copy.")
