"""One remote process over SSH: its output bounded, its end certain, its loss never silent.

Imports asyncssh, so it is imported late (with the first connection).
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable

import asyncssh

from tui.box.noise import NoiseCut
from tui.box.transport import LinkLost

WINDOW = 1 << 20
"""Bytes the box may send ahead of what we have taken; with `_HIGH` below 2 MiB are held per channel."""
PACKET = 32768  # larger packets are slower: asyncssh copies partial packets on every receive

_HIGH = 512 << 10
_GATHER_S = 0.005
_STDERR_KEPT = 64 << 10
_WRITE_S = 30.0
_END_S = 3.0


class RemoteProcess(asyncssh.SSHClientSession[bytes]):
    """Receives what one remote command sends.

    Args:
        what: names the command in a `LinkLost`.
        marker: everything before it is noise of the login shell.
        limit: keep this many bytes of stdout and count the rest as `truncated`; None: hold the box back until
            somebody reads.

    Attributes:
        started: done when our own output begins, or when it never will.
        done: done when the box has closed the channel; only then its session is free.
        exit: status of the command; None as long as it is not known.
        opened_at: when the server had opened the channel, by the monotonic clock.
        gather: bytes that `read` waits for, a few milliseconds at most: of a fast stream it then takes few
            large pieces instead of many small ones.
    """

    def __init__(self, what: str, marker: bytes, limit: int | None) -> None:
        loop = asyncio.get_running_loop()
        self.what = what
        self.marker = marker
        self.started: asyncio.Future[None] = loop.create_future()
        self.done: asyncio.Future[None] = loop.create_future()
        self.exit: int | None = None
        self.opened_at = 0.0
        self.truncated = False
        self.stderr = bytearray()
        self._out_cut, self._err_cut = NoiseCut(marker), NoiseCut(marker)
        self._limit = limit
        self._out: deque[bytes | memoryview] = deque()
        self._held = 0  # bytes in `_out`
        self._kept = 0
        self._paused = False
        self._ending = False
        self._chan: asyncssh.SSHClientChannel[bytes] | None = None
        self.gather = 0
        self._full: asyncio.Future[None] | None = None
        self._ended = False  # no more will come
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()

    # --- called by asyncssh -------------------------------------------------------------------------------

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._chan = chan
        self.opened_at = time.monotonic()

    def data_received(self, data: bytes | memoryview, datatype: asyncssh.DataType) -> None:
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            room = _STDERR_KEPT - len(self.stderr)
            self.stderr += self._err_cut.feed(data)[: max(0, room)]
            return
        ours = self._out_cut.feed(data)
        if self._out_cut.open:
            self._start()
        if ours and not self._ending:
            self._take(ours)

    def eof_received(self) -> bool:
        self._ended = True
        self._settle()
        return True  # stdin stays open: its end would end the command

    def exit_status_received(self, status: int) -> None:
        self.exit = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self.exit = 128 + _signal_number(signal)

    def connection_lost(self, exc: Exception | None) -> None:
        self._start()
        if not self._ended and not self._all_came():
            self.exit = None  # a status may come before the last bytes, which then come no more
        if not self.done.done():
            self.done.set_result(None)
        self._ended = True
        self._settle()
        self._readable.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- called by us -------------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether the box takes input without being waited for."""
        return self._writable.is_set()

    @property
    def ran(self) -> bool:
        """Whether the script itself began: its marker came."""
        return self._out_cut.open

    @property
    def noise(self) -> bytes:
        """What came instead of our marker."""
        return self._out_cut.all_noise() + self._err_cut.all_noise()

    def output(self) -> bytes:
        """Everything kept so far."""
        return b"".join(self._out)

    def lost(self) -> LinkLost:
        return LinkLost(f"The link was lost while this ran: {self.what}.")

    async def read(self, size: int) -> bytes:
        """See `Channel.read`."""
        while not self._out:
            if self._ending:
                return b""
            if self.done.done():
                if self.exit is None:  # the channel's end alone proves nothing: a cut link looks the same
                    raise self.lost()
                return b""
            self._readable.clear()
            await self._readable.wait()
        if self._held < self.gather and not self._ended:
            await self._gathered()
        data = self._next(size)
        if self._paused and self._held < _HIGH:
            self._resume()
        return data

    async def write(self, data: bytes) -> None:
        """Send to stdin; waits while the box does not take it. Raises LinkLost."""
        if not self._writable.is_set():
            try:
                async with asyncio.timeout(_WRITE_S):
                    await self._writable.wait()
            except TimeoutError:
                raise LinkLost(f"The box takes no input for {_WRITE_S:.0f} s: {self.what}.") from None
        self.send(data)

    def send(self, data: bytes) -> None:
        """Queue for stdin without waiting, for input whose size the caller has bounded. Raises LinkLost."""
        if self._chan is None or self.done.done() or self._ending:
            raise self.lost()
        try:
            self._chan.write(data)
        except OSError:
            raise self.lost() from None

    async def end(self, grace: float = _END_S) -> None:
        """End the command on the box and wait until its session is free there, about `grace` seconds at most.

        The end of stdin makes the frame on the box end the process group; then the box closes the channel.
        Closing it from here first would be answered at once, while the session is still taken.
        """
        self._ending = self._ended = True
        self._out.clear()
        self._held = 0
        self._settle()
        self._readable.set()
        if self._chan is None or self.done.done():
            return
        self._resume()
        if self._chan.get_write_buffer_size():  # input the box does not take: the end would queue behind it
            self._chan.abort()
        else:
            self._chan.write_eof()
        if not await _within(self.done, grace):
            self._chan.abort()
            await _within(self.done, 0.5)

    def _all_came(self) -> bool:
        """Whether the box closed the channel and nothing is held back; asyncssh may tell nobody of it."""
        closed = getattr(self._chan, "_recv_state", "") == "closed"
        return closed and not getattr(self._chan, "_recv_buf", True)

    def _start(self) -> None:
        if not self.started.done():
            self.started.set_result(None)

    def _take(self, data: bytes | memoryview) -> None:
        if self._limit is not None:
            room = self._limit - self._kept
            self.truncated = self.truncated or len(data) > room
            data = data[: max(0, room)]
            self._kept += len(data)
            self._out.append(data)
            return
        self._out.append(data)
        self._held += len(data)
        self._readable.set()
        if self._held >= self.gather:
            self._settle()
        if self._held >= max(_HIGH, 2 * self.gather) and not self._paused and self._chan is not None:
            self._paused = True
            self._chan.pause_reading()

    async def _gathered(self) -> None:
        """Wait for `gather` bytes, the end, or a moment."""
        full = self._full = asyncio.get_running_loop().create_future()
        moment = asyncio.get_running_loop().call_later(_GATHER_S, self._settle)
        try:
            await full
        finally:
            moment.cancel()
            self._full = None

    def _settle(self) -> None:
        if self._full is not None and not self._full.done():
            self._full.set_result(None)

    def _next(self, size: int) -> bytes:
        """The first bytes of what is held, `size` at most; copied once."""
        taken: list[bytes | memoryview] = []
        room = size
        while self._out and room:
            piece = self._out.popleft()
            if len(piece) > room:
                whole = memoryview(piece)
                piece = whole[:room]
                self._out.appendleft(whole[room:])
            taken.append(piece)
            room -= len(piece)
        self._held -= size - room
        return b"".join(taken)

    def _resume(self) -> None:
        if self._paused and self._chan is not None:
            self._paused = False
            self._chan.resume_reading()


