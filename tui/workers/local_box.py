"""This computer in the fleet: a link that can't be lost, and ports that need no forwarding."""

from __future__ import annotations

import asyncio

from tui.box.local import LocalTransport
from tui.box.transport import LinkLost
from tui.model.failure import Failure
from tui.workers.box import Forward


class LocalBox(LocalTransport):
    """A `BoxTransport` to this computer."""

    async def wait_closed(self) -> LinkLost | None:
        await asyncio.Event().wait()
        return None

    async def alive(self, timeout: float = 3.0) -> bool:
        return True

    async def forward_local(self, port: int, local_port: int = 0) -> Forward:
        raise Failure(f"{self.name} is this computer.", do=f"Open http://127.0.0.1:{port} as it is.")
