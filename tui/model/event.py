"""What workers tell the store. Each event is one fact; the reducer folds them into a snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tui.model.account import AccountView
from tui.model.command import CommandRecord
from tui.model.handbook import HandbookView
from tui.model.incident import Diagnosis
from tui.model.instance import DangerClock, Ended, Instance, Link
from tui.model.launch import LaunchView
from tui.model.log import LogBatch, LogState, SearchResult
from tui.model.look import LookAnswer
from tui.model.queue import MatrixView
from tui.model.reclaim import ReclaimView
from tui.model.run import Progress, RunSpec
from tui.model.setup import SetupView
from tui.model.storage import Ladder
from tui.model.teardown import OpenEnd, TeardownView
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class FleetChanged:
    """The fleet file was read: these instances and runs exist, in this order.

    Attributes:
        clocks: by instance, the next date on which its platform acts on it.
        inode_caps: by instance, the platform's own limits of files by path.
        problems: what could not be read of the file; boxes may be missing because of it.
    """

    instances: tuple[Instance, ...]
    runs: tuple[RunSpec, ...]
    clocks: tuple[tuple[str, DangerClock], ...] = ()
    problems: tuple[SafeText, ...] = ()
    inode_caps: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class LinkChanged:
    box: str
    link: Link


@dataclass(frozen=True, slots=True)
class HostKeyAsked:
    """The box showed a key that is not the pinned one. `pinned` is None at the first contact."""

    box: str
    offered: SafeText
    pinned: SafeText | None


@dataclass(frozen=True, slots=True)
class SecretAsked:
    """A password, passphrase or one-time code is wanted; `prompt` is the server's or the key's own text."""

    box: str
    prompt: SafeText


@dataclass(frozen=True, slots=True)
class TelemetryTaken:
    box: str
    telemetry: Telemetry


@dataclass(frozen=True, slots=True)
class LogRead:
    batch: LogBatch


@dataclass(frozen=True, slots=True)
class LogStateChanged:
    state: LogState


@dataclass(frozen=True, slots=True)
class OlderLoaded:
    """Answer to LoadOlder: lines just before those in memory. Empty when the spool has none."""

    batch: LogBatch


@dataclass(frozen=True, slots=True)
class ProgressRead:
    run: str
    progress: Progress


@dataclass(frozen=True, slots=True)
class Searched:
    result: SearchResult


@dataclass(frozen=True, slots=True)
class CommandRan:
    record: CommandRecord


@dataclass(frozen=True, slots=True)
class WatchHeld:
    """Another rgt on this computer already watches this run; `holder` says which. None: it is ours."""

    run: str
    holder: SafeText | None


@dataclass(frozen=True, slots=True)
class ForwardChanged:
    """A forwarded port. `local_port` is None when it is closed; `note` says why when it failed."""

    box: str
    port: int
    local_port: int | None
    note: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class Notice:
    """One sentence for the operator. Levels: ``info``, ``attention``, ``danger``."""

    text: SafeText
    level: str = "info"
    box: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """Triage looked. `run` is None for a box without a watched run; `at` is when it was worked out.

    Attributes:
        looked_at: what was looked at, and when that was taken; None where it could not be.
        pressing: what the box wants attention for besides, such as a mount that is filling up.
    """

    box: str
    run: str | None
    diagnosis: Diagnosis
    at: float
    looked_at: tuple[tuple[SafeText, float | None], ...] = ()
    pressing: tuple[SafeText, ...] = ()


@dataclass(frozen=True, slots=True)
class Looked:
    """A look came back."""

    answer: LookAnswer


@dataclass(frozen=True, slots=True)
class LadderMade:
    """A storage survey came back and was worked out."""

    ladder: Ladder


@dataclass(frozen=True, slots=True)
class ReclaimChanged:
    """A reclaim was refused, went on, or is over."""

    view: ReclaimView


@dataclass(frozen=True, slots=True)
class TeardownChanged:
    """A teardown went on. `view` is None when it is closed."""

    box: str
    view: TeardownView | None


@dataclass(frozen=True, slots=True)
class OpenEndsRead:
    """Every verb on record that was begun and is not settled, and the machines that are destroyed."""

    ends: tuple[OpenEnd, ...]
    ended: tuple[Ended, ...] = ()


@dataclass(frozen=True, slots=True)
class AccountSeen:
    """An account at a provider was asked; what it answered, or why it did not."""

    account: AccountView


@dataclass(frozen=True, slots=True)
class AccountsKnown:
    """These accounts are asked from now on; what others listed is forgotten."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetupChanged:
    """The guided setup is somewhere else; the newest view is the whole of it."""

    view: SetupView


@dataclass(frozen=True, slots=True)
class LaunchChanged:
    """The launch is somewhere else; the newest view is the whole of it."""

    view: LaunchView


@dataclass(frozen=True, slots=True)
class MatrixChanged:
    """The cells of a queue were looked at, or are just now."""

    view: MatrixView


@dataclass(frozen=True, slots=True)
class HandbookRead:
    """What is known of a run."""

    page: HandbookView


Event: TypeAlias = (
    FleetChanged
    | AccountSeen
    | AccountsKnown
    | LinkChanged
    | HostKeyAsked
    | SecretAsked
    | TelemetryTaken
    | LogRead
    | LogStateChanged
    | OlderLoaded
    | ProgressRead
    | Searched
    | CommandRan
    | WatchHeld
    | ForwardChanged
    | Notice
    | TeardownChanged
    | OpenEndsRead
    | Diagnosed
    | Looked
    | LadderMade
    | ReclaimChanged
    | SetupChanged
    | LaunchChanged
    | MatrixChanged
    | HandbookRead
)
