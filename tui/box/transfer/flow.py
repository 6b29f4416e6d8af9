"""Moves one stream after another from the network into threads that hash, write and sync.

The event loop only moves blocks; the threads are a few megabytes behind the network at most.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tui.box.transfer.meter import Meter, StallWatch, Throttle
from tui.box.transport import Channel, LinkLost

T = TypeVar("T")

_READ = 1 << 20
_BATCH = 4 << 20
_SOON_S = 0.1


class Flow:
    """The threads of one transfer, and what its streams have in common.

    Args:
        meter: told that something is heard; what it was worth is counted by who takes the bytes.
        cap: bytes per second at most, over all streams.
        stall_s: seconds with next to no bytes after which a stream is as good as lost.

    Attributes:
        stop: set once nobody waits for what a thread does; long work in a thread looks at it.
    """

    def __init__(self, meter: Meter, cap: int | None, stall_s: float) -> None:
        self._meter, self._throttle, self._stall_s = meter, Throttle(cap), stall_s
        self._pool = ThreadPoolExecutor(5, thread_name_prefix="pull")
        self.stop = threading.Event()

    async def move(
        self,
        channel: Channel,
        put: Callable[[list[bytes]], None],
        count: Callable[[], None],
        enough: Callable[[], bool],
    ) -> None:
        """Move a stream into `put`, which runs in a thread while the next bytes come. Raises LinkLost.

        Args:
            count: called in the event loop after every `put`, to count what became of the bytes.
            enough: asked after every `put`; the stream is left when it says so.
        """
        watch = StallWatch(self._stall_s)
        batch: list[bytes] = []
        held = 0
        sent = time.monotonic()
        pending: asyncio.Future[None] | None = None
        try:
            while block := await _read(channel, watch):
                watch.moved(len(block))
                self._meter.heard()
                began = time.monotonic()
                await self._throttle.passed(len(block))
                batch.append(block)
                held += len(block)
                idle = pending is None or pending.done()
                if held >= _BATCH or (idle and (held >= _READ or began - sent > _SOON_S)):
                    if pending is not None:
                        await asyncio.shield(pending)
                        count()
                        if enough():
                            return
                    pending, batch, held, sent = self._submit(put, batch), [], 0, began
                watch.pause(time.monotonic() - began)
        finally:
            if pending is not None:
                await self._settled(pending)
            if batch and (pending is None or pending.exception() is None):
                await self.thread(put, batch)
            count()
        if pending is not None:
            pending.result()

    async def thread(self, work: Callable[..., T], *args: object) -> T:
        """Run blocking work in a thread, and wait for its end even when cancelled."""
        future = asyncio.get_running_loop().run_in_executor(self._pool, work, *args)
        await self._settled(future)
        return future.result()

    async def close(self) -> None:
        """Wait for the threads; they look at `stop`."""
        self.stop.set()
        await asyncio.to_thread(self._pool.shutdown)

    def _submit(self, put: Callable[[list[bytes]], None], batch: list[bytes]) -> asyncio.Future[None]:
        return asyncio.get_running_loop().run_in_executor(self._pool, put, batch)

    async def _settled(self, future: asyncio.Future[T]) -> None:
        """Wait for a thread even while being cancelled: it holds files that are closed next."""
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            self.stop.set()
            await asyncio.wait({future})
            if not future.cancelled():
                future.exception()
            raise


class Stalled(LinkLost):
    """Too few bytes for too long: as good as lost, and handled alike."""


async def _read(channel: Channel, watch: StallWatch) -> bytes:
    try:
        async with asyncio.timeout(max(0.01, watch.left)):
            return await channel.read(_READ)
    except TimeoutError:
        raise Stalled("Nothing arrived for a while, and the link did not say that it was lost.") from None
