"""Keeps a vendor's rate limit, shared by everybody in this process who asks the same account."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

SHARED = 64
"""Accounts whose turns are remembered; the oldest is forgotten first."""


@dataclass(slots=True)
class Spacing:
    """At least so many seconds between two calls of a kind.

    A turn is taken before the wait, so that callers queue up without a lock, whatever loop they run in.

    Args:
        every_s: seconds by kind of call; ``*`` is every other kind.
    """

    every_s: Mapping[str, float]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _free: dict[str, float] = field(default_factory=dict)

    async def turn(self, kind: str) -> None:
        """Wait until a call of this kind may be made."""
        key = kind if kind in self.every_s else "*"
        now = self.clock()
        at = max(now, self._free.get(key, 0.0), self._free.get("", 0.0))
        self._free[key] = at + self.every_s.get(key, 0.0)
        if at > now:
            await self.sleep(at - now)

    def rest(self, seconds: float) -> None:
        """Nobody calls for this long: the vendor asked for it."""
        self._free[""] = max(self._free.get("", 0.0), self.clock() + seconds)


_SPACINGS: dict[tuple[str, str], Spacing] = {}


def shared(platform: str, account: str, every_s: Mapping[str, float]) -> Spacing:
    """The one spacing of an account in this process."""
    key = (platform, account)
    if key not in _SPACINGS:
        while len(_SPACINGS) >= SHARED:
            _SPACINGS.pop(next(iter(_SPACINGS)))
        _SPACINGS[key] = Spacing(every_s)
    return _SPACINGS[key]
