"""A disk of the embedded fleet that does not keep what was written: one bit of each copy turns.

A copy made there is whole while it is written, and has rotted when it is read back. Nothing but the bit
changes: name, size and times stay, as on a real disk.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

NAME = "worn-disk"
_CHECKPOINTS = (".pt", ".safetensors")
_LEAST_BYTES = 256
_UNFINISHED = ".part"


class WornDisk:
    """A folder in which the first checkpoint of every copy goes bad, once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turned: dict[str, int] = {}  # the copy, and the file that went bad in it

    def make(self) -> None:
        self._folder.mkdir(parents=True)

    def rot(self) -> list[Path]:
        """Turn one bit in each copy that has come since; returns the files that were touched."""
        touched = []
        copies = {path.name.removesuffix(_UNFINISHED): path for path in self._folder.iterdir()}
        self._turned = {name: file for name, file in self._turned.items() if name in copies}
        for name, copy in copies.items():
            with contextlib.suppress(FileNotFoundError):  # it was finished, or taken away, meanwhile
                victim = next(_checkpoints(copy / "data"), None)
                if victim is not None and self._turned.get(name) != victim.stat().st_ino:
                    turn_a_bit(victim)
                    self._turned[name] = victim.stat().st_ino
                    touched.append(victim)
        return touched


def _checkpoints(data: Path) -> Iterator[Path]:
    """Files of a copy that are written to the end: only then they get the names they keep."""
    for path in sorted(data.rglob("*")):
        if path.suffix in _CHECKPOINTS and path.is_file() and path.stat().st_size >= _LEAST_BYTES:
            yield path


def turn_a_bit(path: Path) -> None:
    """Turn one bit in the middle of a file, and leave all that can be seen from outside as it was."""
    before = path.stat()
    path.chmod(before.st_mode | 0o200)
    with path.open("r+b") as file:
        file.seek(before.st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes((byte[0] ^ 1,)))
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
