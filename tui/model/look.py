"""Looks: read-only questions to a box that the operator asks for with one key, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.model.text import SafeText

Subject = Literal["", "mount", "pid", "checkpoints"]
"""What a look needs to be told: nothing, a mount, a process, or the pattern of a run's checkpoints."""


@dataclass(frozen=True, slots=True)
class Look:
    """One read-only look.

    Attributes:
        id: as the catalog's remedies name it.
        title: what it does, in words that fit a line.
        deadline_s: what it may take; it is ended then.
    """

    id: str
    title: str
    subject: Subject = ""
    deadline_s: float = 15.0


LOOKS: tuple[Look, ...] = (
    Look("dmesg", "read the newest kernel messages"),
    Look("gpu_holders", "list who has the cards' device files open"),
    Look("gpu_detail", "read throttling, ECC, row remapping and clocks of the cards", "", 25.0),
    Look("driver", "read the versions of driver, module and library"),
    Look("disk_bytes", "list the largest directories by bytes", "mount", 60.0),
    Look("disk_files", "list the directories with the most files", "mount", 60.0),
    Look("mounts", "read mounts, bytes, inodes and quota"),
    Look("deleted_files", "list files that are deleted but still open"),
    Look("shm", "list what lies in /dev/shm"),
    Look("memory", "read the cgroup's counters and the largest processes"),
    Look("processes", "list processes with state and where they wait"),
    Look("stack", "read the job's stack: py-spy where it is, else the kernel's", "pid", 25.0),
    Look("limits", "read limits of files, processes and threads", "pid"),
    Look("checkpoints", "list the newest checkpoints", "checkpoints"),
    Look("ports", "list listening ports and their owners"),
    Look("network", "read routes, name servers and proxies"),
    Look("scheduler", "ask the scheduler about our jobs", "", 20.0),
)

LOOK = {look.id: look for look in LOOKS}


@dataclass(frozen=True, slots=True)
class LookAnswer:
    """What one look gave.

    Attributes:
        look: id of the look.
        subject: what it was asked about; empty where it needs nothing.
        at: when it was asked, seconds since the epoch.
        command: the command as it can be copied into a shell.
        exit: exit status; None when it did not end by itself.
        lines: what it printed, at most as many as the worker keeps.
        note: why there is no answer, or what is missing of it; empty when it is whole.
    """

    box: str
    look: str
    at: float
    command: SafeText
    exit: int | None
    lines: tuple[SafeText, ...] = ()
    note: SafeText = SafeText("")
    subject: SafeText = SafeText("")
    took_s: float = 0.0
