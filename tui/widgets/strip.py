"""History strips: a fixed scale from 0 to 100, one column a sample, and gaps where nothing was heard."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tui.widgets.glyphs import Glyphs
from tui.widgets.glyphs import strip as levels

MOST_GAP = 6
"""Columns that the longest silence takes: enough to be seen, not enough to push the rest out."""


def columns(samples: Sequence[tuple[float, float | None]]) -> list[float | None]:
    """One value a column, oldest first, with None where the box was silent.

    The pace of probing changes with what the operator looks at. So a silence is what is far longer than both
    the step before and the step after it; the newest step has no step after it and is told by age instead.

    Args:
        samples: (time, value), oldest first; a value of None was looked for and not told.
    """
    if not samples:
        return []
    steps = [b[0] - a[0] for a, b in pairwise(samples)]
    found: list[float | None] = [samples[0][1]]
    for i, step in enumerate(steps):
        around = [s for s in (steps[i - 1] if i else None, steps[i + 1] if i + 1 < len(steps) else None) if s]
        usual = max(around, default=step)
        if step > 3 * usual > 0 and i + 1 < len(steps):
            found += [None] * min(MOST_GAP, max(1, round(step / usual) - 1))
        found.append(samples[i + 1][1])
    return found


def history(samples: Sequence[tuple[float, float | None]], width: int, glyphs: Glyphs) -> str:
    """The newest samples as a strip of `width` cells from 0 to 100."""
    return levels(columns(samples), width, glyphs)
