"""The tar of a bag on this computer's disk: written from files that are proven, read by the strict reader."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tui.box.transfer.tarstream import Begin, End, TarReader, TarRefused
from tui.custody.bag import raw_name, tar_end, tar_header
from tui.durable import sync_folder
from tui.model.custody import HashedFile, Sha256

_READ = 1 << 20


def write_tar(
    target: Path, members: Sequence[HashedFile], source: Callable[[HashedFile], Path]
) -> HashedFile:
    """Write the tar durably; every member is hashed once more on its way in.

    Args:
        target: named in full only when the tar is complete.
        source: where each member lies.

    Returns:
        The tar, with its file name as the path.

    Raises:
        OSError: of the disk. ValueError: a member is not what it must be.
    """
    part = target.with_name(target.name + ".part")
    digest, size = hashlib.sha256(), 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with part.open("wb") as file:

        def put(data: bytes) -> None:
            nonlocal size
            file.write(data)
            digest.update(data)
            size += len(data)

        for one in members:
            put(tar_header(raw_name(one.path), one.size))
            own = hashlib.sha256()
            with source(one).open("rb") as data:
                while block := data.read(_READ):
                    own.update(block)
                    put(block)
            if "sha256:" + own.hexdigest() != one.sha256:
                raise ValueError("a file changed before it was packed")
            put(bytes(-one.size % 512))
        put(tar_end(size))
        file.flush()
        os.fsync(file.fileno())
    part.rename(target)
    sync_folder(target.parent)
    return HashedFile(path=target.name, size=size, sha256=f"sha256:{digest.hexdigest()}", tool="hashlib")


def read_tar(
    path: Path, largest: int, restore: Callable[[bytes], Path | None] = lambda name: None
) -> Mapping[bytes, tuple[int, Sha256]]:
    """Size and SHA-256 of every member.

    Args:
        largest: bytes of the largest member that may come.
        restore: where a member is written to; None: nowhere.

    Raises:
        OSError: it can't be read. TarRefused: it is not a whole tar of plain files, or names one twice.
    """
    found: dict[bytes, tuple[int, Sha256]] = {}
    reader = TarReader(largest)
    with path.open("rb") as file:
        name, size, digest, out = b"", 0, hashlib.sha256(), -1
        try:
            while block := file.read(_READ):
                for event in reader.feed(block):
                    if isinstance(event, Begin):
                        name, size, digest = event.name, event.size, hashlib.sha256()
                        target = restore(name)
                        out = -1 if target is None else _new(target)
                    elif isinstance(event, End):
                        if name in found:
                            raise TarRefused("it names a file twice")
                        found[name] = (size, f"sha256:{digest.hexdigest()}")
                        out = _closed(out)
                    else:
                        digest.update(event)
                        _write(out, event)
        finally:
            _closed(out)
    if not reader.whole:
        raise TarRefused("it ends too early")
    return found


def _new(target: Path) -> int:
    target.parent.mkdir(parents=True, exist_ok=True)
    return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view and fd >= 0:
        view = view[os.write(fd, view) :]


def _closed(fd: int) -> int:
    if fd >= 0:
        os.close(fd)
    return -1
