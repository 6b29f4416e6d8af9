"""This computer's disk: what makes bytes and names durable, and what to say when it does not take them."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.model.failure import Exit, Failure
from tui.model.text import amount, safe

_SLACK = 16 << 20  # for journals, folders and what other programs write meanwhile


@dataclass(frozen=True, slots=True)
class Room:
    """What a filesystem has left for this user. `inodes` is None where it does not count them."""

    bytes: int
    inodes: int | None


def room(folder: Path) -> Room:
    """Free bytes and inodes where `folder` is, or will be. Raises Failure."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        said = os.statvfs(there)
    except OSError as error:
        raise disk_failure(error, folder) from None
    return Room(said.f_bavail * said.f_frsize, said.f_favail if said.f_files else None)


def need_room(folder: Path, need_bytes: int, need_inodes: int) -> None:
    """Refuse before the first byte what can't fit. Raises Failure with the figures."""
    free = room(folder)
    if need_bytes + _slack(need_bytes) > free.bytes:
        raise Failure(
            f"{folder} has {amount(free.bytes)} free; {amount(need_bytes)} are needed.",
            means="Nothing was written.",
            do="Make room, or give another place with --to.",
            code="disk-full",
        )
    if free.inodes is not None and need_inodes > free.inodes:
        raise Failure(
            f"{folder} has {free.inodes} inodes free; {need_inodes} files and folders are needed.",
            means="Nothing was written; free bytes don't help here.",
            do="Remove small files there, or give another place with --to.",
            code="inodes-full",
        )


def _slack(need_bytes: int) -> int:
    return min(_SLACK, need_bytes // 50)


def disk_failure(error: OSError, path: Path) -> Failure:
    """What a failed write, sync or rename on this computer means."""
    what, code, do = _reason(error, path)
    return Failure(
        f"{safe(str(path), 300)}: {what}.",
        means="What was complete before stays; the rest does not count as copied.",
        do=do,
        exit=Exit.ATTENTION,
        code=code,
    )


def _reason(error: OSError, path: Path) -> tuple[str, str, str]:
    again = "then repeat; it goes on where it stopped"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        if _no_inodes(path):
            return "no inode is left there", "inodes-full", f"Remove small files there, {again}."
        return "the disk is full", "disk-full", f"Make room there, {again}."
    if error.errno == errno.EROFS:
        return "that filesystem is read-only", "disk-read-only", "Mount it writable or give another place."
    if error.errno in (errno.EACCES, errno.EPERM):
        return "this user may not write there", "disk-denied", "Give access, or give another place."
    if error.errno == errno.EFBIG:
        return "that filesystem takes no file of this size", "disk-file-limit", "Give another place."
    if error.errno == errno.ENAMETOOLONG:
        return "that filesystem takes no name of this length", "disk-name-limit", "Give another place."
    reason = safe(error.strerror or str(error), 100)
    return (
        f"the disk reports an error ({reason})",
        "disk-error",
        "Don't trust this disk; give another place with --to.",
    )


def _no_inodes(path: Path) -> bool:
    try:
        said = os.statvfs(next(one for one in (path, *path.parents) if one.exists()))
    except (OSError, StopIteration):
        return False
    return bool(said.f_files) and said.f_favail == 0


def sync_files(files: Sequence[str], folder: str) -> None:
    """Make the content of many small files durable. Raises OSError.

    One ``syncfs`` (Linux; syncfs(2) says that it reports write errors since 5.8) costs less than a sync of
    each, from a few dozen files on.
    """
    if len(files) > 32 and _syncfs(folder):
        return
    for path in files:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _syncfs(folder: str) -> bool:
    call = _syncfs_of_libc()
    if call is None:
        return False
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if call(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(fd)
    return True


@functools.cache
def _syncfs_of_libc() -> ctypes._FuncPointer | None:
    try:
        return ctypes.CDLL(None, use_errno=True).syncfs
    except (AttributeError, OSError):
        return None
