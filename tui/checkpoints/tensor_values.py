"""The numbers of one checkpoint file, looked at where they lie: not finite, all zero, constant, lost blocks.

Stands alone but for the NumPy that it is given: it is part of the programme that runs in the jail.
"""

from __future__ import annotations

import bisect
import math
import os
import zlib
from collections.abc import Iterator
from typing import Any

_BLOCK = 4 << 20
_PAGE = 4096
_NAMES = 20
_WIDEST = 16
"""Bytes of the widest number."""

# By type: the unsigned type of its width, the bits of its exponent and of its mantissa.
_FLOATS = {
    "float32": ("<u4", 0x7F800000, 0x007FFFFF), "complex64": ("<u4", 0x7F800000, 0x007FFFFF),
    "float64": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "complex128": ("<u8", 0x7FF0000000000000, 0x000FFFFFFFFFFFFF),
    "float16": ("<u2", 0x7C00, 0x03FF), "complex32": ("<u2", 0x7C00, 0x03FF), "bfloat16": ("<u2", 0x7F80,
    0x007F), "float8_e5m2": ("u1", 0x7C, 0x03),
}  # fmt: skip
# By type: the bits that count, and the value of them that is no number.
_ONLY_NAN = {
    "float8_e4m3fn": (0x7F, 0x7F), "float8_e4m3fnuz": (0xFF, 0x80), "float8_e5m2fnuz": (0xFF, 0x80),
    "float8_e8m0fnu": (0xFF, 0xFF),
}  # fmt: skip
_WIDTHS = {"int16": "<u2", "uint16": "<u2", "int32": "<u4", "uint32": "<u4", "int64": "<u8", "uint64": "<u8"}


