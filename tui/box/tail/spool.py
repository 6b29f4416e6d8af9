"""What was read of a log, kept on this computer: bounded, and never at odds with itself.

A spool is a directory of segments, each named by the number of its first line. A segment holds the gated
lines as text, one per row, and behind every batch a mark with the reading position after it. Lines and
position are one append to one file, so a killed rgt cannot leave one without the other: what follows the
last mark is cut off when the spool is opened, and reading goes on from that mark.

Gated lines hold no control bytes but ESC, so a row that begins with one is ours:

    \\x01{"reason": …, "lost": …}      a gap, which counts as one line
    \\x02{"next": …, "position": …}    a mark
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tui.model.log import LogBatch, LogGap, LogPosition
from tui.model.text import LogText, SafeText, amount, safe

_GAP, _MARK = "\x01", "\x02"
_SUFFIX = ".log"


def spool_name(run: str) -> str:
    """Directory name for a run's spool: readable, the same for the same name only, safe on every disk."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", run)[:40]
    return f"{readable}-{hashlib.sha256(run.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def gap_line(gap: LogGap) -> LogText:
    """The line that stands in the log where something is missing."""
    lost = "some lines may be missing" if gap.lost_bytes is None else f"{amount(gap.lost_bytes)} are missing"
    return LogText(f"──── {lost}: {gap.reason} ────")


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive lines; `gaps` as in LogBatch."""

    first: int
    lines: list[LogText] = field(default_factory=list)
    gaps: tuple[tuple[int, LogGap], ...] = ()


@dataclass(slots=True)
class _Segment:
    path: Path
    first: int
    size: int


class Spool:
    """The spool of one run. All methods may be called from worker threads, one at a time each.

    Args:
        directory: made when missing, readable by the operator alone. Where it can't be written nothing is
            kept, and `fault` says so.
        cap_bytes: the oldest segments are dropped beyond this.
    """

    def __init__(self, directory: Path, cap_bytes: int = 256 << 20) -> None:
        self._directory = directory
        self._cap = cap_bytes
        self._roll_at = max(16 << 10, min(4 << 20, cap_bytes // 16))
        self._lock = threading.RLock()
        self._fd: int | None = None
        self._dirty = False  # bytes behind the last mark could not be taken back
        self._segments: list[_Segment] = []
        self.next = 0
        self.position: LogPosition | None = None
        self.source = ""
        self.fault = SafeText("")
        """Why lines are not being kept at the moment, such as a full disk; "" when they are."""
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._recover()
        except OSError as error:
            self.fault = _unwritable(error)

    @property
    def first(self) -> int:
        """Number of the oldest line still here; equals `next` when there is none."""
        return self._segments[0].first if self._segments else self.next

    @property
    def starts_at(self) -> LogPosition | None:
        """Where on the box the oldest line here begins."""
        with self._lock:
            if not self._segments:
                return None
            with self._segments[0].path.open("rb") as file:
                mark = _mark(file.readline())
            return mark.position if mark else None

    def append(self, batch: LogBatch, source: str = "", begins: LogPosition | None = None) -> None:
        """Keep a batch. A disk that takes no more stops the keeping, not the watching: see `fault`.

        Args:
            source: path of the log on the box.
            begins: where on the box the first line of the batch begins, if known.
        """
        with self._lock:
            end = _Mark(batch.first + len(batch.lines), batch.position, source)
            try:
                if self._fd is None or self._dirty or batch.first != self.next or self._full():
                    self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
                    self._roll(batch.first, begins or self.position or batch.position)
                self._write(_rows(batch) + _mark_row(end))
                self.fault = SafeText("")
            except OSError as error:
                self.fault = _unwritable(error)
                return
            self.next, self.position, self.source = end.next, end.position, end.source
            self._trim()

    def load(self, before: int, count: int) -> Rows:
        """Up to `count` lines that end right before line `before`; fewer, or none, where the spool begins."""
        with self._lock:
            before = min(before, self.next)
            parts: list[Rows] = []
            for segment in reversed(self._segments):
                if segment.first >= before:
                    continue
                rows = _cut(_read(segment), before - count, before)
                if not rows.lines or (parts and rows.first + len(rows.lines) != parts[-1].first):
                    break  # numbers are missing where the disk was full: never shown as if they joined
                parts.append(rows)
                if rows.first <= before - count:
                    break
            return _joined(parts[::-1], before)

    def newest_first(self) -> Iterator[Rows]:
        """All lines, one segment at a time."""
        with self._lock:
            segments = list(reversed(self._segments))
        for segment in segments:
            try:
                yield _read(segment)
            except FileNotFoundError:  # dropped meanwhile
                return

    def close(self) -> None:
        with self._lock:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _recover(self) -> None:
        numbered = (p for p in self._directory.glob(f"*{_SUFFIX}") if p.stem.isascii() and p.stem.isdecimal())
        found = (_Segment(path, int(path.stem), path.stat().st_size) for path in numbered)
        self._segments = sorted(found, key=lambda s: s.first)
        while self._segments:
            last = self._segments[-1]
            mark, size = _last_mark(last.path.read_bytes())
            if mark is not None:
                if size < last.size:
                    os.truncate(last.path, size)
                    last.size = size
                self.next, self.position, self.source = mark.next, mark.position, mark.source
                self._fd = os.open(last.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
                return
            last.path.unlink()
            self._segments.pop()

    def _full(self) -> bool:
        return self._segments[-1].size >= self._roll_at

    def _roll(self, first: int, position: LogPosition) -> None:
        """Begin a segment whose first row says where on the box its first line begins."""
        self.close()
        path = self._directory / f"{first:015d}{_SUFFIX}"
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        if not (self._segments and self._segments[-1].first == first):
            self._segments.append(_Segment(path, first, 0))
        self._segments[-1].size = 0
        self._dirty = False
        self._write(_mark_row(_Mark(first, position, self.source)))

    def _write(self, data: bytes) -> None:
        assert self._fd is not None
        segment = self._segments[-1]
        try:
            done = 0
            while done < len(data):
                done += os.write(self._fd, data[done:])
        except OSError:
            self._dirty = True
            os.ftruncate(self._fd, segment.size)
            self._dirty = False
            raise
        segment.size += len(data)

    def _trim(self) -> None:
        while len(self._segments) > 1 and sum(s.size for s in self._segments) > self._cap:
            self._segments.pop(0).path.unlink(missing_ok=True)


def _unwritable(error: OSError) -> SafeText:
    return safe(f"the log spool cannot be written: {error.strerror}")


@dataclass(frozen=True, slots=True)
class _Mark:
    next: int
    position: LogPosition
    source: str


def _mark_row(mark: _Mark) -> bytes:
    p = mark.position
    fields = {
        "next": mark.next,
        "position": [p.inode, p.offset, p.tail_sha256, p.tail_bytes],
        "source": mark.source,
    }
    return f"{_MARK}{json.dumps(fields)}\n".encode()


def _mark(row: bytes) -> _Mark | None:
    if not (row.startswith(_MARK.encode()) and row.endswith(b"\n")):
        return None
    try:
        fields = json.loads(row[1:])
        inode, offset, digest, length = fields["position"]
        return _Mark(
            int(fields["next"]),
            LogPosition(int(inode), int(offset), str(digest), int(length)),
            str(fields["source"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _last_mark(data: bytes) -> tuple[_Mark | None, int]:
    """The last whole mark and where it ends."""
    end = len(data)
    while True:
        at = data.rfind(_MARK.encode(), 0, end)
        if at < 0:
            return None, 0
        row = data[at : data.find(b"\n", at) + 1]
        mark = _mark(row)
        if mark is not None:
            return mark, at + len(row)
        end = at


def _rows(batch: LogBatch) -> bytes:
    if not batch.gaps:
        return "\n".join((*batch.lines, "")).encode()
    lines: list[str] = list(batch.lines)
    for index, gap in batch.gaps:
        lines[index] = _GAP + json.dumps({"reason": gap.reason, "lost": gap.lost_bytes})
    return "\n".join((*lines, "")).encode()


def _read(segment: _Segment) -> Rows:
    rows = segment.path.read_bytes().decode("utf-8", "replace").split("\n")[:-1]
    lines = [row for row in rows if not row.startswith(_MARK)]
    gaps = []
    for index, row in enumerate(lines):
        if row.startswith(_GAP):
            gap = _gap(row)
            gaps.append((index, gap))
            lines[index] = gap_line(gap)
    return Rows(segment.first, [LogText(line) for line in lines], tuple(gaps))


def _gap(row: str) -> LogGap:
    try:
        fields = json.loads(row[1:])
        lost = fields["lost"]
        return LogGap(safe(str(fields["reason"])), None if lost is None else int(lost))
    except (ValueError, KeyError, TypeError):
        return LogGap(SafeText("the spool is damaged here"))


def _cut(rows: Rows, start: int, end: int) -> Rows:
    low = max(0, start - rows.first)
    high = max(low, end - rows.first)
    gaps = tuple((i - low, gap) for i, gap in rows.gaps if low <= i < high)
    return Rows(rows.first + low, rows.lines[low:high], gaps)


def _joined(parts: list[Rows], before: int) -> Rows:
    if not parts:
        return Rows(before)
    lines: list[LogText] = []
    gaps: list[tuple[int, LogGap]] = []
    for part in parts:
        gaps += [(i + len(lines), gap) for i, gap in part.gaps]
        lines += part.lines
    return Rows(parts[0].first, lines, tuple(gaps))
