"""What became of a log file: read from directory listings, without I/O."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

# POSIX `ls -Lidn`: inode, mode, links, owner, group, size, three words of date, name.
_ENTRY = re.compile(rb"\s*(\d+) (\S)\S*\s+\d+\s+\d+\s+\d+\s+(\d+) +\S+ +\S+ +\S+ (.*)", re.DOTALL)
_BETWEEN = re.compile(rb"(?m)^@$")  # stands between the two where both are looked at by name
_MARK = re.compile(rb"[._-]\d[0-9A-Za-z_.:+-]*\Z")
_COMPRESSED = (b".gz", b".bz2", b".xz", b".zst", b".lz4", b".Z")

HELD = b"/dev/fd/3"
"""The name of a file that is held open, whatever its slot."""

_SLOT = re.compile(rb"/dev/fd/[3-9]\Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of ``ls``. `kind` is the first letter of the mode: ``-`` is a regular file."""

    inode: int
    size: int
    kind: str
    name: bytes  # without its directory

    @property
    def regular(self) -> bool:
        return self.kind == "-"

    @property
    def compressed(self) -> bool:
        return self.name.endswith(_COMPRESSED)


@dataclass(frozen=True, slots=True)
class Look:
    """What lies at the log's path now, and the file that is held open."""

    path: Entry | None = None
    held: Entry | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """Which file goes on where another ended.

    Attributes:
        inode: the next file to read; None: the one at the log's path.
        gap: why something between the two cannot be read, or "".
    """

    inode: int | None
    gap: str = ""


def entry(line: bytes) -> Entry | None:
    """Read one line of ``ls -Lidn``; None when it is no such line."""
    found = _ENTRY.fullmatch(line)
    if not found:
        return None
    inode, kind, size, name = found.groups()
    name = HELD if _SLOT.match(name) else name.rpartition(b"/")[2]
    return Entry(int(inode), int(size), kind.decode("latin-1"), name)


def entries(text: bytes) -> list[Entry]:
    return [e for e in map(entry, text.split(b"\n")) if e is not None]


def look(text: bytes) -> Look:
    """Read what `script.FOLLOW` prints about the path and the held file."""
    by_name = _BETWEEN.split(text, 1)
    if len(by_name) == 2:
        path, held = map(entries, by_name)
        return Look(path[0] if path else None, held[0] if held else None)
    both = entries(text)
    return Look(
        next((e for e in both if e.name != HELD), None), next((e for e in both if e.name == HELD), None)
    )


def following(
    newest_first: list[Entry], inode: int, path: int, base: bytes, read: Container[tuple[int, int]]
) -> Following:
    """What to read after the file `inode` was read to its end and the path leads to another file.

    Args:
        newest_first: the files beside the log, by time of last change.
        path: inode of the file at the log's path now.
        base: the log's name without directory.
        read: inode and size of files that were read to their end before.
    """
    places = [i for i, e in enumerate(newest_first) if e.inode == inode]
    if not places:
        return Following(None, "the log was rotated and the file read last is not to be found any more")
    seen = _name_of(newest_first, inode, base)
    # Times can be equal within a clock tick: of several places the oldest, so that nothing is passed over.
    newer = [e for e in newest_first[: places[-1]] if e.inode not in (inode, path) and e.regular]
    between = [e for e in newer if (e.inode, e.size) not in read and _is_rotation(e.name, base, seen)]
    readable = [e for e in between if not e.compressed]
    gap = "a rotated part of this log is compressed" if len(readable) < len(between) else ""
    return Following(readable[-1].inode if readable else None, gap)


def copies(newest_first: list[Entry], inode: int, offset: int, base: bytes) -> list[Entry]:
    """Files that may hold what the truncated file `inode` held, the newest first."""
    return [
        e
        for e in newest_first
        if e.inode != inode
        and e.regular
        and e.size >= offset
        and not e.compressed
        and _is_rotation(e.name, base)
    ]


def _name_of(listing: list[Entry], inode: int, base: bytes) -> bytes:
    return next((e.name for e in listing if e.inode == inode and e.name not in (HELD, base)), b"")


def _is_rotation(name: bytes, base: bytes, seen: bytes = b"") -> bool:
    """Whether `name` looks like an older part of `base`: ``train.log.1``, ``train.log-20240501``.

    ``train.1.log`` counts only when the part read last is called so (`seen`): such names are also given to
    the logs of other runs.
    """
    if name.startswith(base):
        suffix = name[len(base) :]
        for ending in _COMPRESSED:
            suffix = suffix.removesuffix(ending)
        return bool(_MARK.match(suffix))
    stem, dot, extension = base.rpartition(b".")
    if not dot or not _inside(seen, stem, extension):
        return False
    return _inside(name, stem, extension)


def _inside(name: bytes, stem: bytes, extension: bytes) -> bool:
    ending = b"." + extension
    return (
        name.startswith(stem) and name.endswith(ending) and bool(_MARK.match(name[len(stem) : -len(ending)]))
    )
