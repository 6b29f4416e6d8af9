"""All teardowns of one `rgt`, and what was begun here and is not settled yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tui.custody.leftovers import Decision
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.ending import (
    ChooseDestination,
    ChooseReader,
    DecideLeftovers,
    Ending,
    GivePhrase,
    GiveWord,
    GoOnOver,
    HaltTeardown,
    LeaveTeardown,
    RedoStep,
    StartTeardown,
)
from tui.model.event import OpenEndsRead, TeardownChanged
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.workers.box import Dial
from tui.workers.open_ends import destroyed, open_ends
from tui.workers.patience import Patience
from tui.workers.teardown import Teardown


class Teardowns:
    """At most one teardown a box.

    Args:
        dial: opens a connection of a teardown's own; the one that watches may be old.
    """

    def __init__(
        self,
        store: Store,
        dial: Dial,
        where: Paths,
        *,
        clock: Callable[[], float] = time.time,
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        self._store, self._dial, self._where = store, dial, where
        self._clock, self._patience = clock, patience
        self._open: dict[str, Teardown] = {}

    async def handle(self, command: Ending) -> None:
        """Do what the operator asks. Raises Failure."""
        if isinstance(command, StartTeardown):
            await self._start(command)
            return
        teardown = self._open.get(command.box)
        if teardown is None:
            if isinstance(command, LeaveTeardown):
                return
            raise Failure(f"No teardown of {command.box} is open.", do="D opens it.")
        match command:
            case LeaveTeardown():
                await self._leave(command.box, teardown)
            case HaltTeardown():
                await teardown.halt()
            case DecideLeftovers(_, groups, word, reason):
                await teardown.decide(groups, Decision(word, reason))
            case ChooseDestination(_, text):
                await teardown.choose(text)
            case ChooseReader(_, text):
                await teardown.choose_reader(text)
            case GoOnOver(_, step, reason):
                await teardown.go_on_over(step, reason)
            case RedoStep(_, step):
                await teardown.redo(step)
            case GivePhrase(_, typed, proof):
                await teardown.approve(typed, proof)
            case GiveWord(_, word):
                await teardown.say(word)

    async def _start(self, command: StartTeardown) -> None:
        there = self._open.get(command.box)
        if there is not None and (there.verb, there.view.run) != (command.verb, command.run):
            if there.busy:
                raise Failure(
                    f"A {there.verb} of {command.box} is at work.",
                    means="Nothing was begun.",
                    do="Halt it first.",
                )
            await there.close()
            there = None
        if there is None:
            there = self._open[command.box] = Teardown(
                self._store,
                self._dial,
                self._where,
                self._instance(command.box),
                command.run,
                command.verb,
                clock=self._clock,
                patience=self._patience,
                changed=self.read_open_ends,
            )
        await there.open()

    def _instance(self, box: str) -> Instance:
        for one in settings.load(self._where.fleet_file).instances:
            if one.name == box:
                return one
        raise Failure(f"No box is named {box} in {self._where.fleet_file}.")

    async def _leave(self, box: str, teardown: Teardown) -> None:
        """Work goes on; what only waits is on disk and needs nobody."""
        teardown.watched = False
        if not teardown.busy:
            await teardown.close()
            del self._open[box]
            await self._store.put(TeardownChanged(box, None))

    async def read_open_ends(self) -> None:
        """Tell what was begun and is not settled. Raises Failure: a journal is damaged."""
        ends = await asyncio.to_thread(open_ends, self._where)
        ended = await asyncio.to_thread(destroyed, self._where)
        shown = self._store.snapshot
        if (ends, ended) != (shown.open_ends, shown.ended):
            await self._store.put(OpenEndsRead(ends, ended))

    async def close(self) -> None:
        """End all work; it goes on from disk the next time."""
        open_, self._open = list(self._open.values()), {}
        await asyncio.gather(*(one.close() for one in open_))
