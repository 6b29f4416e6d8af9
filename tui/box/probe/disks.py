"""Filesystems from what one child per mount said, or did not say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tui.box.parsers.command import read_command
from tui.box.parsers.df import read_df
from tui.box.parsers.lines import decode
from tui.box.parsers.report import Mount
from tui.box.probe.frame import Batch, Message
from tui.box.probe.origin import reason, source
from tui.model.reading import Reading, known, unknown
from tui.model.telemetry import Filesystem
from tui.model.text import SafeText, safe

SILENT = SafeText("mount does not answer")
NOT_ASKED = SafeText("not asked: two other mounts do not answer")
_DF = read_command("df -Pk; df -Pi").of("df")


@dataclass(frozen=True, slots=True)
class Asked:
    """One path whose filesystem was asked for. `mount` is None where only df can tell which it lies on."""

    key: str
    path: str
    mount: Mount | None = None


def read_filesystems(
    asked: Sequence[Asked], batch: Batch, taken_at: float
) -> Reading[tuple[Filesystem, ...]]:
    """Every mount asked for, in that order; the same disk seen at several places once."""
    if not asked:
        return unknown(reason("/proc/mounts could not be read"), source("/proc/mounts", taken_at))
    found: dict[str, Filesystem] = {}
    for one in asked:
        shown = read_one(one, batch)
        if shown is not None and not _seen(shown, found.values()):
            found.setdefault(shown.mount, shown)
    raw = b"\n".join(
        message.text for one in asked for end in "bis" if (message := batch.messages.get(f"{one.key}.{end}"))
    )
    return known(tuple(found.values()), source("df -Pk MOUNT; df -Pi MOUNT, each by itself", taken_at, raw))


def read_one(one: Asked, batch: Batch) -> Filesystem | None:
    """One mount; None where nothing at all was said, as in a tick that did not ask."""
    if one.key in batch.denied:
        return _nothing(one, NOT_ASKED)
    if one.key in batch.stuck or one.key in batch.late:
        return _nothing(one, SILENT)
    whole = batch.messages.get(f"{one.key}.s")
    if whole is not None:
        return _from_statfs(one, whole)
    sizes, inodes = batch.messages.get(f"{one.key}.b"), batch.messages.get(f"{one.key}.i")
    if sizes is None:
        return None
    found, why = _row(sizes.text, inodes.text if inodes is not None else None)
    if found is None:
        return _nothing(one, why)
    return replace(_named(one, found), error=SafeText(""))


@lru_cache(1024)  # a disk that nobody writes to says the same for hours, and so do those of boxes that rest
def _row(sizes: bytes, inodes: bytes | None) -> tuple[Filesystem | None, SafeText]:
    """What df said of one mount, or why it said nothing. One answer has at most 3,500 bytes."""
    texts = [decode(text) for text in (sizes, inodes) if text is not None]
    report = read_df("\n".join(texts), "", _DF)
    row = next(iter(report.mounts or ()), None)
    if row is not None:
        return row.shown, SafeText("")
    problem = next(iter(report.problems), None)
    return None, problem.reason if problem else reason(texts[0] or "df gave no answer")


def resolved(one: Asked, batch: Batch) -> str | None:
    """The mount that df found a path on, when it answered."""
    sizes = batch.messages.get(f"{one.key}.b")
    report = read_df(decode(sizes.text), "", _DF) if sizes is not None else None
    return next((row.path for row in (report.mounts or ())), None) if report else None


def _from_statfs(one: Asked, message: Message) -> Filesystem:
    """``stat -f -c '%S %b %f %a %c %d'``: block size; blocks, free, available; inodes, free."""
    text = decode(message.text).strip()
    figures = text.split()
    if len(figures) != 6 or not all(figure.lstrip("-").isdigit() for figure in figures):
        return _nothing(one, reason(text or "stat gave no answer"))
    unit, blocks, free, avail, inodes, inodes_free = map(int, figures)
    used, names = blocks - free, inodes - inodes_free
    return _named(
        one,
        Filesystem(
            mount=safe(one.path),
            source=SafeText(""),
            size_bytes=blocks * unit,
            used_bytes=used * unit,
            avail_bytes=avail * unit,
            use_pct=_share(used, used + avail),
            inodes=inodes or None,
            inodes_used=names if inodes else None,
            inodes_free=inodes_free if inodes else None,
            inode_use_pct=_share(names, inodes) if inodes else None,
        ),
    )


def _share(part: int, whole: int) -> float | None:
    """Percent, rounded up as df does."""
    return float(math.ceil(100 * part / whole)) if whole > 0 else None


def _named(one: Asked, shown: Filesystem) -> Filesystem:
    """What /proc/mounts says of it is exact; df writes question marks into names."""
    if one.mount is None:
        return shown
    listed = one.mount.shown
    return replace(
        shown,
        mount=listed.mount,
        source=listed.source,
        fstype=listed.fstype or shown.fstype,
        read_only=listed.read_only,
    )


def _nothing(one: Asked, why: SafeText) -> Filesystem:
    empty = Filesystem(mount=safe(one.path), source=SafeText(""), error=why)
    return _named(one, empty)


def _seen(shown: Filesystem, others: Iterable[Filesystem]) -> bool:
    """Whether this is a disk already listed, bound to a second place. Memory disks are all named alike."""
    if shown.error or not (shown.source.startswith("/dev/") or ":" in shown.source):
        return False
    figures = (shown.source, shown.size_bytes, shown.used_bytes, shown.inodes, shown.inodes_used)
    return figures in {
        (one.source, one.size_bytes, one.used_bytes, one.inodes, one.inodes_used) for one in others
    }
