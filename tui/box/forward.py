"""A port of the box on this computer's loopback, for TensorBoard, Jupyter and the like."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.model.failure import Failure

if TYPE_CHECKING:
    import asyncssh

_PROHIBITED = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED, RFC 4254 5.1


class Forward:
    """One open forward; made by `open_forward`.

    Attributes:
        port: on the box.
        local_port: on 127.0.0.1 of this computer.
    """

    def __init__(
        self, box: str, port: int, listener: asyncssh.SSHListener, conn: asyncssh.SSHClientConnection
    ):
        self.box = box
        self.port = port
        self.local_port = int(listener.get_port())
        self._listener = listener
        self._conn = conn

    async def problem(self, timeout: float = 5.0) -> Failure | None:
        """Connect once through the forward: None when something answers there, else why not.

        A service may start later, so this does not close the forward.
        """
        import asyncssh

        try:
            async with asyncio.timeout(timeout):
                _, writer = await self._conn.open_connection("localhost", self.port, encoding=None)
            writer.close()
        except TimeoutError:
            return Failure(f"Port {self.port} of {self.box} did not answer within {timeout:.0f} s.")
        except asyncssh.ChannelOpenError as exc:
            if exc.code == _PROHIBITED:
                return Failure(
                    f"{self.box} forbids port forwarding.",
                    do="Use the provider's own HTTP port, or allow AllowTcpForwarding on the box.",
                    code="forwarding-forbidden",
                )
            return Failure(
                f"Nothing listens on port {self.port} of {self.box} yet.",
                do="Start it there; the forward stays open.",
                code="nothing-listens",
            )
        except (asyncssh.Error, OSError) as exc:
            return Failure(f"The link to {self.box} was lost: {exc}.")
        return None

    async def close(self) -> None:
        """Stop listening. Connections that are open end with the link. Never raises; bounded in time."""
        self._listener.close()
        await asyncio.wait({asyncio.ensure_future(self._listener.wait_closed())}, timeout=1.0)


async def open_forward(conn: asyncssh.SSHClientConnection, box: str, port: int, local_port: int) -> Forward:
    """Listen on 127.0.0.1:`local_port` (0: any free one) for port `port` of the box.

    Raises:
        Failure: the local port is taken or not allowed.
    """
    if not (0 < port < 65536 and 0 <= local_port < 65536):
        raise Failure(f"{port}:{local_port} is no pair of ports.", do="Ports are 1 to 65535.")
    try:
        # "localhost" is resolved on the box: some services listen on ::1 only
        listener = await conn.forward_local_port("127.0.0.1", local_port, "localhost", port)
    except OSError as exc:
        raise Failure(
            f"Port {local_port} of this computer cannot be used: {exc.strerror or exc}.",
            do="Choose another one, or none to get a free one.",
            code="local-port-taken",
        ) from None
    return Forward(box, port, listener, conn)
