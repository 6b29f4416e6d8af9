"""Keeps its place in a log that is truncated, rotated, replaced or removed under it.

The place is an inode, an offset and a digest of the bytes right before the offset. Every read takes those
bytes along and compares them, so a file rewritten in place is noticed also when it has the same inode and
has grown beyond the old length. Reading on after a cut is the same comparison.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from tui.box.tail.rotation import Look, copies, following
from tui.box.tail.wire import Answer, Remote, digest
from tui.model.log import LogGap, LogPosition
from tui.model.text import SafeText

FIRST_LOOK = 256 * 1024
"""Bytes read from the end of a log that was never read before: about 2,000 lines."""

WHOLE = 64 << 20
"""A log that was seen to be absent is read from its beginning when it appears, up to this size."""

TAIL = 256
"""Bytes before the offset by which a file is recognised."""

_LEAST, _MOST = 64 * 1024, 4 << 20  # bytes asked for at once
_PROBE = 4096
_ADOPT = 64  # a tail shorter than this does not prove that another inode holds the same log

_WAITING = SafeText("waiting for the file")
_FOLLOWING = SafeText("following")
_GONE = SafeText("The log was renamed or removed; a new one has not appeared.")
_EMPTY = SafeText("The log was rotated; the new file is still empty.")
_WITHHELD = SafeText("The box lists more bytes of the log than it gives out.")
_WORDS = {
    "absent": (_WAITING, SafeText("There is no file at the log's path yet.")),
    "special": (
        SafeText("not a file"),
        SafeText("The log's path leads to something that is no regular file."),
    ),
    "denied": (SafeText("not readable"), SafeText("This login may not read the log.")),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One move of the reader.

    Attributes:
        data: bytes right behind those of the step before, or from `start` on.
        start: where reading begins anew (another file, or after a cut); None: it goes on.
        flush: the file before is over: its unfinished line is one.
        inside: `start` may lie inside a line.
        gap: what is missing before `data`.
        behind: bytes known to exist that were not read yet.
        size: of the file on the box.
        idle: nothing to do before the next look.
    """

    data: bytes = b""
    start: int | None = None
    flush: bool = False
    inside: bool = False
    gap: LogGap | None = None
    behind: int = 0
    size: int | None = None
    idle: bool = False
    word: SafeText = _FOLLOWING
    detail: SafeText = SafeText("")


