"""The connection of one verb to one box: opened when needed, used again while it lives, closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tui.verbs.terminal_asker import TerminalAsker
from tui.verbs.wiring import dialer

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.workers.box import BoxTransport


class Line:
    """Calling it gives the connection, a new one where the last is dead."""

    def __init__(self, instance: Instance, where: Paths) -> None:
        self._instance = instance
        self._connect = dialer(where, asker=TerminalAsker())
        self._open: BoxTransport | None = None

    async def __call__(self) -> BoxTransport:
        """Raises ConnectFailure."""
        if self._open is None or not await self._open.alive():
            await self.close()
            self._open = await self._connect(self._instance)
        return self._open

    async def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened.close()


@asynccontextmanager
async def line_to(instance: Instance, where: Paths) -> AsyncIterator[Line]:
    """A line that is closed with the block."""
    line = Line(instance, where)
    try:
        yield line
    finally:
        await line.close()
