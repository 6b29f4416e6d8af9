"""How far a transfer is, how fast, and whether it still moves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

_OVER_S = 3.0
_BURST_S = 0.1
MOVES_BYTES = 1024
"""Fewer bytes than this within the time of a stall count as none: a link that drips is as good as dead."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One moment of a transfer.

    Attributes:
        done, total: bytes; `done` counts what was kept from before as well.
        kept: of those, bytes that were already here.
        rate: bytes per second over the network in the last three seconds; None before anything is known.
        eta_s: seconds to go at that rate; None when nothing moves.
        path: the file that moved last.
        silent_s: seconds since the last byte arrived.
        links: connections so far.
        note: what it is doing when it is not fetching, such as ``hashing what was kept``.
    """

    done: int
    total: int
    files: int
    files_total: int
    kept: int = 0
    rate: float | None = None
    eta_s: float | None = None
    path: str = ""
    silent_s: float = 0.0
    links: int = 1
    note: str = ""


OnProgress = Callable[[Progress], None]


class Meter:
    """Counts. Only the event loop's thread adds fetched bytes; threads may add kept ones."""

    def __init__(self, total: int, files_total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.files_total = total, files_total
        self.kept = self.fetched = self.files = 0
        self.links = 1
        self.path = ""
        self.note = ""
        self._clock = clock
        self._lock = threading.Lock()
        self._moved_at = clock()
        self._samples: deque[tuple[float, int]] = deque(maxlen=64)

    def arrived(self, count: int, path: str) -> None:
        self.fetched += count
        self.path = path
        self.note = ""
        self._moved_at = self._clock()

    def heard(self) -> None:
        """Something arrived; what it is worth is counted when it is hashed."""
        self._moved_at = self._clock()

    def keep(self, count: int) -> None:
        """Bytes from before that were proven (negative: given up). Any thread may say so."""
        with self._lock:
            self.kept += count

    def forget(self, count: int) -> None:
        """Bytes that were counted and have to be fetched again."""
        self.fetched -= count

    def snapshot(self) -> Progress:
        """The present moment; the rate needs to be asked a few times a second to be a rate."""
        now = self._clock()
        while len(self._samples) > 1 and now - self._samples[0][0] > _OVER_S:
            self._samples.popleft()
        self._samples.append((now, self.fetched))
        began, before = self._samples[0]
        took = now - began
        rate = max(0.0, (self.fetched - before) / took) if took > 0.05 else None
        done = min(self.total, self.kept + self.fetched)
        left = self.total - done
        return Progress(
            done,
            self.total,
            self.files,
            self.files_total,
            kept=self.kept,
            rate=rate,
            eta_s=left / rate if rate else (0.0 if not left else None),
            path=self.path,
            silent_s=now - self._moved_at,
            links=self.links,
            note=self.note,
        )


class Throttle:
    """Lets bytes pass at `per_second` at most; None: as fast as they come."""

    def __init__(self, per_second: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self._clock = clock
        self._free_at = clock()

    async def passed(self, count: int) -> None:
        """Wait until `count` bytes that have just come were allowed to come."""
        if self.per_second is None:
            return
        now = self._clock()
        self._free_at = max(self._free_at, now - _BURST_S) + count / self.per_second
        if self._free_at > now:
            await asyncio.sleep(self._free_at - now)


class StallWatch:
    """Says when too few bytes came for too long.

    Args:
        seconds: without `MOVES_BYTES` within this time the stream has stalled.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._since = clock()
        self._count = 0

    def moved(self, count: int) -> None:
        self._count += count
        if self._count >= MOVES_BYTES:
            self._count = 0
            self._since = self._clock()

    def pause(self, seconds: float) -> None:
        """Time that we ourselves did not read."""
        self._since += seconds

    @property
    def left(self) -> float:
        """Seconds until it counts as stalled."""
        return self._since + self._seconds - self._clock()
