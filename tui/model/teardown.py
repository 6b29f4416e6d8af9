"""A teardown as the operator sees it: its steps, what each did, and what is asked of him now.

Made by the worker from records on disk, drawn by the wizard; plain values, so that neither has to know the
records. Foreign text in it is safe to show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.model.text import SafeText

StepId = Literal["roster", "digest", "copy", "readback", "load", "metrics", "approval", "outcome"]

StepState = Literal["waiting", "running", "done", "refused", "needs-you", "failed"]
"""``refused``: evidence stands against it. ``failed``: it could not be carried out and can be tried again."""

Question = Literal["leftovers", "destination", "phrase", "word", "anyway"]
"""What the operator is asked: to decide about leftovers, where to copy to, to type the phrase, to say what
the console shows, or why to stop a box that is busy or can't be seen."""


@dataclass(frozen=True, slots=True)
class StepProgress:
    """How far long work is. Rates are bytes a second; None while nothing can be said."""

    done: int
    total: int
    files: int = 0
    files_total: int = 0
    rate: float | None = None
    eta_s: float | None = None
    note: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A refusal or a gap. `clears` says what would clear it; `reason` why the operator went on over it."""

    code: str
    detail: SafeText
    path: SafeText = SafeText("")
    clears: SafeText = SafeText("")
    reason: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class StepView:
    """One step.

    Attributes:
        brief: what came of it, in one line.
        runs, expected, observed: what is done, what must come of it, and what did.
        at: when its evidence was made, UTC text; empty while there is none.
        reused: it was made earlier and was found to hold still.
    """

    id: StepId
    state: StepState = "waiting"
    brief: SafeText = SafeText("")
    runs: SafeText = SafeText("")
    expected: SafeText = SafeText("")
    observed: tuple[SafeText, ...] = ()
    progress: StepProgress | None = None
    refusals: tuple[Trouble, ...] = ()
    gaps: tuple[Trouble, ...] = ()
    at: str = ""
    reused: bool = False


@dataclass(frozen=True, slots=True)
class LeftoverView:
    """A group of files that would be lost and is not on the roster.

    Attributes:
        group: its name in the record; not to be shown, it may hold any bytes.
        decision: ``keep``, ``scrap``, or empty while it blocks.
    """

    group: str
    title: SafeText
    count: int
    size: int
    examples: tuple[SafeText, ...] = ()
    checkpoint_like: bool = False
    decision: str = ""
    reason: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class PhraseAsked:
    """What is to be typed, and the digest of the proof that it is for; empty for a stop without one."""

    text: SafeText
    proof: str
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class TeardownView:
    """One teardown, or one stop.

    Attributes:
        run: None for a stop that loses nothing: it needs no chain.
        act: the platform's own word for the verb.
        machine: the platform and its id of the machine.
        reversible: None where nobody says.
        current: the step that is worked on, or that waits.
        lost, survives: storage tiers; what nobody can tell counts as lost.
        warnings: what the operator should know before he decides: a hold, an old profile, traps.
        held: a hold stands against it: since when and why.
        summary: titles and values of what he decides on, once it is proven.
        console: what to do by hand, where no control plane can be asked.
        ended: kind of the outcome; empty before.
        reader: who reads the copy back: ``here``, or a box; `readers` are the boxes that may.
        working: something runs now. It goes on when the screen is left.
        problem: why it does not go on, where it is no step's fault.
    """

    box: str
    run: str | None
    verb: Literal["stop", "destroy"]
    act: SafeText = SafeText("")
    machine: SafeText = SafeText("")
    reversible: bool | None = None
    steps: tuple[StepView, ...] = ()
    current: StepId = "roster"
    leftovers: tuple[LeftoverView, ...] = ()
    lost: tuple[SafeText, ...] = ()
    survives: tuple[SafeText, ...] = ()
    bills: SafeText = SafeText("")
    warnings: tuple[SafeText, ...] = ()
    held: SafeText = SafeText("")
    summary: tuple[tuple[SafeText, SafeText], ...] = ()
    question: Question | None = None
    destination: SafeText = SafeText("")
    reader: SafeText = SafeText("")
    readers: tuple[SafeText, ...] = ()
    phrase: PhraseAsked | None = None
    answer: SafeText = SafeText("")
    console: SafeText = SafeText("")
    ended: str = ""
    working: bool = False
    problem: SafeText = SafeText("")

    def step(self, name: StepId) -> StepView | None:
        return next((one for one in self.steps if one.id == name), None)


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """A verb that was begun and whose end nobody has seen or told: it counts as running and billing.

    Attributes:
        since: UTC text.
        by_hand: the operator's word is what is missing; otherwise another look is.
    """

    box: str
    verb: Literal["stop", "destroy"]
    since: str
    by_hand: bool

    @property
    def text(self) -> SafeText:
        """In one sentence, with what to do."""
        begun = f"{self.verb} of {self.box} was begun at {self.since}"
        wanted = "stopped" if self.verb == "stop" else "gone"
        if self.by_hand:
            do = f"look at its console whether it is {wanted}, and say so"
        else:
            do = "nobody has seen its end; look again"
        return SafeText(f"{begun}; {do}. Until then it counts as billing.")
