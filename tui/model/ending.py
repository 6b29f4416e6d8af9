"""Commands to whoever ends a box: what the operator decides on the way to a stop or a teardown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class StartTeardown:
    """Open the end of a box, or go on where it was left. Nothing is destroyed by it.

    Attributes:
        run: whose files must survive; None for a stop that loses nothing.
    """

    box: str
    run: str | None
    verb: Literal["stop", "destroy"]


@dataclass(frozen=True, slots=True)
class LeaveTeardown:
    """Nobody looks at it any more; work that runs goes on."""

    box: str


@dataclass(frozen=True, slots=True)
class HaltTeardown:
    """End the work that runs now. What it has done is kept, and it can be gone on with."""

    box: str


@dataclass(frozen=True, slots=True)
class DecideLeftovers:
    """Keep groups of files that are not on the roster, or give them up."""

    box: str
    groups: tuple[str, ...]
    word: Literal["keep", "scrap"]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ChooseDestination:
    """Where the copy goes: a folder, ``BOX:FOLDER`` or ``rclone:REMOTE:FOLDER``; empty: as proposed."""

    box: str
    text: str


@dataclass(frozen=True, slots=True)
class ChooseReader:
    """Who reads the copy back: a box of the fleet, or this computer, which an empty text means."""

    box: str
    text: str


@dataclass(frozen=True, slots=True)
class GoOnOver:
    """The operator's reason to go on over what a step warns of; it stands in the proof and the receipt."""

    box: str
    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class RedoStep:
    """Make a step of a teardown again, and so those after it."""

    box: str
    step: str


@dataclass(frozen=True, slots=True)
class GivePhrase:
    """What was typed, exactly, and the digest of the proof that was on the screen then."""

    box: str
    typed: str
    proof: str


@dataclass(frozen=True, slots=True)
class GiveWord:
    """What the operator says the provider's console shows."""

    box: str
    word: Literal["gone", "stopped", "there", "unsure"]


Ending: TypeAlias = (
    StartTeardown
    | LeaveTeardown
    | HaltTeardown
    | DecideLeftovers
    | ChooseDestination
    | ChooseReader
    | GoOnOver
    | RedoStep
    | GivePhrase
    | GiveWord
)
