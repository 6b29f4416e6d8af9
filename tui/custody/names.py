"""Which names a portable folder can carry, and which leave the tree.

A BagIt folder is read by other programs: RFC 8493 wants CR, LF and % encoded and hardly any reader does it
right, and a Mac or a Windows disk folds case and composes accents. Such files travel in a tar inside the
folder, where every byte of a name is exact.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping

_SIGNS = re.compile(r"[\x00-\x1f\x7f%\\]")
_PLAIN = re.compile(r"(?:[A-Za-z0-9_+=@,~.-]+(?:/|\Z))+")
_REASONS = {
    "\n": "holds a line feed",
    "\r": "holds a carriage return",
    "%": "holds a %, which readers of BagIt decode differently",
    "\\": "holds a backslash",
}
_LONGEST = 255


def odd_names(paths: Iterable[str]) -> Mapping[str, str]:
    """The paths that a portable folder can't carry as they are, each with the reason in a few words.

    A clash names every path that takes part in it: which one survives would depend on the reader's disk.
    """
    found: dict[str, str] = {}
    folded: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        reason = _odd(path)
        if reason is not None:
            found[path] = reason
        for end in _ends(path):
            folded[_fold(path[:end])].add(path[:end])
    clashes = {spelling for spellings in folded.values() if len(spellings) > 1 for spelling in spellings}
    if clashes:
        for path in paths:
            if path not in found and any(path[:end] in clashes for end in _ends(path)):
                found[path] = "differs from another name only in case or in how accents are composed"
    return found


def leaves_tree(path: str) -> bool:
    """Whether a path, relative to a folder, leads out of it by its words alone."""
    return path.startswith("/") or posixpath.normpath(path).split("/")[0] == ".." or "\0" in path


def link_leads_out(path: str, target: str) -> bool:
    """Whether a link at `path`, relative to a folder, points out of it; nothing is looked up."""
    return target.startswith("/") or leaves_tree(posixpath.join(posixpath.dirname(path), target))


def _odd(path: str) -> str | None:
    if _PLAIN.fullmatch(path) and len(path) <= _LONGEST:
        return None
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "is not UTF-8"
    sign = _SIGNS.search(path)
    if sign is not None:
        return _REASONS.get(sign[0], "holds a control character")
    for name in path.split("/"):
        if name != name.strip():
            return "begins or ends with a blank"
        if len(name.encode()) > _LONGEST:
            return f"is longer than {_LONGEST} bytes"
    return None


def _fold(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _ends(path: str) -> Iterable[int]:
    """Where each folder's name and the file's name end: folders can clash, too."""
    at = path.find("/")
    while at >= 0:
        yield at
        at = path.find("/", at + 1)
    yield len(path)
