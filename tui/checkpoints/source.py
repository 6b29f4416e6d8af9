"""Bytes of one file, read where they are asked for: no mapping, no whole file in memory."""

from __future__ import annotations

import errno
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from types import TracebackType

BLOCK = 1 << 18
"""Bytes per read of a pass over a file: small enough for a core's own cache."""


class Source:
    """An open regular file. Never follows a link in the last place, never blocks on a pipe.

    Args:
        stop: asked before each block of a long reading; True ends it with Stopped.

    Raises:
        OSError: it cannot be opened.
        NotAFile: it is no regular file.
    """

    def __init__(self, path: str, stop: Callable[[], bool] | None = None) -> None:
        self._stop = stop
        self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        self.path = path
        self.stat = os.fstat(self._fd)
        self.size = self.stat.st_size
        if not stat.S_ISREG(self.stat.st_mode):
            os.close(self._fd)
            raise NotAFile(path)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self._fd)

    def read(self, start: int, length: int) -> bytes:
        """At most `length` bytes; fewer only at the end of the file."""
        if start < 0 or length <= 0:
            return b""
        first = os.pread(self._fd, length, start)
        if len(first) == length or not first:
            return first
        parts = [first]  # a signal or a network file system may hand out less than was asked for
        got = len(first)
        while got < length and (more := os.pread(self._fd, length - got, start + got)):
            parts.append(more)
            got += len(more)
        return b"".join(parts)

    def blocks(self, start: int, length: int) -> Iterator[memoryview]:
        """The stretch in blocks, all in one buffer: a block is valid until the next. Short at the end."""
        buffer = memoryview(bytearray(min(BLOCK, max(1, length))))
        while length > 0:
            if self._stop is not None and self._stop():
                raise Stopped
            got = os.preadv(self._fd, [buffer[: min(len(buffer), length)]], start)
            if not got:
                return
            yield buffer[:got]
            start, length = start + got, length - got

    def crc32(self, start: int, length: int) -> tuple[int, int]:
        """CRC-32 of a stretch, and how many bytes of it are there."""
        crc = got = 0
        for block in self.blocks(start, length):
            crc = zlib.crc32(block, crc)
            got += len(block)
        return crc, got

    def section(self, start: int, length: int) -> io.BufferedReader:
        """A stretch of the file as a file of its own."""
        return io.BufferedReader(_Section(self, start, length), 1 << 16)

    def is_zero(self, start: int, length: int) -> bool:
        """Whether a stretch holds nothing but zeros. Holes are passed over where the system tells them."""
        end = min(self.size, start + length)
        while start < end:
            data = self._next_data(start)
            if data is None or data >= end:
                return True
            start = max(start, data)
            for block in self.blocks(start, min(4 * BLOCK, end - start)):
                if any(block):
                    return False
                start += len(block)
        return True

    def zero_tail(self) -> int:
        """How many zero bytes the file ends in."""
        end = self.size
        while end:
            start = max(0, end - BLOCK)
            if self.is_zero(start, end - start):
                end = start
                continue
            return self.size - start - len(self.read(start, end - start).rstrip(b"\0"))
        return self.size

    @property
    def sparse(self) -> bool:
        """Less than half of what the file claims is on the disk."""
        on_disk = getattr(self.stat, "st_blocks", None)
        return on_disk is not None and self.size >= 1 << 20 and on_disk * 512 < self.size // 2

    def _next_data(self, start: int) -> int | None:
        """Where data goes on behind a hole; None behind the last data; `start` where nobody can tell."""
        if not self.sparse:
            return start
        try:
            return os.lseek(self._fd, start, os.SEEK_DATA)
        except OSError as error:
            return None if error.errno == errno.ENXIO else start  # only a hole is left


class Part(Source):
    """A stretch of an open file as a file of its own; whoever opened the file closes it."""

    def __init__(self, whole: Source, start: int, length: int) -> None:
        self._whole = whole
        self._start = start
        self.path = whole.path
        self.size = max(0, min(length, whole.size - start))

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        return

    def read(self, start: int, length: int) -> bytes:
        return self._whole.read(self._start + start, self._inside(start, length)) if start >= 0 else b""

    def blocks(self, start: int, length: int) -> Iterator[memoryview]:
        return self._whole.blocks(self._start + start, self._inside(start, length))

    def crc32(self, start: int, length: int) -> tuple[int, int]:
        return self._whole.crc32(self._start + start, self._inside(start, length))

    def is_zero(self, start: int, length: int) -> bool:
        return self._whole.is_zero(self._start + start, self._inside(start, length))

    @property
    def sparse(self) -> bool:
        return self._whole.sparse

    def _inside(self, start: int, length: int) -> int:
        return max(0, min(length, self.size - start))


Opener = Callable[[str, Callable[[], bool] | None], Source]
"""Opens a file for reading, as `Source` itself does: by its path, and whom to ask whether to give up."""


class Stopped(Exception):
    """Whoever asked no longer wants to know."""


class NotAFile(Exception):
    """A pipe, socket, device or folder where a file was expected."""


class _Section(io.RawIOBase):
    def __init__(self, source: Source, start: int, length: int) -> None:
        self._source = source
        self._start = start
        self._length = max(0, min(length, source.size - start))
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._source.read(self._start + self._at, min(len(buffer), self._length - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
