"""A FUSE filesystem in a few lines, which can stop to answer. Needs root and /dev/fuse, and no library.

Opcodes and structures: include/uapi/linux/fuse.h, protocol 7.31.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.real import absent

_HEADER = struct.Struct("<IIQQIIIHH")
_GETATTR, _STATFS, _INIT, _OPENDIR, _RELEASEDIR, _FORGET, _BATCH_FORGET = 3, 17, 26, 27, 29, 2, 42
_ENOSYS = 38
_DETACH_AND_FORCE = 3


class Folder:
    """An empty mounted folder of 1000 blocks of 4 KiB and 500 inodes, 200 and 100 of them free."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.answering = threading.Event()
        self.answering.set()
        self.asked_while_silent = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._fd, 1 << 20)
            except OSError:
                return
            _, opcode, unique, *_ = _HEADER.unpack_from(request)
            if opcode in (_FORGET, _BATCH_FORGET):
                continue
            if not self.answering.is_set():
                self.asked_while_silent += opcode in (_GETATTR, _STATFS)
                continue  # taken and never answered: even SIGKILL does not end who asked
            with contextlib.suppress(OSError):
                os.write(self._fd, _answer(opcode, unique))


def _answer(opcode: int, unique: int) -> bytes:
    body: bytes | None = None
    if opcode == _INIT:
        body = struct.pack("<IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0, *[0] * 7)
    elif opcode == _GETATTR:
        attr = struct.pack("<6Q10I", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
        body = struct.pack("<QII", 0, 0, 0) + attr
    elif opcode == _STATFS:
        body = struct.pack("<5Q4I6I", 1000, 200, 200, 500, 100, 4096, 255, 4096, 0, *[0] * 6)
    elif opcode == _OPENDIR:
        body = struct.pack("<QII", 1, 0, 0)
    elif opcode == _RELEASEDIR:
        body = b""
    if body is None:
        return struct.pack("<IiQ", 16, -_ENOSYS, unique)
    return struct.pack("<IiQ", 16 + len(body), 0, unique) + body


@contextlib.contextmanager
def mounted(place: Path) -> Iterator[Folder]:
    """Mount the folder at `place`; unmounted and all who hang on it let go at the end."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        absent(f"/dev/fuse cannot be opened: {error}")
    place.mkdir()
    options = f"fd={fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"rgt-test", os.fsencode(place), b"fuse.rgt-test", 6, options.encode()) != 0:
        os.close(fd)
        absent(f"a FUSE mount is not permitted: {os.strerror(ctypes.get_errno())}")
    try:
        yield Folder(fd)
    finally:
        libc.umount2(os.fsencode(place), _DETACH_AND_FORCE)
        os.close(fd)
