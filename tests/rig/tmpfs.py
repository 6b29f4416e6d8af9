"""Small filesystems of our own: full, out of inodes or read-only on demand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.real import absent, need


@contextmanager
def tmpfs(where: Path, *, size: int, inodes: int = 0) -> Iterator[Path]:
    """A tmpfs of `size` bytes (and `inodes` inodes, 0: no limit); skips where that is not allowed."""
    tools = need("mount", "umount")
    where.mkdir(parents=True, exist_ok=True)
    options = f"size={size}" + (f",nr_inodes={inodes}" if inodes else "")
    made = subprocess.run(
        [tools["mount"], "-t", "tmpfs", "-o", options, "tmpfs", str(where)], capture_output=True, timeout=10
    )
    if made.returncode:
        absent(f"mounting a tmpfs is not allowed here: {made.stderr.decode().strip()}")
    try:
        yield where
    finally:
        subprocess.run([tools["umount"], "-l", str(where)], check=True, timeout=10)


def remount(where: Path, how: str) -> None:
    """Make it ``ro`` or ``rw``."""
    subprocess.run([need("mount")["mount"], "-o", f"remount,{how}", str(where)], check=True, timeout=10)


def fill(where: Path, leave: int) -> Path:
    """Take all space but `leave` bytes."""
    said = os.statvfs(where)
    path = where / "ballast"
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, said.f_bavail * said.f_frsize - leave))
    return path
