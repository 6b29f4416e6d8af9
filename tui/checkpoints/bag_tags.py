"""What a bag says beside its manifest: the digests of its own files, and how large its payload is.

RFC 8493: ``tagmanifest-sha256.txt`` (2.2.1) lists files of the bag that are no payload, and not always all;
``Payload-Oxum: BYTES.FILES`` in ``bag-info.txt`` (2.2.2) counts the payload.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tui.checkpoints.source import NotAFile, Source
from tui.checkpoints.sums import inside, read_sums
from tui.checkpoints.tree import Tree, resolve
from tui.model.verdict import Problem

TAGS = "tagmanifest-sha256.txt"
INFO = "bag-info.txt"
_PAYLOAD = "data/"
_LARGEST = 64 << 20
_OXUM = re.compile(rb"^Payload-Oxum:\s*(\d{1,18})\.(\d{1,12})\s*$", re.IGNORECASE | re.MULTILINE)


def bag_problems(tree: Tree, listed: Mapping[str, str], sums: Mapping[str, str]) -> Iterator[Problem]:
    """Where the bag at the root of the tree is not what it says of itself.

    Args:
        listed: the payload by its manifest.
        sums: digests that were taken, by path.
    """
    if not any(path.startswith(_PAYLOAD) for path in listed):
        return  # a folder of the bag was named, not the bag
    for line in read_sums(_small(tree, TAGS), bag=True):
        path = inside(line.path) if line.path is not None else None
        if path is None:
            yield Problem(code="manifest-line", path=TAGS, detail=f"line {line.number}")
        elif path not in tree.entries:
            yield Problem(code="file-missing", path=path, detail=f"listed in {TAGS}")
        elif not _is_same(tree, path, sums, line.sha256):
            detail = f"{line.sha256} was expected by {TAGS}"
            yield Problem(code="file-different", path=path, detail=detail)
    told = _OXUM.search(_small(tree, INFO))
    if told is not None:
        sizes = [e.size for e in tree.entries.values() if e.type == "file" and e.path.startswith(_PAYLOAD)]
        if (int(told[1]), int(told[2])) != (sum(sizes), len(sizes)):
            detail = f"{int(told[1])} bytes in {int(told[2])} files; there are {sum(sizes)} in {len(sizes)}"
            yield Problem(code="bag-oxum", path=INFO, detail=detail)


def _is_same(tree: Tree, path: str, sums: Mapping[str, str], wanted: str) -> bool:
    """Whether the file there has this digest, or the one that a link leads to."""
    entry = tree.entries[path]
    if entry.type == "file":
        return sums.get(path, wanted) == wanted  # one that could not be read is told by itself
    place = resolve(tree, entry) if entry.type == "link" else None
    return place is not None and place.state == "inside" and sums.get(place.path) == wanted


def _small(tree: Tree, name: str) -> bytes:
    """A small regular file at the root; nothing where there is none."""
    entry = tree.entries.get(name)
    if entry is None or entry.type != "file":
        return b""
    try:
        with Source(tree.absolute(name)) as source:
            return source.read(0, _LARGEST)
    except (OSError, NotAFile):
        return b""  # told as unreadable by itself
