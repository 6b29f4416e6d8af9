"""Which of a box's processes are rgt itself: on this very computer, over loopback or without SSH."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tui.box.probe.tasks import Task

_START = 19
"""The process's start in clock ticks since the boot, counted behind its name: proc(5), field 22 of stat."""


@dataclass(frozen=True, slots=True)
class Self:
    """This process as another one sees it; `boot_id` tells computers, and reboots, apart."""

    boot_id: str
    pid: int
    start_ticks: int


def ours(tasks: Sequence[Task], boot_id: str | None, me: Self | None) -> frozenset[int]:
    """This process, those above it, and what it started in its own process group.

    Args:
        boot_id: of the box.
        me: None where this computer does not tell; then nothing is.
    """
    if me is None or boot_id != me.boot_id:
        return frozenset()
    own = next((t for t in tasks if t.pid == me.pid and t.start_ticks == me.start_ticks), None)
    if own is None:  # a container of this computer has pids of its own
        return frozenset()
    children = {t.pid for t in tasks if t.ppid == own.pid and t.group == own.group}
    return frozenset({own.pid, own.ppid, *own.ancestors} | children)


@cache
def this_process() -> Self | None:
    """This process by the kernel's own words; None where there is no Linux ``/proc``."""
    try:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        fields = Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return Self(boot_id, os.getpid(), int(fields[_START]))
    except (OSError, ValueError, IndexError):
        return None
