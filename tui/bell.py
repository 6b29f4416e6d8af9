"""Calls the operator who looks elsewhere: the terminal's bell, and OSC 9 for its notifications.

One for each material change, not for each frame: `tui.fleet.patrol.Calls` says what is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tui.fleet.patrol import Calls
from tui.model.snapshot import FleetSnapshot
from tui.model.text import safe

EVERY_S = 1.0
"""Between two looks at the snapshot: frames come faster, changes that matter do not."""
MOST = 200
_MUTE = ("", "dumb", "linux")


class Bell:
    """Rings for what a snapshot newly says.

    Args:
        write: puts bytes of control straight to the terminal.
        environ: tells what terminal it is.
    """

    def __init__(
        self, write: Callable[[str], None], environ: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        self._write, self._environ, self._clock = write, environ, clock
        self._calls, self._looked = Calls(), 0.0

    def hear(self, snapshot: FleetSnapshot) -> None:
        """Look at a snapshot, at most once in `EVERY_S`."""
        now = self._clock()
        if 0 <= now - self._looked < EVERY_S:
            return
        self._looked = now
        called = self._calls.of(snapshot, now)
        if called:
            more = f" and {len(called) - 1} more" if len(called) > 1 else ""
            self._write(ring(f"{called[0].line}{more}", self._environ))


def ring(text: str, environ: Mapping[str, str]) -> str:
    """The bell, and the words as a notification where the terminal may know it.

    OSC 9 is what iTerm2, WezTerm, kitty, ConEmu and Windows Terminal show; others pass over it. The words
    begin with ``rgt``, for ``9;4`` is a progress bar. tmux hands it on only where it is allowed to.
    """
    if environ.get("TERM", "") in _MUTE:
        return "\a"
    words = safe(f"rgt: {text}", MOST)
    if environ.get("TMUX"):
        return f"\a\x1bPtmux;\x1b\x1b]9;{words}\a\x1b\\"
    return f"\a\x1b]9;{words}\a"
