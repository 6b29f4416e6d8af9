"""GGUF: is the file as long as its header says, and does every tensor lie inside it. No checksum.

Layout (ggml/docs/gguf.md, versions 2 and 3, little endian): magic, version, counts of tensors and of facts;
facts as key, type, value; tensors as name, dimensions, type, offset; padding; data.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from tui.checkpoints.contents import Contents
from tui.checkpoints.judged import Judged, say
from tui.checkpoints.source import Source
from tui.checkpoints.tensors import Span, row_of
from tui.model.verdict import Problem

_VERSIONS = (2, 3)
_MOST_TENSORS, _MOST_FACTS, _MOST_ITEMS = 100_000, 100_000, 10_000_000
_LONGEST = 16 << 20
_ALIGNMENT = "general.alignment"
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Bytes of a fact by its type; 8 is text, 9 a list."""
_TEXT, _LIST, _U32 = 8, 9, 4
_PLAIN = {
    0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64",
    30: "bfloat16",
}  # fmt: skip
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8), 30: (1, 2),
    2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 9: (32, 36), 20: (32, 18),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 21: (256, 110), 22: (256, 82),
    23: (256, 136), 29: (256, 56), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
"""By tensor type: elements of a block, and its bytes (ggml/src/ggml-common.h)."""


class _Bad(Exception):
    """Damage. `subtype` is a word of the verdicts."""

    def __init__(self, subtype: str, what: str) -> None:
        self.subtype = subtype
        super().__init__(what)


@dataclass(slots=True)
class _Tensor:
    name: str
    shape: list[int]
    type: int
    offset: int

    @property
    def size(self) -> int | None:
        """Bytes; None for a type that is not known here."""
        block = _BLOCKS.get(self.type)
        return None if block is None else math.prod(self.shape) // block[0] * block[1]


@dataclass(slots=True)
class _Header:
    tensors: list[_Tensor] = field(default_factory=list)
    data: int = 0
    alignment: int = 32
    items: int = 0


def judge_gguf(source: Source, path: str) -> Judged:
    """The verdict on a file that begins as GGUF does."""
    unknown = Judged(say(path, "other", "ignore"), problems=(Problem(code="format-not-judged", path=path),))
    if source.size >= 8 and int.from_bytes(source.read(4, 4), "little") not in _VERSIONS:
        return unknown
    try:
        header = _header(source)
        contents = _contents(header, source.size)
    except _Bad as bad:
        kind = "sparse" if source.sparse else "other"
        more = {"apparent": source.size} if source.sparse else {}
        return Judged(say(path, kind, "corrupt", bad.subtype, str(bad), format="gguf", **more))
    if any(tensor.size is None for tensor in header.tensors):
        return unknown  # where such a tensor ends, nobody knows
    verdict = say(
        path, "other", "ok", format="gguf", flavour="gguf", keys=contents.keys, tensors=contents.tensors,
        elements=contents.elements, dtypes=contents.dtypes or None,
    )  # fmt: skip
    return Judged(verdict, contents, (Problem(code="no-checksum", path=path),), unchecked=True)


def _header(source: Source) -> _Header:
    stream = source.section(0, source.size)
    stream.seek(8)
    tensors, facts = _numbers(stream, "<QQ")
    if tensors > _MOST_TENSORS or facts > _MOST_FACTS:
        raise _Bad("bad_header", f"{tensors} tensors and {facts} facts")
    header = _Header()
    for _ in range(facts):
        _fact(stream, header)
    if not 0 < header.alignment <= 1 << 20:
        raise _Bad("bad_header", f"aligned to {header.alignment} bytes")
    header.tensors = list(_tensors(stream, tensors))
    header.data = -(-stream.tell() // header.alignment) * header.alignment
    return header


def _fact(stream: BinaryIO, header: _Header) -> None:
    key = _text(stream)
    (kind,) = _numbers(stream, "<I")
    if key == _ALIGNMENT and kind == _U32:
        (header.alignment,) = _numbers(stream, "<I")
    else:
        _pass_over(stream, kind, header)


def _pass_over(stream: BinaryIO, kind: int, header: _Header, depth: int = 0) -> None:
    if kind == _TEXT:
        _text(stream)
    elif kind == _LIST and depth < 4:
        inner, count = _numbers(stream, "<IQ")
        header.items += count
        if header.items > _MOST_ITEMS:
            raise _Bad("bad_header", f"a list of {count} values")
        if inner in _WIDTHS:
            stream.seek(_WIDTHS[inner] * count, 1)
            return
        for _ in range(count):
            _pass_over(stream, inner, header, depth + 1)
    elif kind in _WIDTHS:
        _taken(stream, _WIDTHS[kind])
    else:
        raise _Bad("bad_header", f"a fact of the unknown type {kind}")


def _tensors(stream: BinaryIO, count: int) -> Iterator[_Tensor]:
    for _ in range(count):
        name = _text(stream)
        (dimensions,) = _numbers(stream, "<I")
        if dimensions > 8:
            raise _Bad("bad_header", f"{name[:80]!r} has {dimensions} dimensions")
        shape = list(_numbers(stream, f"<{dimensions}Q"))
        kind, offset = _numbers(stream, "<IQ")
        if math.prod(shape) > 1 << 60:
            raise _Bad("bad_header", f"{name[:80]!r} has more elements than any file holds")
        yield _Tensor(name, shape, kind, offset)


def _contents(header: _Header, size: int) -> Contents:
    """What it holds. Raises _Bad where a tensor lies outside the file, or shares bytes with another."""
    end = 0
    contents = Contents(tensors=len(header.tensors), keys=len(header.tensors))
    for tensor in sorted(header.tensors, key=lambda t: t.offset):
        length = tensor.size
        if tensor.offset % header.alignment or tensor.offset < end:
            raise _Bad("bad_header", f"{tensor.name[:80]!r} does not begin where it should")
        end = tensor.offset + (length or 0)
        if header.data + end > size:
            raise _Bad("truncated", f"{header.data + end - size} bytes are missing")
        contents.elements += math.prod(tensor.shape)
        dtype = _PLAIN.get(tensor.type)
        if dtype is None or length is None:
            contents.gap = contents.gap or "quantised tensors"
            continue
        shape = tensor.shape[::-1]  # the fastest dimension stands first
        start = header.data + tensor.offset
        contents.spans.append(Span(tensor.name, dtype, start, length, row_of(shape, length)))
    contents.dtypes = dict(Counter(_PLAIN.get(t.type, f"ggml-{t.type}") for t in header.tensors))
    if len({tensor.name for tensor in header.tensors}) != len(header.tensors):
        raise _Bad("bad_header", "two tensors have one name")
    return contents


def _taken(stream: BinaryIO, length: int) -> bytes:
    raw = stream.read(length)
    if len(raw) < length:
        raise _Bad("truncated", "ends inside its header")
    return raw


def _numbers(stream: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, _taken(stream, struct.calcsize(form)))


def _text(stream: BinaryIO) -> str:
    (length,) = _numbers(stream, "<Q")
    if length > _LONGEST:
        raise _Bad("bad_header", f"a text of {length} bytes")
    return _taken(stream, length).decode("utf-8", "backslashreplace")
