"""Where something is mounted is told by the box, and decides which tiers it really has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.real import need
from tui.box.local import LocalTransport
from tui.box.transport import Completed, Script
from tui.custody.tiers import mounts_of


async def test_this_computers_mounts_are_read() -> None:
    need("sh")
    transport = LocalTransport(name="local")
    try:
        found = await mounts_of(transport)
    finally:
        await transport.close()
    assert "/" in found or not found  # macOS has no /proc


class Told:
    """A box that answers one thing."""

    name = "b"

    def __init__(self, stdout: bytes) -> None:
        self._stdout = stdout

    async def run(self, script: Script, **_: object) -> Completed:
        return Completed(exit=0, stdout=self._stdout, stderr=b"", took_s=0.0)


@pytest.mark.parametrize(
    ("stdout", "paths"),
    [
        (b"overlay / overlay rw 0 0\nfs /root/autodl-fs fuse.juicefs rw 0 0\n", ["/", "/root/autodl-fs"]),
        (b"/dev/x /hy\\040disk ext4 rw 0 0\n", ["/hy disk"]),
        (b"", []),
        (b"nonsense\n", []),
    ],
)
async def test_lists_of_mounts(stdout: bytes, paths: Sequence[str]) -> None:
    assert list(await mounts_of(Told(stdout))) == list(paths)  # type: ignore[arg-type]
