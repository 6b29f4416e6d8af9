"""Tells the command log about the commands that transports run."""

from __future__ import annotations

import time
from collections.abc import Callable

from tui.box.remote_shell import copyable
from tui.box.transport import Script
from tui.model.command import CommandRecord
from tui.model.text import safe

OnCommand = Callable[[CommandRecord], None]


class Recorder:
    """One command. A long-lived one is told twice, with the same box, time and text: running, then over."""

    def __init__(self, box: str, script: Script, emit: OnCommand, clock: Callable[[], float]) -> None:
        self._box = box
        self._emit = emit
        self._what = safe(copyable(script))
        self._why = safe(script.why)
        self._started_at = clock()
        self._started = time.monotonic()

    def took(self) -> float:
        """Seconds since it was asked for."""
        return time.monotonic() - self._started

    def running(self) -> None:
        self._emit(CommandRecord(self._box, self._what, self._why, self._started_at))

    def done(self, status: int | None, note: str = "") -> None:
        """It is over; `status` None: ended by us, or not known, which `note` says."""
        took = self.took()
        self._emit(
            CommandRecord(self._box, self._what, self._why, self._started_at, took, status, safe(note))
        )
