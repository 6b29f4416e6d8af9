"""How often a checkpoint should be saved."""

from __future__ import annotations

import math


def daly(save_s: float, failures_s: float) -> float:
    """The interval between saves that wastes the least time.

    Young (1974): √(2 δ M). Daly (2006) adds the higher orders, √(2 δ M)·(1 + ⅓√(δ/2M) + δ/18M) − δ, good
    while a save takes less than twice the mean time between failures; beyond that it is that time itself.

    Args:
        save_s: δ, seconds a save takes.
        failures_s: M, mean seconds between failures.
    """
    if save_s >= 2 * failures_s:
        return failures_s
    ratio = save_s / (2 * failures_s)
    young = math.sqrt(2 * save_s * failures_s)
    return young * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save_s
