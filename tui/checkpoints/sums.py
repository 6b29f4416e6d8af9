"""Lists of SHA-256 as ``sha256sum`` writes and reads them, and as BagIt's manifests are. Bytes in, bytes out.

GNU coreutils marks a line with a leading backslash when it escapes ``\\\\``, ``\\n`` and ``\\r`` in the name
(manual, "cksum output modes"); a star before the name means binary. ``openssl dgst`` leaves the
spaces out of its tagged lines. BagIt (RFC 8493, 2.1.3) encodes CR, LF
and % as %XX.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(rb"(?P<mark>\\?)(?P<hex>[0-9a-fA-F]{64})[ \t]+(?P<star>\*?)(?P<name>.+)", re.DOTALL)
_GNU = re.compile(rb"(?P<mark>\\?)(?P<hex>[0-9a-fA-F]{64}) [ *](?P<name>.+)", re.DOTALL)
_TAGGED = re.compile(rb"(?P<mark>\\?)SHA(?:2-)?256 ?\((?P<name>.+)\) ?= (?P<hex>[0-9a-fA-F]{64})", re.DOTALL)
_ESCAPED = re.compile(rb"\\([\\nr])")
_PERCENT = re.compile(rb"%(0[AaDd]|25)")


@dataclass(slots=True, frozen=True)
class Listed:
    """One line: the digest, and the path `os.fsdecode`d.

    Attributes:
        path: None for a line that is none.
        literal: the path as it stands there, for bags whose maker did not encode what it should have.
    """

    number: int
    sha256: str = ""
    path: str | None = None
    literal: str | None = None


def sum_line(sha256: str, path: str) -> bytes:
    """The line ``sha256sum`` prints for a path, without its end."""
    raw = os.fsencode(path)
    escaped = raw.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    mark = b"\\" if escaped != raw else b""
    return mark + sha256.encode() + b"  " + escaped


def read_sums(raw: bytes, *, bag: bool = False) -> Iterator[Listed]:
    """Every line that is not blank and no comment.

    Args:
        bag: names are percent-encoded as in a bag, and not escaped as GNU does.
    """
    lines = _as_utf8(raw).split(b"\n")
    crlf = all(line.endswith(b"\r") for line in lines if line)  # else a CR belongs to the name before it
    for number, line in enumerate(lines, 1):
        line = line[:-1] if crlf and line else line
        if not line.strip() or (line.startswith(b"#") and not _LINE.fullmatch(line)):
            continue
        match = (None if bag else _GNU.fullmatch(line) or _TAGGED.fullmatch(line)) or _LINE.fullmatch(line)
        if match is None:
            yield Listed(number)
            continue
        name = match["name"]
        if bag:
            name = _PERCENT.sub(lambda m: bytes.fromhex(m[1].decode()), name)
        elif match["mark"]:
            name = _ESCAPED.sub(lambda m: {b"n": b"\n", b"r": b"\r"}.get(m[1], b"\\"), name)
        yield Listed(number, match["hex"].decode().lower(), os.fsdecode(name), os.fsdecode(match["name"]))


def _as_utf8(raw: bytes) -> bytes:
    """Without the byte order mark of an editor, and not in the UTF-16 of an older PowerShell."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace").encode("utf-8", "replace")
    return raw.removeprefix(codecs.BOM_UTF8)


def inside(path: str) -> str | None:
    """The path without ``./`` and doubled slashes; None where it is absolute or climbs out."""
    if path.startswith("/") or "\0" in path:
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(parts) if parts and ".." not in parts else None
