"""Makes connections: through the jump hosts or the proxy to the box, few at a time.

asyncssh and what needs it are imported with the first connection: they would cost the first frame 160 ms.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.box import ssh_config
from tui.box.errors import unreachable
from tui.box.secrets import Asker, NoAsker, Vault
from tui.box.ssh_config import Route, parse_jump
from tui.box.timing import Timing
from tui.box.trust import JUMP_HOST, TrustStore
from tui.model.command import CommandRecord
from tui.model.failure import Failure
from tui.model.instance import Endpoint, Instance

if TYPE_CHECKING:
    import asyncssh

    from tui.box.session import SshTransport, Undo

_HOPS_MAX = 8


class Connector:
    """Connects to boxes.

    Args:
        trust: by which key each box is known.
        asker: asks the operator for passwords and passphrases; None: nobody is there.
        on_command: gets a record of every remote command.
        vault: what was typed before in this session.
        config, ssh: another ssh configuration file, another ssh program.
        at_once: connections being made at the same time by this process; sshd drops what exceeds its
            MaxStartups at random.
    """

    def __init__(
        self,
        trust: TrustStore,
        asker: Asker | None = None,
        *,
        on_command: Callable[[CommandRecord], None] = lambda record: None,
        clock: Callable[[], float] = time.time,
        timing: Timing | None = None,
        vault: Vault | None = None,
        config: str | None = None,
        ssh: str | None = None,
        max_sessions: int = 8,
        at_once: int = 8,
    ) -> None:
        self.trust = trust
        self.asker: Asker = asker or NoAsker()
        self.vault = vault or Vault()
        self.timing = timing or Timing()
        self.clock = clock
        self._on_command = on_command
        self._config, self._ssh = config, ssh
        self._max_sessions = max_sessions
        self._at_once = at_once

    async def connect(self, instance: Instance) -> SshTransport:
        """Open a connection to `instance`.

        Raises:
            ConnectFailure: no connection; says whether trying again makes sense.
            Failure: the endpoint or the recorded identity is not usable as it stands.
        """
        if instance.endpoint is None:
            raise Failure(f"{instance.name} is this computer; there is nothing to connect to.")
        await _load()
        route = await self._resolve(instance.endpoint)
        hops = await self._hops(route)
        gate = _gate(self._at_once)
        async with gate:
            return await self._through(instance, hops, route, gate)

    async def _resolve(self, endpoint: Endpoint) -> Route:
        return await ssh_config.resolve(endpoint, ssh=self._ssh, config=self._config)

    async def _hops(self, route: Route, depth: int = 0) -> list[Route]:
        """The jump hosts before `route`, the first one first. Only that one may have a way of its own."""
        if not route.jumps:
            return []
        if depth + len(route.jumps) > _HOPS_MAX:
            raise unreachable(
                f"More than {_HOPS_MAX} jump hosts lead to {route.where}.",
                do="Look for a ProxyJump that leads back to itself in ~/.ssh/config.",
                retry=False,
                code="jump-loop",
            )
        hops = [await self._resolve(parse_jump(hop)) for hop in route.jumps]
        before = await self._hops(hops[0], depth + len(hops))
        return [*before, hops[0], *(replace(hop, jumps=(), proxy_command=None) for hop in hops[1:])]

    async def _through(
        self, instance: Instance, hops: list[Route], route: Route, gate: asyncio.Semaphore
    ) -> SshTransport:
        from tui.box.login import Login
        from tui.box.session import SshTransport

        undo: list[Undo] = []
        try:
            tunnel: asyncssh.SSHClientConnection | None = None
            for hop in hops:
                # Each hop is opened with its own keys, identity and keep-alive, never with the box's.
                name = f"{JUMP_HOST}{hop.host_key_alias or hop.host}:{hop.port}"
                tunnel = (await Login(self, name, instance.name, hop, gate, undo).connect(tunnel)).conn
                undo.append(_closer(tunnel))
            login = Login(self, instance.name, instance.name, route, gate, undo)
            login.wanted, login.password_env = instance.host_key, instance.password_env
            done = await login.connect(tunnel)
        except BaseException:
            for step in reversed(undo):
                await asyncio.shield(step())
            raise
        return SshTransport(
            instance.name,
            done.conn,
            on_command=self._on_command,
            closed=done.closed,
            undo=tuple(reversed(undo)),
            host_key=done.fingerprint,
            banner=done.client.banner,
            rtt=done.client.rtt,
            max_sessions=self._max_sessions,
            clock=self.clock,
        )


def _closer(conn: asyncssh.SSHClientConnection) -> Undo:
    async def close() -> None:
        conn.close()
        await asyncio.wait({asyncio.ensure_future(conn.wait_closed())}, timeout=0.5)
        conn.abort()

    return close


_gates: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()


def _gate(at_once: int) -> asyncio.Semaphore:
    """One for the whole process; a semaphore belongs to the event loop it first waited in."""
    return _gates.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(at_once))


async def _load() -> None:
    """Import asyncssh in a thread, so that the screen goes on meanwhile."""
    await asyncio.to_thread(importlib.import_module, "tui.box.login")
    # asyncssh logs what it could not handle; without a handler that goes to the terminal, over the screen
    logger = logging.getLogger("asyncssh")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
