"""The disks: bytes and inodes of each mount on one scale, how fast they fill, and when they are full."""

from __future__ import annotations

from typing import Any

from tui.fleet.age import long
from tui.model.reading import Reading
from tui.model.snapshot import Growth
from tui.model.telemetry import Filesystem
from tui.widgets.figures import NA, compact, pair, percent, size
from tui.widgets.gauge import LABEL, gauge, level_of
from tui.widgets.lines import Line, Span, end_of, fit, length
from tui.widgets.mount_words import read_only_spans
from tui.widgets.panel import Panel, Sight, apart, na, packed, unread

ROOMY = 44
"""From this width on figures get air."""

BESIDE = 72
"""From this width on bytes and inodes stand in one line."""


class DiskPanel(Panel):
    """The mounts that matter to the box's runs."""

    TITLE = "disks"
    MEANING = "Bytes and inodes of each watched mount, and how fast they grew while rgt looked."
    PART, PERIODS = "slow", 5.0

    def reading(self, sight: Sight) -> Reading[Any] | None:
        return sight.telemetry.filesystems if sight.telemetry else None

    def title(self, sight: Sight) -> list[Span]:
        stand_ins = [what for what in ("inode", "disk") if sight.simulates(what)]
        return [(self.TITLE, "title"), *((f" {what}s simulated", "dim") for what in stand_ins)]

    def body(self, sight: Sight, width: int) -> list[Line]:
        return disk_lines(sight, width)


def disk_lines(sight: Sight, width: int) -> list[Line]:
    """Each mount: its name, both gauges, and how it grows."""
    reading = sight.telemetry.filesystems if sight.telemetry else None
    if reading is None or reading.value is None:
        return [na(unread(sight, reading), width, sight.glyphs)]
    if not reading.value:
        return [(("  no mount is watched", "dim"),)]
    growth = dict(sight.box.growth) if sight.box else {}
    lines: list[Line] = []
    for fs in reading.value:
        lines.append(_head(fs, width, sight))
        if fs.error:
            lines.append(na(fs.error, width, sight.glyphs, indent=2))
            continue
        if width >= BESIDE:
            half = width // 2
            lines.append((*_bytes(fs, half - 1, sight), ("  ", ""), *_inodes(fs, width - half - 1, sight)))
        else:
            lines += [_bytes(fs, width, sight), _inodes(fs, width, sight)]
        lines += _growth(growth.get(fs.mount), width, sight)
    return lines


def disk_summary(sight: Sight, width: int) -> Line:
    """The mount nearest to its end in one line."""
    head: Span = (fit("  disks", LABEL), "dim")
    reading = sight.telemetry.filesystems if sight.telemetry else None
    if reading is None or reading.value is None:
        return (head, *na(unread(sight, reading), width - LABEL, sight.glyphs, indent=0))
    known = [fs for fs in reading.value if not fs.error]
    hung = len(reading.value) - len(known)
    if not known:
        return (head, (f"{hung} mounts do not answer" if hung else "no mount is watched", "dim"))
    worst = max(known, key=lambda fs: max(fs.use_pct or 0.0, fs.inode_use_pct or 0.0))
    t = sight.thresholds
    parts: list[Line] = [
        (
            ("simulated inodes " if sight.simulates("inode") else "inodes ", "dim"),
            (percent(worst.inode_use_pct), level_of(worst.inode_use_pct, t.inode_pct, t.danger_pct)),
        ),
        (("bytes ", "dim"), (percent(worst.use_pct), level_of(worst.use_pct, t.disk_pct, t.danger_pct))),
    ]
    left = _soonest(dict(sight.box.growth).get(worst.mount) if sight.box else None)
    if left is not None:
        parts.append(((full_in(left), "attention" if left < t.full_in_s else ""),))
    if hung:
        parts.append(((f"{hung} not answering", "attention"),))
    parts.append(((worst.mount, "dim"),))
    return packed((head,), parts, width)


def _head(fs: Filesystem, width: int, sight: Sight) -> Line:
    right = [*read_only_spans(fs, sight.run), (f" {fs.fstype or ''}", "dim")]
    mount = end_of(fs.mount, width - 2 - length(right), ellipsis=sight.glyphs.ellipsis)
    return apart(((f"  {mount}", "strong"),), tuple(right), width, sight.glyphs)


def _bytes(fs: Filesystem, width: int, sight: Sight) -> Line:
    t = sight.thresholds
    if fs.capacity_meaningless:
        return gauge("bytes", None, "", width, sight.glyphs, why="an object store names no real size")
    about = "~" if fs.rounded else ""
    figure = f"{about}{pair(fs.used_bytes, fs.size_bytes, tight=width < ROOMY)}"
    return gauge(
        "bytes",
        fs.use_pct,
        f"{figure} {fit(percent(fs.use_pct), 5, right=True)}",
        width,
        sight.glyphs,
        figure_width=18 if width < ROOMY else 23,
        tick_pct=t.disk_pct,
        level=level_of(fs.use_pct, t.disk_pct, t.danger_pct),
        why="df gave no size",
    )


def _inodes(fs: Filesystem, width: int, sight: Sight) -> Line:
    t = sight.thresholds
    joint = "/" if width < ROOMY else " / "
    counts = f"{compact(fs.inodes_used)}{joint}{compact(fs.inodes)}"
    return gauge(
        "inodes",
        fs.inode_use_pct,
        f"{counts} {fit(percent(fs.inode_use_pct), 5, right=True)}",
        width,
        sight.glyphs,
        figure_width=18 if width < ROOMY else 23,
        tick_pct=t.inode_pct,
        level=level_of(fs.inode_use_pct, t.inode_pct, t.danger_pct),
        why="this filesystem counts none",
    )


def _soonest(growth: Growth | None) -> float | None:
    if growth is None:
        return None
    known = [s for s in (growth.bytes_full_in_s, growth.inodes_full_in_s) if s is not None]
    return min(known, default=None)


def full_in(left: float) -> str:
    """When a mount is full, in words."""
    return f"full in {long(left)}" if left > 0 else "full"


def _growth(growth: Growth | None, width: int, sight: Sight) -> list[Line]:
    """How a mount grows. Nothing while too little is known, or nothing grows."""
    if growth is None:
        return []
    lines: list[Line] = []
    rates = (
        (growth.inodes_per_s, growth.inodes_full_in_s, _files),
        (growth.bytes_per_s, growth.bytes_full_in_s, _volume),
    )
    for rate, left, word in rates:
        if rate is None or rate <= 0:
            continue
        soon = left is not None and left < sight.thresholds.full_in_s
        said = full_in(left) if left is not None else f"{NA}: size not known"
        level = "attention" if soon else "dim"
        sign = sight.glyphs.attention if soon else " "
        lines.append(
            apart(((f"  {sign} {word(rate)}", level),), ((f"  {said}", level),), width, sight.glyphs)
        )
    return lines


def _files(per_s: float) -> str:
    return f"+{compact(per_s * 60)} files/min" if per_s * 60 >= 1 else f"+{compact(per_s * 3600)} files/h"


def _volume(per_s: float) -> str:
    return f"+{size(per_s * 60)}/min" if per_s * 3600 >= 1e10 else f"+{size(per_s * 3600)}/h"
