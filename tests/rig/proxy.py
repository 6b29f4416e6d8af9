"""A TCP proxy in front of a server that breaks the link on purpose, one way or the other.

All byte counts are of what comes from the server, per connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_BLOCK = 64 << 10


@dataclass(slots=True)
class Faults:
    """What happens to connections made from now on.

    Attributes:
        cut_after: reset the connection after this many bytes; asked anew for each connection.
        flip_at: flip one bit of the byte at this place.
        silent_after: from here on nothing passes, in either direction, and nobody is told: half-open.
        rtt: seconds that a round trip takes longer; each direction is delayed by half of it.
        rate: bytes per second at most.
        stall: seconds that a block waits, and all behind it, asked anew for each: what a lost segment and its
            retransmission look like above TCP.
        refuse: connections that are closed at once, counted down.
    """

    cut_after: Callable[[], int | None] = lambda: None
    flip_at: int | None = None
    silent_after: int | None = None
    rtt: float = 0.0
    rate: float | None = None
    stall: Callable[[], float] = lambda: 0.0
    refuse: int = 0


@dataclass(slots=True)
class Proxy:
    """A running proxy.

    Attributes:
        faults: may be changed at any time; rates and delays act at once.
        connections: how many were made.
        passed: bytes that came from the server, of all connections together.
    """

    port: int
    faults: Faults
    connections: int = 0
    passed: int = 0
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """Reset every connection now."""
        for writer in list(self.writers):
            _reset(writer)


@asynccontextmanager
async def proxy(host: str, port: int, faults: Faults | None = None) -> AsyncIterator[Proxy]:
    """A proxy to `host`:`port` on a free loopback port, ended with the block."""
    state = Proxy(0, faults or Faults())

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        state.tasks.add(task)
        try:
            await _carry(state, host, port, reader, writer)
        except asyncio.CancelledError:
            pass  # the end of the proxy; asyncio's own callback would print it
        finally:
            state.tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_BLOCK)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        state.cut()
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)


async def _carry(
    state: Proxy, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    state.connections += 1
    if state.faults.refuse > 0:
        state.faults.refuse -= 1
        _reset(writer)
        return
    there, back = await asyncio.open_connection(host, port, limit=_BLOCK)
    for end in (writer, back):
        state.writers.add(end)
        end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link = _Link(state, state.faults.cut_after())
    try:
        await asyncio.gather(link.up(reader, back), link.down(there, writer))
    except (OSError, asyncio.IncompleteReadError, _Cut):
        pass
    finally:
        for end in (writer, back):
            state.writers.discard(end)
            _reset(end)


class _Cut(Exception):
    pass


class _Link:
    """One connection."""

    def __init__(self, state: Proxy, cut_after: int | None) -> None:
        self._state, self._cut_after = state, cut_after
        self._seen = 0
        self._silent = asyncio.Event()

    async def up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._delayed(reader, writer, lambda data: data)

    async def down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._delayed(reader, writer, self._harm)

    def _harm(self, data: bytes) -> bytes:
        faults = self._state.faults
        start, self._seen = self._seen, self._seen + len(data)
        self._state.passed += len(data)
        if self._cut_after is not None and self._seen >= self._cut_after:
            raise _Cut
        if faults.silent_after is not None and self._seen >= faults.silent_after:
            self._silent.set()
        if faults.flip_at is not None and start <= faults.flip_at < self._seen:
            at = faults.flip_at - start
            data = data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]
        return data

    async def _delayed(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, harm: Callable[[bytes], bytes]
    ) -> None:
        """Reads at once and writes later, so that a delay costs no throughput."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(4096)

        async def read() -> None:
            while True:
                data = await reader.read(_BLOCK)
                if self._silent.is_set():
                    await asyncio.Event().wait()
                if self._state.faults.rate is not None and data:
                    await asyncio.sleep(len(data) / self._state.faults.rate)
                if stall := self._state.faults.stall():
                    await asyncio.sleep(stall)
                await queue.put((loop.time() + self._state.faults.rtt / 2, harm(data)))
                if not data:
                    return

        reading = asyncio.ensure_future(read())
        try:
            while True:
                if queue.empty():  # otherwise no wait for two: it costs more than all the rest
                    getting = asyncio.ensure_future(queue.get())
                    await asyncio.wait({getting, reading}, return_when=asyncio.FIRST_COMPLETED)
                    if not getting.done() and reading.exception() is not None:
                        getting.cancel()
                        reading.result()
                    due, data = await getting
                else:
                    due, data = queue.get_nowait()
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                if self._silent.is_set():
                    await asyncio.Event().wait()
                if not data:
                    raise _Cut
                writer.write(data)
                await writer.drain()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End the connection with a reset, as a box that lost its power does."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
