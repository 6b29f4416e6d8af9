"""The frozen picture the screens draw. It is made by the reducer alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.model.account import AccountView, Rented
from tui.model.command import CommandRecord
from tui.model.event import Diagnosed, ForwardChanged, HostKeyAsked, Notice, SecretAsked
from tui.model.handbook import HandbookView
from tui.model.instance import DangerClock, Ended, Instance, Link
from tui.model.launch import LaunchView
from tui.model.log import LogState, SearchResult
from tui.model.look import LookAnswer
from tui.model.queue import MatrixView
from tui.model.reclaim import ReclaimView
from tui.model.run import Progress, RunSpec, RunState
from tui.model.setup import SetupView
from tui.model.storage import Ladder
from tui.model.teardown import OpenEnd, TeardownView
from tui.model.telemetry import RunTruth, Telemetry
from tui.model.text import SafeText
from tui.model.via import JobExec, PodExec, SlurmStep, Via

HISTORY = 240
"""Samples kept per strip."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One point of a box's history. A missing value is a gap; per-GPU tuples are ordered by index."""

    at: float
    gpu_util: tuple[float | None, ...] = ()
    gpu_mem_pct: tuple[float | None, ...] = ()
    mem_pct: float | None = None
    mounts: tuple[tuple[SafeText, int | None, int | None], ...] = ()  # (mount, used bytes, used inodes)


@dataclass(frozen=True, slots=True)
class Growth:
    """How fast a mount fills. Rates are per second over `window_s`; None when nothing can be said yet."""

    bytes_per_s: float | None = None
    inodes_per_s: float | None = None
    bytes_full_in_s: float | None = None
    inodes_full_in_s: float | None = None
    window_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing about a box or run that wants the operator. `level` is ``attention`` or ``danger``."""

    level: str
    short: SafeText  # fits a roster cell: "inodes 96%"
    text: SafeText  # the whole sentence


@dataclass(frozen=True, slots=True)
class BoxView:
    """One box as the operator sees it.

    Attributes:
        telemetry: the last good probe, or None; its own `taken_at` is the age shown.
        history, disk_history: samples for strips and growth; the latter reaches back hours.
        first_oom: the oom_kill count of this session's first probe; only what came later is news.
        written: what the fleet file says where the provider's list says more; None: the same as `instance`.
        rented: the machine as its provider lists it; None: no account lists it, or none was asked.
        unwritten: the fleet file does not have it: it is here because a provider lists it.
        file_clock: the clock by the fleet file alone; `clock` is the earliest of all.
    """

    instance: Instance
    link: Link = Link()
    telemetry: Telemetry | None = None
    history: tuple[Sample, ...] = ()
    disk_history: tuple[Sample, ...] = ()
    first_oom: int | None = None
    growth: tuple[tuple[SafeText, Growth], ...] = ()
    attention: tuple[Attention, ...] = ()
    clock: DangerClock | None = None
    inode_caps: tuple[tuple[str, int], ...] = ()  # the platform's limits of files, by mount
    asked_key: HostKeyAsked | None = None
    asked_secret: SecretAsked | None = None
    forwards: tuple[ForwardChanged, ...] = ()
    diagnosed: Diagnosed | None = None  # of the box itself, where no run was asked about
    looks: tuple[LookAnswer, ...] = ()  # the newest answer of each look, newest last
    ladder: Ladder | None = None
    reclaim: ReclaimView | None = None  # the newest one, also when it is over
    written: Instance | None = None
    rented: Rented | None = None
    unwritten: bool = False
    file_clock: DangerClock | None = None
    ended: Ended | None = None  # it is destroyed, on record, and has not been heard of since

    @property
    def name(self) -> str:
        return self.instance.name


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the operator sees it; `held_by` names another rgt that watches it on this computer."""

    spec: RunSpec
    state: RunState = RunState.UNKNOWN
    why: SafeText = SafeText("not probed yet")  # the evidence behind `state`, in words
    truth: RunTruth | None = None
    truth_at: float | None = None
    progress: Progress | None = None
    log_state: LogState | None = None
    attention: tuple[Attention, ...] = ()
    held_by: SafeText | None = None
    diagnosed: Diagnosed | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def finished(self) -> bool:
        """Whether a regular end is seen: in what its wrapper recorded, which counts first, or in its log."""
        if self.truth is not None and self.truth.end is not None:
            return self.truth.finished
        return self.progress is not None and self.progress.finished


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """Everything the screens show, except log lines, which lie in the log buffers.

    Attributes:
        version: grows with every change; equal versions mean equal snapshots.
        problems: what could not be read of the fleet file; boxes may be missing because of it.
        dropped: telemetry replaced before it was drawn (latest wins), counted for honesty.
    """

    version: int = 0
    boxes: tuple[BoxView, ...] = ()
    runs: tuple[RunView, ...] = ()
    commands: tuple[CommandRecord, ...] = ()  # newest last, at most 500
    notices: tuple[Notice, ...] = ()  # newest last, at most 100
    searches: tuple[SearchResult, ...] = ()
    teardowns: tuple[TeardownView, ...] = ()  # one a box at most
    open_ends: tuple[OpenEnd, ...] = ()
    ended: tuple[Ended, ...] = ()
    setup: SetupView | None = None
    launch: LaunchView | None = None
    matrix: MatrixView | None = None
    handbook: HandbookView | None = None  # of the run that was asked about last
    problems: tuple[SafeText, ...] = ()
    accounts: tuple[AccountView, ...] = ()
    dropped: int = 0
    started: bool = field(default=False)  # the fleet file has been read

    def box(self, name: str) -> BoxView | None:
        return next((b for b in self.boxes if b.instance.name == name), None)

    def run(self, name: str) -> RunView | None:
        return next((r for r in self.runs if r.spec.name == name), None)

    def machine_of(self, box: BoxView, run: RunView) -> BoxView | None:
        """The box whose cards a run has: its own, or the one that its scheduler's job is.

        None where that one is not in the fleet: what a login node has says nothing of the run.
        """
        kind, _, job = (run.spec.session or "").partition(":")
        if kind not in ("slurm", "job") or not job:
            return box
        return next((one for one in self.boxes if _is_job(one.instance.via, kind, job, box.instance)), None)

    def teardown(self, box: str) -> TeardownView | None:
        return next((t for t in self.teardowns if t.box == box), None)

    def runs_on(self, box: str) -> tuple[RunView, ...]:
        return tuple(r for r in self.runs if r.spec.box == box)


def _is_job(via: Via | None, kind: str, job: str, desk: Instance) -> bool:
    """Whether a way leads into that very job of the login node, or of the desk's namespace."""
    if isinstance(via, SlurmStep):
        return (kind, via.job, via.login) == ("slurm", job, desk.name)
    if isinstance(via, JobExec) and isinstance(desk.via, PodExec):
        return (kind, via.job, via.namespace) == ("job", job, desk.via.namespace)
    return False
