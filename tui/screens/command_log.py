"""Every command that ran on a box: when, how long, how it ended, why."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from tui.model.command import CommandRecord
from tui.model.snapshot import FleetSnapshot
from tui.screens.list_view import FilteredList
from tui.widgets.footer import Verb
from tui.widgets.lines import Line, Span, clip, fit, wrap
from tui.widgets.picker import Item, Picker

BOX = 14
"""Cells of a box's name."""
_BEFORE = len("  09:41:07  ") + BOX + len("   0.02 s  0     ") + 1
"""Cells before the reason."""
ROOMY = 100
"""From this width on the command stands beside its reason; below, the selected one's in full is enough."""


def _why_cells(width: int) -> int:
    """Cells of the reason: it says more than the beginning of a script."""
    return 32 if width >= ROOMY else max(8, width - _BEFORE - 1)


def _ended(record: CommandRecord) -> str:
    return "" if record.took_s is None else "lost" if record.exit is None else str(record.exit)


class CommandLogScreen(FilteredList):
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
        all_of = self.host.snapshot.commands
        kept = (r for r in all_of if self.keep(f"{r.box} {r.why} {_ended(r)} {r.what} {r.note}"))
        self._records = {(r.started_at, r.box, r.what): r for r in kept}
        why, after = f"{'WHY':{_why_cells(width)}}", "  COMMAND" if width >= ROOMY else ""
        head: Line = ((f"  {'TIME':9} {'BOX':{BOX}} {'TOOK':>7}  {'EXIT':5} {why}{after}", "dim"),)
        return head, [Item(key, self._line(r, width)) for key, r in self._records.items()]

    def _line(self, r: CommandRecord, width: int) -> Line:
        clock = time.strftime("%H:%M:%S", time.localtime(r.started_at))
        took = "running" if r.took_s is None else f"{r.took_s:.2f} s"
        bad = r.exit != 0 and r.took_s is not None
        dots = self.host.glyphs.ellipsis
        line: Line = (
            ("  ", ""),
            (f"{clock:9} ", "dim"),
            (fit(r.box, BOX, ellipsis=dots) + " ", ""),
            (fit(took, 7, right=True) + "  ", ""),
            (fit(_ended(r), 5) + " ", "attention" if bad else "dim"),
            (fit(r.why, _why_cells(width), ellipsis=dots), ""),
        )
        return clip((*line, (f"  {r.what}", "dim")), width - 1, dots) if width >= ROOMY else line

    def below(self, width: int) -> Sequence[Line]:
        record = self._selected()
        if record is None:
            return ()
        text = [*wrap(record.what, max(20, width - 4))[:6], *wrap(record.note, max(20, width - 4))[:2]]
        return [((f"  {part}", ""),) for part in text]

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        count = len(self._records)
        of = len(self.host.snapshot.commands)
        said = f"{count} of {of}" if self.query_text else f"the newest {count}"
        return ((self.HEADING, "title"), *self.filter_spans()), ((said, "dim"),)

    def nothing(self) -> str:
        return self.none_matches() if self.query_text else "No command ran on any box yet."

    def keys(self) -> list[Verb]:
        return self.verbs("back", "filter", "copy")

    def _selected(self) -> CommandRecord | None:
        return self._records.get(self.query_one(Picker).selected)

    def action_copy(self) -> None:
        record = self._selected()
        self.host.say(self.host.copy_text(record.what) if record else "There is nothing here to copy.")
