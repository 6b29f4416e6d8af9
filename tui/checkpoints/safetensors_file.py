"""A safetensors file by arithmetic: the header must cover the file exactly.

Format: 8 bytes little-endian length, a JSON object, the data. Every tensor's offsets begin where another's
end, match its type and shape, and together they end where the file ends; duplicates are refused, headers
above 100 MB too (github.com/huggingface/safetensors, README "Format" and its `validate`). There is no
checksum.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field

from tui.checkpoints.source import Source
from tui.checkpoints.tensors import BITS, Span, row_of

MAX_HEADER = 100_000_000
"""The library's own limit."""

READ_HEADER = 8 << 20
"""Longer headers are not read: 8 MiB hold 80,000 tensors."""

_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "F16": "float16",
    "BF16": "bfloat16", "I32": "int32", "U32": "uint32", "F32": "float32", "I64": "int64", "U64": "uint64",
    "F64": "float64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F4": "float4_e2m1fn", "F6_E2M3": "float6_e2m3", "F6_E3M2": "float6_e3m2",
}  # fmt: skip

_SPACE = re.compile(r"[ \t\r\n]*")
_ENTRY = re.compile(r'\{[^{}"]{0,4096}(?:"[^"\\{}]{0,64}"[^{}"]{0,4096}){0,8}\}')
_scan = json.decoder.scanstring  # type: ignore[attr-defined]  # the C scanner; json.decoder exports it


class BadSafetensors(Exception):
    """Why it is none. `subtype` is a word of the verdicts."""

    def __init__(self, subtype: str, what: str) -> None:
        self.subtype = subtype
        super().__init__(what)


class HugeHeader(Exception):
    """The header is within the format's limit and too large to be real."""


@dataclass(slots=True)
class Header:
    """What the header says."""

    start: int
    tensors: list[Span] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)


def read_safetensors(source: Source) -> Header:
    """The header, proven to describe this file and nothing else.

    Raises:
        BadSafetensors, HugeHeader.
    """
    if source.size < 8:
        raise BadSafetensors("truncated", "shorter than the length field of 8 bytes")
    length = int.from_bytes(source.read(0, 8), "little")
    if length > MAX_HEADER:
        raise BadSafetensors(
            "bad_header", f"its length field says {length} bytes, the format allows {MAX_HEADER}"
        )
    if 8 + length > source.size:
        raise _beyond_the_end(source, length)
    if length > READ_HEADER:
        raise HugeHeader(f"a header of {length} bytes")
    return _parsed(source.read(8, length), source.size)


def _beyond_the_end(source: Source, length: int) -> BadSafetensors:
    """Cut inside the header, or a wrong length: the JSON tells, for a whole one ends before the file does."""
    text = source.read(8, min(source.size - 8, READ_HEADER)).decode("utf-8", "replace")
    if not text or text.startswith("{"):
        try:
            json.JSONDecoder().raw_decode(text[: 1 << 20])
        except (ValueError, RecursionError):
            return BadSafetensors("truncated", f"ends inside its header of {length} bytes")
    return BadSafetensors("bad_header", f"its length field says {length} bytes, the file is shorter")


def _parsed(raw: bytes, size: int) -> Header:
    header = Header(8 + len(raw))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise BadSafetensors("bad_header", "its header is not text") from None
    try:
        _read_object(text, header)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise BadSafetensors("bad_header", f"its header cannot be read ({type(error).__name__})") from None
    _check_cover(header, size)
    return header


def _read_object(text: str, header: Header) -> None:
    """The outer object entry by entry, so that no hostile nesting is ever built."""
    at = _expect(text, 0, "{")
    if text[at : at + 1] == "}":
        _nothing_after(text, at + 1)
        return
    while True:
        at = _expect(text, at, '"')
        name, at = _scan(text, at)
        at = _expect(text, at, ":")
        at = _metadata(text, at, header) if name == "__metadata__" else _entry(text, at, name, header)
        at = _blank(text, at)
        if text[at : at + 1] == "}":
            _nothing_after(text, at + 1)
            return
        at = _blank(text, _expect(text, at, ","))


def _blank(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, sign: str) -> int:
    at = _blank(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f"{sign} expected")
    at += 1
    return at if sign == '"' else _blank(text, at)


def _nothing_after(text: str, at: int) -> None:
    if text[at:].strip(" \t\r\n"):
        raise ValueError("something after the object")


def _entry(text: str, at: int, name: str, header: Header) -> int:
    match = _ENTRY.match(text, at)
    if match is None:
        raise BadSafetensors("bad_header", f"{name[:80]!r} has no description")
    if name in header.shapes:
        raise BadSafetensors("bad_header", f"{name[:80]!r} occurs twice")
    pairs = json.loads(match.group(), object_pairs_hook=lambda pairs: pairs)
    fields = dict(pairs)
    if len(fields) != len(pairs) or fields.keys() != {"dtype", "shape", "data_offsets"}:
        raise BadSafetensors("bad_header", f"{name[:80]!r} is described with other fields")
    dtype, shape, offsets = _DTYPES.get(str(fields["dtype"])), fields["shape"], fields["data_offsets"]
    if dtype is None:
        raise BadSafetensors("bad_header", f"unknown type {str(fields['dtype'])[:20]!r}")
    if not (_naturals(shape) and _naturals(offsets) and len(offsets) == 2 and len(shape) <= 64):
        raise BadSafetensors("bad_header", f"shape or offsets of {name[:80]!r} are no numbers")
    begin, end = offsets
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8 or bits // 8 != end - begin:
        raise BadSafetensors(
            "bad_header", f"{name[:80]!r}: {bits // 8} bytes by its shape, {end - begin} by its offsets"
        )
    row = row_of(shape, end - begin)
    header.shapes[name] = tuple(shape)
    header.tensors.append(Span(name, dtype, header.start + begin, end - begin, row))
    return match.end()


def _naturals(value: object) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 62 for n in value)


def _metadata(text: str, at: int, header: Header) -> int:
    """An object of texts, read text by text."""
    at = _expect(text, at, "{")
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        key, at = _scan(text, _expect(text, at, '"'))
        value, at = _scan(text, _expect(text, _expect(text, at, ":"), '"'))
        header.metadata[key] = value
        at = _blank(text, at)
        if text[at : at + 1] == "}":
            return at + 1
        at = _expect(text, at, ",")


def _check_cover(header: Header, size: int) -> None:
    """Without holes and overlaps, to the last byte of the file."""
    at = header.start
    header.tensors.sort(key=lambda span: (span.start, span.length))
    for span in header.tensors:
        if span.start != at:
            what = "overlaps the tensor before it" if span.start < at else "leaves a hole before it"
            raise BadSafetensors("bad_header", f"{span.name[:80]!r} {what}")
        at += span.length
    if at > size:
        raise BadSafetensors("truncated", f"{at - size} of {at} bytes are missing")
    if at < size:
        raise BadSafetensors("trailing", f"{size - at} bytes behind the last tensor")
