"""What a loss curve shows besides its course: losses that are no number, spikes, a plateau. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

BEFORE = 20
"""Losses a spike is compared with."""
LEAST = 8
"""Fewer say nothing about what is usual."""
SPIKE_FACTOR = 1.5
SPIKE_SPREAD = 6.0
PLATEAU = 40
"""Losses that must have stayed level."""
LEVEL = 0.01
"""Share of the level by which the two halves of a plateau may differ."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Places in a series of losses, counted from its beginning.

    Attributes:
        broken: losses that are NaN or infinite.
        spikes: losses far above those before them.
        level_for: losses since which nothing got better; 0 where it still moves.
    """

    broken: tuple[int, ...] = ()
    spikes: tuple[int, ...] = ()
    level_for: int = 0


def marks_of(losses: Sequence[float]) -> Marks:
    """The marks of a series, newest last."""
    broken = tuple(i for i, loss in enumerate(losses) if not math.isfinite(loss))
    return Marks(broken, tuple(i for i in range(len(losses)) if _is_spike(losses, i)), _level_for(losses))


def _is_spike(losses: Sequence[float], place: int) -> bool:
    value = losses[place]
    before = [v for v in losses[max(0, place - BEFORE) : place] if math.isfinite(v)]
    if not math.isfinite(value) or len(before) < LEAST:
        return False
    usual = median(before)
    spread = median(abs(v - usual) for v in before)
    return value > usual + SPIKE_SPREAD * spread and value > usual + (SPIKE_FACTOR - 1) * abs(usual) > usual


def _level_for(losses: Sequence[float]) -> int:
    """How many of the newest losses stay level: their halves have the same mean, against their own noise."""
    finite = [v for v in losses if math.isfinite(v)]
    if len(finite) < PLATEAU or len(finite) != len(losses):
        return 0
    longest = 0
    for count in range(PLATEAU, len(finite) + 1, PLATEAU // 4):
        part = finite[-count:]
        early, late = part[: count // 2], part[count // 2 :]
        mean = sum(part) / count
        if abs(sum(early) / len(early) - sum(late) / len(late)) > LEVEL * abs(mean):
            break
        longest = count
    return longest
