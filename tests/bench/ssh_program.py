"""The peer of our connections: the `ssh` program, one process per connection, as a transport."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import subprocess
from pathlib import Path

from tui.box.transport import LinkLost, Script


class SshProcess:
    """A long-lived remote command behind one `ssh` process. Implements `tui.box.transport.Channel`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self, size: int = 65536) -> bytes:
        return await self._stdout.read(size)

    async def write(self, data: bytes) -> None:
        self._stdin.write(data)
        try:
            await self._stdin.drain()
        except ConnectionError:
            raise LinkLost("ssh has ended.") from None

    async def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        await self._process.wait()

    @property
    def exit(self) -> int | None:
        return self._process.returncode


async def open_ssh(config: Path, line: bytes | str, *options: str, alias: str = "box") -> SshProcess:
    """Start a remote command through the `ssh` program."""
    process = await asyncio.create_subprocess_exec(
        "ssh", "-F", str(config), *options, alias, line,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return SshProcess(process)


def plain_line(script: Script) -> str:
    """The script as one line for an ordinary login shell, without the frame our connections put around it."""
    return "exec " + shlex.join(part.decode() for part in script.argv())
