"""What the probe's tests share: a way into this computer through a chosen shell, and stand-in programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from tests.real import need
from tui.box.probe.loop import Probe
from tui.box.transport import Completed, LinkLost, Script

SHELLS = ("dash", "busybox ash", "bash", "zsh --emulate sh")


def shell_argv(name: str) -> list[str]:
    """The command of a shell; the test is skipped where it is not installed."""
    program, *options = name.split()
    return [need(program)[program], *options]


class ShellChannel:
    """A probe shell as a plain child process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def read(self, size: int = 65536) -> bytes:
        assert self.process.stdout is not None
        data = await self.process.stdout.read(size)
        if not data:
            await self.process.wait()
        return data

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        try:
            await self.process.stdin.drain()
        except OSError:
            raise LinkLost("The shell has ended.") from None

    async def close(self) -> None:
        """End its input, as when an SSH channel is closed; kill it only when that is not enough."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(8):
                await self.process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    @property
    def exit(self) -> int | None:
        return self.process.returncode


class ShellTransport:
    """Implements `Transport.open` through one shell, with an environment of the test's own."""

    name = "test"

    def __init__(self, shell: str = "dash", env: Mapping[str, str] | None = None) -> None:
        self.argv = shell_argv(shell)
        self.env = {**os.environ, **(env or {})}
        self.channels: list[ShellChannel] = []

    async def open(self, script: Script, *, timeout: float = 15.0) -> ShellChannel:
        text, args = script.text, [arg if isinstance(arg, str) else arg.decode() for arg in script.args]
        process = await asyncio.create_subprocess_exec(
            *self.argv, "-c", text, "rgt", *args,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=self.env,
        )  # fmt: skip
        channel = ShellChannel(process)
        self.channels.append(channel)
        return channel

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        raise NotImplementedError


@contextlib.asynccontextmanager
async def probing(transport: ShellTransport, *, deadline_s: float = 8.0) -> AsyncIterator[Probe]:
    """A probe that is closed at the end, whatever happened."""
    probe = Probe(transport, deadline_s=deadline_s)
    try:
        yield probe
    finally:
        await probe.close()


def stand_in(folder: Path, name: str, text: str) -> Path:
    """A program of the test's own for a PATH that begins with `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def with_path(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
