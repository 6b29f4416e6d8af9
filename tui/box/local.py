"""This computer as a box: the same commands, without SSH."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable

from tui.box.command_log import OnCommand, Recorder
from tui.box.remote_shell import framed
from tui.box.transport import Completed, LinkLost, Script, Transport

_STDERR_KEPT = 64 << 10
_BUFFER = 256 << 10
_WRITE_S = 30.0
_END_S = 1.0


_BOOT = Script(
    "cat /proc/sys/kernel/random/boot_id 2>/dev/null || sysctl -n kern.bootsessionuuid 2>/dev/null; exit 0",
    why="is the box this very computer?",
)


async def on_this_computer(transport: Transport) -> bool:
    """Whether a box runs on the operator's own computer: a container, a demo box, an ssh login to localhost.

    Both are asked in the same words. Where neither tells its boot, the answer is yes, which is the safe one.

    Raises:
        LinkLost, SessionsExhausted, TimeoutError.
    """
    there, here = await transport.run(_BOOT), await LocalTransport().run(_BOOT)
    return there.stdout.strip() == here.stdout.strip()


class LocalTransport:
    """Implements `tui.box.transport.Transport` with processes of this computer.

    They run in the same frame as on a box, so that they end with this program, however it ends.
    """

    def __init__(
        self,
        name: str = "local",
        *,
        on_command: OnCommand = lambda record: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._on_command = on_command
        self._clock = clock

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a finite command; see `Transport.run`. Raises TimeoutError."""
        record = Recorder(self.name, script, self._on_command, self._clock)
        process = await _start(script, len(stdin))
        try:
            async with asyncio.timeout(timeout):
                feeding = asyncio.ensure_future(_feed(process, stdin))
                (out, truncated), (err, _) = await asyncio.gather(
                    _collect(process.stdout, limit), _collect(process.stderr, _STDERR_KEPT)
                )
                await process.wait()
                await feeding
        except TimeoutError:
            record.done(None, f"no answer within {timeout:g} s")
            raise TimeoutError(f"{self.name}: no answer within {timeout:g} s: {script.why}") from None
        except asyncio.CancelledError:
            record.done(None, "cancelled")
            raise
        finally:
            await asyncio.shield(_end(process))
        status = _status(process)
        record.done(status)
        return Completed(status, out, err, record.took(), truncated=truncated)

    async def open(self, script: Script, *, timeout: float = 15.0) -> LocalChannel:
        """Start a long-lived command; see `Transport.open`."""
        record = Recorder(self.name, script, self._on_command, self._clock)
        channel = LocalChannel(await _start(script, None), script.why, record)
        record.running()
        return channel

    async def close(self) -> None:
        """There is no connection to close; channels are closed by whoever opened them."""


class LocalChannel:
    """Implements `tui.box.transport.Channel`."""

    def __init__(self, process: asyncio.subprocess.Process, why: str, record: Recorder) -> None:
        self._process = process
        self._why = why
        self._record: Recorder | None = record
        self._closed = False
        self._stderr = b""
        self._listening = asyncio.ensure_future(self._listen())

    async def read(self, size: int = 65536) -> bytes:
        if self._closed or self._process.stdout is None:
            return b""
        data = await self._process.stdout.read(size)
        if not data and not self._closed:
            await self._process.wait()
            self._told(_status(self._process))
        return data

    async def write(self, data: bytes) -> None:
        stdin = self._process.stdin
        if stdin is None or self._closed or self._process.returncode is not None:
            raise LinkLost(f"The command has ended: {self._why}.")
        try:
            stdin.write(data)
            async with asyncio.timeout(_WRITE_S):
                await stdin.drain()
        except (TimeoutError, OSError):
            raise LinkLost(f"The command takes no input: {self._why}.") from None

    async def close(self) -> None:
        self._closed = True
        await asyncio.shield(_end(self._process))
        self._listening.cancel()
        self._told(None)
        await _drain(self._process.stdout)

    @property
    def exit(self) -> int | None:
        return None if self._closed or self._process.returncode is None else _status(self._process)

    @property
    def stderr(self) -> bytes:
        """The first 64 KiB the command wrote to stderr."""
        return self._stderr

    async def _listen(self) -> None:
        stream = self._process.stderr
        while stream is not None and (data := await stream.read(8192)):
            self._stderr = (self._stderr + data)[:_STDERR_KEPT]

    def _told(self, status: int | None) -> None:
        if self._record is not None:
            self._record.done(status)
            self._record = None


async def _start(script: Script, stdin_bytes: int | None) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *framed(script, b"", stdin_bytes),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_BUFFER,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.shield(_given_up(starting))
        raise


async def _given_up(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    """End what nobody wants any more as soon as it has started.

    Cancelled halfway, asyncio (3.11) kills the process alone and waits until its pipes are closed, which what
    that one has started keeps open: for ever.
    """
    with contextlib.suppress(OSError):
        process = await starting
        await _end(process)
        await _drain(process.stdout)


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is None or not data:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read its input
        process.stdin.write(data)
        await process.stdin.drain()


async def _collect(stream: asyncio.StreamReader | None, limit: int) -> tuple[bytes, bool]:
    """Everything up to `limit` bytes, and whether there was more."""
    kept, truncated = bytearray(), False
    while stream is not None and (data := await stream.read(65536)):
        room = limit - len(kept)
        truncated = truncated or len(data) > room
        kept += data[: max(0, room)]
    return bytes(kept), truncated


async def _drain(stream: asyncio.StreamReader | None) -> None:
    """Throw away what is left, so that the pipe is closed and not only forgotten. Bounded in time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            while stream is not None and await stream.read(1 << 20):
                pass


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the process group: by the frame first, by KILL if that takes too long. Bounded in time."""
    if process.stdin is not None:
        process.stdin.close()  # the frame ends the group; after a natural end it ends only itself
    if process.returncode is not None:
        return
    waiting = asyncio.ensure_future(process.wait())
    await asyncio.wait({waiting}, timeout=_END_S)
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait({waiting}, timeout=_END_S)


def _status(process: asyncio.subprocess.Process) -> int:
    """The exit status as a shell tells it: 128 + n for signal n."""
    code = process.returncode or 0
    return code if code >= 0 else 128 - code
