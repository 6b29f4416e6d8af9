"""When to try a box again: full jitter, doubling, and no storm when many boxes vanish at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from tui.model.failure import Failure


class Backoff:
    """The pauses of one box.

    Args:
        base, cap: the first and the longest pause in seconds; each is drawn evenly from 0 up to a ceiling
            that doubles with every failure (full jitter: boxes lost in one moment do not return in one).
        healthy_after: seconds a connection has to live before the next loss starts at `base` again, so that a
            server that lets us in and drops us at once is not hammered.
        draw: a number in [0, 1).
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        base: float = 1.0,
        cap: float = 60.0,
        healthy_after: float = 60.0,
        draw: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base, self._cap, self._healthy_after = base, cap, healthy_after
        self._draw, self._clock = draw, clock
        self._connected_at: float | None = None
        self.attempts = 0

    def connected(self) -> None:
        """A connection stands. It only clears the failures once it has proven healthy."""
        self._connected_at = self._clock()

    def failed(self, failure: Failure | None = None) -> float | None:
        """An attempt failed, or a connection was lost.

        Returns:
            Seconds until the next attempt; None when only the operator can change anything.
        """
        if self._connected_at is not None and self._clock() - self._connected_at >= self._healthy_after:
            self.attempts = 0
        self._connected_at = None
        self.attempts += 1
        if not getattr(failure, "retry", True):
            return None
        ceiling = min(self._cap, self._base * 2.0 ** min(self.attempts - 1, 32))
        return self._draw() * ceiling

    def reset(self) -> None:
        """The operator asked for an attempt now: forget the past."""
        self.attempts = 0
        self._connected_at = None
