"""One file under construction: a ``.part`` with a journal beside it, renamed only when its hash agrees.

Parts lie in a folder of their own, named by the digest of the name they get: a run may well hold ``x`` and
``x.part``, and a name may be as long as a filesystem allows.

The journal has a line for every 64 MiB: the length so far and the SHA-256 of everything up to there. So one
pass of hashing serves both the whole file and every place where a transfer may be taken up again. What lies
beyond the last line that agrees with the bytes on disk is thrown away. Everything here blocks; it is called
in a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from tui.durable import sync_folder

CHUNK = 64 << 20
_READ = 1 << 20
_MOST_PIECES = 512  # below IOV_MAX, which is 1024 on Linux and macOS
_VERSION = 1


class HashDiffers(Exception):
    """The whole file is there, and its SHA-256 is not the expected one."""


class Stopped(Exception):
    """The transfer is being given up."""


class PartFile:
    """A file that is being fetched.

    Args:
        final: its path once it is proven; on the same filesystem as `parts`.
        parts: folder for what is not finished.
        size, sha256: what it must become; ``sha256:…``.
        stop: set when the transfer is given up; a long re-hash then ends early.
        chunk: bytes between two lines of the journal.
        beside: writes what this thread hashes meanwhile; None: one after the other.

    Attributes:
        offset: bytes that are written and hashed.
    """

    def __init__(
        self,
        final: Path,
        parts: Path,
        size: int,
        sha256: str,
        stop: threading.Event,
        chunk: int = CHUNK,
        beside: Executor | None = None,
    ) -> None:
        self.final = final
        word = hashlib.sha256(os.fsencode(final)).hexdigest()[:32]
        self.part = parts / f"{word}.part"
        self.journal = parts / f"{word}.journal"
        self.size, self.sha256 = size, sha256
        self.offset = 0
        self._stop = stop
        self._chunk = chunk
        self._beside = beside
        self._hash = hashlib.sha256()
        self._fd = -1
        self._journal_fd = -1

    def finished(self, hashed: Callable[[int], None]) -> bool:
        """Whether the final file is there, every byte right; one that is not is removed. Raises OSError."""
        try:
            fd = os.open(self.final, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        try:
            told = os.fstat(fd)
            if stat.S_ISREG(told.st_mode) and told.st_size == self.size:
                digest = hashlib.sha256()
                for block in self._blocks(fd, self.size):
                    digest.update(block)
                if "sha256:" + digest.hexdigest() == self.sha256:
                    hashed(self.size)
                    return True
        finally:
            os.close(fd)
        self.final.unlink()
        return False

    def resume(self, hashed: Callable[[int], None]) -> int:
        """Open it, hash what was kept from before, and go back to the last place that is proven.

        Args:
            hashed: told of kept bytes as they are proven.

        Returns:
            The offset to go on from.

        Raises:
            OSError: of the disk. Stopped.
        """
        self.close()
        self.part.parent.mkdir(parents=True, exist_ok=True)
        self.final.parent.mkdir(parents=True, exist_ok=True)
        marks = self._read_journal()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        self._fd = os.open(self.part, flags, 0o600)
        self._hash, self.offset = hashlib.sha256(), 0
        for end, digest in marks:
            running = self._hash.copy()
            for block in self._blocks(self._fd, end - self.offset, self.offset):
                running.update(block)
            if running.hexdigest() != digest:
                break
            hashed(end - self.offset)
            self._hash, self.offset = running, end
        os.ftruncate(self._fd, self.offset)
        os.lseek(self._fd, self.offset, os.SEEK_SET)
        self._start_journal([mark for mark in marks if mark[0] <= self.offset])
        return self.offset

    def write(self, blocks: Iterable[bytes | memoryview]) -> None:
        """Write and hash what came. Raises OSError: the journal then tells less than was written."""
        pieces: list[memoryview] = []
        held = 0
        for block in blocks:
            view = memoryview(block)
            while view:
                piece = view[: self._chunk - (self.offset + held) % self._chunk]
                pieces.append(piece)
                held += len(piece)
                view = view[len(piece) :]
                ends = (self.offset + held) % self._chunk == 0
                if ends or len(pieces) == _MOST_PIECES:
                    self._take(pieces)
                    pieces, held = [], 0
                if ends and self.offset < self.size:
                    self._mark()
        if pieces:
            self._take(pieces)

    def commit(self) -> None:
        """Give it its final name, durably.

        Raises:
            HashDiffers: it is not what it must be; nothing was renamed.
            OSError: of the disk. After a failed sync nothing of it is kept: the kernel may count lost pages
                as written from then on.
        """
        if self.offset != self.size or "sha256:" + self._hash.hexdigest() != self.sha256:
            raise HashDiffers
        self._sync(self._fd)
        self.part.rename(self.final)
        with contextlib.suppress(FileNotFoundError):
            self.journal.unlink()
        self.close()
        sync_folder(self.final.parent)

    def discard(self) -> None:
        """Forget everything that was fetched of it. Raises OSError."""
        self.close()
        for path in (self.journal, self.part):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
        self.offset = 0

    def close(self) -> None:
        """Let go of the files; what is journaled can be taken up again."""
        for fd in (self._fd, self._journal_fd):
            if fd >= 0:
                os.close(fd)
        self._fd = self._journal_fd = -1

    # --- inside -------------------------------------------------------------------------------------------

    def _take(self, pieces: Sequence[memoryview]) -> None:
        """Hash and write, at once where somebody writes beside; `offset` counts what went through both."""
        if self._beside is None:
            self._put(list(pieces))
            self._update(pieces)
        else:
            writing = self._beside.submit(self._put, list(pieces))
            self._update(pieces)
            writing.result()
        self.offset += sum(map(len, pieces))

    def _update(self, pieces: Sequence[memoryview]) -> None:
        for piece in pieces:
            self._hash.update(piece)

    def _put(self, pieces: list[memoryview]) -> None:
        while pieces:
            wrote = os.writev(self._fd, pieces)
            while pieces and wrote >= len(pieces[0]):
                wrote -= len(pieces.pop(0))
            if wrote:
                pieces[0] = pieces[0][wrote:]

    def _mark(self) -> None:
        """The bytes first, then the line that vouches for them."""
        self._sync(self._fd)
        if self._journal_fd < 0:
            self._start_journal([])
        os.write(self._journal_fd, _line(self.offset, self._hash.hexdigest()))
        self._sync(self._journal_fd)

    def _sync(self, fd: int) -> None:
        try:
            os.fsync(fd)
        except OSError:
            with contextlib.suppress(OSError):
                self.discard()
            raise

    def _blocks(self, fd: int, count: int, start: int = 0) -> Iterable[bytes]:
        at, end = start, start + count
        while at < end:
            if self._stop.is_set():
                raise Stopped
            block = os.pread(fd, min(_READ, end - at), at)
            if not block:
                return
            at += len(block)
            yield block

    def _start_journal(self, marks: list[tuple[int, str]]) -> None:
        """Only files of more than one chunk have a journal: the rest is fetched anew as a whole."""
        if self._journal_fd >= 0 or self.size <= self._chunk:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        self._journal_fd = os.open(self.journal, flags, 0o600)
        head = {"version": _VERSION, "size": self.size, "sha256": self.sha256}
        text = json.dumps(head, sort_keys=True).encode() + b"\n" + b"".join(_line(*mark) for mark in marks)
        os.write(self._journal_fd, text)

    def _read_journal(self) -> list[tuple[int, str]]:
        """Lengths and digests in order; nothing when the journal is another file's or damaged."""
        try:
            fd = os.open(self.journal, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return []
        with os.fdopen(fd, "rb") as file:
            lines = file.read(16 << 20).split(b"\n")
        try:
            head = json.loads(lines[0])
        except ValueError:
            return []
        if head != {"version": _VERSION, "size": self.size, "sha256": self.sha256}:
            return []
        marks: list[tuple[int, str]] = []
        for line in lines[1:-1]:  # the last piece has no line feed: empty, or cut while it was written
            length, _, digest = line.partition(b" ")
            if not length.isdigit() or len(digest) != 64:
                break
            end = int(length)
            if end > self.size or end <= (marks[-1][0] if marks else 0):
                break
            marks.append((end, digest.decode("ascii", "replace")))
        return marks


def _line(length: int, digest: str) -> bytes:
    return f"{length} {digest}\n".encode()
