"""How long a teardown waits, and work that survives a link which is lost for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from tui.box.errors import ConnectFailure
from tui.box.transport import LinkLost, SessionsExhausted
from tui.custody.outcome import Pace
from tui.model.failure import Failure
from tui.model.text import SafeText, safe

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How a teardown waits.

    Attributes:
        pauses: seconds before each further try after a lost link.
        in_box_s: what a box is given to act on a command before it is looked at again.
        pace: how the control plane is watched; by default as befits it.
    """

    pauses: tuple[float, ...] = (2.0, 5.0, 10.0, 20.0, 30.0)
    in_box_s: float = 8.0
    pace: Pace | None = None

    async def over(self, work: Callable[[], Awaitable[T]], told: Callable[[SafeText], Awaitable[None]]) -> T:
        """Do work again after each pause while the link is lost.

        Args:
            told: hears why it waits, and how long.

        Raises:
            Failure, TimeoutError: what the last try failed with; a login that was refused is not tried again.
        """
        for pause in (*self.pauses, None):
            try:
                return await work()
            except (LinkLost, SessionsExhausted, ConnectFailure, TimeoutError) as lost:
                if pause is None or (isinstance(lost, ConnectFailure) and not lost.retry):
                    raise
                why = lost.what if isinstance(lost, Failure) else "No answer in time."
                await told(safe(f"{why} Trying again in {pause:.0f} s.", 200))
                await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")
