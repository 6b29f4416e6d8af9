"""A standing SSH connection to one box: commands, long-lived channels and forwards over it.

Imports asyncssh, so it is imported late (with the first connection).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress

import asyncssh

from tui.box import remote_shell
from tui.box.channel import PACKET, WINDOW, RemoteProcess, SshChannel
from tui.box.command_log import OnCommand, Recorder
from tui.box.errors import CommandRefused
from tui.box.forward import Forward, open_forward
from tui.box.noise import new_marker
from tui.box.transport import Completed, LinkLost, Script, SessionsExhausted
from tui.model.failure import Failure
from tui.model.text import SafeText, safe

MAX_SESSIONS = 8
"""Sessions per connection. sshd's default limit is 10, and a session counts until its process has ended."""

_SLOT_WAIT_S = 5.0
_JUST_FREED_S = 1.0
_NO_BANNER = SafeText("")
_RETRY_S = (0.05, 0.1, 0.2)

Undo = Callable[[], Awaitable[None]]


class SshTransport:
    """Implements `tui.box.transport.Transport`; made by `tui.box.connect.Connector`.

    Attributes:
        closed: done when the connection is gone; its result is the reason, or None when we closed it.
        host_key: fingerprint of the key the server proved to have.
        banner: what the server said before the login, made safe.
        rtt: seconds of a round trip, the least seen; None: nothing has told yet.
        window: bytes that the box may have under way in each channel opened from now on; a stream over a long
            way needs more than the default.
    """

    def __init__(
        self,
        name: str,
        conn: asyncssh.SSHClientConnection,
        *,
        on_command: OnCommand,
        closed: asyncio.Future[LinkLost | None],
        undo: tuple[Undo, ...] = (),
        host_key: str = "",
        banner: SafeText = _NO_BANNER,
        rtt: float | None = None,
        max_sessions: int = MAX_SESSIONS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.closed = closed
        self.host_key = host_key
        self.banner = banner
        self.rtt = rtt
        self.window = WINDOW
        self._conn = conn
        self._on_command = on_command
        self._undo = undo
        self._clock = clock
        self._max_sessions = max_sessions
        self._slots = asyncio.Semaphore(max_sessions)
        self._freed_at = float("-inf")
        self._background: set[asyncio.Task[None]] = set()

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        """Run a finite command; see `Transport.run`. Also raises CommandRefused where nothing can be run."""
        record = Recorder(self.name, script, self._on_command, self._clock)
        process = self._process(script, limit)
        try:
            async with asyncio.timeout(timeout):
                await self._launch(script, process, len(stdin))
                if stdin:
                    process.send(stdin)
                await asyncio.shield(process.done)
            completed = self._completed(process, record.took())
        except TimeoutError:
            record.done(None, f"no answer within {timeout:g} s")
            raise TimeoutError(f"{self.name}: no answer within {timeout:g} s: {script.why}") from None
        except asyncio.CancelledError:
            record.done(None, "cancelled")
            raise
        except Failure as failure:
            record.done(None, failure.what)
            raise
        finally:
            if not process.done.done():
                self._later(process.end())
        record.done(completed.exit)
        return completed

    async def open(self, script: Script, *, timeout: float = 15.0) -> SshChannel:
        """Start a long-lived command; returns once it runs. See `Transport.open`."""
        record = Recorder(self.name, script, self._on_command, self._clock)
        process = self._process(script, None)
        try:
            async with asyncio.timeout(timeout):
                await self._launch(script, process, None)
                await asyncio.shield(process.started)
            if not process.ran:
                raise self._never_ran(process)
        except TimeoutError:
            record.done(None, f"did not start within {timeout:g} s")
            self._later(process.end())
            raise TimeoutError(f"{self.name}: did not start within {timeout:g} s: {script.why}") from None
        except asyncio.CancelledError:
            record.done(None, "cancelled")
            self._later(process.end())
            raise
        except Failure as failure:
            record.done(None, failure.what)
            raise
        record.running()
        return SshChannel(process, record.done)

    async def forward_local(self, port: int, local_port: int = 0) -> Forward:
        """Make port `port` of the box reachable on this computer's loopback. Raises Failure, LinkLost."""
        if self.closed.done():
            raise self._link_lost()
        return await open_forward(self._conn, self.name, port, local_port)

    async def alive(self, timeout: float = 3.0) -> bool:
        """Ask the box for one answer, as after this computer slept. A dead connection is dropped at once."""
        try:
            await self.run(Script(":", why="is the link alive?"), timeout=timeout)
        except SessionsExhausted:
            return True  # the server said so itself
        except (LinkLost, TimeoutError):
            self._conn.abort()
            return False
        return True

    async def wait_closed(self) -> LinkLost | None:
        """Wait until the connection is gone; the reason, or None when we closed it."""
        return await asyncio.shield(self.closed)

    async def close(self, timeout: float = 1.0) -> None:
        """Close the connection, its jump hosts and its proxy, in about `timeout` seconds. Never raises."""
        if not self.closed.done():
            self.closed.set_result(None)
        self._conn.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._conn.wait_closed()
                for undo in self._undo:
                    await undo()
        self._conn.abort()
        for task in self._background:
            task.cancel()

    # --- inside -------------------------------------------------------------------------------------------

    def _process(self, script: Script, limit: int | None) -> RemoteProcess:
        return RemoteProcess(f"{self.name}: {script.why or 'command'}", new_marker(), limit)

    async def _launch(self, script: Script, process: RemoteProcess, stdin_bytes: int | None) -> None:
        """Open a session for `process`. If the caller gives up meanwhile, it is ended as soon as it opens."""
        line = remote_shell.command_line(script, process.marker, stdin_bytes)
        await self._slot()
        opening = asyncio.ensure_future(self._open_session(line, process))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._later(_end_after(opening, process))
            raise

    async def _slot(self) -> None:
        if self.closed.done():
            raise self._link_lost()
        try:
            async with asyncio.timeout(_SLOT_WAIT_S):
                await self._slots.acquire()
        except TimeoutError:
            raise SessionsExhausted(
                f"{self.name}: all {self._max_sessions} sessions of this connection are in use."
            ) from None

    async def _open_session(self, line: str, process: RemoteProcess) -> None:
        pauses = iter(_RETRY_S)
        try:
            while True:
                began = time.monotonic()
                try:
                    await self._conn.create_session(
                        lambda: process,
                        line,
                        encoding=None,
                        window=self.window,
                        max_pktsize=PACKET,
                        request_pty=False,
                        env={},
                        send_env=(),
                    )
                    break
                except asyncssh.ChannelOpenError as exc:
                    # The server counts a session a moment longer than the client; a real limit stays.
                    pause = next(pauses, None) if time.monotonic() - self._freed_at < _JUST_FREED_S else None
                    if pause is None or self.closed.done():
                        raise self._not_opened(exc) from None
                    await asyncio.sleep(pause)
        except (asyncssh.Error, OSError) as exc:
            self._slots.release()
            raise LinkLost(f"{self.name}: the link was lost: {safe(str(exc), 200)}.") from None
        except (Failure, asyncio.CancelledError):
            self._slots.release()
            raise
        process.done.add_done_callback(self._free_slot)
        took = process.opened_at - began
        self.rtt = took if self.rtt is None else min(self.rtt, took)

    def _free_slot(self, _: object) -> None:
        self._freed_at = time.monotonic()
        self._slots.release()

    def _not_opened(self, exc: asyncssh.ChannelOpenError) -> Failure:
        if self.closed.done() or self._conn.is_closed():
            return self._link_lost()
        if exc.code == asyncssh.OPEN_REQUEST_SESSION_FAILED:
            return CommandRefused(self.name, exc.reason)
        return SessionsExhausted(f"{self.name} allows no further session ({safe(exc.reason, 100)}).")

    def _completed(self, process: RemoteProcess, took: float) -> Completed:
        if not process.ran:
            raise self._never_ran(process)
        if process.exit is None:
            raise process.lost()
        return Completed(
            process.exit, process.output(), bytes(process.stderr), took, truncated=process.truncated
        )

    def _never_ran(self, process: RemoteProcess) -> Failure:
        if process.exit is None:
            return process.lost()
        return CommandRefused(self.name, process.noise.decode("utf-8", "replace"))

    def _link_lost(self) -> LinkLost:
        reason = self.closed.result() if self.closed.done() else None
        return reason or LinkLost(f"{self.name}: the connection is closed.")

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _end_after(opening: asyncio.Future[None], process: RemoteProcess) -> None:
    with suppress(Failure):
        await opening
        await process.end()
