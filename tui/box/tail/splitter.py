"""Bytes of a log in, finished lines out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.model.text import LINE_LIMIT, LogGate, LogText

MOST_LINES = 5000
"""Lines in one piece."""

MOST_BYTES = 256 * 1024
"""Bytes in one piece, unless a single line is longer."""

_NULS = re.compile(rb"\0+")


@dataclass(frozen=True, slots=True)
class Piece:
    """Finished lines, and the offset in the file right behind them."""

    lines: list[LogText]
    end: int


class Unfinished:
    """The line whose end has not come yet: what is visible of it, in bounded memory.

    Attributes:
        size: bytes of the line so far.
        spent: how many of them a carriage return has made invisible; they never need to be read again.
        head: beginning of the visible state, at most LINE_LIMIT bytes; NUL runs as one NUL.
        beyond: further bytes of the visible state.
    """

    def __init__(self) -> None:
        self.size = 0
        self.spent = 0
        self.head = b""
        self.beyond = 0
        self._returned = False

    def add(self, data: bytes) -> None:
        """Take more bytes of the line; none of them is a line feed."""
        bare = data.rstrip(b"\r")
        if bare:
            cr = bare.rfind(b"\r")
            if cr >= 0 or self._returned:  # overwritten from its beginning
                self.spent = self.size + cr + 1
                self.head, self.beyond = b"", 0
            fresh = _NULS.sub(b"\0", bare[cr + 1 :]) if b"\0" in bare else bare[cr + 1 :]
            room = LINE_LIMIT - len(self.head)
            self.head += fresh[:room]
            self.beyond += max(0, len(fresh) - room)
            self._returned = False
        self._returned = self._returned or len(bare) < len(data)
        self.size += len(data)


class Splitter:
    """Splits the bytes of one file into lines, from `offset` on.

    A line may be of any length and may arrive in any number of reads; memory stays flat.
    """

    def __init__(self, offset: int, gate: LogGate) -> None:
        self._gate = gate
        self._offset = offset  # right behind the last finished line
        self._unfinished = Unfinished()

    @property
    def resume_at(self) -> int:
        """Where reading must go on after a cut so that the unfinished line comes out the same."""
        return self._offset + self._unfinished.spent

    @property
    def partial(self) -> LogText:
        """The unfinished line as it stands."""
        return self._line(finished=False)

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Finished lines, in pieces; each piece says up to where in the file it reaches."""
        first = data.find(b"\n")
        if first < 0:
            self._unfinished.add(data)
            return
        lines: list[LogText] = []
        if self._unfinished.size:
            self._unfinished.add(data[:first])
            lines.append(self._line(finished=True))
            self._offset += self._unfinished.size + 1
            at = first + 1
        else:
            at = 0
        last = data.rfind(b"\n") + 1
        self._unfinished = Unfinished()
        if last < len(data):
            self._unfinished.add(data[last:])
        for block in _blocks(data, at, last):
            lines += self._gate.lines(_NULS.sub(b"\0", block) if b"\0" in block else block)
            self._offset += len(block)
            yield Piece(lines, self._offset)
            lines = []
        if lines:
            yield Piece(lines, self._offset)

    def finish(self) -> list[LogText]:
        """The file ends here: its last line, when it has no line feed."""
        if not self._unfinished.size:
            return []
        line = self._line(finished=True)
        self._offset += self._unfinished.size
        self._unfinished = Unfinished()
        return [line]

    def _line(self, *, finished: bool) -> LogText:
        head, beyond = self._unfinished.head, self._unfinished.beyond
        return self._gate.line(head, beyond, finished=finished and not beyond) if head else LogText("")


def _blocks(data: bytes, at: int, end: int) -> Iterator[bytes]:
    """Cut ``data[at:end]``, which ends with a line feed, behind line feeds into pieces of bounded size."""
    while at < end:
        cut = data.rfind(b"\n", at, at + MOST_BYTES) + 1 or data.find(b"\n", at) + 1
        block = data[at : min(cut, end)]
        if block.count(b"\n") > MOST_LINES:
            block = block[: len(block) - len(block.split(b"\n", MOST_LINES)[-1])]
        yield block
        at += len(block)
