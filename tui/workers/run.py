"""The background worker of one run: follows its log through cuts, keeps its spool, reads its progress."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

from tui.box.tail.follower import Follower
from tui.box.tail.spool import Spool
from tui.box.transport import LinkLost, SessionsExhausted, Transport
from tui.fleet.store import Store
from tui.model.command import CancelSearch, LoadOlder, SearchLog
from tui.model.event import LogRead, LogStateChanged, Notice, OlderLoaded, ProgressRead, Searched, WatchHeld
from tui.model.log import LogBatch, LogState, SearchResult
from tui.model.run import RunSpec
from tui.model.text import SafeText
from tui.triage.progress import ProgressReader
from tui.workers.link import BoxLink
from tui.workers.lock import WatchLock

RETRY_S = 1.0


class RunWorker:
    """The worker of one run.

    Args:
        link: the box's shared link.
        spool: directory of this run's spool.
        lock: the claim on this run; who does not get it watches without keeping a spool.
    """

    def __init__(self, spec: RunSpec, link: BoxLink, store: Store, *, spool: Path, lock: WatchLock) -> None:
        self.spec = spec
        self._link = link
        self._store = store
        self._spool_dir = spool
        self._lock = lock
        self._follower: Follower | None = None
        self._progress = ProgressReader(spec.progress_regex)
        self._searching: asyncio.Task[None] | None = None
        self._state = LogState(spec.name, SafeText(""))

    async def run(self) -> None:
        """Follow the log until cancelled."""
        holder = self._lock.claim()
        try:
            await self._store.put(WatchHeld(self.spec.name, holder))
            if self.spec.log is None:
                self._say(LogState(self.spec.name, SafeText("no log named")))
                await asyncio.Event().wait()
                return
            with contextlib.ExitStack() as stack:
                spool = self._open_spool(stack, ours=holder is None)
                self._follower = Follower(self.spec.name, self.spec.log, spool, clock=self._store.clock)
                await self._follow(self._follower)
        finally:
            if self._searching is not None:
                self._searching.cancel()
            self._follower = None
            self._lock.release()

    def _open_spool(self, stack: contextlib.ExitStack, *, ours: bool) -> Spool:
        """Our own spool, or a passing one: two writers in one spool would double lines."""
        folder = self._spool_dir
        if not ours:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rgt-spool-")))
        return stack.enter_context(contextlib.closing(Spool(folder)))

    async def _follow(self, follower: Follower) -> None:
        lost: Transport | None = None
        while True:
            transport = await self._link.live(after=lost)
            try:
                await follower.follow(transport, self._emit, self._say)
            except LinkLost as broken:
                lost = transport
                self._say(LogState(self.spec.name, SafeText("link lost"), broken.line))
            except (SessionsExhausted, TimeoutError) as refused:
                detail = (
                    refused.line if isinstance(refused, SessionsExhausted) else SafeText("no answer in time")
                )
                self._say(LogState(self.spec.name, SafeText("log not open"), detail))
                await asyncio.sleep(RETRY_S)

    async def _emit(self, batch: LogBatch) -> None:
        await self._store.put(LogRead(batch))
        progress = self._progress.feed((*batch.lines, batch.partial), batch.at)
        if progress is not None:
            await self._store.put(ProgressRead(self.spec.name, progress))

    def _say(self, state: LogState) -> None:
        if state != self._state and self._store.offer(LogStateChanged(state)):
            self._state = state

    async def handle(self, command: SearchLog | CancelSearch | LoadOlder) -> None:
        """Carry out what the log view asked for."""
        follower = self._follower
        if self._searching is not None:
            self._searching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._searching
            self._searching = None
        if follower is None:
            return
        if isinstance(command, LoadOlder):
            batch = await follower.load_older(command.before, command.count)
            await self._store.put(OlderLoaded(batch))
        elif isinstance(command, SearchLog):
            self._searching = asyncio.create_task(self._search(follower, command))

    async def _search(self, follower: Follower, command: SearchLog) -> None:
        def found(result: SearchResult) -> None:
            self._store.offer(Searched(result))

        try:
            found(await follower.search(self._link.current, command, found))
        except LinkLost as lost:
            self._store.offer(Notice(lost.line, "attention", self.spec.box))
