"""Reads a tar stream from somebody who is not trusted: regular files only, with names that stay inside.

A pull parser without any I/O. It never makes a path of what it reads: the caller compares names with its own.
Formats: ustar, GNU (long names, sizes in base 256) and pax (``path`` and ``size``), as POSIX.1-2008 pax and
the GNU tar manual's "Basic Tar Format" describe them. Archives that follow one another are one stream, since
`xargs` starts `tar` several times when a list is long.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

BLOCK = 512
_META_CAP = 64 << 10
_PADDING = bytes(BLOCK)
_REGULAR = b"0\0"
_KINDS = {
    b"1": "a hard link", b"2": "a link", b"3": "a device", b"4": "a device", b"5": "a folder", b"6": "a pipe",
    b"7": "a contiguous file", b"K": "a link with a long name", b"S": "a sparse file",
}  # fmt: skip


class TarRefused(Exception):
    """The stream holds what nobody asked for, or is no tar stream. Its message never quotes foreign text."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A file starts; exactly `size` bytes of data follow."""

    name: bytes
    size: int


@dataclass(frozen=True, slots=True)
class End:
    """The file is complete."""


TarEvent: TypeAlias = Begin | bytes | End


class TarReader:
    """Feed it what arrives; it tells of files and their data.

    Args:
        largest: the largest file that may come, in bytes.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._held = b""
        self._left = 0  # data bytes of the current file still to come
        self._pad = 0
        self._in_file = False
        self._name: bytes | None = None
        self._size: int | None = None
        self.ended = False

    @property
    def whole(self) -> bool:
        """Whether the stream may end here: between files, after the end mark."""
        return self.ended and not self._held and not self._in_file and not self._pad

    def feed(self, data: bytes) -> Iterator[TarEvent]:
        """Events of the next bytes. Raises TarRefused; nothing of the stream may be used after that."""
        block = self._held + data if self._held else data
        at, end = 0, len(block)
        while at < end or (self._in_file and not self._left):
            if self._in_file:
                piece = block[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if piece:
                    yield piece
                if not self._left:
                    self._in_file = False
                    yield End()
            elif self._pad:
                step = min(self._pad, end - at)
                at += step
                self._pad -= step
            else:
                took, begun = self._header(block, at)
                if not took:
                    break
                at += took
                if begun is not None:
                    yield begun
        self._held = block[at:]

    def _header(self, block: bytes, at: int) -> tuple[int, Begin | None]:
        """Bytes of the header (with the names that stand before it) at `at`; 0: more must come first."""
        header = block[at : at + BLOCK]
        if len(header) < BLOCK:
            return 0, None
        if header == _PADDING:
            if self._name is not None or self._size is not None:
                raise TarRefused("it ends after a name without a file")
            self.ended = True
            return BLOCK, None
        size = _checked_size(header)
        kind = header[156:157]
        if kind in (b"L", b"x", b"g"):
            whole = BLOCK + size + -size % BLOCK
            if size > _META_CAP:
                raise TarRefused("a name in it is longer than any name")
            if len(block) - at < whole:
                return 0, None
            self._meta(kind, block[at + BLOCK : at + BLOCK + size])
            return whole, None
        return BLOCK, self._file(header, kind, size)

    def _meta(self, kind: bytes, body: bytes) -> None:
        if kind == b"L":
            self._name = body.rstrip(b"\0")
            return
        fields = _pax(body)
        if any(key.startswith(b"GNU.sparse") or key == b"linkpath" for key in fields):
            raise TarRefused("it holds a sparse file or a link")
        if kind == b"x":
            self._name = fields.get(b"path", self._name)
            if b"size" in fields:
                self._size = _decimal(fields[b"size"])
        elif b"path" in fields or b"size" in fields:
            raise TarRefused("it names all its files alike")

    def _file(self, header: bytes, kind: bytes, size: int) -> Begin:
        if kind not in (b"0", b"\0"):
            raise TarRefused(f"it holds {_KINDS.get(kind, 'something that is no file')}")
        name = header[:100].split(b"\0", 1)[0]
        if header[257:263] == b"ustar\0" and header[345:346] != b"\0":
            name = header[345:500].split(b"\0", 1)[0] + b"/" + name
        name = self._name if self._name is not None else name
        size = self._size if self._size is not None else size
        self._name = self._size = None
        if size > self._largest:
            raise TarRefused("a file in it is larger than any that was asked for")
        self.ended = False
        self._in_file, self._left, self._pad = True, size, -size % BLOCK
        return Begin(_inside(name), size)


def _inside(name: bytes) -> bytes:
    """The name without ``./`` before it. Raises TarRefused for one that could leave its folder."""
    name = name.removeprefix(b"./")
    if b"\0" in name or any(part in (b"", b".", b"..") for part in name.split(b"/")):
        raise TarRefused("a name in it leads out of its folder")
    return name


def _checked_size(header: bytes) -> int:
    told = _octal(header[148:156])
    if told != sum(header) - sum(header[148:156]) + 8 * 32:
        raise TarRefused("a header in it is damaged")
    if header[257:262] != b"ustar":
        raise TarRefused("it is no tar stream")
    field = header[124:136]
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    return _octal(field)


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):
        raise TarRefused("a number in it is damaged")
    return int(digits or b"0", 8)


def _decimal(field: bytes) -> int:
    if not field.isdigit() or len(field) > 20:
        raise TarRefused("a number in it is damaged")
    return int(field)


def _pax(body: bytes) -> dict[bytes, bytes]:
    """Records ``LENGTH KEY=VALUE\\n``; the length counts the whole record."""
    fields: dict[bytes, bytes] = {}
    while body:
        digits, blank, _ = body.partition(b" ")
        length = _decimal(digits)
        record = body[:length]
        key, equals, value = record[len(digits) + 1 : -1].partition(b"=")
        if not blank or not equals or len(record) != length or not record.endswith(b"\n"):
            raise TarRefused("a name in it is damaged")
        fields[key] = value
        body = body[length:]
    return fields
