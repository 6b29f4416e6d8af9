"""What processes cost, read from /proc. Linux only.

CPU time of a living process is what the scheduler counted, all its threads together; that of children that
ended comes from ``stat``, which the kernel rounds down to clock ticks of 10 ms.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_SCHEDULER = 2  # CPUCLOCK_SCHED: the clock of a whole process, as clock_getcpuclockid(3) makes it of a pid
_GONE = (FileNotFoundError, ProcessLookupError)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; the state is number 0. Empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except _GONE:
        return []


def tree(pid: int) -> list[int]:
    """`pid` and all its living descendants."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            children.setdefault(int(fields[1]), []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        at = waiting.pop()
        found.append(at)
        waiting += children.get(at, [])
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds of one process and of those of its children that it has waited for."""
    fields = _stat(pid)
    if not fields:
        return 0.0
    user, system, children_user, children_system = (int(f) / _TICK for f in fields[11:15])
    try:
        own = time.clock_gettime((~pid << 3) | _SCHEDULER)
    except OSError:
        own = user + system
    return own + children_user + children_system


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of a process with all its descendants, ended ones included."""
    return sum(map(cpu_s, tree(pid)))


def pss_bytes(pids: Iterable[int]) -> int:
    """Memory of these processes together; pages they share are counted once."""
    total = 0
    for pid in pids:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except (*_GONE, PermissionError):
            continue
        total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total * 1024


def rss_bytes(pid: int) -> int:
    """Resident memory of one process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def machine_busy_s() -> float:
    """CPU seconds everybody on this machine has used since it booted."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, _ = (int(f) for f in fields)
    return (user + nice + system + irq + softirq) / _TICK


@dataclass(slots=True)
class Neighbours:
    """How much of the machine others used meanwhile: what makes a figure doubtful on a shared machine."""

    started: float = 0.0
    busy: float = 0.0
    ours: float = 0.0

    @classmethod
    def watch(cls) -> Neighbours:
        return cls(time.monotonic(), machine_busy_s(), tree_cpu_s(os.getpid()))

    def cores(self) -> float:
        """Cores that processes outside this benchmark used since `watch`."""
        others = machine_busy_s() - self.busy - (tree_cpu_s(os.getpid()) - self.ours)
        return max(0.0, others) / max(0.001, time.monotonic() - self.started)


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def percentile(values: Iterable[float], share: float) -> float:
    """The value that `share` (0–1) of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