class Reader:
    """Reads one log over one channel.

    Args:
        base: the log's name without its directory.
        position: where to go on; None: the log was never read.
    """

    def __init__(self, remote: Remote, base: bytes, position: LogPosition | None) -> None:
        self._remote = remote
        self._base = base
        self._resume = position
        self._held = False
        self._going_on = False  # within one session the bytes join those of the step before
        self._inode = position.inode if position else 0
        self._offset = position.offset if position else 0
        self._trail = b""  # the bytes before the offset
        self._want = _LEAST
        self._first_look = FIRST_LOOK
        self._drained = False
        self._doubted = False
        self._looked_again = False
        self._reserved = False  # the file ends in NULs
        self._text_end = 0  # text was seen up to here, behind a hole
        self._no_next_but: int | None = None  # inode of a new file that is still empty
        self._finished: set[tuple[int, int]] = set()  # with the size, since inodes are used again
        self._owed: LogGap | None = None  # to be declared when the copy of a truncated file is read

    def position(self, offset: int) -> LogPosition | None:
        """The place at `offset`, which must be among the bytes of the last step; None when it is not."""
        behind = self._offset - offset
        tail = self._trail[: len(self._trail) - behind][-TAIL:]
        if not 0 <= behind <= len(self._trail):
            return None
        return LogPosition(self._inode, offset, digest(tail) if tail else "", len(tail))

    @property
    def offset(self) -> int:
        """Bytes of the file read so far."""
        return self._offset

    async def step(self) -> Step:
        """Make one move. Raises as Remote does."""
        if not self._held:
            return await self._attach()
        tail = self._trail[-TAIL:]
        began = time.monotonic()
        answer = await self._remote.read(
            self._offset - len(tail), self._offset + self._want, quiet=self._drained
        )
        if answer.word == "same":
            return Step(idle=True)
        held = answer.look.held
        if held is None or held.inode != self._inode:
            return self._let_go()
        if held.size < self._offset:
            return await self._start_over("the log was truncated")
        if answer.data[: len(tail)] != tail:
            if self._doubted:
                return await self._start_over("the log was rewritten")
            self._doubted = True  # it may have been truncated between the look and the read
            return Step()
        self._doubted = False
        return await self._advance(answer, answer.data[len(tail) :], time.monotonic() - began)

    async def _advance(self, answer: Answer, fresh: bytes, took: float) -> Step:
        assert answer.look.held is not None
        fresh = await self._without_reserve(fresh, answer.look.held.size)
        self._offset += len(fresh)
        self._trail = self._trail[-TAIL:] + fresh
        size = max(answer.look.held.size, self._offset)
        if fresh:
            self._want = min(_MOST, max(_LEAST, int(0.4 * len(fresh) / max(took, 0.001)))) if size else _LEAST
            self._drained, self._looked_again = False, False
            behind = 0 if self._reserved else size - self._offset
            return Step(fresh, behind=behind + _beyond(answer.look, self._inode), size=size)
        if size > self._offset and not self._reserved:
            behind = size - self._offset
            return Step(idle=True, behind=behind, size=size, word=SafeText("cannot read"), detail=_WITHHELD)
        return await self._at_end(answer.look, size)

    async def _without_reserve(self, fresh: bytes, size: int) -> bytes:
        """Leave out the NULs with which a file made in advance ends: they are overwritten later."""
        if not fresh.endswith(b"\0"):
            self._reserved = self._reserved and not fresh
            return fresh
        written = fresh.rstrip(b"\0")
        end = self._offset + len(written)
        if self._offset + len(fresh) < size and end + _PROBE > self._text_end:
            self._text_end = await self._end_of_text(size)
        self._reserved = self._offset + len(fresh) >= size or end + _PROBE >= self._text_end
        return written if self._reserved else fresh

    async def _at_end(self, look: Look, size: int) -> Step:
        path = look.path
        if path is None:
            self._drained = False
            return Step(idle=True, size=size, word=_WAITING, detail=_GONE)
        if path.inode == self._inode:
            self._drained, self._no_next_but = not self._reserved, None
            return Step(idle=True, size=size)
        if not self._looked_again:  # its writer may have had the old file open a moment longer
            self._looked_again, self._drained = True, False
            return Step(idle=True, size=size, behind=path.size)
        if not path.size and self._no_next_but == path.inode:
            return Step(idle=True, size=size, detail=_EMPTY)
        return await self._next_file(path.inode, path.size == 0)

    async def _next_file(self, path: int, empty: bool) -> Step:
        """The file is read to its end and another one lies at the path."""
        after = following(await self._remote.list(), self._inode, path, self._base, self._finished)
        if after.inode is None and empty:
            self._no_next_but = path
            return Step(idle=True)
        gap = LogGap(SafeText(after.gap)) if after.gap else self._owed
        answer = await (self._remote.inode(after.inode) if after.inode else self._remote.open())
        held = answer.look.held
        if held is None or (after.inode and held.inode != after.inode):
            return self._let_go()
        self._finished.add((self._inode, self._offset))
        self._owed = None
        self._stand(held.inode, 0, b"")
        return Step(start=0, flush=True, gap=gap, size=held.size, behind=held.size)

    async def _attach(self) -> Step:
        """Find the place where reading stopped, or the end of a log never read."""
        answer = await self._remote.open()
        held = answer.look.held
        if self._resume is None:
            if held is None:
                self._first_look = WHOLE if answer.word == "absent" else FIRST_LOOK
                return _not_there(answer)
            end = await self._end_of_text(held.size) if held.size > self._first_look else 0
            start = max(0, end - FIRST_LOOK)
            self._stand(held.inode, start, b"")
            self._going_on, self._want = True, FIRST_LOOK
            return Step(start=start, inside=start > 0, size=held.size, behind=held.size - start)
        place = self._resume
        if held is not None and held.inode == place.inode:
            if await self._stands(answer, place):
                return self._resumed(held.size)
            self._inode, self._offset = place.inode, place.offset
            shrunk = held.size < place.offset
            return await self._start_over("the log was truncated" if shrunk else "the log was rewritten")
        answer = await self._remote.inode(place.inode)
        held = answer.look.held
        if held is not None and held.inode == place.inode and await self._stands(answer, place):
            return self._resumed(held.size)
        answer = await self._remote.open()
        held = answer.look.held
        if held is None:
            return _not_there(answer)
        if place.tail_bytes >= _ADOPT and await self._stands(answer, place):
            return self._resumed(held.size)  # copied, or on a file system that hands out new inodes
        self._stand(held.inode, 0, b"")
        self._going_on = True
        reason = SafeText("the log was replaced, and the file read before is not to be found")
        return Step(start=0, flush=True, gap=LogGap(reason), size=held.size, behind=held.size)

    async def _end_of_text(self, size: int) -> int:
        """Where the NULs begin with which a file made in advance ends, at most 4 KiB too far; or `size`."""
        low, high = 0, size
        while high - low > _PROBE:
            middle = (low + high) // 2 if high < size else size - _PROBE
            probe = await self._remote.read(middle, middle + _PROBE)
            if probe.data[:_PROBE].strip(b"\0"):
                if high == size:
                    return size
                low = middle
            else:
                high = middle
        return high

    async def _start_over(self, why: str) -> Step:
        """The file lost what was read of it: go on in a copy of it, if any, and then at its start."""
        place = self._resume or self.position(self._offset)
        reason = LogGap(SafeText(f"{why} before all of it was surely read"))
        if place is not None and place.tail_bytes >= _ADOPT:
            for copy in copies(await self._remote.list(), self._inode, place.offset, self._base)[:3]:
                answer = await self._remote.inode(copy.inode)
                if answer.look.held is not None and await self._stands(answer, place):
                    self._owed = reason
                    return self._resumed(answer.look.held.size)
        answer = await self._remote.open()
        if answer.look.held is None:
            return self._let_go()
        size = answer.look.held.size
        self._stand(answer.look.held.inode, 0, b"")
        self._going_on = True
        return Step(start=0, flush=True, gap=reason, size=size, behind=size)

    async def _stands(self, answer: Answer, place: LogPosition) -> bool:
        """Whether the open file holds at `place` what was read there; reading goes on from it then."""
        held = answer.look.held
        if held is None or held.size < place.offset:
            return False
        read = await self._remote.read(place.offset - place.tail_bytes, place.offset)
        tail = read.data[: place.tail_bytes]
        if read.look.held is None or read.look.held.inode != held.inode:
            return False
        if len(tail) < place.tail_bytes or (tail and digest(tail) != place.tail_sha256):
            return False
        self._stand(held.inode, place.offset, tail)
        return True

    def _stand(self, inode: int, offset: int, tail: bytes) -> None:
        self._held, self._resume = True, None
        self._inode, self._offset, self._trail = inode, offset, tail
        self._drained = self._doubted = self._looked_again = self._reserved = False
        self._no_next_but = None
        self._text_end = 0

    def _resumed(self, size: int) -> Step:
        start = None if self._going_on else self._offset
        self._going_on = True
        return Step(start=start, size=size, behind=size - self._offset)

    def _let_go(self) -> Step:
        """The open file is not the one we stood in: find that one again."""
        self._resume = self.position(self._offset)
        self._held = False
        return Step(idle=True)


def _beyond(look: Look, inode: int) -> int:
    return look.path.size if look.path is not None and look.path.inode != inode else 0


def _not_there(answer: Answer) -> Step:
    word, detail = _WORDS.get(answer.word, _WORDS["absent"])
    return Step(idle=True, word=word, detail=detail)
