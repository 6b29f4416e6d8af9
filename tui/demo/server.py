"""One box of the embedded fleet: a real SSH server that runs real shell commands in its own directory."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

MAX_SESSIONS = 10  # OpenSSH's default; a demo without a cap would hide what real boxes do
GOODBYE_S = 10.0
STOP_S = 2.0


@dataclass(slots=True)
class BoxServer:
    """An SSH server on loopback that admits one key and nobody else.

    Args:
        home: the box's own directory: login directory, ``$HOME``.
        sockets: folder of its tmux server; a short path, since one of a socket has 104 bytes at most.
        client_key: the only public key admitted.
        marker: environment of every process started here, so that none is left behind.
    """

    name: str
    home: Path
    sockets: Path
    client_key: asyncssh.SSHKey
    marker: dict[str, str]
    host_key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))
    port: int = 0
    deaf: bool = False  # while True new connections are dropped at once
    _acceptor: asyncssh.SSHAcceptor | None = None
    _connections: set[asyncssh.SSHServerConnection] = field(default_factory=set)
    _sessions: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def environment(self) -> dict[str, str]:
        """What a login on this box sees. Nothing of the operator's environment leaks in but PATH."""
        path = f"{self.home / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        own = {"HOME": str(self.home), "TMUX_TMPDIR": str(self.sockets)}  # its tmux is not the operator's
        return {**own, "PATH": path, "LANG": "C.UTF-8", "USER": "demo", **self.marker}

    async def start(self) -> None:
        """Listen on a free loopback port, the same one after a stop."""
        self.sockets.mkdir(exist_ok=True)  # tmux takes the operator's own folder where this one is missing
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_factory=lambda: _Admission(self),
            server_host_keys=[self.host_key],
            process_factory=self._run,
            encoding=None,
            keepalive_interval=15,
        )
        self.port = self._acceptor.get_port()

    async def stop(self) -> None:
        """Stop listening, and end every session and what runs in it."""
        if self._acceptor is not None:
            self._acceptor.close()
        self.cut()
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=STOP_S)

    def cut(self) -> None:
        """Break every connection, as a lost link does."""
        for connection in tuple(self._connections):
            connection.abort()

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        connection = process.channel.get_connection()
        running = connection.get_extra_info("rgt_running") or 0
        if running >= MAX_SESSIONS:
            process.exit(254)
            return
        connection.set_extra_info(rgt_running=running + 1)
        session = asyncio.current_task()
        assert session is not None
        self._sessions.add(session)
        session.add_done_callback(self._sessions.discard)
        try:
            await (self._with_terminal(process) if process.term_type else self._with_pipes(process))
        finally:
            connection.set_extra_info(rgt_running=(connection.get_extra_info("rgt_running") or 1) - 1)

    def _argv(self, process: asyncssh.SSHServerProcess[bytes]) -> list[bytes]:
        # encoding=None hands the command over as bytes already, typed as text
        command: str | bytes | None = process.command
        if command is None:
            return [b"/bin/sh", b"-i"]
        raw = command if isinstance(command, bytes) else command.encode("utf-8", "surrogateescape")
        return [b"/bin/sh", b"-c", raw]

    async def _with_pipes(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        # Raw pipes, not asyncio streams: a StreamReader as the source loses the connection under load.
        child = subprocess.Popen(
            self._argv(process),
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            preexec_fn=_heed_hang_up,
        )
        assert child.stdin and child.stdout and child.stderr
        try:
            # The end of one stream would end the channel for both, and the last words of the other be lost.
            await process.redirect(
                stdin=child.stdin, stdout=child.stdout, stderr=child.stderr, send_eof=False
            )
        except BaseException:  # cut while it begins
            _hang_up(child)
            raise
        await self._wait(process, child)

    async def _with_terminal(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        master, slave = pty.openpty()
        columns, rows, *_ = process.term_size
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows or 24, columns or 80, 0, 0))
        child = subprocess.Popen(
            self._argv(process),
            cwd=self.home,
            env={**self.environment, "TERM": process.term_type or "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)
        reader, writer = os.fdopen(os.dup(master), "rb", 0), os.fdopen(master, "wb", 0)
        await process.redirect(stdin=writer, stdout=reader)
        await self._wait(process, child)

    async def _wait(self, process: asyncssh.SSHServerProcess[bytes], child: subprocess.Popen[bytes]) -> None:
        ended = _exit_of(child)
        closed: asyncio.Future[None] = asyncio.ensure_future(process.channel.wait_closed())
        try:
            both: set[asyncio.Future[int] | asyncio.Future[None]] = {ended, closed}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if closed.done() and not ended.done():
                _hang_up(child)
            code = await ended
            if not closed.done():
                await process.stdout.drain()
                await process.stderr.drain()
                process.channel.write_eof()
                process.exit(code) if code >= 0 else process.exit_with_signal(signal.Signals(-code).name[3:])
            async with asyncio.timeout(GOODBYE_S):
                await process.wait_closed()  # also takes up what asyncssh left to be awaited for the pipes
        except (asyncssh.Error, OSError):
            pass  # the other side left while the last bytes were on their way, or never says goodbye
        finally:
            closed.cancel()
            if child.poll() is None:
                _hang_up(child)


def _exit_of(child: subprocess.Popen[bytes]) -> asyncio.Future[int]:
    """Its exit code once it has ended, waited for in a thread of its own.

    The loop's own pool has as few as six threads, and a box keeps more sessions than that open.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def tell(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    def wait() -> None:
        code = child.wait()
        with suppress(RuntimeError):  # the loop is gone: nobody asks any more
            loop.call_soon_threadsafe(tell, code)

    threading.Thread(target=wait, daemon=True).start()
    return ended


# Nothing else runs between fork and exec.
def _heed_hang_up() -> None:
    """Under nohup the demo ignores it, and what it starts would outlive its link."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _own_terminal() -> None:
    _heed_hang_up()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _hang_up(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGHUP)
    except ProcessLookupError:
        pass


class _Admission(asyncssh.SSHServer):
    """Lets in the one key, and forwards ports of this computer's loopback only."""

    def __init__(self, box: BoxServer) -> None:
        self._box = box
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        if self._box.deaf:
            conn.abort()
            return
        self._box._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._box._connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return key.public_data == self._box.client_key.public_data

    def password_auth_supported(self) -> bool:
        return False

    def kbdint_auth_supported(self) -> bool:
        return False

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return dest_host in ("127.0.0.1", "localhost", "::1")
