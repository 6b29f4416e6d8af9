"""Asks about the cells of a queue while somebody looks: one question a box, over the link that stands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tui.box.transport import Transport
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import Command, LeaveMatrix, LookAtMatrix, WatchMatrix
from tui.model.event import MatrixChanged
from tui.model.failure import Failure
from tui.model.queue import CellView, MatrixView
from tui.model.text import SafeText, safe
from tui.runs import queue
from tui.runs.matrix import Row, Verdicts, counts
from tui.runs.queue import Seen
from tui.runs.queue_book import QueuePage, Share, queue_book
from tui.workers.matrix_once import Asked, ask_all, held_of, page_of, table

EVERY_S = 30.0


class MatrixWatch:
    """The one queue that is looked at.

    Args:
        transport: the standing connection to a box; None: there is none now.
        every_s: between two questions.
    """

    def __init__(
        self,
        store: Store,
        where: Paths,
        transport: Callable[[str], Transport | None],
        *,
        clock: Callable[[], float] = time.time,
        every_s: float = EVERY_S,
    ) -> None:
        self._store, self._where, self._transport = store, where, transport
        self._clock, self._every_s = clock, every_s
        self._work: asyncio.Task[None] | None = None
        self._now = asyncio.Event()
        self._view = MatrixView()
        self._held: tuple[object, Mapping[str, Verdicts]] = (None, {})

    async def handle(self, command: Command) -> None:
        """Do what the operator asks."""
        match command:
            case WatchMatrix(name):
                await self.close()
                self._now.clear()
                self._work = asyncio.create_task(self._watch(name))
            case LookAtMatrix():
                self._now.set()
            case LeaveMatrix():
                await self.close()
            case _:
                raise TypeError(command)

    async def close(self) -> None:
        """Ask no more."""
        work, self._work = self._work, None
        if work is not None and not work.done():
            work.cancel()
            await asyncio.wait([work])

    async def _watch(self, name: str) -> None:
        while True:
            try:
                await self._look(name)
            except Failure as failure:
                self._view = MatrixView(problem=failure.line)
            except Exception as fault:  # noqa: BLE001 - told in the view; the watch goes on
                text = safe(f"An error of rgt's own: {type(fault).__name__}: {fault}", 300)
                self._view = replace(self._view, problem=text)
            await self._show(asking=False)
            try:
                async with asyncio.timeout(self._every_s):
                    await self._now.wait()
            except TimeoutError:
                pass
            self._now.clear()

    async def _look(self, name: str) -> None:
        """Ask every box that has a part, and look into the ledger."""
        page = await asyncio.to_thread(page_of, name or None, self._where)
        others = await asyncio.to_thread(queue_book(self._where).names)
        if self._view.queue != page.queue:
            self._view = await asyncio.to_thread(_unasked, page)
        await self._show(
            asking=True, problem=SafeText(""), others=tuple(safe(n, 100) for n in others if n != page.queue)
        )
        answers = await ask_all(page, self._ask)
        held = await asyncio.to_thread(self._verdicts)
        self._view = await asyncio.to_thread(_drawn, self._view, page, answers, held, self._clock())

    async def _ask(self, share: Share) -> Sequence[Seen]:
        transport = self._transport(share.box)
        if transport is None:
            box = self._store.snapshot.box(share.box)
            raise Failure(
                f"The link to it: {box.link.state.value}." if box else "It is not in the fleet file."
            )
        return await queue.read(transport, share.claims, share.folders)

    def _verdicts(self) -> dict[str, Verdicts]:
        """The ledger's word; read again only when something was added."""
        stamp = _stamp(self._where.receipts)
        if stamp is None or stamp != self._held[0]:
            self._held = (stamp, held_of(self._where))
        return dict(self._held[1])

    async def _show(self, **changes: object) -> None:
        self._view = replace(self._view, **changes)  # type: ignore[arg-type]
        await self._store.put(MatrixChanged(self._view))


def _stamp(folder: Path) -> object:
    try:
        found = (folder / "head.json").stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _unasked(page: QueuePage) -> MatrixView:
    """The cells before any box has answered."""
    view = _drawn(MatrixView(), page, {}, {}, 0.0)
    why = safe("Its box is being asked.")
    cells = tuple(replace(one, state="?", why=why, accepted=None, evaluated=None) for one in view.cells)
    return replace(view, cells=cells, counts=(), at=None)


def _drawn(
    view: MatrixView, page: QueuePage, answers: dict[str, Asked], held: dict[str, Verdicts], at: float
) -> MatrixView:
    found = table(page, answers, held)
    names = list(next(iter(page.values.values()), {}))
    return replace(
        view,
        queue=safe(page.queue, 100),
        names=tuple(safe(name, 40) for name in names),
        cells=tuple(_cell(row, names) for row in found),
        counts=tuple(counts(found).items()),
        silent=tuple((safe(box, 80), safe(why, 200)) for box, (_, why) in answers.items() if why),
        at=at,
    )


def _cell(row: Row, names: Sequence[str]) -> CellView:
    return CellView(
        name=safe(row.name, 120),
        values=tuple(safe(row.values.get(name, ""), 60) for name in names),
        box=safe(row.box, 80),
        state=row.state,
        why=row.why,
        attempt=row.attempt,
        sealed=row.sealed,
        accepted=row.accepted,
        evaluated=row.evaluated,
        by=row.by,
    )
