"""Who of a box's logs is read over which channel: its own while sessions last, a shared one after that."""

from __future__ import annotations

import asyncio

from tui.box.tail.script import FOLLOW
from tui.box.tail.wire import Line, Remote
from tui.box.transport import Script, SessionsExhausted, Transport

OWN_CHANNELS = 3
"""Sessions that logs take on one connection: sshd allows 10, and the probe, searches, copies and shells need
theirs. A log on a mount that hangs holds up only those on its own channel, so there is more than one."""


class Desk:
    """Gives the logs of one connection their places.

    Where the server allows no further session (MaxSessions), a log takes a slot in a channel that another one
    opened. Bytes are asked for in turn there; nothing else is different.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lines: list[Line] = []
        self._most = OWN_CHANNELS
        self._opening = asyncio.Lock()

    async def seat(self, run: str, path: str, hold: str = "", *, alone: bool = False) -> Remote:
        """A place for one log.

        Args:
            alone: the log made the box fall silent before: it sits with nobody.

        Raises:
            LinkLost, TimeoutError: as the transport says.
            SessionsExhausted: no session is free, and no channel has room.
        """
        if alone:
            return (await self._opened(run)).seat(path, hold)
        async with self._opening:
            self._lines = [line for line in self._lines if not line.over]
            shared = min((line for line in self._lines if line.has_room), key=_seats, default=None)
            if shared is not None and len(self._lines) >= self._most:
                return shared.seat(path, hold)
            try:
                line = await self._opened(run)
            except SessionsExhausted:
                if shared is None or not shared.has_room:
                    raise
                self._most = len(self._lines)  # not to be refused again for every further log
                return shared.seat(path, hold)
            self._lines.append(line)
            return line.seat(path, hold)

    async def spare(self) -> None:
        """Give one session back to whoever found none free; the logs of that channel move to another."""
        async with self._opening:
            self._lines = [line for line in self._lines if not line.over]
            if len(self._lines) > 1:
                self._most = len(self._lines) - 1
                await self._lines.pop().close()

    async def _opened(self, run: str) -> Line:
        return Line(await self._transport.open(Script(FOLLOW, why=f"follow the log of {run}")))


def _seats(line: Line) -> int:
    return line.seats
