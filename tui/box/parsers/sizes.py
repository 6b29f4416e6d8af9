"""Figures of file system tools: ``1,1G``, ``104857600*``, ``100.00 GiB``."""

from __future__ import annotations

import re

_AMOUNT = re.compile(r"(-?\d{1,24})(?:[.,](\d{1,3}))?\s*([KMGTPEZYkmgtp]?)(i?)([Bb]?)(?:ytes?)?\Z")
_LETTERS = "KMGTPEZY"


def figure(text: str | None) -> str | None:
    """A printed figure in one spelling: with a decimal point; None for a dash or nothing."""
    stripped = (text or "").strip()
    return None if stripped in {"", "-"} else stripped.replace(",", ".")


def scaled(text: str | None, block: int = 1, base: int = 1024) -> int | None:
    """A figure as a whole number; None for a dash, nothing or what is no figure.

    Args:
        block: what one unit of a figure without a letter stands for.
        base: what one step of a letter stands for, 1024 or 1000.
    """
    match = _AMOUNT.match((text or "").strip().rstrip("*"))
    if match is None:
        return None
    whole, part, letter = match[1], match[2] or "", match[3].upper()
    if not letter:
        exact = int(whole) * (1 if match[5] else block)
        return exact if not part else exact + round(float(f"0.{part}") * block)
    factor: int = base ** (_LETTERS.index(letter) + 1)
    fraction = round(float(f"0.{part}") * factor) if part else 0
    return int(whole) * factor + (-fraction if whole.startswith("-") else fraction)
