"""The conversation with the script on the box: one question, one answer, exact bytes."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from dataclasses import dataclass

from tui.box.tail import rotation
from tui.box.tail.rotation import Entry, Look
from tui.box.transport import Channel

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


class Remote:
    """Asks the script on the other end of a channel.

    All questions raise LinkLost when the connection breaks, ChannelEnded when the script is gone, and
    TimeoutError when nothing comes for ANSWER_WITHIN seconds.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def open(self) -> Answer:
        """Open whatever lies at the log's path."""
        return await self._looked("open")

    async def inode(self, inode: int) -> Answer:
        """Open the file with this inode in the log's directory, under whatever name."""
        return await self._looked(f"inode {inode}")

    async def read(self, start: int, end: int, *, quiet: bool = False) -> Answer:
        """Look, and read bytes from `start` to about `end` of the open file.

        Args:
            quiet: only when path or file changed since the last look; otherwise the word is ``same``.
        """
        size = 512 if end - start <= 1 << 16 else 4096 if end - start <= 1 << 20 else 1 << 16
        skip = start // size
        count = -(-end // size) - skip
        text, data = await self._ask(f"read {'quiet' if quiet else 'loud'} {size} {skip} {count}")
        word, _, rest = text.partition(b"\n")
        before = start - skip * size
        return Answer(word.decode("latin-1"), rotation.look(rest), data[before:], start)

    async def list(self) -> list[Entry]:
        """The files beside the log whose names begin like it, the newest first."""
        text, _ = await self._ask("list")
        return rotation.entries(text)

    async def _looked(self, question: str) -> Answer:
        text, _ = await self._ask(question)
        word, _, rest = text.partition(b"\n")
        return Answer(word.decode("latin-1"), rotation.look(rest))

    async def _ask(self, question: str) -> tuple[bytes, bytes]:
        token = secrets.token_hex(8).encode()
        async with asyncio.timeout(ANSWER_WITHIN):
            await self._channel.write(token + b" " + question.encode() + b"\n")
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
        whole = b"".join(parts)  # what a login shell printed before is left out
        begin = whole.find(b"\n" + token + b" begin\n") + len(token) + 8
        middle = whole.find(b"\n" + token + b" data\n", begin - 1)
        if begin < len(token) + 8 or middle < 0:
            raise ChannelEnded
        return whole[begin:middle], whole[middle + len(token) + 7 : -len(end)]


def digest(tail: bytes) -> str:
    """Digest by which the end of what was read is recognised."""
    return hashlib.sha256(tail).hexdigest()
