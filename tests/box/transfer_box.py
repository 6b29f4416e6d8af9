"""What the transfer tests share: trees to fetch, boxes to fetch them from, and links that break."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.box.boxes import Desk, instance
from tests.rig import Sshd
from tui.box.local import LocalChannel, LocalTransport
from tui.box.transfer.line import BulkTransport, Dial, Patience
from tui.box.transfer.wanted import Wanted
from tui.box.transport import Completed, LinkLost, Script

HASTY = Patience(attempts=4, first_s=0.01, most_s=0.05, stall_s=5.0, start_s=10.0)
ONCE = replace(HASTY, attempts=1)


def tree(folder: Path, files: Mapping[str, bytes]) -> list[Wanted]:
    """Write `files` below `folder`; returns them as they must arrive."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [wanted(name, data) for name, data in files.items()]


def wanted(name: str, data: bytes) -> Wanted:
    return Wanted(name, len(data), "sha256:" + hashlib.sha256(data).hexdigest())


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def content(folder: Path) -> dict[str, bytes]:
    """Every file below `folder`."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def over_ssh(desk: Desk, server: Sshd, port: int | None = None) -> Dial:
    """Connections to `server`, through a proxy's `port` if there is one."""
    box = instance(server)
    if port is not None:
        assert box.endpoint is not None
        box = replace(box, endpoint=replace(box.endpoint, port=port))
    connector = desk.connector()
    return lambda: connector.connect(box)


async def here() -> BulkTransport:
    return LocalTransport("here")


class Brittle(LocalTransport):
    """This computer behind a link that is lost after some bytes, time and again.

    Args:
        budget: bytes until the next loss, asked anew for each connection; None: it holds.
    """

    def __init__(self, budget: int | None) -> None:
        super().__init__("brittle")
        self._left = budget
        self.lost = False

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        self.check()
        return await super().run(script, stdin=stdin, timeout=timeout, limit=limit)

    async def open(self, script: Script, *, timeout: float = 15.0) -> _BrittleChannel:  # type: ignore[override]
        self.check()
        return _BrittleChannel(self, await super().open(script, timeout=timeout))

    def check(self) -> None:
        if self.lost:
            raise LinkLost("the link was cut")

    def pass_on(self, data: bytes) -> bytes:
        self.check()
        if self._left is not None:
            if len(data) >= self._left:
                data = data[: self._left]
                self.lost = True
            self._left -= len(data)
        return data


class _BrittleChannel:
    def __init__(self, link: Brittle, channel: LocalChannel) -> None:
        self._link, self._channel = link, channel

    async def read(self, size: int = 65536) -> bytes:
        self._link.check()
        data = self._link.pass_on(await self._channel.read(size))
        self._link.check() if not data else None
        return data

    async def write(self, data: bytes) -> None:
        self._link.check()
        await self._channel.write(data)

    async def close(self) -> None:
        # as when a link is cut: nobody takes the output any more, and the sender learns of it
        pipe = self._channel._process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]
        pipe.close()
        await self._channel.close()

    @property
    def exit(self) -> int | None:
        return self._channel.exit

    @property
    def stderr(self) -> bytes:
        return self._channel.stderr


def brittle(budgets: Callable[[], int | None]) -> Dial:
    async def dial() -> BulkTransport:
        return Brittle(budgets())

    return dial


def sums(files: Iterable[Wanted]) -> dict[str, str]:
    return {w.local: w.sha256 for w in files}
