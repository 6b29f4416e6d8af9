"""The conversation with the script on the box: one question, one answer, exact bytes.

One channel (`Line`) can serve several logs in turn, each in its slot (`Remote`): a server that allows few
sessions still lets all of them be followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import string
from dataclasses import dataclass

from tui.box.tail import rotation
from tui.box.tail.rotation import Entry, Look
from tui.box.transport import Channel
from tui.model.failure import Failure

ANSWER_WITHIN = 30.0
"""Seconds without a byte of an answer after which the box counts as silent."""

_READ = 256 * 1024


class ChannelEnded(Exception):
    """The script on the box ended by itself: its shell was killed, or there is none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the box said.

    Attributes:
        word: ``open``, ``absent``, ``denied``, ``special``; ``look`` or ``same`` for reads.
        start: offset in the file of the first byte of `data`.
    """

    word: str
    look: Look
    data: bytes = b""
    start: int = 0


_PLAIN = (string.ascii_letters + string.digits + "/._~-").encode()

SLOTS = range(3, 10)
"""Descriptors that a POSIX shell can hold files on."""


class Line:
    """One channel with the script at its other end, and who sits in which of its slots.

    Attributes:
        over: nothing more is asked here: the channel ended, broke or fell silent, or its session is given up.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._turn = asyncio.Lock()
        self._taken: set[int] = set()
        self._left: list[int] = []  # slots whose file is still held open on the box
        self._closed = False
        self.over = False

    @property
    def seats(self) -> int:
        """How many logs are read here."""
        return len(self._taken)

    @property
    def has_room(self) -> bool:
        return not self.over and len(self._taken) < len(SLOTS)

    def seat(self, path: str, hold: str = "") -> Remote:
        """A slot of this line for the log at `path`; there must be room."""
        slot = next(slot for slot in SLOTS if slot not in self._taken)
        self._taken.add(slot)
        return Remote(self, slot, path, hold)

    async def leave(self, slot: int) -> None:
        """Give a slot back; the last one to leave, or the first after the end, closes the channel."""
        self._taken.discard(slot)
        self._left.append(slot)
        if not self._taken or self.over:
            await self.close()

    async def close(self) -> None:
        """End the channel; whoever still sits here meets ChannelEnded."""
        self.over = True
        if not self._closed:
            self._closed = True
            await self._channel.close()

    async def ask(self, questions: list[str]) -> tuple[bytes, bytes]:
        """The answer to the last of `questions`, which are sent together. Raises as `Remote` does."""
        async with self._turn:
            if self.over:
                raise ChannelEnded
            dropped, self._left = self._left, []
            before = [f"drop {slot}" for slot in dropped if slot not in self._taken]
            try:
                return await self._answer([*before, *questions])
            except (Failure, TimeoutError, ChannelEnded):
                self.over = True
                raise

    async def _answer(self, questions: list[str]) -> tuple[bytes, bytes]:
        lines = [(secrets.token_hex(8).encode(), question) for question in questions]
        token = lines[-1][0]
        async with asyncio.timeout(ANSWER_WITHIN):
            await self._channel.write(b"".join(mark + f" {asked}\n".encode() for mark, asked in lines))
        end = b"\n" + token + b" end\n"
        parts: list[bytes] = []
        last = b""
        while not last.endswith(end):
            async with asyncio.timeout(ANSWER_WITHIN):
                part = await self._channel.read(_READ)
            if not part:
                raise ChannelEnded
            parts.append(part)
            last = part if len(part) >= len(end) else (last + part)[-len(end) :]
        # What a login shell printed before is left out, and what was answered to somebody who gave up.
        whole = b"".join(parts)
        begin = whole.find(b"\n" + token + b" begin\n") + len(token) + 8
        middle = whole.find(b"\n" + token + b" data\n", begin - 1)
        if begin < len(token) + 8 or middle < 0:
            raise ChannelEnded
        return whole[begin:middle], whole[middle + len(token) + 7 : -len(end)]


class Remote:
    """Asks the script about one log; made by `Line.seat`.

    All questions raise LinkLost when the connection breaks, ChannelEnded when the script is gone, and
    TimeoutError when nothing comes for ANSWER_WITHIN seconds.

    Attributes:
        answered: the box answered at least once.
    """

    def __init__(self, line: Line, slot: int, path: str, hold: str) -> None:
        self._line = line
        self._slot = slot
        self._entry: str | None = f"seat {slot} {hold or 'auto'} {spelled(path)}"
        self.answered = False

    async def leave(self) -> None:
        """Let the log go. Never raises."""
        await self._line.leave(self._slot)

    async def open(self) -> Answer:
        """Open whatever lies at the log's path."""
        return await self._looked("open")

    async def inode(self, inode: int) -> Answer:
        """Open the file with this inode in the log's directory, under whatever name."""
        return await self._looked("inode", str(inode))

    async def read(self, start: int, end: int, *, quiet: bool = False) -> Answer:
        """Look, and read bytes from `start` to about `end` of the open file.

        Args:
            quiet: only when path or file changed since the last look; otherwise the word is ``same``.
        """
        size = 512 if end - start <= 1 << 16 else 4096 if end - start <= 1 << 20 else 1 << 16
        skip = start // size
        count = -(-end // size) - skip
        text, data = await self._ask("read", f"{'quiet' if quiet else 'loud'} {size} {skip} {count}")
        word, _, rest = text.partition(b"\n")
        before = start - skip * size
        return Answer(word.decode("latin-1"), rotation.look(rest), data[before:], start)

    async def list(self) -> list[Entry]:
        """The files beside the log whose names begin like it, the newest first."""
        text, _ = await self._ask("list")
        return rotation.entries(text)

    async def _looked(self, verb: str, inode: str = "") -> Answer:
        text, _ = await self._ask(verb, inode)
        word, _, rest = text.partition(b"\n")
        return Answer(word.decode("latin-1"), rotation.look(rest))

    async def _ask(self, verb: str, rest: str = "") -> tuple[bytes, bytes]:
        question = f"{verb} {self._slot} {rest}".rstrip()
        answer = await self._line.ask([question] if self._entry is None else [self._entry, question])
        self._entry, self.answered = None, True
        return answer


def spelled(path: str) -> str:
    """The bytes of a path for ``printf %b``, free of blanks and newlines."""
    raw = path.encode("utf-8", "surrogateescape")
    return "".join(chr(b) if b in _PLAIN else f"\\0{b:03o}" for b in raw)


def digest(tail: bytes) -> str:
    """Digest by which the end of what was read is recognised."""
    return hashlib.sha256(tail).hexdigest()
