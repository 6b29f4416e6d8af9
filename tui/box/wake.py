"""Notices that this computer slept.

Timers run on a clock that stands still while a laptop sleeps, so after waking a dead link would look alive
for another keep-alive period. The wall clock does not stand still: when it runs ahead, we slept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class SleepDetector:
    """Compares two clocks. A wall clock set by hand looks the same and costs one needless check.

    Args:
        threshold: seconds of difference that count as sleep.
    """

    def __init__(
        self,
        *,
        threshold: float = 5.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threshold = threshold
        self._wall, self._monotonic = wall, monotonic
        self._last = wall() - monotonic()

    def slept(self) -> float | None:
        """Seconds slept since the last call, or None."""
        now = self._wall() - self._monotonic()
        jump, self._last = now - self._last, now
        return jump if jump > self._threshold else None


async def watch(
    on_wake: Callable[[float], Awaitable[None]], detector: SleepDetector | None = None, interval: float = 1.0
) -> None:
    """Call `on_wake` with the seconds slept after every sleep, until cancelled."""
    detector = detector or SleepDetector()
    while True:
        await asyncio.sleep(interval)
        slept = detector.slept()
        if slept is not None:
            await on_wake(slept)
