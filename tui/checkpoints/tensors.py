"""Tensors as files describe them: type, shape, and where their bytes lie."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

BITS: dict[str, int] = {
    "bool": 8, "uint8": 8, "int8": 8, "int16": 16, "uint16": 16, "float16": 16, "bfloat16": 16,
    "int32": 32, "uint32": 32, "float32": 32, "int64": 64, "uint64": 64, "float64": 64,
    "complex32": 32, "complex64": 64, "complex128": 128,
    "float8_e4m3fn": 8, "float8_e5m2": 8, "float8_e8m0fnu": 8, "float8_e4m3fnuz": 8, "float8_e5m2fnuz": 8,
    "float4_e2m1fn": 4, "float6_e2m3": 6, "float6_e3m2": 6, "float4_e2m1fn_x2": 8,
    "qint8": 8, "quint8": 8, "qint32": 32, "quint4x2": 8, "quint2x4": 8, "bits8": 8, "bits16": 16,
}  # fmt: skip
"""Bits per element, by torch's name of the type."""

_STORAGES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
    "ComplexFloat": "complex64", "ComplexDouble": "complex128", "QInt8": "qint8", "QUInt8": "quint8",
    "QInt32": "qint32", "QUInt4x2": "quint4x2", "QUInt2x4": "quint2x4", "Untyped": "uint8",
}  # fmt: skip

_Named = Callable[[object], str | None]


@dataclass(slots=True, frozen=True)
class Storage:
    """A stretch of bytes that tensors share. `dtype` is None for a type that is not known here."""

    key: str
    dtype: str | None
    count: int

    @property
    def size(self) -> int | None:
        """Bytes."""
        return None if self.dtype is None else self.count * BITS[self.dtype] // 8

    @classmethod
    def of(cls, reference: object, named: _Named) -> Storage | None:
        """From torch's persistent id ``("storage", type, key, location, elements, ...)``."""
        match reference:
            case ("storage", kind, str(key), _, int(count), *_) if 0 <= count < 1 << 60:
                name = (named(kind) or "").rpartition(".")[2]
                return cls(key, _STORAGES.get(name.removesuffix("Storage")), count)
        return None


@dataclass(slots=True)
class Tensor:
    """A view into a storage. Offset and strides count elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def contiguous(self) -> bool:
        expected = 1
        for length, step in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if length > 1 and step != expected:
                return False
            expected *= length
        return True

    @property
    def inside(self) -> bool:
        """Whether every element lies in the storage."""
        size = self.storage.size
        if self.elements == 0 or size is None:
            return self.offset >= 0
        last = self.offset + sum((n - 1) * step for n, step in zip(self.shape, self.stride, strict=True))
        return self.offset >= 0 and (last + 1) * BITS[self.dtype] <= size * 8


@dataclass(slots=True, frozen=True)
class Span:
    """Bytes of a tensor that lie in the file as they lie in memory.

    Attributes:
        row: bytes of one step of the first dimension; where a run of zeros begins on it, it may be meant.
        packed: bytes it takes in the file where it is deflated; 0 where it lies there as it is.
    """

    name: str
    dtype: str
    start: int
    length: int
    row: int
    packed: int = 0


def row_of(shape: tuple[int, ...] | list[int], length: int) -> int:
    """Bytes of one step of the first dimension; the whole length where that is too few to tell anything."""
    row = length // shape[0] if len(shape) > 1 and shape[0] else length
    return row if row >= _SHORTEST_ROW else length


def rebuilt(name: str, arguments: tuple[object, ...], named: _Named) -> Tensor | None:
    """What `torch._utils._rebuild_tensor` and its kin would return. None: another function, or nonsense."""
    if name not in _REBUILDERS or len(arguments) < 4:
        return None
    storage, offset, shape, stride = arguments[:4]
    if not (isinstance(storage, Storage) and isinstance(offset, int) and _sizes(shape) and _sizes(stride)):
        return None
    dtype = storage.dtype
    if name.endswith("_v3") and len(arguments) > 6:
        dtype = (named(arguments[6]) or "").removeprefix("torch.")
    if dtype not in BITS or not isinstance(shape, tuple) or not isinstance(stride, tuple):
        return None
    return Tensor(storage, dtype, offset, shape, stride) if len(shape) == len(stride) else None


_SHORTEST_ROW = 256
_REBUILDERS = frozenset(
    f"torch._utils._rebuild_{end}" for end in ("tensor", "tensor_v2", "tensor_v3", "qtensor")
)


def _sizes(value: object) -> bool:
    return isinstance(value, tuple) and len(value) <= 64 and all(
        isinstance(n, int) and 0 <= n < 1 << 60 for n in value
    )  # fmt: skip
