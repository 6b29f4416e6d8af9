"""Log lines on their way from a box to the log view."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.text import LogText, SafeText


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where reading stopped: enough to go on after a cut without losing or doubling a byte.

    Attributes:
        inode: of the file read; 0 when not known.
        offset: bytes consumed from its beginning.
        tail_sha256: digest of the last `tail_bytes` consumed, to tell a file rewritten in place.
    """

    inode: int = 0
    offset: int = 0
    tail_sha256: str = ""
    tail_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LogGap:
    """Bytes that were written on the box and could not be read. `lost_bytes` is None when not known."""

    reason: SafeText
    lost_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Some complete lines of one run's log, in order.

    Attributes:
        first: number of the first line, counted from 0 over everything read since the run was watched.
        lines: the text; a line's place in the stream is ``first + index``.
        gaps: (index into `lines`, gap): that line stands for a gap and its text says so.
        partial: the last, unfinished line as it stands (a progress bar's last state), shown below the rest
            and replaced by the next batch.
        position: where reading stands after this batch.
        behind_bytes: bytes known to exist on the box beyond `position`.
        file_bytes: size of the file on the box, None when not known.
    """

    run: str
    first: int
    lines: tuple[LogText, ...]
    at: float
    gaps: tuple[tuple[int, LogGap], ...] = ()
    partial: LogText = LogText("")
    position: LogPosition = LogPosition()
    behind_bytes: int = 0
    file_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class LogState:
    """How a run's log channel stands, in words for the view's status line."""

    run: str
    word: SafeText  # "following", "waiting for the file", "link lost", "no log named"
    detail: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One line found by a search beyond what is in memory. `number` is None for lines never read here."""

    number: int | None
    text: LogText
    offset: int | None = None  # byte offset in the file on the box


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, and exactly which range it covered."""

    run: str
    pattern: SafeText
    hits: tuple[SearchHit, ...]
    covered: SafeText  # "lines 1-20,000 in memory", "bytes 0-9.8 GB on the box"
    complete: bool
    capped: bool = False
