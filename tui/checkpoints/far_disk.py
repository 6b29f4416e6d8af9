"""This side of another machine's files: they are judged here and read there, a stretch at a time.

Headers and directories of archives come over the wire; sums, digests and numbers are taken where the bytes
lie. What answers may be anything, so nothing it says is believed beyond its type and its bounds.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, cast

from tui.checkpoints.jailer import Running
from tui.checkpoints.source import BLOCK, NotAFile, Source, Stopped
from tui.checkpoints.tree import MAX_ENTRIES, Entry, Tree, Type
from tui.model.failure import Exit, Failure
from tui.model.text import safe


def programme() -> bytes:
    """The programme on the other side; it stands alone."""
    return Path(__file__).with_name("far_files.py").read_bytes()


What = Literal["files", "jail"]
Connect = Callable[[What], socket.socket]
"""Starts one of the two programmes there and gives the pipe to it. Raises OSError."""

_SILENT_S = 90.0
"""Longest silence: sums tell every two seconds, and a network disk may hang for a while."""
_LINE = 16 << 20
_AHEAD = 1 << 18
_KEPT = 8


class FarLost(Failure):
    """The other machine can't be asked any more."""

    def __init__(self) -> None:
        super().__init__(
            "The link to the box that reads the copy back was lost, or what was started there ended.",
            means="Nothing is said about the files; they are unharmed.",
            do="Try again.",
            exit=Exit.UNREACHABLE,
            code="reader-lost",
        )


