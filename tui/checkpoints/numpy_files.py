"""Arrays of NumPy. An array of objects is a pickle behind its header, and loading it runs what that names.

Layout (numpy/lib/format.py): magic, two bytes of version, the header's length in two bytes (version 1) or
four, a Python dict as text with ``descr``. An ``.npz`` is a zip of such files. NumPy evaluates the dict, so
there are many ways to write a type of objects: whatever is not the plain header that NumPy itself writes of
numbers, texts and rows of them is taken for one.
"""

from __future__ import annotations

import io
import re

from tui.checkpoints.judged import Judged, say
from tui.checkpoints.pickle_globals import certain, danger, refused
from tui.checkpoints.pickle_reader import Pickle, PickleDamaged, PickleTooLong, read_pickle
from tui.checkpoints.source import Source
from tui.checkpoints.zip_directory import (
    DEFLATED,
    STORED,
    BadZip,
    Member,
    TooManyMembers,
    locate,
    read_directory,
)
from tui.checkpoints.zip_members import expanded
from tui.model.verdict import Problem

MAGIC = b"\x93NUMPY"
_TYPE = rb"'[<>|=]?[?biufcmMSUV]\d*(?:\[\w+\])?'"
_FIELD = rb"\('[^'\\]*', " + _TYPE + rb"(?:, \([\d, ]*\))?\)"
_PLAIN = re.compile(
    rb"\{'descr': (?:" + _TYPE + rb"|\[" + _FIELD + rb"(?:, " + _FIELD + rb")*\]), "
    rb"'fortran_order': (?:True|False), 'shape': \([\d, L]*\),? ?\}\s*"
)
_HEADER = 64 << 10
_MOST = 16 << 20
"""Bytes of a file's arrays of objects that are looked through."""


def judge_array(source: Source, path: str) -> Judged | None:
    """The verdict on a ``.npy`` that would run code, or may; None for any other."""
    if not _holds_objects(source.read(0, _HEADER)):
        return None
    names, whole = _names(source.read(0, _MOST), cut=source.size > _MOST)
    return _weighed(path, names, whole=whole)


def judge_arrays(source: Source, path: str) -> Judged | None:
    """The verdict on a ``.npz`` that would run code, or may; None for any other zip."""
    try:
        directory = read_directory(source)
        if not any(member.name.endswith(".npy") for member in directory.members):
            return None
        locate(source, directory)
    except (BadZip, TooManyMembers):
        return None
    names: list[str] = []
    whole, left = True, _MOST
    for member in directory.members:  # of any name: NumPy goes by the first bytes
        try:
            raw = _begin(source, member, left)
        except BadZip:  # what is damaged, or packed otherwise, may still be read far enough
            whole = False
            continue
        if not _holds_objects(raw):
            continue
        more, good = _names(raw, cut=len(raw) < member.size)
        names, whole, left = names + more, whole and good, left - len(raw)
        if left <= 0:
            whole = False
            break
    return _weighed(path, names, whole=whole)


def _begin(source: Source, member: Member, most: int) -> bytes:
    """An array of objects, at most so many bytes of it; of anything else its header. Raises BadZip."""
    if member.method == STORED:
        head = source.read(member.start, min(member.size, _HEADER))
        return source.read(member.start, min(member.size, most)) if _holds_objects(head) else head
    if member.method != DEFLATED:
        raise BadZip("bad_zip", "packed in another way", member.name)
    found = b""
    for block in expanded(source, member):
        found += bytes(block)
        if len(found) >= (most if _holds_objects(found) else _HEADER):
            break
    return found


def _header_of(raw: bytes) -> tuple[int, int]:
    """Where the header begins and ends."""
    begin, length = (12, raw[8:12]) if raw[6:7] > b"\1" else (10, raw[8:10])
    return begin, begin + int.from_bytes(length, "little")


def _holds_objects(raw: bytes) -> bool:
    """Whether a pickle may stand behind the header of these first bytes."""
    begin, end = _header_of(raw)
    return raw.startswith(MAGIC) and _PLAIN.fullmatch(raw, begin, end) is None


def _names(raw: bytes, *, cut: bool) -> tuple[list[str], bool]:
    """Names in the pickle behind the header, and whether it was looked through to its end.

    Args:
        cut: there is more of it than this.
    """
    found = Pickle()
    try:
        read_pickle(io.BytesIO(raw[_header_of(raw)[1] :]), found=found)
    except PickleTooLong:
        return list(certain(found.globals)), False
    except PickleDamaged as damage:
        return list(certain(found.globals)), not (cut and damage.truncated)
    return found.globals, True


def _weighed(path: str, names: list[str], *, whole: bool) -> Judged | None:
    high = tuple(name[:200] for name in dict.fromkeys(refused(names)) if danger(name) == "high")[:50]
    if high:
        why = f"an array of objects: {', '.join(high)[:200]}"
        unsafe = say(path, "other", "unsafe", None, why, danger="high", globals=high, format="numpy")
        return Judged(unsafe)
    if whole:
        return None
    problem = Problem(code="pickle-not-scanned", path=path)
    return Judged(say(path, "other", "ignore", format="numpy"), problems=(problem,))
