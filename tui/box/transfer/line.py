"""The connection that carries the bulk: its own, measured, and made again when it is lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tui.box.transport import Channel, Completed, LinkLost, Script, Transport
from tui.model.failure import Exit, Failure

_ECHO = Script("exec cat", why="measure the round trip")
_MIB = 1 << 20
_LONG_S = 0.02
_GATHER = 512 << 10


class BulkTransport(Transport, Protocol):
    """A transport that can be closed: nobody else uses it."""

    async def close(self) -> None: ...


@runtime_checkable
class Windowed(Protocol):
    """A transport whose streams may be given a larger window. Bytes that are on their way at most."""

    window: int


@runtime_checkable
class Gathering(Protocol):
    """A channel whose reads may be made to wait for more bytes, a few milliseconds at most."""

    gather: int


@runtime_checkable
class Measured(Protocol):
    """A transport that knows its round trip: seconds; None when nothing has told yet."""

    rtt: float | None


Dial = Callable[[], Awaitable[BulkTransport]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a transfer goes on trying.

    Attributes:
        attempts: connections in a row that may bring nothing.
        first_s, most_s: pause before the second, and the longest one.
        stall_s: seconds without bytes after which a stream counts as stalled.
        start_s: seconds for a remote command to start.
    """

    attempts: int = 8
    first_s: float = 0.5
    most_s: float = 20.0
    stall_s: float = 30.0
    start_s: float = 30.0


def window_for(rtt: float, cap: int | None = None) -> int:
    """Bytes under way that a stream needs at this round trip (seconds).

    One channel moves at most window / RTT, asyncssh half of it since it refills at half-empty; a window that
    is too large costs CPU on a short way (measured on loopback: 32 MiB a quarter of sshd's), one that is too
    small many messages that open it again.

    Args:
        cap: the bandwidth limit in bytes per second; no more is let loose than it allows for two round trips.
    """
    wanted = 4 * _MIB if rtt < 0.005 else 8 * _MIB if rtt < 0.03 else 32 * _MIB
    if cap is None:
        return wanted
    return max(128 << 10, min(wanted, int(cap * max(2 * rtt, 0.25))))


def streams_for(rtt: float) -> int:
    """Files fetched at the same time: on a long way the pause between two files is what costs."""
    return 1 if rtt < 0.005 else 3


class Line:
    """Opens streams, and connects again when the link is lost.

    Args:
        dial: makes a connection of its own; called again after a loss.
        cap: bandwidth limit in bytes per second.

    Attributes:
        rtt: seconds; None before the first connection.
        links: connections made.
    """

    def __init__(self, dial: Dial, patience: Patience, cap: int | None = None) -> None:
        self._dial, self.patience, self._cap = dial, patience, cap
        self._transport: BulkTransport | None = None
        self._lock = asyncio.Lock()
        self._in_vain = 0
        self._closing: asyncio.Future[None] | None = None
        self.rtt: float | None = None
        self.links = 0

    async def transport(self) -> BulkTransport:
        """The connection; made where there is none. Raises Failure."""
        async with self._lock:
            if self._transport is None:
                self._transport = await self._connect()
            return self._transport

    async def open(self, script: Script) -> tuple[BulkTransport, Channel]:
        """Start a remote command. Returns the connection, too: it is what `lost` has to be told."""
        transport = await self.transport()
        try:
            channel = await transport.open(script, timeout=self.patience.start_s)
        except (LinkLost, TimeoutError):
            await self.lost(transport)
            raise
        if isinstance(channel, Gathering):
            channel.gather = _GATHER
        return transport, channel

    async def run(self, script: Script, *, stdin: bytes = b"", limit: int = 1 << 20) -> Completed:
        """Run a short remote command."""
        transport = await self.transport()
        return await transport.run(script, stdin=stdin, timeout=self.patience.start_s, limit=limit)

    def moved(self) -> None:
        """Bytes arrived: the patience starts anew."""
        self._in_vain = 0

    async def lost(self, transport: BulkTransport) -> None:
        """This connection is of no use any more. Several streams may say so of the same one."""
        async with self._lock:
            if self._transport is not transport:
                return
            self._transport = None
            self._in_vain += 1
        await transport.close()

    async def close(self) -> None:
        if self._closing is not None:
            await self._closing
        if self._transport is not None:
            transport, self._transport = self._transport, None
            await transport.close()

    async def _connect(self) -> BulkTransport:
        while True:
            if self._in_vain >= self.patience.attempts:
                raise given_up(self._in_vain)
            await asyncio.sleep(self._pause())
            try:
                transport = await self._dial()
                try:
                    self.rtt = await self._round_trip(transport)
                except BaseException:
                    await asyncio.shield(transport.close())
                    raise
            except (Failure, TimeoutError) as failure:
                if not (isinstance(failure, LinkLost | TimeoutError) or getattr(failure, "retry", False)):
                    raise
                self._in_vain += 1
                if self._in_vain >= self.patience.attempts:
                    if isinstance(failure, LinkLost | TimeoutError):
                        raise given_up(self._in_vain) from None
                    raise
                continue
            self.links += 1
            if isinstance(transport, Windowed):
                transport.window = window_for(self.rtt, self._cap)
            return transport

    async def _round_trip(self, transport: BulkTransport) -> float:
        """What the transport knows costs nothing; to measure costs three round trips on a long way."""
        known = transport.rtt if isinstance(transport, Measured) else None
        if known is not None:
            return known
        measured, echo = await round_trip(transport)
        self._closing = asyncio.ensure_future(echo.close())  # a round trip nobody needs to wait for
        return measured

    def _pause(self) -> float:
        if not self._in_vain:
            return 0.0
        longest = min(self.patience.most_s, self.patience.first_s * 2.0 ** (self._in_vain - 1))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - many boxes behind one gateway, no secret


def given_up(attempts: int) -> Failure:
    """The link does not hold."""
    return Failure(
        f"The link was lost {attempts} times in a row without one byte in between.",
        means="What arrived is kept and proven again before it is used.",
        do="Repeat the same command when the box answers; it goes on where it stopped.",
        exit=Exit.UNREACHABLE,
        code="link-lost",
    )


async def round_trip(transport: Transport, timeout: float = 15.0) -> tuple[float, Channel]:
    """Seconds for one byte to the box and back, the best of three on a short way; and the channel to close.

    Raises:
        LinkLost, TimeoutError.
    """
    best = float("inf")
    channel = await transport.open(_ECHO, timeout=timeout)
    try:
        async with asyncio.timeout(timeout):
            for _ in range(3):
                began = time.monotonic()
                await channel.write(b".")
                if not await channel.read(1):
                    break
                best = min(best, time.monotonic() - began)
                if best > _LONG_S:
                    break
    except BaseException:
        await asyncio.shield(channel.close())
        raise
    return (best if best != float("inf") else 0.0), channel
