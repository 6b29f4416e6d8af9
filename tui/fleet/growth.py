"""How fast disks fill: rates and time left, from samples of used bytes and inodes."""

from __future__ import annotations

from dataclasses import replace

from tui.model.snapshot import HISTORY, Growth, Sample
from tui.model.telemetry import Filesystem, Telemetry
from tui.model.text import SafeText

DISK_SPACING_S = 15.0
CLOCK_SLACK_S = 5.0
MIN_WINDOW_S = 20.0
"""Below this a rate says more about one write than about the run."""


def capped(telemetry: Telemetry, caps: tuple[tuple[str, int], ...]) -> Telemetry:
    """Telemetry with the platform's limits of files where df knows no limit or a larger one.

    df of a shared store may count everybody's files. A count above the limit is not this account's, and
    says nothing of how much of the limit is used.

    Args:
        caps: limits by mount.
    """
    limits = dict(caps)
    mounts = telemetry.filesystems.value
    if mounts is None or not limits:
        return telemetry
    shown = tuple(_capped(f, limits[f.mount]) if f.mount in limits else f for f in mounts)
    return replace(telemetry, filesystems=replace(telemetry.filesystems, value=shown))


def _capped(filesystem: Filesystem, cap: int) -> Filesystem:
    used = filesystem.inodes_used
    if filesystem.error or (filesystem.inodes is not None and filesystem.inodes <= cap):
        return filesystem
    ours = None if used is None or used > cap else used
    return replace(
        filesystem,
        inodes=cap,
        inodes_used=ours,
        inodes_free=None if ours is None else cap - ours,
        inode_use_pct=None if ours is None else 100.0 * ours / cap,
        inode_cap=cap,
    )


def sample(telemetry: Telemetry) -> Sample:
    """The part of a probe that is kept as history. What the probe could not tell is a gap."""
    gpus = telemetry.gpus.value or ()
    memory = telemetry.memory.value
    mem_pct = None
    if memory and memory.limit_bytes and memory.used_bytes is not None:
        mem_pct = 100.0 * memory.used_bytes / memory.limit_bytes
    return Sample(
        at=telemetry.taken_at,
        gpu_util=tuple(g.util_pct for g in gpus),
        gpu_mem_pct=tuple(_pct(g.mem_used_mib, g.mem_total_mib) for g in gpus),
        mem_pct=mem_pct,
    )


def disk_sample(telemetry: Telemetry) -> Sample | None:
    """Used bytes and inodes per mount, dated by when the filesystems themselves were read."""
    reading = telemetry.filesystems
    if reading.value is None or reading.source is None:
        return None
    mounts = tuple((f.mount, f.used_bytes, f.inodes_used) for f in reading.value)
    return Sample(at=reading.source.taken_at, mounts=mounts)


def add_sample(history: tuple[Sample, ...], new: Sample) -> tuple[Sample, ...]:
    """History with `new` at its end, bounded."""
    if history and new.at <= history[-1].at:
        return history
    return (*history[-(HISTORY - 1) :], new)


def until(history: tuple[Sample, ...], now: float) -> tuple[Sample, ...]:
    """History without what lies ahead of `now`: this computer's clock was set back, and nothing new would
    be taken in until it is that late again."""
    if not history or history[-1].at <= now + CLOCK_SLACK_S:
        return history
    return tuple(s for s in history if s.at <= now)


def add_disk_sample(history: tuple[Sample, ...], new: Sample | None) -> tuple[Sample, ...]:
    """Like `add_sample`, thinned to one sample in `DISK_SPACING_S` so that it reaches back hours.

    The newest sample always stands at the end; it is replaced until it is far enough from its neighbour.
    """
    if new is None or (history and new.at <= history[-1].at):
        return history
    if len(history) >= 2 and history[-1].at - history[-2].at < DISK_SPACING_S:
        return (*history[:-1], new)
    return (*history[-(HISTORY - 1) :], new)


def growths(
    history: tuple[Sample, ...], filesystems: tuple[Filesystem, ...]
) -> tuple[tuple[SafeText, Growth], ...]:
    """The growth of each mount over the samples at hand."""
    return tuple((f.mount, growth(history, f)) for f in filesystems)


def growth(history: tuple[Sample, ...], filesystem: Filesystem) -> Growth:
    """Rates over the longest window in which nothing was freed; None where too little is known."""
    points = [(s.at, b, i) for s in history for mount, b, i in s.mounts if mount == filesystem.mount]
    bytes_rate, window_b = _rate([(t, b) for t, b, _ in points if b is not None])
    inode_rate, window_i = _rate([(t, i) for t, _, i in points if i is not None])
    free_bytes = filesystem.avail_bytes
    free_inodes = None
    if filesystem.inodes is not None and filesystem.inodes_used is not None:
        free_inodes = filesystem.inodes - filesystem.inodes_used
    return Growth(
        bytes_per_s=bytes_rate,
        inodes_per_s=inode_rate,
        bytes_full_in_s=_left(free_bytes, bytes_rate),
        inodes_full_in_s=_left(free_inodes, inode_rate),
        window_s=max(window_b, window_i),
    )


def _rate(points: list[tuple[float, int]]) -> tuple[float | None, float]:
    """Slope of the last stretch that never falls: a clean-up starts the count anew."""
    start = len(points) - 1
    while start > 0 and points[start - 1][1] <= points[start][1]:
        start -= 1
    if start < 0 or points[-1][0] - points[start][0] < MIN_WINDOW_S:
        return None, 0.0
    window = points[-1][0] - points[start][0]
    return (points[-1][1] - points[start][1]) / window, window


def _left(free: int | None, rate: float | None) -> float | None:
    if free is None or rate is None or rate <= 0:
        return None
    return max(0, free) / rate


def _pct(used: float | None, total: float | None) -> float | None:
    return None if used is None or not total else 100.0 * used / total
