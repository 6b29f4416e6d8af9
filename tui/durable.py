"""Small files of rgt's own: written so that a crash leaves the old or the new one whole, and read warily."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def write_whole(path: Path, data: str | bytes) -> None:
    """Put `data` in place of what is there, with mode 600; the folder is made where it is missing.

    Raises:
        OSError: what is there is as it was.
    """
    with written_beside(path, data) as temporary:
        temporary.replace(path)
    sync_folder(path.parent)


def write_new(path: Path, data: str | bytes) -> None:
    """The same for a file that must not be there yet. Raises FileExistsError, OSError."""
    with written_beside(path, data) as temporary:
        os.link(temporary, path)  # unlike a rename it never replaces what somebody else wrote
    sync_folder(path.parent)


@contextlib.contextmanager
def written_beside(path: Path, data: str | bytes) -> Iterator[Path]:
    """A file with `data` that is safe on the disk, beside `path`; gone afterwards unless it was moved."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}-")  # mode 600
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def read_regular(path: Path, most: int) -> bytes:
    """The first `most` bytes of a regular file. Never waits for whoever writes into a pipe.

    Raises:
        OSError: it cannot be read, or it is a pipe, socket, device or folder.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(min(most, found.st_size + 1))  # read() takes the memory it is allowed at once


def sync_folder(folder: Path | str) -> None:
    """Make the names in a folder durable. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
