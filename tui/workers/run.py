"""The background worker of one run: follows its log through cuts, keeps its spool, reads its progress."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from pathlib import Path

from tui.box.tail.follower import Follower
from tui.box.tail.spool import Spool
from tui.box.transport import LinkLost, Transport
from tui.fleet.store import Store
from tui.model.command import CancelSearch, LoadOlder, SearchLog
from tui.model.event import LogRead, LogStateChanged, Notice, OlderLoaded, ProgressRead, Searched, WatchHeld
from tui.model.failure import Failure
from tui.model.log import LogBatch, LogState, SearchResult
from tui.model.run import RunSpec
from tui.model.text import SafeText, safe
from tui.triage.progress import ProgressReader
from tui.workers.link import BoxLink
from tui.workers.lock import WatchLock

RETRY_S = 1.0
TURN_S = 3.0


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
        ours, holder = await self._claim()
        turn = asyncio.create_task(self._await_turn()) if holder is not None else None
        try:
            await self._store.put(WatchHeld(self.spec.name, holder))
            if self.spec.log is None:
                self._say(LogState(self.spec.name, SafeText("no log named")))
                await asyncio.Event().wait()
                return
            with contextlib.ExitStack() as stack:
                spool = self._open_spool(stack, ours=ours)
                self._follower = Follower(self.spec.name, self.spec.log, spool, clock=self._store.clock)
                await self._follow(self._follower)
        finally:
            for task in (turn, self._searching):
                if task is not None:
                    task.cancel()
            self._follower = None
            self._lock.release()

    async def _claim(self) -> tuple[bool, SafeText | None]:
        """Whether the run is ours to keep a spool of, and who holds it else."""
        try:
            holder = self._lock.claim()
        except OSError as error:  # a home that is full or read-only must not end the watch
            text = f"{self.spec.name} is watched without a lock and nothing of it is kept: {error.strerror}."
            await self._store.put(Notice(safe(text), "attention", self.spec.box))
            return False, None
        return holder is None, holder

    async def _await_turn(self) -> None:
        """The other watcher may leave: then this one is the watcher, and nobody is named who is gone."""
        with contextlib.suppress(OSError):
            while self._lock.claim() is not None:  # noqa: ASYNC110 - the kernel tells nobody of a free lock
                await asyncio.sleep(TURN_S)
            await self._store.put(WatchHeld(self.spec.name, None))

    def _open_spool(self, stack: contextlib.ExitStack, *, ours: bool) -> Spool:
        """Our own spool, or a passing one: two writers in one spool would double lines."""
        folder = self._spool_dir
        if not ours:
            folder = folder / f"passing-{os.getpid()}"  # where there is no temporary one either
            with contextlib.suppress(OSError):
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rgt-spool-")))
        return stack.enter_context(contextlib.closing(Spool(folder)))

    async def _follow(self, follower: Follower) -> None:
        lost: Transport | None = None
        while True:
            transport = await self._link.live(after=lost)
            try:
                await follower.follow(transport, self._emit, self._say, desk=self._link.desk)
            except LinkLost as broken:
                lost = transport
                self._say(LogState(self.spec.name, SafeText("link lost"), broken.line))
            except (Failure, TimeoutError) as refused:
                self._say(LogState(self.spec.name, SafeText("log not open"), _words(refused)))
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
        if isinstance(command, LoadOlder):
            if follower is not None:
                batch = await follower.load_older(command.before, command.count)
                await self._store.put(OlderLoaded(batch))
            return
        await self._end_search()
        if isinstance(command, SearchLog) and follower is not None:
            self._searching = asyncio.create_task(self._search(follower, command))

    async def _end_search(self) -> None:
        if self._searching is not None:
            self._searching.cancel()
            await asyncio.wait([self._searching])
            self._searching = None

    async def _search(self, follower: Follower, command: SearchLog) -> None:
        def found(result: SearchResult) -> None:
            self._store.offer(Searched(result))

        try:
            found(await follower.search(self._link.current, command, found))
        except (Failure, TimeoutError, OSError) as broken:
            text = safe(f"The search in {self.spec.name} broke off: {_words(broken)}")
            self._store.offer(Notice(text, "attention", self.spec.box))


def _words(error: Failure | TimeoutError | OSError) -> SafeText:
    if isinstance(error, Failure):
        return error.line
    return SafeText("no answer in time") if isinstance(error, TimeoutError) else safe(str(error.strerror))
