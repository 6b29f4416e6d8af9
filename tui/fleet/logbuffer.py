"""The log lines in memory: a ring over a stream whose lines are numbered once and for ever."""

from __future__ import annotations

from collections.abc import Iterable

from tui.model.log import LogBatch, LogGap
from tui.model.text import LogText, SafeText

_UNSEEN = SafeText("these lines did not reach the view")


class LogBuffer:
    """The newest lines of one run, at most `cap` of them, and as many older ones as were asked for.

    Attributes:
        lines: the text; ``lines[i]`` is line ``base + i`` of the run.
        base: absolute number of ``lines[0]``; grows when lines are trimmed, falls when older ones are loaded.
        gaps: absolute number of a line that stands for a gap → the gap.
        partial: the unfinished last line.
        behind_bytes, file_bytes: as in the newest batch.
        read_at: when the newest batch was read, seconds since the epoch; None before the first.
        version: grows with every change.
    """

    def __init__(self, cap: int = 20_000) -> None:
        self.cap = cap
        self.base = 0
        self.lines: list[LogText] = []
        self.gaps: dict[int, LogGap] = {}
        self.partial = LogText("")
        self.behind_bytes = 0
        self.file_bytes: int | None = None
        self.read_at: float | None = None
        self.version = 0
        self._older = 0  # lines loaded beyond the cap, kept until `forget_older`

    @property
    def end(self) -> int:
        """Number of the line that comes next."""
        return self.base + len(self.lines)

    def append(self, batch: LogBatch) -> None:
        """Take new lines. A batch that was seen before changes nothing; a missing one becomes a gap."""
        self.version += 1
        lines: Iterable[LogText] = batch.lines
        if not self.lines:
            self.base = batch.first
        elif batch.first > self.end:
            self._leave_out(batch.first)
        seen = self.end - batch.first
        if seen > 0:
            lines = batch.lines[seen:]
        self.lines.extend(lines)
        self._note_gaps(batch)
        self._trim()
        if batch.first + len(batch.lines) >= self.end:
            self.partial = batch.partial
            self.behind_bytes = batch.behind_bytes
            self.file_bytes = batch.file_bytes
            self.read_at = batch.at

    def prepend(self, batch: LogBatch) -> None:
        """Take older lines that end where the buffer begins. Others are of no use and are left out."""
        if not self.lines:
            self.base = batch.first + len(batch.lines)
        older = batch.lines[: max(0, self.base - batch.first)]
        if not older or batch.first + len(older) != self.base:
            return
        self.version += 1
        self.lines[:0] = older
        self.base = batch.first
        self._older = min(self._older + len(older), self.cap)
        self._note_gaps(batch)
        self._trim()

    def forget_older(self) -> None:
        """The view is back at the end: lines beyond the cap may go."""
        self._older = 0
        self._trim()

    def _trim(self) -> None:
        """Drop the oldest lines, a tenth of the buffer at a time so that the cost per line stays small."""
        excess = len(self.lines) - self.cap - self._older
        if excess <= self.cap // 10:
            return
        del self.lines[:excess]
        self.base += excess
        if self.gaps:
            self.gaps = {number: gap for number, gap in self.gaps.items() if number >= self.base}
        self.version += 1

    def _leave_out(self, first: int) -> None:
        """Batches are missing: the numbers up to `first` are stood for by one gap line, right before it."""
        missing = first - self.end
        gap = LogGap(_UNSEEN)
        if missing > 1:  # numbers must stay true, and a line per missing one would claim to know them
            self.lines.clear()
            self.gaps.clear()
            self.base = first - 1
        self.gaps[first - 1] = gap
        self.lines.append(LogText(f"──── {missing:,} lines before this are not in view: {gap.reason} ────"))

    def _note_gaps(self, batch: LogBatch) -> None:
        for index, gap in batch.gaps:
            if batch.first + index >= self.base:
                self.gaps[batch.first + index] = gap
