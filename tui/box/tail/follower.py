"""Follows one log over one transport after another, without losing or doubling a line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

from tui.box.tail.desk import Desk
from tui.box.tail.reader import Reader, Step
from tui.box.tail.search import Found, search_box, search_spool
from tui.box.tail.splitter import Splitter
from tui.box.tail.spool import Rows, Spool, gap_line
from tui.box.tail.wire import ANSWER_WITHIN, ChannelEnded, Remote
from tui.box.transport import SessionsExhausted, Transport
from tui.model.command import SearchLog
from tui.model.log import LogBatch, LogGap, LogPosition, LogState, SearchResult
from tui.model.text import LogGate, LogText, SafeText, safe

Emit = Callable[[LogBatch], Awaitable[None]]
Say = Callable[[LogState], None]
T = TypeVar("T")

REPLAY = 2000
"""Lines of the spool shown again when rgt starts."""

_BUSY, _IDLE = 0.25, 1.0  # seconds between looks: after new bytes, and in a quiet log
_PATIENCE = 30.0  # longest wait before the channel is opened once more


class Follower:
    """Reads one run's log for as long as anybody wants it.

    Args:
        run: name of the run.
        path: of the log on the box; relative to the login directory, absolute, or beginning with ``~/``.
        spool: where lines are kept; its last position is where reading goes on.
        clock: seconds since the epoch, for the time stamp of batches.
        hold: how the box keeps the file open: ``fd``, ``name``, or "" to find out.
    """

    def __init__(
        self, run: str, path: str, spool: Spool, *, clock: Callable[[], float] = time.time, hold: str = ""
    ) -> None:
        self._run = run
        self._path = path
        self._spool = spool
        self._clock = clock
        self._hold = hold
        self._gate = LogGate()
        self._next = spool.next
        self._position = spool.position
        self._begins = spool.position  # where the next line begins
        self._changed_path = spool.position is not None and spool.source not in ("", path)
        if self._changed_path:
            self._position = None
        self._silenced = False  # the last channel fell silent over this log
        self._replayed = False
        self._unsent: LogBatch | None = None
        self._said: LogState | None = None
        self._partial = LogText("")
        self._size: int | None = None

    async def follow(self, transport: Transport, emit: Emit, state: Say, *, desk: Desk | None = None) -> None:
        """Read the log until the link breaks or the task is cancelled; call again to go on.

        Args:
            desk: of `transport`, shared by the logs of one box; None: this log is the only one.
            emit: takes each batch; while it waits nothing is read from the box.
            state: told of every change of how the channel stands.

        Raises:
            LinkLost: the connection broke.
        """
        self._said = None  # whoever calls has said other things meanwhile
        await self._catch_up(emit)
        desk = desk or Desk(transport)
        wait = 1.0
        while True:
            began = time.monotonic()
            try:
                trouble = await self._one_channel(desk, emit, state)
            except SessionsExhausted as full:
                trouble, self._silenced = full.line, False  # rather with others than not at all
            self._say(state, SafeText("waiting"), trouble)
            if time.monotonic() - began > 60:
                wait = 1.0
            await asyncio.sleep(wait)
            wait = min(_PATIENCE, 2 * wait)

    async def load_older(self, before: int, count: int = REPLAY) -> LogBatch:
        """Lines of the spool that end right before line `before`; an empty batch when there are none."""
        return self._batch_of(await _in_thread(lambda: self._spool.load(before, count)))

    async def search(
        self, transport: Transport | None, wanted: SearchLog, progress: Callable[[SearchResult], None]
    ) -> SearchResult:
        """Search the spool, newest lines first, and then what is older in the file on the box.

        Args:
            transport: None: only this computer is searched, and the result says so.
            progress: called with what is found so far.

        Raises:
            LinkLost: the connection broke; what was found before was given to `progress`.
        """
        found = Found(self._run, wanted, progress)
        await search_spool(found, self._spool)
        start = await _in_thread(lambda: self._spool.starts_at)
        if found.full:
            return found.result(complete=False)
        if transport is None:
            found.covers("the file on the box was not searched")
            return found.result(complete=False)
        if start is None:
            found.covers("nothing of the file on the box was read yet")
            return found.result(complete=False)
        return await search_box(found, transport, self._path, start)

    async def _one_channel(self, desk: Desk, emit: Emit, state: Say) -> SafeText:
        """Follow over one channel; returns why it ended although the link stands."""
        try:
            remote = await desk.seat(self._run, self._path, self._hold, alone=self._silenced)
        except TimeoutError:
            return SafeText("The box opened no channel for the log in time; trying again.")
        try:
            await self._read_on(remote, emit, state)
        except TimeoutError:
            self._silenced = True
            return SafeText(f"The box gave no answer about the log for {ANSWER_WITHIN:.0f} s; trying again.")
        except ChannelEnded:
            self._silenced = self._silenced and not remote.answered
            return SafeText("The log reader on the box ended; starting it again.")
        finally:
            await remote.leave()

    async def _read_on(self, remote: Remote, emit: Emit, state: Say) -> NoReturn:
        base = self._path.rpartition("/")[2].encode("utf-8", "surrogateescape")
        reader = Reader(remote, base, self._position)
        splitter = Splitter(self._position.offset if self._position else 0, self._gate)
        pause, begins_inside = _BUSY, False
        while True:
            step = await reader.step()
            self._say(state, step.word, step.detail or self._spool.fault)
            if step.size is not None:
                self._size = step.size
            if step.start is not None:
                await self._begin(step, splitter, reader, emit)
                self._begins = reader.position(step.start)
                splitter = Splitter(step.start, self._gate)
                begins_inside = step.inside
            if step.data:
                data = step.data
                if begins_inside:  # the rest of a line whose beginning is not read
                    begins_inside = False
                    skip = data.find(b"\n") + 1
                    data = data[skip:]
                    splitter = Splitter(reader.offset - len(data), self._gate)
                    self._begins = reader.position(reader.offset - len(data))
                await self._take(data, step, splitter, reader, emit)
                pause = _BUSY
            if step.idle or (step.data and not step.behind):
                await asyncio.sleep(pause)
                pause = min(_IDLE, 1.15 * pause)

    async def _begin(self, step: Step, splitter: Splitter, reader: Reader, emit: Emit) -> None:
        """Another file, or a place after a cut: what must be said before its lines."""
        lines = splitter.finish() if step.flush else []
        gaps: list[tuple[int, LogGap]] = []
        gap = step.gap
        if self._changed_path:
            self._changed_path = False
            gap = LogGap(safe(f"from here on another file is followed: {self._path}"))
        if gap is not None:
            gaps.append((len(lines), gap))
            lines.append(gap_line(gap))
        if lines and step.start is not None:
            await self._publish(
                lines, reader.position(step.start), emit, gaps=tuple(gaps), behind=step.behind
            )

    async def _take(self, data: bytes, step: Step, splitter: Splitter, reader: Reader, emit: Emit) -> None:
        for piece in splitter.feed(data):
            behind = step.behind + reader.offset - piece.end
            await self._publish(piece.lines, reader.position(piece.end), emit, behind=behind)
        place = reader.position(splitter.resume_at)
        if place is not None:
            self._position = place
        if splitter.partial != self._partial:
            self._partial = splitter.partial
            await emit(self._batch([], (), step.behind))

    async def _publish(
        self,
        lines: list[LogText],
        position: LogPosition | None,
        emit: Emit,
        *,
        gaps: tuple[tuple[int, LogGap], ...] = (),
        behind: int = 0,
    ) -> None:
        assert position is not None, "lines come out of bytes just read"
        begins, self._begins = self._begins, position
        self._position, self._partial = position, LogText("")
        batch = self._batch(lines, gaps, behind)
        self._next += len(lines)
        self._unsent = batch
        await _in_thread(lambda: self._spool.append(batch, self._path, begins))
        await emit(batch)
        self._unsent = None

    def _batch(self, lines: list[LogText], gaps: tuple[tuple[int, LogGap], ...], behind: int) -> LogBatch:
        return LogBatch(
            run=self._run,
            first=self._next,
            lines=tuple(lines),
            at=self._clock(),
            gaps=gaps,
            partial=self._partial,
            position=self._position or LogPosition(),
            behind_bytes=behind,
            file_bytes=self._size,
        )

    def _batch_of(self, rows: Rows) -> LogBatch:
        return LogBatch(
            run=self._run,
            first=rows.first,
            lines=tuple(rows.lines),
            at=self._clock(),
            gaps=rows.gaps,
            partial=self._partial,
            position=self._position or LogPosition(),
            file_bytes=self._size,
        )

    async def _catch_up(self, emit: Emit) -> None:
        """Show what the spool holds at the first call, and what a cut kept from being shown."""
        if not self._replayed:
            self._replayed = True
            batch = await self.load_older(self._next)
            if batch.lines:
                await emit(batch)
        elif self._unsent is not None:
            await emit(self._unsent)
        self._unsent = None

    def _say(self, state: Say, word: SafeText, detail: SafeText) -> None:
        said = LogState(self._run, word, detail)
        if said != self._said:
            self._said = said
            state(said)


async def _in_thread(work: Callable[[], T]) -> T:
    """Run blocking file work beside the loop; when cancelled, only after the work is whole."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
