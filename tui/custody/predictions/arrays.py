"""Files of named arrays: NumPy archives and safetensors. An array is a column, its first axis the rows."""

from __future__ import annotations

import contextlib
import json
import math
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tui.custody.predictions.foreign import Unreadable
from tui.custody.predictions.tables import BATCH_BYTES, BATCH_ROWS, Batch, check_columns

ROW_BYTES = 1 << 30
HEADER_BYTES = 100_000_000
"""Largest safetensors header, as the format's own library has it."""

_SAFETENSORS: dict[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "u1",
}  # fmt: skip


@dataclass(frozen=True)
class _Array:
    """One array: how to open a stream at its first byte, and what the bytes mean."""

    shape: tuple[int, ...]
    dtype: Any
    open: Callable[[contextlib.ExitStack], IO[bytes]]
    decode: Callable[[Any], Any] = lambda values: values

    @property
    def row_bytes(self) -> int:
        return int(math.prod(self.shape[1:]) * self.dtype.itemsize)


class _ArrayTable:
    """Columns are the arrays with the commonest length; others (class names, thresholds) are left out."""

    def __init__(self, name: str, arrays: dict[str, _Array]) -> None:
        self.name = name
        lengths = Counter(array.shape[0] for array in arrays.values() if array.shape)
        if not lengths:
            raise Unreadable(f"{name} holds no arrays with rows")
        self._count = max(lengths, key=lambda n: (lengths[n], n))
        self._arrays = {k: a for k, a in arrays.items() if a.shape and a.shape[0] == self._count}
        self.columns = check_columns(name, list(self._arrays))
        self.shapes = {key: array.shape[1:] for key, array in self._arrays.items()}
        self.left_out = tuple(key for key in arrays if key not in self._arrays)
        for key, array in self._arrays.items():
            if array.row_bytes > ROW_BYTES:
                raise Unreadable(f"one row of {key[:80]!r} in {name} has more than {ROW_BYTES >> 30} GiB")

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        if not columns:
            return
        arrays = {column: self._arrays[column] for column in columns}
        widest = max(1, sum(array.row_bytes for array in arrays.values()))
        step = max(1, min(BATCH_ROWS, BATCH_BYTES // widest))
        try:
            with contextlib.ExitStack() as stack:
                streams = {key: array.open(stack) for key, array in arrays.items()}
                for start in range(0, self._count, step):
                    rows = min(step, self._count - start)
                    yield {key: self._rows(streams[key], key, rows) for key in arrays}
                for key, stream in streams.items():
                    if isinstance(stream, zipfile.ZipExtFile) and stream.read(1):  # reads on to the checksum
                        raise Unreadable(f"{key[:80]!r} in {self.name} is longer than its header says")
        except (
            OSError,
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise Unreadable(f"{self.name} is damaged ({type(error).__name__})") from None

    def _rows(self, stream: IO[bytes], key: str, rows: int) -> Any:
        array = self._arrays[key]
        wanted = rows * array.row_bytes
        raw = stream.read(wanted)
        if len(raw) != wanted:
            raise Unreadable(f"{key[:80]!r} in {self.name} ends early")
        values = np.frombuffer(raw, dtype=array.dtype).reshape(rows, *array.shape[1:])
        return array.decode(values)


class NpzTable(_ArrayTable):
    """A NumPy archive. Arrays of Python objects are refused: reading them runs foreign code."""

    def __init__(self, path: Path, name: str) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                members = [info.filename for info in archive.infolist()]
                check_columns(name, members)
                arrays = {m.removesuffix(".npy"): _npy(path, archive, m, name) for m in members}
        except (
            zipfile.BadZipFile,
            OSError,
            ValueError,
            EOFError,
            zlib.error,
            NotImplementedError,
            RuntimeError,
        ):
            raise Unreadable(f"{name} is no readable NumPy archive") from None
        super().__init__(name, arrays)


def _npy(path: Path, archive: zipfile.ZipFile, member: str, name: str) -> _Array:
    with archive.open(member) as stream:
        shape, fortran, dtype = _npy_header(stream)
    if dtype.hasobject:
        raise Unreadable(f"{member[:80]!r} in {name} holds pickled Python objects, which are never loaded")
    if dtype.kind not in "biufUS":
        raise Unreadable(f"{member[:80]!r} in {name} has the type {dtype}, which holds no predictions")
    if fortran and len(shape) > 1:
        raise Unreadable(
            f"{member[:80]!r} in {name} is stored column by column; save it with np.ascontiguousarray"
        )

    def opened(stack: contextlib.ExitStack) -> IO[bytes]:
        stream = stack.enter_context(stack.enter_context(zipfile.ZipFile(path)).open(member))
        _npy_header(stream)
        return stream

    text = dtype.kind in "US"
    return _Array(shape, dtype, opened, _texts if text else lambda values: values)


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, Any]:
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(
        version
    )
    if read is None:
        raise ValueError("npy version")
    shape, fortran, dtype = read(stream)
    return tuple(int(n) for n in shape), bool(fortran), dtype


def _texts(values: Any) -> Any:
    decoded = np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values
    return decoded.astype(object)


class SafetensorsTable(_ArrayTable):
    """A safetensors file whose header covers the file exactly."""

    def __init__(self, path: Path, name: str) -> None:
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(0)
                (length,) = struct.unpack("<Q", file.read(8))
                if length > min(HEADER_BYTES, size - 8):
                    raise ValueError("header length")
                header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            arrays = {key: self._array(path, entry, 8 + length) for key, entry in header.items()}
            spans = sorted(tuple(entry["data_offsets"]) for entry in header.values())
        except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error, RecursionError):
            raise Unreadable(f"{name} is no readable safetensors file") from None
        ends = [0, *(end for _, end in spans)]
        if [start for start, _ in spans] != ends[:-1] or ends[-1] != size - 8 - length:
            raise Unreadable(f"the header of {name} does not cover the file: it is cut, or bytes were added")
        super().__init__(name, arrays)

    @staticmethod
    def _array(path: Path, entry: dict[str, Any], data: int) -> _Array:
        kind, (start, end) = entry["dtype"], entry["data_offsets"]
        dtype = np.dtype(_SAFETENSORS[kind])
        shape = tuple(entry["shape"])
        if not all(type(n) is int and n >= 0 for n in (*shape, start, end)):
            raise ValueError("shape")
        if math.prod(shape) * dtype.itemsize != end - start:
            raise ValueError("size")

        def opened(stack: contextlib.ExitStack) -> IO[bytes]:
            file = stack.enter_context(path.open("rb"))
            file.seek(data + start)
            return file

        return _Array(shape, dtype, opened, _from_bfloat16 if kind == "BF16" else lambda values: values)


def _from_bfloat16(values: Any) -> Any:
    return (values.astype(np.uint32) << 16).view(np.float32)
