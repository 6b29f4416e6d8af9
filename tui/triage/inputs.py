"""What a diagnosis is made from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.model.look import LookAnswer
from tui.model.text import SafeText
from tui.triage.schema import Kind

_KINDS: dict[str, Kind] = {
    "dmesg": "kernel",
    "gpu_holders": "process",
    "gpu_detail": "gpu",
    "driver": "gpu",
    "disk_bytes": "disk",
    "disk_files": "disk",
    "mounts": "disk",
    "deleted_files": "disk",
    "shm": "disk",
    "memory": "memory",
    "processes": "process",
    "stack": "process",
    "limits": "memory",
    "checkpoints": "disk",
    "ports": "process",
    "network": "shell",
    "scheduler": "scheduler",
}


@dataclass(frozen=True, slots=True)
class Said:
    """What one command printed.

    Attributes:
        kind: which rules read it.
        source: how evidence names it, such as ``df -i /data``.
        command: as it ran, for rules that depend on what was asked.
        rc: exit status; None when it did not end by itself or nobody knows.
        at: when it was asked, seconds since the epoch.
    """

    kind: Kind
    source: SafeText
    text: str
    stderr: str = ""
    rc: int | None = None
    command: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What was known besides, mostly from before. None: nothing is known.

    Attributes:
        run: name of the run the diagnosis is about, to find it in the telemetry.
        boot_id: of the box, when the run began.
        started_at: when the run began, by the box's clock, seconds since the epoch.
        now: by the box's clock; for ages.
        oom_kills: the counter of the cgroup, when the run began.
        alive: whether the run's process is there, where no telemetry says so.
        session_alive: whether its tmux session or its job is there.
        log_age_s: since the log was last written.
        rc: exit status of the run, where it was kept.
        ended_far_side: a non-zero status of ssh is that of the far command.
        without_gpu: the platform says that the box was started without a card.
        reachable: False when the box does not answer.
        quiet_s: silence after which a living run counts as stalled.
        host_pids: whether pids of the card's tool are those one sees; in a container they are often not.
        epochs: how many the run was asked for.
        platform: its name, such as ``autodl``.
    """

    run: str | None = None
    boot_id: str | None = None
    started_at: float | None = None
    now: float | None = None
    oom_kills: int | None = None
    alive: bool | None = None
    session_alive: bool | None = None
    log_age_s: float | None = None
    rc: int | None = None
    ended_far_side: bool = False
    without_gpu: bool = False
    reachable: bool | None = None
    quiet_s: float = 1800.0
    host_pids: bool | None = None
    epochs: int | None = None
    platform: str = ""


NOTHING_KNOWN = Known()


def said(answer: LookAnswer) -> Said:
    """A look's answer as evidence."""
    kind = _KINDS.get(answer.look, "shell")
    text = "\n".join(answer.lines)
    return Said(kind, answer.command, text, "", answer.exit, str(answer.command), answer.at)


_TOOLS: tuple[tuple[str, Kind], ...] = (
    (r"^\s*(?:ssh|scp|sftp|rsync)\b", "ssh"),
    (r"\b(?:nvidia-smi|rocm-smi|amd-smi|rocminfo|npu-smi|nvidia-debugdump)\b", "gpu"),
    (r"\bdmesg\b|journalctl\b.*(?:-k|--dmesg)|/dev/kmsg|kern\.log", "kernel"),
    (r"\b(?:squeue|sacct|scontrol|sinfo|sbatch|scancel|kubectl|docker|podman|crictl)\b", "scheduler"),
    (r"\b(?:tmux|screen)\b", "session"),
    (r"\b(?:df|du|\w*quota|lfs|beegfs-ctl|mount|findmnt|lsof)\b|/proc/mounts|mountinfo", "disk"),
    (r"/sys/fs/cgroup|/proc/(?:meminfo|pressure)|\bfree\b|\bulimit\b|memory\.events", "memory"),
    (r"\b(?:ps|pgrep|pstree|fuser|kill|top|uptime)\b|/proc/(?:\d|uptime|stat|1\b|sys/kernel)", "process"),
)


def kind_of(command: str) -> Kind:
    """What the output of a command is, by its first tool that is known; a shell's own where none is."""
    found = [(match.start(), kind) for form, kind in _TOOLS if (match := re.search(form, command))]
    first = min(found)[1] if found else "shell"
    runs = re.match(
        r"\s*(?:bash|sh|python3?|\./|srun|torchrun|deepspeed|accelerate|cat \S+\.(?:out|log|err))\b", command
    )
    return "shell" if runs else first
