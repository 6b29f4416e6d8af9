"""What the cells of a column mean: ids, class labels, numbers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tui.custody.predictions.foreign import Unreadable

LABELS = 200_000
"""Distinct labels a column may hold before it is taken for something else."""

_WHOLE = re.compile(r"[+-]?(?:0|[1-9]\d{0,17})(?:\.0*)?\Z")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,4}))?\Z")
_SPECIAL = {"nan", "inf", "infinity", "-inf", "-infinity", "+inf", "+infinity"}


def id_text(value: Any) -> str | None:
    """The one spelling of an id; None where it is missing. Whole floats are what pandas makes of integers."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def id_texts(values: Any) -> list[str | None]:
    """Ids of a batch."""
    return [id_text(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


def label(value: Any) -> str | None:
    """The one spelling of a class label: ``1``, ``1.0`` and ``"1"`` are one label. None where missing."""
    if isinstance(value, str):
        text = value.strip()
        if _WHOLE.match(text):
            return str(int(text.partition(".")[0]))
        folded = text.lower()
        if folded in ("true", "false"):
            return folded
        return None if folded in ("", "nan", "none", "null") else text
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return id_text(value)


@dataclass
class Labels:
    """Class labels as small integers, in order of appearance. -1 is a missing one."""

    names: list[str] = field(default_factory=list)
    _codes: dict[Any, int] = field(default_factory=dict)
    _by_name: dict[str, int] = field(default_factory=dict)

    def code(self, name: str) -> int:
        """The code of a label.

        Raises:
            Unreadable: there are far too many labels for classes.
        """
        code = self._by_name.get(name)
        if code is None:
            if len(self.names) >= LABELS:
                raise Unreadable(
                    f"a label column holds more than {LABELS:,} different values: these are no classes"
                )
            code = self._by_name[name] = len(self.names)
            self.names.append(name)
        return code

    def codes(self, values: Any) -> Any:
        """Codes of a one-dimensional batch of labels, in any spelling."""
        if values.dtype != object:
            unique, places = np.unique(values, return_inverse=True)
            table = np.array([self._cell(value) for value in unique.tolist()], dtype=np.int64)
            return table[places]
        return np.fromiter((self._cell(value) for value in values), dtype=np.int64, count=len(values))

    def _cell(self, value: Any) -> int:
        key = (type(value), value) if isinstance(value, str | int | float | bool | None) else None
        code = self._codes.get(key) if key is not None else None
        if code is None:
            name = label(value)
            code = -1 if name is None else self.code(name)
            if key is not None and len(self._codes) < 2 * LABELS:
                self._codes[key] = code
        return code


@dataclass(frozen=True)
class Numbers:
    """Numbers of a batch.

    Attributes:
        values: float64, first axis the rows.
        missing: rows without a value.
        half: half a unit of the last digit the file keeps; the true value may lie that far off.
    """

    values: Any
    missing: Any
    half: float = 0.0


def numbers(values: Any) -> Numbers:
    """One number a row, or an array of one shape a row.

    Raises:
        Unreadable: a cell is no number, or rows have different shapes.
    """
    if values.dtype != object:
        half = 2.0**-11 if values.dtype == np.float16 else 0.0  # stored as half precision: rounded to that
        return Numbers(values.astype(np.float64), np.zeros(len(values), dtype=bool), half)
    missing = np.fromiter((value is None for value in values), dtype=bool, count=len(values))
    present = [value for value in values if value is not None]
    if not present:
        return Numbers(np.full(len(values), np.nan), missing)
    if all(isinstance(value, str) for value in present):
        parsed, half = _parsed(present)
    else:
        parsed, half = regular(present), 0.0
    if not missing.any():
        return Numbers(parsed, missing, half)
    full = np.full((len(values), *parsed.shape[1:]), np.nan)
    full[~missing] = parsed
    return Numbers(full, missing, half)


def ragged(values: Any) -> list[Any | None]:
    """One array a row, of any shape; None where it is missing.

    Raises:
        Unreadable: a cell holds something else than numbers.
    """
    if values.dtype != object:
        return list(values.astype(np.float64))
    return [None if value is None else _array(_unpacked(value)) for value in values]


def regular(values: Sequence[Any]) -> Any:
    """Cells of one shape as one array."""
    try:
        array = np.asarray([_unpacked(value) for value in values], dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Unreadable("a column of numbers holds something else, or rows of different lengths") from None
    return array


def _array(value: Any) -> Any:
    try:
        return np.asarray(value, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise Unreadable("a column of number lists holds something else") from None


def _unpacked(value: Any) -> Any:
    """Lists stand in text formats as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            raise Unreadable("a list in a text column is not JSON") from None
    return value


def _parsed(texts: list[str]) -> tuple[Any, float]:
    """Numbers written as text, and half a unit of the finest digit the column keeps."""
    if texts[0].lstrip().startswith("["):
        return regular(texts), 0.0
    decimals = -400
    texts = [text.strip() for text in texts]
    for text in texts:
        match = _DECIMAL.match(text)
        if match is None:
            if text.lower() in _SPECIAL:
                continue
            raise Unreadable("a column of numbers holds text") from None
        mantissa = text.lower().partition("e")[0]
        decimals = max(decimals, len(mantissa.partition(".")[2]) - int(match[1] or 0))
    values = np.array([float(text) for text in texts])
    return values, (0.5 * 10.0**-decimals if 0 < decimals < 300 else 0.0)


def stacked(columns: Sequence[Any]) -> Numbers:
    """Several columns of one number each as the rows of one matrix."""
    parts = [numbers(column) for column in columns]
    if any(part.values.ndim != 1 for part in parts):
        raise Unreadable("one of several score columns holds lists")
    missing = np.logical_or.reduce([part.missing for part in parts])
    return Numbers(np.stack([part.values for part in parts], axis=1), missing, max(p.half for p in parts))
