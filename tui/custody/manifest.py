"""The manifest: one line a file, as `sha256sum -c` reads it and BagIt shapes it.

GNU coreutils puts a backslash before a line whose name holds a backslash, a line feed or a carriage return,
and writes those as ``\\\\``, ``\\n`` and ``\\r`` (coreutils, src/digest.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tui.custody.names import leaves_tree

MANIFEST = "manifest-sha256.txt"
CAP_BYTES = 512 << 20
MOST_LINES = 2_000_000

_LINE = re.compile(rb"(\\?)([0-9a-fA-F]{64})( [ *])([^\0\n]+)")
_ESCAPE = re.compile(rb"\\(.?)")
_MEANING = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}


class Line(NamedTuple):
    """One file of a manifest. `sha256` is 64 lower-case hex digits."""

    path: str
    sha256: str


class ManifestError(ValueError):
    """A manifest that can't be trusted, and the line that shows it."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line


def render(lines: Iterable[Line]) -> bytes:
    """The manifest's bytes, sorted by the bytes of the names: the same files always give the same bytes."""
    rows = sorted((line.path.encode("utf-8", "surrogateescape"), line.sha256) for line in lines)
    return b"".join(_row(path, sha256) for path, sha256 in rows)


def _row(path: bytes, sha256: str) -> bytes:
    escaped = path.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return (b"\\" if escaped != path else b"") + sha256.encode("ascii") + b"  " + escaped + b"\n"


def parse(raw: bytes) -> tuple[Line, ...]:
    """The files of a manifest, which may come from anywhere.

    Accepted are both marks of `sha256sum`, text and binary, upper-case digits, a ``./`` in front, and line
    ends of Windows. Nothing is looked up.

    Raises:
        ManifestError: a line is none, a name leaves the folder or stands twice, or there is too much of it.
    """
    if len(raw) > CAP_BYTES:
        raise ManifestError(1, f"longer than {CAP_BYTES} bytes")
    found: dict[str, str] = {}
    windows = raw.endswith(b"\r\n")
    rows = raw.split(b"\n")
    if rows[-1] == b"":
        rows.pop()
    if len(rows) > MOST_LINES:
        raise ManifestError(MOST_LINES, f"more than {MOST_LINES} lines")
    for number, row in enumerate(rows, start=1):
        line = _parsed(row.removesuffix(b"\r") if windows else row, number)
        if line.path in found:
            raise ManifestError(number, "the same name again")
        found[line.path] = line.sha256
    return tuple(Line(path, sha256) for path, sha256 in found.items())


def _parsed(row: bytes, number: int) -> Line:
    match = _LINE.fullmatch(row)
    if match is None:
        raise ManifestError(number, "not a SHA-256 and a name")
    marked, sha256, _, name = match.groups()
    if marked:
        name = _ESCAPE.sub(lambda found: _meaning(found[1], number), name)
    path = name.decode("utf-8", "surrogateescape").removeprefix("./")
    parts = path.split("/")
    if leaves_tree(path) or ".." in parts or "" in parts or "." in parts:
        raise ManifestError(number, "a name that is no plain path below the folder")
    return Line(path, sha256.decode("ascii").lower())


def _meaning(escaped: bytes, number: int) -> bytes:
    try:
        return _MEANING[escaped]
    except KeyError:
        raise ManifestError(number, "an escape that sha256sum does not write") from None