class SshChannel:
    """A long-lived remote command; implements `tui.box.transport.Channel`.

    Args:
        on_end: called once with the exit status (None when it was ended or lost) when the command is over.
    """

    def __init__(self, process: RemoteProcess, on_end: Callable[[int | None], None]) -> None:
        self._process = process
        self._closed = False
        process.done.add_done_callback(lambda _: on_end(self.exit))

    async def read(self, size: int = 65536) -> bytes:
        return await self._process.read(size)

    async def write(self, data: bytes) -> None:
        if self._process.writable:
            self._process.send(data)
        else:
            await self._process.write(data)

    async def close(self) -> None:
        self._closed = True
        await self._process.end()

    @property
    def exit(self) -> int | None:
        return None if self._closed else self._process.exit

    @property
    def gather(self) -> int:
        """Bytes that `read` waits for, a few milliseconds at most: a fast stream then takes fewer turns."""
        return self._process.gather

    @gather.setter
    def gather(self, size: int) -> None:
        self._process.gather = size

    @property
    def stderr(self) -> bytes:
        """The first 64 KiB the command wrote to stderr."""
        return bytes(self._process.stderr)


async def _within(future: asyncio.Future[None], seconds: float) -> bool:
    done, _ = await asyncio.wait({future}, timeout=seconds)
    return bool(done)


def _signal_number(name: str) -> int:
    return int(getattr(signal, f"SIG{name}", signal.SIGKILL))
