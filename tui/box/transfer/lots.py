"""Many small files in one stream: out of the tar reader, hashed, written, made durable together, renamed.

Paths are plain strings here: with five thousand files `pathlib` costs more than their hashes.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tui.box.transfer.disk import sync_files
from tui.box.transfer.tarstream import Begin, End, TarReader, TarRefused
from tui.box.transfer.wanted import Wanted
from tui.durable import sync_folder

LOT_FILES = 5000
LOT_BYTES = 64 << 20

_numbers = itertools.count(1)


def lots(files: Sequence[Wanted], largest: int = LOT_BYTES) -> list[list[Wanted]]:
    """Cut into lots that a lost link may cost, of about the same size each."""
    made: list[list[Wanted]] = []
    total = sum(wanted.size for wanted in files)
    even = total / max(1, -(-total // largest))
    size = 0
    for wanted in files:
        if (
            not made
            or len(made[-1]) >= LOT_FILES
            or size + wanted.size > largest
            or (size >= even and total > largest)
        ):
            made.append([])
            size = 0
        made[-1].append(wanted)
        size += wanted.size
    return made


class Lot:
    """Takes one tar stream apart. Its methods block; they are called in a thread, one after another.

    Args:
        files: exactly these may come, each once.
        into, parts: folders of the final and of the unfinished files.

    Attributes:
        done: files under their final names.
        bytes_done: bytes of the files that came and agree; `last`: the path of the last one.
        refused: files that came with other bytes than they must have.
    """

    def __init__(self, files: Sequence[Wanted], into: Path, parts: Path) -> None:
        self._open = {os.fsencode(wanted.path): wanted for wanted in files}
        self._into, self._parts = os.fspath(into), os.fspath(parts)
        self._reader = TarReader(max((wanted.size for wanted in files), default=0))
        self._current: Wanted | None = None
        self._pieces: list[bytes] = []
        self._written: list[tuple[str, Wanted]] = []
        self.bytes_done = 0
        self.last = ""
        self.done: list[Wanted] = []
        self.refused: list[Wanted] = []

    @property
    def left(self) -> list[Wanted]:
        """What has not come yet."""
        return list(self._open.values())

    def feed(self, blocks: Iterable[bytes]) -> None:
        """The next bytes of the stream. Raises TarRefused, OSError."""
        for block in blocks:
            for event in self._reader.feed(block):
                if isinstance(event, bytes):
                    self._pieces.append(event)
                elif isinstance(event, Begin):
                    self._begin(event)
                elif isinstance(event, End):
                    self._end()

    def settle(self) -> None:
        """Make everything that came durable, then give it its names. Raises OSError."""
        if not self._written:
            return
        below = {wanted.local.rpartition("/")[0] for _, wanted in self._written}
        folders = [f"{self._into}/{folder}" for folder in below]
        for folder in folders:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        sync_files([path for path, _ in self._written], self._parts)
        for path, wanted in self._written:
            os.rename(path, f"{self._into}/{wanted.local}")  # noqa: PTH104
            self.done.append(wanted)
        self._written.clear()
        for folder in folders:
            sync_folder(folder)

    def _begin(self, event: Begin) -> None:
        wanted = self._open.get(event.name)
        if wanted is None:
            raise TarRefused("it holds a file that nobody asked for")
        self._current, self._pieces = wanted, []

    def _end(self) -> None:
        wanted, data = self._current, b"".join(self._pieces)
        assert wanted is not None
        del self._open[os.fsencode(wanted.path)]
        self._current, self._pieces = None, []
        if len(data) != wanted.size or "sha256:" + hashlib.sha256(data).hexdigest() != wanted.sha256:
            self.refused.append(wanted)
            return
        path = f"{self._parts}/{next(_numbers)}.small"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        self._written.append((path, wanted))
        self.bytes_done += wanted.size
        self.last = wanted.path
