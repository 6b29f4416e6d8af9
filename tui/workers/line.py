"""The connection of one errand to one box: opened when needed, used while it lives, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tui.model.instance import Instance
from tui.workers.box import BoxTransport, Dial


class Line:
    """Calling it gives the connection, a new one where the last is dead."""

    def __init__(self, instance: Instance, dial: Dial) -> None:
        self._instance = instance
        self._dial = dial
        self._open: BoxTransport | None = None

    async def __call__(self) -> BoxTransport:
        """Raises ConnectFailure."""
        if self._open is None or not await self._open.alive():
            await self.close()
            self._open = await self._dial(self._instance)
        return self._open

    async def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.close()


@asynccontextmanager
async def line_of(instance: Instance, dial: Dial) -> AsyncIterator[Line]:
    """A line that is closed with the block."""
    line = Line(instance, dial)
    try:
        yield line
    finally:
        await line.close()
