"""Commands: what the operator asks of the workers, and what the workers ran on the boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tui.model.run import RunSpec
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


Command: TypeAlias = (
    ProbeNow
    | ReconnectNow
    | TrustHostKey
    | GiveSecret
    | AdoptRun
    | ForgetRun
    | ReloadFleet
    | SearchLog
    | CancelSearch
    | LoadOlder
    | OpenForward
    | CloseForward
    | ViewAt
    | Diagnose
    | TakeLook
    | SurveyStorage
)
