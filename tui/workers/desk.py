"""Hands commands to those who carry out more than a look: each is loaded when it is first asked for.

What they import costs up to 150 ms and 13 MB each, so it is loaded late and in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tui.box.transport import Transport
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import Command, Guided, Launched, ReclaimStorage
from tui.model.ending import Ending
from tui.model.event import Notice
from tui.model.failure import Failure
from tui.workers.box import Dial

if TYPE_CHECKING:
    from tui.workers.reclaim import Reclaims
    from tui.workers.run_views import RunViews
    from tui.workers.teardowns import Teardowns

H = TypeVar("H")


class Handler(Protocol):
    """Something that takes commands until it is closed."""

    async def handle(self, command: Command) -> None: ...

    async def close(self) -> None: ...


NewSetup = Callable[[Callable[[], Awaitable[None]]], Handler]
"""Makes the guided setup; it is given what makes the workers match a changed fleet file."""


class Desk:
    """Who ends boxes, sets them up, launches on them and makes room there.

    Args:
        dial: opens a connection of their own.
        transport: the standing connection to a box.
        reload: makes the workers match a changed fleet file.
        new_setup: makes the guided setup; None: there is none.
    """

    def __init__(
        self,
        store: Store,
        dial: Dial,
        where: Paths,
        *,
        transport: Callable[[str], Transport | None],
        reload: Callable[[], Awaitable[None]],
        new_setup: NewSetup | None = None,
    ) -> None:
        self._store, self._dial, self._where = store, dial, where
        self._transport, self._reload = transport, reload
        self._new_setup = new_setup
        self._made: dict[str, Any] = {}
        self._making = asyncio.Lock()

    async def handle(self, command: Ending | Guided | Launched | ReclaimStorage) -> None:
        """Do what the operator asks. Raises Failure."""
        if isinstance(command, Ending):
            await (await self._one(self._ends)).handle(command)
        elif isinstance(command, Guided):
            await (await self._one(self._guide)).handle(command)
        elif isinstance(command, Launched):
            await (await self._one(self._run_views)).handle(command)
        else:
            await (await self._one(self._reclaims)).handle(command)

    async def read_open_ends(self) -> None:
        """Say from the start what was begun and nobody saw end: it may still bill."""
        if not any((self._where.state / "teardown").glob("*.jsonl")):
            return
        try:
            await (await self._one(self._ends)).read_open_ends()
        except Failure as failure:
            await self._store.put(Notice(failure.line, "danger"))

    async def close(self) -> None:
        """End what runs here; what is kept stays kept."""
        for made in self._made.values():
            await made.close()

    async def _one(self, new: Callable[[], H]) -> H:
        """The one that `new` makes, which is made once."""
        name = new.__name__
        async with self._making:  # what is begun at the start and what the operator asks may meet here
            if name not in self._made:
                self._made[name] = await asyncio.to_thread(new)
        made: H = self._made[name]
        return made

    def _ends(self) -> Teardowns:
        from tui.workers.teardowns import Teardowns

        return Teardowns(self._store, self._dial, self._where)

    def _guide(self) -> Handler:
        if self._new_setup is None:
            raise Failure("There is no guided setup here.")
        return self._new_setup(self._reload)

    def _run_views(self) -> RunViews:
        from tui.workers.run_views import RunViews

        return RunViews(self._store, self._dial, self._where, self._transport, self._reload)

    def _reclaims(self) -> Reclaims:
        from tui.workers.reclaim import Reclaims

        return Reclaims(self._store, self._dial, self._where)
