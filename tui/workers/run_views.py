"""What the views about launched runs ask for: the launch, the matrix, the handbook."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tui.box.transport import Transport
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import Command, LeaveMatrix, LookAtMatrix, ReadHandbook, WatchMatrix
from tui.model.event import HandbookRead
from tui.model.failure import Failure
from tui.model.handbook import HandbookView
from tui.workers.box import Dial
from tui.workers.handbook import handbook_of
from tui.workers.launch import Launching
from tui.workers.matrix import MatrixWatch


class RunViews:
    """Takes their commands to whoever carries them out.

    Args:
        dial: opens a connection of a launch's own.
        transport: the standing connection to a box.
        reload: makes the workers match a changed fleet file.
    """

    def __init__(
        self,
        store: Store,
        dial: Dial,
        where: Paths,
        transport: Callable[[str], Transport | None],
        reload: Callable[[], Awaitable[None]],
    ) -> None:
        self._store, self._where = store, where
        self._launching = Launching(store, dial, where, reload)
        self._matrix = MatrixWatch(store, where, transport)

    async def handle(self, command: Command) -> None:
        """Do what the operator asks. Raises Failure."""
        match command:
            case ReadHandbook(run):
                await self._store.put(HandbookRead(await asyncio.to_thread(self._page, run)))
            case WatchMatrix() | LookAtMatrix() | LeaveMatrix():
                await self._matrix.handle(command)
            case _:
                await self._launching.handle(command)

    def _page(self, run: str) -> HandbookView:
        try:
            return handbook_of(run, self._where)
        except Failure as failure:
            return HandbookView(run, launched=False, note=failure.line)

    async def close(self) -> None:
        """End what runs here."""
        await self._matrix.close()
        await self._launching.close()
