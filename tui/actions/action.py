"""What an action is, and how much it may cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """Consequence of an action."""

    OBSERVE = 0
    LOCAL = 1  # reversible, on this computer
    REMOTE = 2  # remote or costly, nothing destroyed
    IRREVERSIBLE = 3


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the operator can do.

    Attributes:
        id: stable name, used in keymap files and on the ``:`` line.
        keys: default keys in Textual's spelling, first one shown.
        label: footer text, one or two words.
        help: one sentence for help and palette.
        views: where the action applies; ``*`` is everywhere.
        footer: rank in the footer (lower comes first); 0 keeps it out of the footer.
        takes: what must follow on the ``:`` line, such as ``BOX`` or ``TEXT``; in brackets what may.
        runs: words of the verb that gets the terminal for it, with ``{box}`` and ``{run}`` of what is
            selected; what was typed comes last. Empty: the app or a view does it.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    views: tuple[str, ...] = ("*",)
    level: Level = Level.OBSERVE
    footer: int = 0
    takes: str = ""
    verb: str = ""
    runs: tuple[str, ...] = ()
