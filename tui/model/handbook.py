"""What somebody needs who knows nothing of a run: lines that can be copied into a shell."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class HandbookView:
    """The page of one run.

    Attributes:
        launched: rgt launched it from here, so that the lines are the whole of it.
        lines: titles and lines; a line is a command or a place.
        note: what the reader must know before he uses them.
    """

    run: str
    launched: bool
    lines: tuple[tuple[SafeText, SafeText], ...] = ()
    note: SafeText = SafeText("")
