"""The meeting point of workers and screens: bounded queues in, one frozen snapshot out.

Workers wait when the store is full, which stops their reading and so holds the box back. Telemetry
coalesces (the latest wins, what it replaced is counted). Log lines are never dropped here: each run has
its own short queue, so that one chatty run neither starves nor delays another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tui.fleet.logbuffer import LogBuffer
from tui.fleet.reducer import Rules, reduce
from tui.model.command import Command
from tui.model.event import Event, LogRead, OlderLoaded, TelemetryTaken
from tui.model.log import LogBatch
from tui.model.snapshot import FleetSnapshot

Publish: TypeAlias = Callable[[FleetSnapshot, frozenset[str]], None]

EVENTS = 512
BATCHES_A_RUN = 8
COMMANDS = 256
JUDGED_S = 1.0
"""How often every box is judged again for the time that passed; between, only what something came in of."""


class Store:
    """Holds the snapshot and the log buffers.

    Args:
        clock: seconds since the epoch; injected so that tests and pictures are exact.
        frame_s: the shortest time between two publications.
        rules: thresholds and probe period the judgement uses.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        frame_s: float = 0.1,
        rules: Rules = Rules(),  # noqa: B008 - frozen
    ) -> None:
        self.clock = clock
        self.frame_s = frame_s
        self.rules = rules
        self.commands: asyncio.Queue[Command] = asyncio.Queue(COMMANDS)
        self._snapshot = FleetSnapshot()
        self._buffers: dict[str, LogBuffer] = {}
        self._events: asyncio.Queue[Event] = asyncio.Queue(EVENTS)
        self._batches: dict[str, asyncio.Queue[LogBatch]] = {}
        self._telemetry: dict[str, TelemetryTaken] = {}
        self._ready = asyncio.Event()
        self._judged_at = float("-inf")

    @property
    def snapshot(self) -> FleetSnapshot:
        return self._snapshot

    def log(self, run: str) -> LogBuffer:
        """The log buffer of a run; an empty one for a run not heard of yet."""
        return self._buffers.setdefault(run, LogBuffer())

    async def put(self, event: Event) -> None:
        """Hand in one event; waits while the store is full."""
        if isinstance(event, TelemetryTaken):
            if event.box in self._telemetry:
                self._snapshot = replace(self._snapshot, dropped=self._snapshot.dropped + 1)
            self._telemetry[event.box] = event
        elif isinstance(event, LogRead):
            queue = self._batches.setdefault(event.batch.run, asyncio.Queue(BATCHES_A_RUN))
            self._ready.set()
            await queue.put(event.batch)
        else:
            self._ready.set()
            await self._events.put(event)
        self._ready.set()

    def offer(self, event: Event) -> bool:
        """Hand in a small event from code that cannot wait; False when the store is full."""
        try:
            self._events.put_nowait(event)
        except asyncio.QueueFull:
            return False
        self._ready.set()
        return True

    def send(self, command: Command) -> bool:
        """Ask the workers for something; False when too much is already waiting to be done."""
        try:
            self.commands.put_nowait(command)
        except asyncio.QueueFull:
            return False
        return True

    def fold(self) -> frozenset[str]:
        """Fold everything that waits into the snapshot.

        Returns:
            The runs whose log buffer changed.
        """
        events: list[Event] = []
        touched = set()
        while not self._events.empty():
            event = self._events.get_nowait()
            if isinstance(event, OlderLoaded):
                self.log(event.batch.run).prepend(event.batch)
                touched.add(event.batch.run)
            else:
                events.append(event)
        pending, self._telemetry = self._telemetry, {}
        events += pending.values()
        for run, queue in self._batches.items():
            while not queue.empty():
                self.log(run).append(queue.get_nowait())
                touched.add(run)
        now = self.clock()
        whole = not 0 <= now - self._judged_at < JUDGED_S
        if whole:
            self._judged_at = now
        self._snapshot = reduce(self._snapshot, events, now, self.rules, whole=whole)
        return frozenset(touched)

    async def pump(self, publish: Publish) -> None:
        """Publish changes for ever, at most once a frame, and once a second what only time changed."""
        published = -1
        while True:
            try:
                async with asyncio.timeout(1.0):  # Python 3.11's wait_for can lose a cancellation here
                    await self._ready.wait()
            except TimeoutError:
                pass  # nothing came in: time itself may have made something stale
            self._ready.clear()
            runs = self.fold()
            if runs or self._snapshot.version != published:
                published = self._snapshot.version
                publish(self._snapshot, runs)
            await asyncio.sleep(self.frame_s)
