"""Arrays of NumPy. An array of objects is a pickle behind its header, and loading it runs what that names.

Layout (numpy/lib/format.py): magic, two bytes of version, the header's length in two bytes (version 1) or
four, a Python dict as text with ``descr``. An ``.npz`` is a zip of such files.
"""

from __future__ import annotations

import io
import re

from tui.checkpoints.judged import Judged, say
from tui.checkpoints.pickle_globals import certain, danger, refused
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.source import Source
from tui.checkpoints.zip_directory import STORED, BadZip, Member, TooManyMembers, locate, read_directory
from tui.checkpoints.zip_members import expanded
from tui.model.verdict import Problem

MAGIC = b"\x93NUMPY"
_OBJECTS = re.compile(rb"['\"]descr['\"]\s*:\s*(?:['\"]\|O\d*['\"]|\[.*['\"]\|?O\d*['\"])", re.DOTALL)
_HEADER = 64 << 10
_MOST = 16 << 20
"""Bytes of a file's arrays of objects that are looked through."""


def judge_array(source: Source, path: str) -> Judged | None:
    """The verdict on a ``.npy`` that would run code; None for any other."""
    raw = source.read(0, _HEADER)
    return _unsafe(path, _names(source.read(0, _MOST))) if _OBJECTS.search(raw) else None


def judge_arrays(source: Source, path: str) -> Judged | None:
    """The verdict on a ``.npz`` that would run code; None for any other zip."""
    names: list[str] = []
    left = _MOST
    try:
        directory = read_directory(source)
        arrays = [member for member in directory.members if member.name.endswith(".npy")]
        if not arrays:
            return None
        locate(source, directory)
        for member in arrays:
            raw = _begin(source, member, left)
            left -= len(raw) if _OBJECTS.search(raw[:_HEADER]) else 0
            names += _names(raw)
            if left <= 0:
                problem = Problem(code="pickle-not-scanned", path=path)
                unread = Judged(say(path, "other", "ignore", format="numpy"), problems=(problem,))
                return _unsafe(path, names) or unread
    except (BadZip, TooManyMembers):
        return None
    return _unsafe(path, names)


def _begin(source: Source, member: Member, most: int) -> bytes:
    """An array of objects, at most so many bytes of it; of any other its header."""
    if member.method == STORED:
        head = source.read(member.start, min(member.size, _HEADER))
        return source.read(member.start, min(member.size, most)) if _OBJECTS.search(head) else head
    found = b""
    for block in expanded(source, member):
        found += bytes(block)
        if len(found) >= (most if _OBJECTS.search(found[:_HEADER]) else _HEADER):
            break
    return found


def _names(raw: bytes) -> list[str]:
    """Names in the pickle behind the header; none where the array holds no objects."""
    if not raw.startswith(MAGIC) or len(raw) < 12:
        return []
    wide = raw[6] > 1
    start = 12 + int.from_bytes(raw[8:12], "little") if wide else 10 + int.from_bytes(raw[8:10], "little")
    if not _OBJECTS.search(raw[:start]):
        return []
    found = Pickle()
    try:
        read_pickle(io.BytesIO(raw[start:]), found=found)
    except (PickleDamaged, PickleTooLong):
        return list(certain(found.globals))
    return found.globals


def _unsafe(path: str, names: list[str]) -> Judged | None:
    high = tuple(name[:200] for name in dict.fromkeys(refused(names)) if danger(name) == "high")[:50]
    if not high:
        return None
    why = f"an array of objects: {', '.join(high)[:200]}"
    return Judged(say(path, "other", "unsafe", None, why, danger="high", globals=high, format="numpy"))
