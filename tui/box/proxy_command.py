"""A ProxyCommand as the way to a box: its stdin and stdout are the connection."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

from tui.model.text import SafeText, safe

_STDERR_KEPT = 2048


class ProxyCommand:
    """A running proxy.

    Attributes:
        sock: our end of the connection.
    """

    def __init__(self, process: asyncio.subprocess.Process, sock: socket.socket) -> None:
        self.sock = sock
        self._process = process
        self._said = b""
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @classmethod
    async def start(cls, command: str) -> ProxyCommand:
        """Run `command` through the shell, as ssh does.

        Args:
            command: from the user's own configuration, with host, port and user (checked names) filled in.
        """
        ours, its = socket.socketpair()
        try:
            ours.setblocking(False)
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                f"exec {command}",
                stdin=its.fileno(),
                stdout=its.fileno(),
                stderr=asyncio.subprocess.PIPE,  # never the terminal: it would break the screen
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            its.close()
        return cls(process, ours)

    @property
    def said(self) -> SafeText:
        """The beginning of what it wrote to stderr, on one line."""
        return safe(b" ".join(self._said.split()), 300)

    async def settled(self) -> SafeText:
        """`said`, after a moment for a proxy that just failed to say why."""
        await asyncio.wait({self._listening}, timeout=0.5)
        return self.said

    async def close(self) -> None:
        """End it and whatever it started. Never raises; bounded in time."""
        self.sock.close()
        for number, patience in ((signal.SIGTERM, 0.3), (signal.SIGKILL, 1.0)):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            await asyncio.wait({asyncio.ensure_future(self._process.wait())}, timeout=patience)
        self._listening.cancel()

    async def _listen(self) -> None:
        stream = self._process.stderr
        while stream is not None and (data := await stream.read(4096)):
            self._said = (self._said + data)[:_STDERR_KEPT]
