"""A computed figure, how exactly it is known, and when a reported one is the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation, localcontext

from tui.model.metrics import Verdict

MACHINE_DIGITS = 6
"""Significant digits up to which a reported figure must round exactly. What is printed beyond them is what a
float32 happened to hold, and is compared within `MACHINE_TOLERANCE` instead."""
MACHINE_TOLERANCE = 2e-6
AGREEMENT = 1e-5
"""Relative difference up to which two implementations agree (absolute below one)."""
BEYOND = 400
"""Decimal exponents that no float has."""
NARROW = 1e-2
"""Stored digits decide a figure when they leave it open by at most this share of it."""


class Undecided(Exception):
    """Why a figure can't be given, with the verdict that follows."""

    def __init__(self, verdict: Verdict, detail: str) -> None:
        self.verdict: Verdict = verdict
        self.detail = detail
        super().__init__(detail)


@dataclass(frozen=True)
class Figure:
    """A figure recomputed from raw predictions and targets.

    Attributes:
        low, high: where it may lie, given the digits that the file keeps of each prediction.
        tie_low, tie_high: where it may lie, given equal scores that could be ranked either way.
        note: what to know about it.
    """

    value: float
    low: float | None = None
    high: float | None = None
    tie_low: float | None = None
    tie_high: float | None = None
    note: str = ""


def same(reported: Decimal, value: float, digits: int | None = None, *, floor: int = 0) -> bool:
    """Whether a figure, rounded as reported, is the reported one.

    It is rounded to as many decimals as are reported, half to even and half up both being accepted.

    Args:
        digits: decimals to compare at, where fewer are declared than reported.
        floor: decimals it has at least, since JSON writes a perfect 1.0000 as 1.0.
    """
    if not reported.is_finite() or not math.isfinite(value):
        return reported.is_nan() == math.isnan(value) and (math.isnan(value) or float(reported) == value)
    decimals = max(floor, -int(reported.as_tuple().exponent))
    if max(abs(decimals), abs(reported.adjusted())) > BEYOND:
        return float(reported) == value
    if digits is not None:
        decimals = min(decimals, digits)
    significant = reported.adjusted() + 1 + decimals if reported else decimals
    if significant > MACHINE_DIGITS and digits is None:
        return abs(float(reported) - value) <= max(MACHINE_TOLERANCE * abs(value), 0.5 * 10.0**-decimals)
    unit = Decimal(1).scaleb(-decimals)
    return bool(_roundings(reported, unit) & _roundings_of(value, unit))


def _roundings_of(value: float, unit: Decimal) -> set[Decimal]:
    """A float as it is and as it prints: a tie of one is none of the other."""
    return _roundings(Decimal(value), unit) | _roundings(Decimal(repr(value)), unit)


def _roundings(number: Decimal, unit: Decimal) -> set[Decimal]:
    with localcontext() as context:
        context.prec = 400
        try:
            return {number.quantize(unit, way) for way in (ROUND_HALF_EVEN, ROUND_HALF_UP)}
        except InvalidOperation:
            return {number}


def agrees(first: float, second: float) -> bool:
    """Whether two implementations gave one figure."""
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    return first == second or abs(first - second) <= AGREEMENT * max(1.0, abs(first))


def judge(
    reported: Decimal, figure: Figure, digits: int | None, scale: int = 1, *, floor: int = 0
) -> tuple[Verdict, str]:
    """The verdict on a reported figure, and why.

    Args:
        scale: 100 where it is reported in percent.
        floor: see `same`.
    """
    if same(reported, figure.value * scale, digits, floor=floor):
        return "recomputed", figure.note
    if _within(reported, figure.low, figure.high, digits, scale, floor):
        if _narrow(figure):
            return "recomputed", _joined(
                "equal within the digits the predictions are stored with", figure.note
            )
        return "disagree", _joined("the digits the predictions are stored with do not decide it", figure.note)
    if _within(reported, figure.tie_low, figure.tie_high, digits, scale, floor):
        return "disagree", _joined(
            "equal scores do not decide it: another order of ties would give it", figure.note
        )
    return "differs", figure.note


def _within(
    reported: Decimal, low: float | None, high: float | None, digits: int | None, scale: int, floor: int
) -> bool:
    """Whether a reported figure rounds to something between two that differ."""
    if low is None or high is None or not reported.is_finite() or not low < high:
        return False
    inside = low * scale <= float(reported) <= high * scale
    return inside or any(same(reported, end * scale, digits, floor=floor) for end in (low, high))


def _narrow(figure: Figure) -> bool:
    width = (figure.high or 0.0) - (figure.low or 0.0)
    return math.isfinite(width) and width <= NARROW * max(abs(figure.value), 1e-6)


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def decimal_text(value: float) -> str:
    """The figure as decimal text, with at most ten significant digits."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    text = f"{value:.10g}"
    return format(Decimal(text), "f") if abs(value) < 1e16 else text
