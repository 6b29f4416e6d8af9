"""Every command that ran on a box: when, how long, how it ended, why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from tui.model.command import CommandRecord
from tui.model.snapshot import FleetSnapshot
from tui.screens.list_view import ListView
from tui.widgets.footer import Verb
from tui.widgets.lines import Line, Span, fit, wrap
from tui.widgets.picker import Item, Picker


class CommandLogScreen(ListView):
    """The command log, newest at the end; `y` copies the command under the cursor."""

    VIEW = "commands"
    HEADING: ClassVar[str] = "command log"

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[object, CommandRecord] = {}
        self._opened = False

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        picker = self.query_one(Picker)
        at_end = not self._opened or picker.cursor >= len(picker.items) - 1
        self._refresh()
        if at_end:
            picker.action_last()
        self._opened = True

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        self._records = {(r.started_at, r.box, r.what): r for r in self.host.snapshot.commands}
        head: Line = ((f"  {'TIME':9} {'BOX':14} {'TOOK':>7}  {'EXIT':5} {'WHY':20} COMMAND", "dim"),)
        return head, [Item(key, self._line(r, width)) for key, r in self._records.items()]

    def _line(self, r: CommandRecord, width: int) -> Line:
        clock = time.strftime("%H:%M:%S", time.localtime(r.started_at))
        took = "running" if r.took_s is None else f"{r.took_s:.2f} s"
        ended = "" if r.took_s is None else "lost" if r.exit is None else str(r.exit)
        bad = r.exit != 0 and r.took_s is not None
        dots = self.host.glyphs.ellipsis
        return (
            ("  ", ""),
            (f"{clock:9} ", "dim"),
            (fit(r.box, 14, ellipsis=dots) + " ", ""),
            (fit(took, 7, right=True) + "  ", ""),
            (fit(ended, 5) + " ", "attention" if bad else "dim"),
            (fit(r.why, 20, ellipsis=dots) + " ", "dim"),
            (fit(r.what, max(0, width - 64), ellipsis=dots), ""),
        )

    def below(self, width: int) -> Sequence[Line]:
        record = self._selected()
        if record is None:
            return ()
        text = [*wrap(record.what, max(20, width - 4))[:6], *wrap(record.note, max(20, width - 4))[:2]]
        return [((f"  {part}", ""),) for part in text]

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        count = len(self._records)
        return ((self.HEADING, "title"),), ((f"{count} of the newest 500", "dim"),)

    def nothing(self) -> str:
        return "No command ran on any box yet."

    def keys(self) -> list[Verb]:
        return self.verbs("back", "copy")

    def _selected(self) -> CommandRecord | None:
        return self._records.get(self.query_one(Picker).selected)

    def action_copy(self) -> None:
        record = self._selected()
        self.host.say(self.host.copy_text(record.what) if record else "There is nothing here to copy.")
