"""The checksum of every member, and which kind of damage a wrong one shows."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from tui.checkpoints.bit_rot import flipped_bit
from tui.checkpoints.source import BLOCK, Source
from tui.checkpoints.zip_directory import DEFLATED, STORED, BadZip, Directory, Member

MAX_RATIO = 64
"""Expanded bytes per byte of the file; torch stores its tensors as they are."""

LOST_BLOCK = 512
"""Zero bytes in a row that make damage a lost block: the smallest sector."""


class ZipBomb(Exception):
    """It would expand to far more than the file."""


def check_sizes(directory: Directory, size: int) -> None:
    """Refuse members that only pretend to fit.

    Raises:
        BadZip: a stored member of two sizes, or a method torch cannot read.
        ZipBomb.
    """
    for member in directory.members:
        if member.method == STORED and member.packed != member.size:
            raise BadZip("bad_zip", "stored, and yet of two sizes", member.name)
        if member.method not in (STORED, DEFLATED) or member.flags & 1:
            raise BadZip("bad_zip", "packed or encrypted in a way torch cannot read", member.name)
    if sum(member.size for member in directory.members) > MAX_RATIO * size:
        raise ZipBomb


def records_checksums(directory: Directory) -> bool:
    """False where torch saved with ``compute_crc32=False``: every checksum is 0."""
    return any(member.crc for member in directory.members) or not any(m.size for m in directory.members)


def check_member(source: Source, member: Member) -> None:
    """Read one member and compare its CRC-32.

    Raises:
        BadZip: it differs; ``zero_block`` where a block of zeros stands in it, else ``bitflip``.
    """
    crc, length = _sum(source, member)
    if crc == member.crc and length == member.size:
        _check_descriptor(source, member)
        return
    bit = flipped_bit(member.crc, crc, member.size) if member.method == STORED else None
    if bit is not None:
        raise BadZip("bitflip", f"as if bit {bit[1]} of its byte {bit[0]} had flipped", member.name)
    lost = _lost_block(source, member)
    if lost:
        raise BadZip("zero_block", f"{lost} bytes of it were lost and read as zeros", member.name)
    raise BadZip("bitflip", "its checksum differs from the recorded one", member.name)


def _sum(source: Source, member: Member) -> tuple[int, int]:
    """CRC-32 and length of what it holds; of a stored one as its file lies, wherever that is."""
    if member.method == STORED:
        return source.crc32(member.start, member.size)
    crc = length = 0
    for block in expanded(source, member):
        crc = zlib.crc32(block, crc)
        length += len(block)
    return crc, length


def _check_descriptor(source: Source, member: Member) -> None:
    """What a writer that did not know the checksum in advance put behind the content (APPNOTE 4.3.9)."""
    if not member.flags & 8:
        return
    raw = source.read(member.start + member.packed, 24)
    head = b"PK\x07\x08" + member.crc.to_bytes(4, "little")
    sizes = (
        struct.pack(form, member.packed, member.size) for form in ("<2Q", "<2L") if member.size < 1 << 32
    )
    if not any(raw.startswith(head + size) for size in sizes) and member.size < 1 << 32:
        raise BadZip("bitflip", "what stands behind it differs from the directory", member.name)


def expanded(source: Source, member: Member) -> Iterator[bytes | memoryview]:
    """A member's content in blocks, never more than its size."""
    if member.method == STORED:
        yield from source.blocks(member.start, member.size)
        return
    machine, left = zlib.decompressobj(-15), member.size
    for block in source.blocks(member.start, member.packed):
        data: bytes = bytes(block)
        while data and left > 0:
            try:
                out = machine.decompress(data, min(left, BLOCK))
            except zlib.error:
                raise BadZip("bitflip", "its compressed data is damaged", member.name) from None
            data = machine.unconsumed_tail
            left -= len(out)
            yield out


def _lost_block(source: Source, member: Member) -> int:
    """The first run of zeros that is at least a sector long. A compressed member shows none."""
    if member.method != STORED:
        return 0
    at, end = member.start, member.start + member.size
    zeros = bytes(LOST_BLOCK)
    while at + LOST_BLOCK <= end:
        data = source.read(at, min(BLOCK, end - at))
        found = data.find(zeros)
        if found >= 0:
            return _run_of_zeros(source, at + found, end)
        at += max(1, len(data) - LOST_BLOCK + 1)
    return 0


def _run_of_zeros(source: Source, start: int, end: int) -> int:
    run = 0
    for block in source.blocks(start, end - start):
        kept = len(block) - len(bytes(block).lstrip(b"\0"))
        run += kept
        if kept < len(block):
            break
    return run
