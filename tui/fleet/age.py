"""Ages and durations in words, in steps coarse enough that a quiet screen writes nothing."""

from __future__ import annotations

from tui.model.text import SafeText

_STEPS = (10, 20, 30, 60, 120, 180, 240, 300, 600, 900, 1200, 1800, 2700, 3600)


def age_word(taken_at: float | None, now: float, period_s: float = 2.0) -> SafeText:
    """How old a value is: ``live`` under two probe periods, then ``10s`` … ``3d``; ``–`` for never."""
    if taken_at is None:
        return SafeText("–")
    age = now - taken_at
    if age < 2 * max(period_s, 1.0):
        return SafeText("live")
    if age < 3600:
        return short(max((step for step in _STEPS if step <= age), default=_STEPS[0]))
    return short(age)


def short(seconds: float) -> SafeText:
    """A duration in one unit, rounded down: ``7s``, ``12m``, ``5h``, ``3d``."""
    whole = max(0, int(seconds))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= size:
            return SafeText(f"{whole // size}{unit}")
    return SafeText(f"{whole}s")


def long(seconds: float) -> SafeText:
    """A duration in its two largest units: ``2 h 10 m``, ``3 d 4 h``, ``45 s``."""
    whole = max(0, int(seconds))
    units = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    for i, (unit, size) in enumerate(units):
        if whole >= size:
            first = f"{whole // size} {unit}"
            rest = (whole % size) // units[i + 1][1] if i + 1 < len(units) else 0
            return SafeText(f"{first} {rest} {units[i + 1][0]}" if rest else first)
    return SafeText("0 s")


def is_stale(taken_at: float | None, now: float, period_s: float = 2.0) -> bool:
    """True once a value is too old to be read as the present: more than three probe periods and 10 s.

    One that is as far ahead of now is no better known: this computer's clock was set back since.
    """
    return taken_at is None or abs(now - taken_at) > max(10.0, 3 * period_s)
