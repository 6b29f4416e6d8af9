"""One execution attempt of a job on a box, as it is watched."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What to watch of one run; an entry of ``fleet.toml`` or of an adopted process.

    Attributes:
        name: unique in the fleet.
        box: name of the instance it runs on.
        log: path on the box, relative to the login directory or absolute.
        checkpoints: glob on the box; ``**`` is not followed into other filesystems.
        pid, pid_start: the process and its start time in clock ticks since boot (Linux ``/proc/PID/stat``
            field 22), which together name it for one boot; `boot_id` names the boot.
        session: tmux session, or a scheduler's job that runs it: ``slurm:JOBID``, ``job:NAME`` of Kubernetes.
        progress_regex: the operator's own pattern for progress lines, with a group ``done`` and perhaps
            ``total`` and ``loss``; then the built-in ones only tell a regular end.
    """

    name: str
    box: str
    log: str | None = None
    checkpoints: str | None = None
    pid: int | None = None
    pid_start: int | None = None
    boot_id: str | None = None
    session: str | None = None
    progress_regex: str | None = None


class RunState(Enum):
    """What the evidence supports about a run; unknown and unreachable are states of their own."""

    RUNNING = "running"
    STARTING = "starting"
    STALLED = "stalled"  # alive, and silent for longer than it ever was
    FINISHED = "finished"
    DEAD = "dead"  # the process is proven gone and the log shows no regular end
    UNKNOWN = "unknown"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run says it is, read from its log.

    Attributes:
        unit: what `done` and `total` count: ``epoch``, ``step`` or ``it``.
        done, total: None when the log does not say.
        loss: the newest loss figure; may be NaN.
        eta_s: seconds the log itself says remain.
        at: when the line arrived here, seconds since the epoch.
        line: the log line it was read from.
    """

    unit: str = ""
    done: int | None = None
    total: int | None = None
    loss: float | None = None
    eta_s: float | None = None
    at: float = 0.0
    line: SafeText = SafeText("")
    losses: tuple[float, ...] = field(default=())  # newest last, for the curve; at most 120
    finished: bool = False  # the log shows a regular end
