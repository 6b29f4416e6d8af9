"""The directory of a zip file, read with bounds and held against the file it describes.

Format: PKWARE APPNOTE 6.3.10 (end record 4.3.16, zip64 4.3.14/15, directory 4.3.12, local header 4.3.7). The
standard library's reader takes whatever a directory claims into memory and forgives bytes before the archive;
torch checks no checksum at all. Neither may happen here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from tui.checkpoints.source import Source

MAX_MEMBERS = 100_000
MAX_DIRECTORY = 32 << 20
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
STORED, DEFLATED = 0, 8


class BadZip(Exception):
    """Damage. `subtype` is a word of the verdicts, `member` the part it was found in."""

    def __init__(self, subtype: str, what: str, member: str = "") -> None:
        self.subtype = subtype
        self.member = member
        super().__init__(what)


class TooManyMembers(Exception):
    """More members than any trainer writes."""


@dataclass(slots=True)
class Member:
    """One file inside. `start` is where its bytes lie; 0 until `locate` has read its local header."""

    name: str
    crc: int
    packed: int
    size: int
    method: int
    header: int
    flags: int
    start: int = 0


@dataclass(slots=True)
class Directory:
    """The members of an archive, and foreign bytes around it."""

    members: list[Member] = field(default_factory=list)
    before: int = 0
    after: int = 0

    def named(self, end: str) -> Member | None:
        """The member whose path ends with `end`."""
        return next((m for m in self.members if m.name.endswith(end)), None)


def read_directory(source: Source) -> Directory:
    """Members and foreign bytes.

    Raises:
        BadZip: there is no whole directory.
        TooManyMembers.
    """
    end_at, count, size, start, comment = _end_record(source)
    if count > MAX_MEMBERS or size > MAX_DIRECTORY:
        raise TooManyMembers(f"{count} members, a directory of {size} bytes")
    if not end_at.agree:
        raise BadZip("bitflip", "its two end records disagree")
    after = source.size - (end_at.last + comment)
    if after < 0:
        raise BadZip("truncated", "ends inside the archive's comment")
    begin = end_at.first - size
    if begin < 0 or start > begin:
        raise BadZip("bad_zip", "the directory cannot be where the end record says")
    directory = Directory(before=begin - start, after=after)
    # Bytes stand before the archive; or the file was doubled, and the numbers are right for its first copy.
    shift = directory.before if source.read(start, 4) != b"PK\x01\x02" else 0
    directory.members = list(_entries(source, begin, size, count, shift))
    return directory


@dataclass(slots=True, frozen=True)
class _Place:
    first: int  # where the end records begin
    last: int  # where the last of them ends, without the comment
    agree: bool = True  # the plain one says what the 64-bit one says, or leaves it to that


def _end_record(source: Source) -> tuple[_Place, int, int, int, int]:
    tail_at = max(0, source.size - 65_535 - _END.size)
    tail = source.read(tail_at, source.size - tail_at)
    found = tail.rfind(b"PK\x05\x06")
    if found < 0 or len(tail) - found < _END.size:
        raise _without_end(source, tail)
    at = tail_at + found
    _, _, _, _, count, size, start, comment = _END.unpack_from(tail, found)
    last = at + _END.size
    wide = _zip64(source, at)
    if wide:
        pairs = zip((count, size, start), wide[1:], (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF), strict=True)
        agree = all(short in (full & ones, ones) for short, full, ones in pairs)
        first, count, size, start = wide
        return _Place(first, last, agree), count, size, start, comment
    if count == 0xFFFF or 0xFFFFFFFF in (size, start):
        raise BadZip("bad_zip", "its zip64 end record is missing")
    return _Place(at, last), count, size, start, comment


def _without_end(source: Source, tail: bytes) -> BadZip:
    if not tail[-4096:].strip(b"\0"):
        return BadZip(
            "preallocated", f"ends in {source.zero_tail()} zero bytes where its directory should be"
        )
    return BadZip("truncated", "the directory at the end of the archive is missing")


def _zip64(source: Source, end_at: int) -> tuple[int, int, int, int] | None:
    raw = source.read(end_at - _LOCATOR.size, _LOCATOR.size)
    if len(raw) < _LOCATOR.size or not raw.startswith(b"PK\x06\x07"):
        return None
    _, _, at, _ = _LOCATOR.unpack(raw)
    for place in (end_at - _LOCATOR.size - _END64.size, at):  # where it stands, then where it says it stands
        record = source.read(place, _END64.size)
        if len(record) == _END64.size and record.startswith(b"PK\x06\x06") and place + _END64.size <= end_at:
            _, _, _, _, _, _, _, count, size, start = _END64.unpack(record)
            return place, count, size, start
    raise BadZip("bitflip", "its zip64 end record is damaged")


def _entries(source: Source, begin: int, size: int, count: int, shift: int) -> Iterator[Member]:
    stream = source.section(begin, size)
    taken = 0
    for _ in range(count):
        raw = stream.read(_ENTRY.size)
        if len(raw) < _ENTRY.size:
            raise BadZip("bad_zip", "the directory holds fewer members than it says")
        (
            sign,
            _,
            _,
            flags,
            method,
            _,
            _,
            crc,
            packed,
            full,
            name_length,
            extra_length,
            comment,
            _,
            _,
            _,
            at,
        ) = _ENTRY.unpack(raw)
        if sign != b"PK\x01\x02":
            zeros = not raw.strip(b"\0")
            raise BadZip("zero_block" if zeros else "bitflip", "the archive's directory is damaged")
        name = stream.read(name_length).decode("utf-8", "surrogateescape")
        extra = stream.read(extra_length)
        stream.read(comment)
        full, packed, at = _wide(extra, full, packed, at)
        taken += _ENTRY.size + name_length + extra_length + comment
        yield Member(name, crc, packed, full, method, at + shift, flags)
    if taken != size:
        raise BadZip("bad_zip", "the directory is longer than its members")


def _wide(extra: bytes, full: int, packed: int, at: int) -> tuple[int, int, int]:
    """What exceeds 4 GiB stands in an extra field, in this order, where the plain field is all ones."""
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        if kind == 1:
            body = extra[place + 4 : place + 4 + length]
            numbers = iter(struct.unpack(f"<{len(body) // 8}Q", body[: len(body) // 8 * 8]))
            full = next(numbers, full) if full == 0xFFFFFFFF else full
            packed = next(numbers, packed) if packed == 0xFFFFFFFF else packed
            at = next(numbers, at) if at == 0xFFFFFFFF else at
        place += 4 + length
    return full, packed, at


def locate(source: Source, directory: Directory) -> None:
    """Find every member's bytes by its local header, and hold the two against each other.

    Raises:
        BadZip: a header is damaged, or members overlap or lie outside the file.
    """
    for member in directory.members:
        raw = source.read(member.header, _LOCAL.size + 512)
        if len(raw) < _LOCAL.size:
            raise BadZip("truncated", "lies outside the file", member.name)
        sign, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _LOCAL.unpack_from(raw)
        if sign != b"PK\x03\x04":
            subtype = "zero_block" if not raw[: _LOCAL.size].strip(b"\0") else "bitflip"
            raise BadZip(subtype, "its local header is damaged", member.name)
        described = bool(flags & 8)
        plain = {member.crc, member.packed, member.size}
        if flags != member.flags or method != member.method or not (
            described or packed == 0xFFFFFFFF or {crc, packed, size} == plain
        ):  # fmt: skip
            raise BadZip("bitflip", "its local header and the directory disagree", member.name)
        name = raw[_LOCAL.size : _LOCAL.size + name_length] if name_length <= 512 else None
        if name is None or name.decode("utf-8", "surrogateescape") != member.name:
            raise BadZip("bitflip", "its local header and the directory name it differently", member.name)
        member.start = member.header + _LOCAL.size + name_length + extra_length
        if member.start + member.packed > source.size:
            raise BadZip("truncated", "lies outside the file", member.name)
    _check_overlaps(directory)


def _check_overlaps(directory: Directory) -> None:
    names = {member.name for member in directory.members}
    if len(names) != len(directory.members):
        raise BadZip("bad_zip", "the archive holds two members of one name")
    end = 0
    for member in sorted(directory.members, key=lambda m: m.header):
        if member.header < end:
            raise BadZip("bad_zip", "two members share bytes", member.name)
        end = member.start + member.packed
