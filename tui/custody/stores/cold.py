"""Reading from the disk and not from memory, whose right bytes would hide that the disk has lost them."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import mmap
import os
from pathlib import Path

_F_NOCACHE = getattr(fcntl, "F_NOCACHE", None)
_STEP = 1 << 30


def drop(path: Path) -> bool:
    """Make the next read of a file come from the disk; whether that is proven.

    Linux: the pages are written and dropped, and the kernel is asked whether any stayed (a tmpfs keeps all of
    them). Where it can't be asked it is not proven.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return drop_open(fd)
    finally:
        os.close(fd)


def drop_open(fd: int) -> bool:
    """The same for an open file, which is read through this descriptor next."""
    try:
        if _F_NOCACHE is not None:
            fcntl.fcntl(fd, _F_NOCACHE, 1)
            return True
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    except (AttributeError, OSError):
        return False
    return resident(fd) == 0


def resident(fd: int) -> int | None:
    """Pages of a file that are in memory; None where nobody can say."""
    call = _mincore()
    size = os.fstat(fd).st_size
    if call is None:
        return None
    found = 0
    for start in range(0, size, _STEP):
        length = min(_STEP, size - start)
        pages = (ctypes.c_ubyte * -(-length // mmap.PAGESIZE))()
        try:
            # private, so that it may be called writable, which `from_buffer` insists on; nothing is written
            view = mmap.mmap(fd, length, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=start)
        except (OSError, ValueError):
            return None
        with view:
            first = ctypes.c_char.from_buffer(view)
            status = call(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(length), pages)
            del first
        if status != 0:
            return None
        found += sum(page & 1 for page in bytes(pages)) if any(pages) else 0
    return found


@functools.cache
def _mincore() -> ctypes._FuncPointer | None:
    try:
        return ctypes.CDLL(None, use_errno=True).mincore
    except (AttributeError, OSError):
        return None