class Values:
    """The tensors of one file, looked at in blocks.

    A span is: name, type, start, length, row, and how many bytes it takes deflated; 0 where it is not.
    """

    def __init__(self, numpy: Any, fd: int, request: dict[str, Any]) -> None:
        self._np = numpy
        self._fd = fd
        self._spans = request["spans"]
        self._order = ">" if request.get("big") else "<"
        self._scan = request["scan"]
        self._counts = dict.fromkeys(
            ("nonfinite", "nan", "masks", "all_zero", "constant", "zero_tail", "zero_pages"), 0
        )
        self._names: dict[str, list[str]] = {
            key: [] for key in ("nonfinite_in", "all_zero_in", "constant_in", "unread")
        }

    def read(self) -> dict[str, Any]:
        """Counts over all tensors."""
        for name, dtype, start, length, _, packed in self._spans:
            blocks = self._unpacked(start, packed) if packed else self._blocks(start, length)
            self._tensor(name, dtype, length, blocks)
        if self._scan and self._spans:
            self._zero_runs()
        return {**self._counts, **self._names}

    def _note(self, key: str, name: str) -> None:
        if len(self._names[key]) < _NAMES:
            self._names[key].append(name[:200])

    def _block(self, start: int, length: int) -> Any:
        return self._np.frombuffer(os.pread(self._fd, length, start), dtype="u1")

    def _blocks(self, start: int, length: int) -> Iterator[Any]:
        done = 0
        while done < length:
            raw = self._block(start + done, min(_BLOCK, length - done))
            if not raw.size:
                return
            yield raw
            done += raw.size

    def _unpacked(self, start: int, packed: int) -> Iterator[Any]:
        """What a deflated stretch holds, in blocks of whole numbers; ends early where it is damaged."""
        machine, at, end, rest = zlib.decompressobj(-15), start, start + packed, b""
        data = b""
        while data or at < end:
            if not data:
                data = os.pread(self._fd, min(_BLOCK, end - at), at)
                at += len(data)
            try:
                rest += machine.decompress(data, _BLOCK)
            except zlib.error:
                return
            if not data:
                return
            data = machine.unconsumed_tail
            whole = len(rest) // _WIDEST * _WIDEST
            if whole:
                yield self._np.frombuffer(rest[:whole], dtype="u1")
                rest = rest[whole:]
        if rest:
            yield self._np.frombuffer(rest, dtype="u1")

    def _tensor(self, name: str, dtype: str, length: int, blocks: Iterator[Any]) -> None:
        kind = self._kind(_FLOATS.get(dtype, (_WIDTHS.get(dtype, "u1"), 0, 0))[0])
        width = self._np.dtype(kind).itemsize
        bad = nan = done = 0
        first: Any = None
        constant = length > width
        for raw in blocks:
            data = raw[: raw.size // width * width].view(kind)
            if not data.size:
                done = length
                break
            first = data[0] if first is None else first
            constant = constant and bool(data[-1] == first) and bool((data == first).all())
            more_bad, more_nan = self._not_finite(data, dtype)
            bad, nan, done = bad + more_bad, nan + more_nan, done + raw.size
        if done < length:
            self._note("unread", name)
            return
        if constant and first is not None:
            key = "all_zero" if not first else "constant"
            self._counts[key] += 1
            self._note(f"{key}_in", name)
        if bad and not nan and _explained(name, bad, length // width):
            self._counts["masks"] += bad
        elif bad:
            self._counts["nonfinite"] += bad
            self._counts["nan"] += nan
            self._note("nonfinite_in", name)

    def _kind(self, kind: str) -> str:
        """In the order of the machine that wrote the file."""
        return kind.replace("<", self._order)

    def _not_finite(self, data: Any, dtype: str) -> tuple[int, int]:
        np = self._np
        if dtype in _ONLY_NAN:
            mask, value = _ONLY_NAN[dtype]
            count = int(np.count_nonzero((data & mask) == value))
            return count, count
        if dtype not in _FLOATS:
            return 0, 0
        plain, exponent, mantissa = _FLOATS[dtype]
        kind = self._kind(plain)
        if plain in ("<u4", "<u8"):
            with np.errstate(all="ignore"):  # one pass: what is not finite stays so in a sum
                if np.isfinite(data.view(kind.replace("u", "f")).sum()):
                    return 0, 0
        full = (data & data.dtype.type(exponent)) == exponent
        bad = int(np.count_nonzero(full))
        return bad, int(np.count_nonzero(data[full] & data.dtype.type(mantissa))) if bad else 0

    # blocks of zeros where the format has no checksum

    def _zero_runs(self) -> None:
        spans = sorted((s for s in self._spans if s[3] and not s[5]), key=lambda s: s[2])
        if not spans:
            return
        begin, end = spans[0][2], max(s[2] + s[3] for s in spans)
        run: int | None = None
        for page, zero in self._pages(begin, end):
            if zero and run is None:
                run = page
            elif not zero and run is not None:
                self._judge_run(run, page, end, spans)
                run = None
        if run is not None:
            self._judge_run(run, end, end, spans)

    def _pages(self, begin: int, end: int) -> Any:
        """Where pages of zeros begin and end: (offset, whether zeros begin there)."""
        np, was = self._np, False
        at = -(-begin // _PAGE) * _PAGE
        while at < end:
            raw = self._block(at, min(_BLOCK, end - at))
            whole = raw.size // _PAGE
            rows = raw[: whole * _PAGE].view("<u8").reshape(whole, _PAGE // 8)
            zero = (rows[:, 0] | rows[:, 200] | rows[:, 511]) == 0
            for row in np.flatnonzero(zero):
                zero[row] = not rows[row].any()
            rest = raw[whole * _PAGE :]
            marks = [*zero.tolist(), *([not rest.any()] if rest.size else [])]
            for place, is_zero in enumerate(marks):
                if is_zero != was:
                    yield at + place * _PAGE, is_zero
                    was = is_zero
            if not raw.size:
                return
            at += raw.size

    def _judge_run(self, first: int, last: int, end: int, spans: list[Any]) -> None:
        """Zeros from page to page are damage where no tensor and no row of one begins with them."""
        before = os.pread(self._fd, min(_PAGE, first - spans[0][2]), max(spans[0][2], first - _PAGE))
        start = first - (len(before) - len(before.rstrip(b"\0")))
        begins = [s[2] for s in spans]  # bisect takes a key only from Python 3.10 on
        span = spans[max(0, bisect.bisect_right(begins, start) - 1)]
        _, dtype, begin, length, row, _ = span
        inside = start - begin
        width = 8 if dtype in ("float64", "complex64", "int64", "uint64", "complex128") else 4
        if inside < width or start >= begin + length:
            return
        lost = last >= end and start == first and math.gcd(row, _PAGE) <= 256  # few rows begin with a page
        if row and min(inside % row, -inside % row) < width and not lost:
            return
        if last >= end:
            self._counts["zero_tail"] = end - start
            return
        after = os.pread(self._fd, 16, last)
        if first - start < 16 and any(after) and dtype in _FLOATS:
            self._counts["zero_pages"] += last - first


def _explained(name: str, bad: int, elements: int) -> bool:
    """Infinite on purpose: a bound that starts there, or a mask (a triangle without its diagonal)."""
    side = round(elements**0.5)
    return elements == 1 or "mask" in name.rpartition(".")[2] or (
        side >= 4 and side * side == elements and bad == side * (side - 1) // 2
    )  # fmt: skip
