"""The one piece of work that runs for a teardown; what stops it is told at the step where it stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tui.fleet.store import Store
from tui.model.event import Notice
from tui.model.failure import Failure
from tui.model.text import SafeText, safe
from tui.workers.teardown_board import Board

LEAVE_S = 3.0
"""What work gets to close its connections in when it is halted."""


class Work:
    """At most one thing at a time. It goes on when nobody looks.

    Attributes:
        watched: somebody looks on; else a notice says where it stands when it rests.
    """

    def __init__(self, board: Board, store: Store) -> None:
        self._board, self._store = board, store
        self._task: asyncio.Task[None] | None = None
        self.watched = True

    @property
    def busy(self) -> bool:
        """Whether something runs now."""
        return self._task is not None and not self._task.done()

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin; the board says so at once."""
        self._board.begin()
        self._task = asyncio.create_task(self._guarded(work))

    async def cancel(self) -> bool:
        """End what runs; False where nothing did."""
        task = self._task
        if task is None or task.done():
            return False
        task.cancel()
        await asyncio.wait([task], timeout=LEAVE_S)
        return True

    async def rest(self) -> bool:
        """Wait for what is at its end already; False where it holds on, such as to a disk that hangs."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=LEAVE_S)
        return not self.busy

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        box = self._board.view.box
        try:
            await work()
        except Failure as failure:
            await self._stopped(failure.line)
        except TimeoutError:
            await self._stopped(safe(f"{box} did not answer in time. Nothing is lost; go on."))
        except Exception as fault:  # noqa: BLE001 - told at its step; the other boxes are watched on
            await self._stopped(safe(f"An error of rgt's own: {type(fault).__name__}: {fault}", 300))
        await self._board.show(working=False)
        if not self.watched:
            view = self._board.view
            step = view.step(view.current)
            where = f"{view.current}: {step.brief}" if step else ""
            text = safe(f"The {view.verb} of {box} stands at {where}", 300)
            await self._store.put(Notice(text, "attention", box))

    async def _stopped(self, why: SafeText) -> None:
        view = self._board.view
        self._board.step(view.current, state="failed", progress=None, brief=why, observed=(why,))
        await self._board.show(problem=SafeText("") if view.steps else why)
