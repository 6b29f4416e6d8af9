"""Figures as people read them. What is not known says so; it is never a zero."""

from __future__ import annotations

import math

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

NA = "n/a"


def size(count: float | None, *, binary: bool = False) -> str:
    """Bytes in three figures: ``812 B``, ``9.8 GB``; binary units for memory, which is sold in them."""
    if count is None:
        return NA
    step, units = (1024, _BINARY) if binary else (1000, _UNITS)
    value = float(count)
    for unit in units:
        if abs(value) < step * 0.9995 or unit == units[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or abs(value) >= 99.95 else f"{value:.1f} {unit}"
        value /= step
    raise AssertionError("the last unit takes everything")


def pair(used: float | None, limit: float | None, *, binary: bool = False, tight: bool = False) -> str:
    """Used of limit, the unit once: ``71.2 / 80.0 GiB``, or `tight` without the blanks."""
    joint = "/" if tight else " / "
    if used is None or limit is None:
        return f"{size(used, binary=binary)}{joint}{size(limit, binary=binary)}"
    whole = size(limit, binary=binary)
    figure, unit = whole.split(" ")
    step, units = (1024, _BINARY) if binary else (1000, _UNITS)
    scaled = used / step ** units.index(unit)
    digits = len(figure.partition(".")[2])
    return f"{scaled:.{digits}f}{joint}{figure} {unit}"


def percent(value: float | None) -> str:
    """A percentage rounded down, so that 100 % means full: ``96 %``."""
    if value is None or not math.isfinite(value):
        return NA
    return f"{math.floor(value + 1e-9)} %"


def count(number: int | None) -> str:
    """A number with thousands set apart."""
    return NA if number is None else f"{number:,}"


def compact(number: float | None) -> str:
    """A count in at most five characters: ``812``, ``12.4k``, ``3.1M``."""
    if number is None or not math.isfinite(number):
        return NA
    for limit, divisor, suffix in ((1e3, 1.0, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M"), (math.inf, 1e9, "G")):
        if abs(number) < limit * 0.9995:
            value = number / divisor
            return f"{value:.0f}{suffix}" if not suffix or abs(value) >= 99.95 else f"{value:.1f}{suffix}"
    raise AssertionError("infinity bounds every number")


def significant(value: float | None) -> str:
    """A loss or rate in four significant figures; NaN and infinity by name."""
    if value is None:
        return NA
    if not math.isfinite(value):
        return str(value)
    return f"{value:.4g}"
