"""Commands: what the operator asks of the workers, and what the workers ran on the boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tui.model.ending import Ending
from tui.model.launch import Stage
from tui.model.reclaim import ReclaimPlan
from tui.model.run import RunSpec
from tui.model.setup import StepId
from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """One remote command, for the command log.

    Attributes:
        what: the command as it can be copied into a shell (never a secret).
        exit: its exit status; None while it runs or when the link was lost before it told.
        why: which action or worker wanted it.
    """

    box: str
    what: SafeText
    why: SafeText
    started_at: float
    took_s: float | None = None
    exit: int | None = None
    note: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class ProbeNow:
    """Probe at once instead of at the next tick."""

    box: str


@dataclass(frozen=True, slots=True)
class ReconnectNow:
    """Try to connect now, also where the worker had stopped trying."""

    box: str


@dataclass(frozen=True, slots=True)
class TrustHostKey:
    """The operator compared the fingerprint and accepts it as this box's identity."""

    box: str
    fingerprint: str


@dataclass(frozen=True, slots=True, repr=False)
class GiveSecret:
    """A password or passphrase typed by the operator; kept in memory for this session only."""

    box: str
    secret: str


@dataclass(frozen=True, slots=True)
class AdoptRun:
    """Start watching a run that rgt did not launch."""

    spec: RunSpec


@dataclass(frozen=True, slots=True)
class ForgetRun:
    """Stop watching a run. Nothing happens on the box."""

    run: str


@dataclass(frozen=True, slots=True)
class ForgetBox:
    """Take a box that is destroyed, and its runs, out of the fleet file. What is on record of it stays."""

    box: str


@dataclass(frozen=True, slots=True)
class ReloadFleet:
    """The fleet file was changed by somebody else in this program: read it again."""


@dataclass(frozen=True, slots=True)
class SearchLog:
    """Search beyond the lines in memory: the spool on this computer, then the file on the box."""

    run: str
    pattern: str
    ignore_case: bool = True
    regex: bool = False


@dataclass(frozen=True, slots=True)
class CancelSearch:
    run: str


@dataclass(frozen=True, slots=True)
class LoadOlder:
    """Bring lines before `before` from the spool into the view."""

    run: str
    before: int
    count: int = 2000


@dataclass(frozen=True, slots=True)
class OpenForward:
    """Forward a port of the box to this computer's loopback."""

    box: str
    port: int
    local_port: int = 0  # 0: any free one


@dataclass(frozen=True, slots=True)
class CloseForward:
    box: str
    port: int


@dataclass(frozen=True, slots=True)
class ViewAt:
    """What the operator looks at: its GPUs are read at every tick. None: the whole fleet."""

    box: str | None


@dataclass(frozen=True, slots=True)
class Diagnose:
    """Work out what is wrong with a run, or with a box (`run` None), from the newest evidence."""

    box: str
    run: str | None


@dataclass(frozen=True, slots=True)
class TakeLook:
    """Run one read-only look on the box; its answer becomes evidence."""

    box: str
    run: str | None
    look: str


@dataclass(frozen=True, slots=True)
class SurveyStorage:
    """Find out what lies on a mount and what of it comes back by itself. Nothing is changed."""

    box: str
    run: str | None
    mount: str


@dataclass(frozen=True, slots=True)
class ReclaimStorage:
    """Remove exactly what this plan lists, if what was typed is its phrase.

    Attributes:
        plan: as it was on the screen.
        typed: what was typed, exactly.
    """

    plan: ReclaimPlan
    typed: str

    @property
    def box(self) -> str:
        return self.plan.box


@dataclass(frozen=True, slots=True)
class StartSetup:
    """Begin the guided setup, or go on with the one under way.

    Attributes:
        name: a platform or a box to begin with; empty: nothing is known.
        anew: forget the one under way. What it made stays made.
    """

    name: str = ""
    anew: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class AnswerSetup:
    """What the operator chose or typed at a step; it may be a secret, so it does not show itself."""

    step: StepId
    answer: str


@dataclass(frozen=True, slots=True)
class SkipSetup:
    """Leave a step out, for a reason that stands in the summary."""

    step: StepId
    reason: str


@dataclass(frozen=True, slots=True)
class BackSetup:
    """Go back to an earlier step; what was done there is asked anew."""

    step: StepId


@dataclass(frozen=True, slots=True)
class LeaveSetup:
    """The setup's view was left; what runs goes on."""


@dataclass(frozen=True, slots=True)
class OpenLaunch:
    """Begin to launch a job, or look at the launch under way.

    Attributes:
        box: where the operator looked; it is proposed.
        file: a job file's path; empty: it is to be chosen.
        anew: forget the one before. What it started goes on.
    """

    box: str | None = None
    file: str = ""
    anew: bool = False


@dataclass(frozen=True, slots=True)
class ChooseJob:
    """Launch the job of this file; `path` is on this computer, and may begin with ``~/``."""

    path: str


@dataclass(frozen=True, slots=True)
class ChooseBox:
    """Launch it on this box, which is looked at first. Nothing is changed there."""

    box: str


@dataclass(frozen=True, slots=True)
class CheckAgain:
    """Look at everything again before the launch."""


@dataclass(frozen=True, slots=True)
class StartLaunch:
    """The operator's word to start; `consent` names the plan that he saw."""

    consent: str


@dataclass(frozen=True, slots=True)
class BackLaunch:
    """Choose again from this stage on."""

    stage: Stage


@dataclass(frozen=True, slots=True)
class LeaveLaunch:
    """The launch's view was left; what runs goes on."""


@dataclass(frozen=True, slots=True)
class WatchMatrix:
    """Ask what is true of every cell of a queue, again and again; empty: of the newest one."""

    queue: str = ""


@dataclass(frozen=True, slots=True)
class LookAtMatrix:
    """Ask about the cells now."""


@dataclass(frozen=True, slots=True)
class LeaveMatrix:
    """Nobody looks at the matrix; the boxes are left alone."""


@dataclass(frozen=True, slots=True)
class ReadHandbook:
    """Look up what is known of a run."""

    run: str


Guided: TypeAlias = StartSetup | AnswerSetup | SkipSetup | BackSetup | LeaveSetup
Launched: TypeAlias = (
    OpenLaunch
    | ChooseJob
    | ChooseBox
    | CheckAgain
    | StartLaunch
    | BackLaunch
    | LeaveLaunch
    | WatchMatrix
    | LookAtMatrix
    | LeaveMatrix
    | ReadHandbook
)
Command: TypeAlias = (
    ProbeNow
    | ReconnectNow
    | TrustHostKey
    | GiveSecret
    | AdoptRun
    | ForgetRun
    | ForgetBox
    | ReloadFleet
    | SearchLog
    | CancelSearch
    | LoadOlder
    | OpenForward
    | CloseForward
    | ViewAt
    | Ending
    | Diagnose
    | TakeLook
    | SurveyStorage
    | ReclaimStorage
    | Guided
    | Launched
)
