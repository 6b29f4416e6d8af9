"""The shared way into one box: the box worker opens it, the run workers wait for it."""

from __future__ import annotations

import asyncio

from tui.box.tail.desk import Desk
from tui.box.transport import Transport


class BoxLink:
    """At most one live transport, and the means to wait for one.

    Attributes:
        desk: shares the sessions of the live transport among the logs of the box.
    """

    def __init__(self) -> None:
        self._transport: Transport | None = None
        self.desk: Desk | None = None
        self._up = asyncio.Event()

    @property
    def current(self) -> Transport | None:
        """The live transport, or None."""
        return self._transport

    def up(self, transport: Transport) -> None:
        self._transport, self.desk = transport, Desk(transport)
        self._up.set()

    def down(self) -> None:
        self._transport = self.desk = None
        self._up.clear()

    async def live(self, *, after: Transport | None = None) -> Transport:
        """Wait for a live transport.

        Args:
            after: one the caller just lost; it is not handed out again even if the box worker has not
                noticed the loss yet.
        """
        while True:
            await self._up.wait()
            transport = self._transport
            if transport is not None and transport is not after:
                return transport
            await asyncio.sleep(0.05)