class FarDisk:
    """Files of another machine. For several threads; one request at a time.

    Args:
        silence_s: how long an answer may fail to come.
    """

    def __init__(self, connect: Connect, *, silence_s: float = _SILENT_S) -> None:
        self._silence = silence_s
        self._lock = threading.Lock()
        self._rest = b""
        self.closed = False
        try:
            self._socket = connect("files")
        except OSError:
            raise FarLost from None
        with self._lock:
            self.python = safe(str(self._object(None).get("python")), 20)

    def close(self) -> None:
        self.closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> FarDisk:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def open(self, path: str, stop: Callable[[], bool] | None = None) -> FarSource:
        return FarSource(self, path, stop)

    def sha256(self, path: str, stop: Callable[[], bool]) -> tuple[str | None, str | None]:
        try:
            source = FarSource(self, path, stop)
            with source:
                digest, same = source.sha256()
                return (digest, None) if same else (None, "file-changed")
        except NotAFile:
            return None, "special-file"
        except OSError:
            return None, "file-unreadable"

    def walk(self, root: str) -> Tree:
        """Everything below a folder there. Raises OSError, FarLost."""
        tree = Tree(root)
        tree.folders[""] = {}
        with self._lock:
            answer = self._first({"do": "walk", "root": root, "most": MAX_ENTRIES}, None)
            while True:
                for row in _list(answer.get("lot")):
                    _add(tree, row)
                if len(tree.entries) > MAX_ENTRIES:
                    self._lose()
                if answer.get("done"):
                    break
                answer = self._object(None)
        unread = answer.get("unread")
        tree.unread = {str(k): str(v) for k, v in unread.items()} if isinstance(unread, dict) else {}
        tree.cut = bool(answer.get("cut"))
        return tree

    def free_memory(self) -> int | None:
        answer, _ = self.ask({"do": "room"})
        memory = answer.get("memory")
        return memory if isinstance(memory, int) else None

    def ask(
        self, request: dict[str, Any], stop: Callable[[], bool] | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """One request: the last line of its answer, and the bytes behind that.

        Raises:
            OSError: as the other system told it.
            Stopped, FarLost.
        """
        with self._lock:
            answer = self._first(request, stop)
            while "at" in answer and not answer.get("done"):
                answer = self._object(stop)
            count = answer.get("bytes", 0)
            if not isinstance(count, int) or not 0 <= count <= request.get("length", 0):
                self._lose()
            return answer, self._exactly(count, stop)

    def _first(self, request: dict[str, Any], stop: Callable[[], bool] | None) -> dict[str, Any]:
        try:
            self._socket.sendall(json.dumps(request).encode("ascii") + b"\n")
        except OSError:
            self._lose()
        answer = self._object(stop)
        code = answer.get("errno")
        if isinstance(code, int):
            raise OSError(code, os.strerror(code))
        return answer

    def _object(self, stop: Callable[[], bool] | None) -> dict[str, Any]:
        while b"\n" not in self._rest:
            if len(self._rest) > _LINE:
                self._lose()
            self._more(stop)
        line, _, self._rest = self._rest.partition(b"\n")
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            self._lose()
        return found if isinstance(found, dict) else self._lose()

    def _exactly(self, count: int, stop: Callable[[], bool] | None) -> bytes:
        while len(self._rest) < count:
            self._more(stop)
        data, self._rest = self._rest[:count], self._rest[count:]
        return data

    def _more(self, stop: Callable[[], bool] | None) -> None:
        """Wait for some bytes; once given up, what is under way would answer another question."""
        end = time.monotonic() + self._silence
        try:
            while not select.select([self._socket], [], [], 0.2)[0]:
                if stop is not None and stop():
                    self.close()
                    raise Stopped
                if time.monotonic() > end:
                    self._lose()
            data = self._socket.recv(1 << 18)
        except (OSError, ValueError):
            self._lose()
        if not data:
            self._lose()
        self._rest += data

    def _lose(self) -> Any:
        self.close()
        raise FarLost


class FarSource(Source):
    """One open file of another machine."""

    def __init__(self, disk: FarDisk, path: str, stop: Callable[[], bool] | None = None) -> None:
        self._disk, self._stop, self.path = disk, stop, path
        self._near: dict[int, bytes] = {}
        told, _ = disk.ask({"do": "open", "path": path}, stop)
        if told.get("special"):
            raise NotAFile(path)
        fd, size, blocks = told.get("fd"), told.get("size"), told.get("blocks")
        if not isinstance(fd, int) or not isinstance(size, int) or size < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._fd, self.size, self._blocks = fd, size, blocks if isinstance(blocks, int) else None

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if not self._disk.closed:
            self._disk.ask({"do": "close", "fd": self._fd})

    def read(self, start: int, length: int) -> bytes:
        """At most `length` bytes. Small stretches are taken from larger ones: each costs a round trip."""
        if start < 0 or length <= 0:
            return b""
        length = min(length, max(0, self.size - start))
        parts: list[bytes] = []
        while length > 0:
            lot, skip = divmod(start, _AHEAD)
            data = self._lot(lot)[skip : skip + length]
            if not data:
                break
            parts.append(data)
            start, length = start + len(data), length - len(data)
        return b"".join(parts)

    def _lot(self, lot: int) -> bytes:
        if lot not in self._near:
            if len(self._near) >= _KEPT:
                self._near.pop(next(iter(self._near)))
            self._near[lot] = self._fetched(lot * _AHEAD, _AHEAD)
        return self._near[lot]

    def _fetched(self, start: int, length: int) -> bytes:
        parts: list[bytes] = []
        while length > 0:
            request = {"do": "read", "fd": self._fd, "at": start, "length": length}
            _, data = self._disk.ask(request, self._stop)
            if not data:
                break
            parts.append(data)
            start, length = start + len(data), length - len(data)
        return b"".join(parts)

    def blocks(self, start: int, length: int) -> Iterator[memoryview]:
        while length > 0:
            if self._stop is not None and self._stop():
                raise Stopped
            data = self._fetched(start, min(4 * BLOCK, length))
            if not data:
                return
            yield memoryview(data)
            start, length = start + len(data), length - len(data)

    def crc32(self, start: int, length: int) -> tuple[int, int]:
        told = self._sum("crc32", start, length)
        return int(told["crc"]), int(told["got"])

    def sha256(self) -> tuple[str, bool]:
        """Its digest in hex, and whether nobody wrote to it meanwhile."""
        told = self._sum("sha256", 0, self.size)
        return str(told["sha256"]), told["same"] is True and told["got"] == self.size

    def _sum(self, what: str, start: int, length: int) -> dict[str, Any]:
        request = {"do": "sum", "what": what, "fd": self._fd, "at": start}
        return self._disk.ask({**request, "length": max(0, length)}, self._stop)[0]

    def is_zero(self, start: int, length: int) -> bool:
        length = min(length, self.size - start)
        if length <= 0:
            return True
        request = {"do": "zero", "fd": self._fd, "at": start, "length": length}
        return self._disk.ask(request, self._stop)[0].get("zero") is True

    @property
    def sparse(self) -> bool:
        return self._blocks is not None and self.size >= 1 << 20 and self._blocks * 512 < self.size // 2


class FarGround:
    """Jailed processes on another machine.

    Args:
        disk: asked whether that machine still answers, where a process was lost.
    """

    def __init__(self, connect: Connect, disk: FarDisk) -> None:
        self._connect, self._disk = connect, disk

    def start(self) -> Running:
        return _FarChild(self._connect("jail"))

    def free_memory(self) -> int | None:
        return self._disk.free_memory()

    def check(self) -> None:
        if self._disk.closed:
            raise FarLost
        self._disk.free_memory()


class _FarChild:
    """The pipe to one; its end there ends the process and all that it forked."""

    def __init__(self, pipe: socket.socket) -> None:
        self._socket = pipe
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def send(self, line: bytes) -> None:
        self._socket.sendall(line)

    def receive(self, seconds: float) -> bytes:
        try:
            ready = select.select([self._socket], [], [], seconds)[0]
        except ValueError:
            raise OSError(errno.EBADF, "closed") from None
        if not ready:
            raise TimeoutError
        data = self._socket.recv(1 << 16)
        self._ended = self._ended or not data
        return data

    def kill(self) -> None:
        self._ended = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def gone(self) -> None:
        self._socket.close()


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _add(tree: Tree, row: object) -> None:
    """One name, where it makes sense below the folders that are known."""
    if not isinstance(row, list) or len(row) != 8:
        return
    path, kind, size, mtime, mode, device, inode, target = row
    numbers = all(isinstance(one, int) and one >= 0 for one in (size, mode, device, inode))
    if not isinstance(path, str) or not numbers or not isinstance(mtime, int | float):
        return
    folder, _, name = path.rpartition("/")
    if folder not in tree.folders or name in ("", ".", "..") or "\0" in path or path in tree.entries:
        return
    if kind not in ("file", "folder", "link", "special"):
        return
    entry = Entry(path, cast("Type", kind), size, float(mtime), mode, (device, inode), str(target))
    tree.entries[path] = tree.folders[folder][name] = entry
    if kind == "folder":
        tree.folders[path] = {}
