"""One SSH login: keys, identity check, deadlines, and what to say when it fails.

Imports asyncssh, so it is imported late (with the first connection).
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncssh

from tui.box import host_key
from tui.box.client import BoxClient
from tui.box.dial import dial
from tui.box.errors import ConnectFailure, fold, hung_up, refused, unreachable
from tui.box.host_key import HostKeyCheck
from tui.box.identities import Identities
from tui.box.known_hosts import KnownKeys, known_keys
from tui.box.lane import Way
from tui.box.proxy_command import ProxyCommand
from tui.box.secrets import Asker, PasswordSource
from tui.box.session import Undo
from tui.box.ssh_config import Route
from tui.box.transport import LinkLost
from tui.model.instance import LinkState
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.box.connect import Connector

_CIPHERS = (  # AES-GCM first: 1.2 to 1.4 times the throughput where the CPU has AES instructions
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "chacha20-poly1305@openssh.com",
    "aes256-ctr",
    "aes128-ctr",
)


@dataclass(frozen=True, slots=True)
class _Done:
    conn: asyncssh.SSHClientConnection
    client: BoxClient
    closed: asyncio.Future[LinkLost | None]
    fingerprint: str


class _Patience:
    """The deadline of one login. While the operator is asked it waits, and lets other boxes connect."""

    def __init__(self, limit: asyncio.Timeout, seconds: float, gate: asyncio.Semaphore, asker: Asker) -> None:
        self._limit, self._seconds, self._gate, self._asker = limit, seconds, gate, asker
        self._asking: asyncio.Future[str | None] | None = None
        self._over = False
        self.connected = False

    def on_connected(self) -> None:
        self.connected = True
        self._set(self._seconds)

    async def ask(self, box: str, prompt: str) -> str | None:
        self._set(None)
        self._gate.release()
        try:
            self._asking = asyncio.ensure_future(self._asker.ask(box, prompt))
            return await self._asking
        finally:
            await self._gate.acquire()
            self._set(self._seconds)

    def finish(self) -> None:
        """The login is over: a question that still stands (the server hung up meanwhile) is withdrawn."""
        self._over = True
        if self._asking is not None:
            self._asking.cancel()

    def _set(self, seconds: float | None) -> None:
        if not self._over and not self._limit.expired():
            when = None if seconds is None else asyncio.get_running_loop().time() + seconds
            self._limit.reschedule(when)


class Login:
    """One SSH login: of the box itself or of a jump host on the way to it.

    Args:
        name: whose identity must be proven.
        box: the box that needs this login; questions and messages carry its name.
        undo: takes what has to be ended after the connection.

    Attributes:
        wanted: fingerprint the server's key must have, from ``fleet.toml``.
        password_env: environment variable that holds the password.
    """

    def __init__(
        self,
        connector: Connector,
        name: str,
        box: str,
        route: Route,
        gate: asyncio.Semaphore,
        undo: list[Undo],
    ) -> None:
        self._connector, self._name, self._box, self._route = connector, name, box, route
        self._gate, self._undo = gate, undo
        self.wanted: str | None = None
        self.password_env: str | None = None
        self._proxy: ProxyCommand | None = None

    async def connect(self, tunnel: asyncssh.SSHClientConnection | None) -> _Done:
        check = await self._new_check()
        try:
            done = await self._attempt(tunnel, check, host_key.algorithms(check.preferred))
        except ConnectFailure as failure:
            found = await self._other_key_types(tunnel, check, failure)
            if found is None:
                self._remember(check)
                raise failure from None
            done, check = found
        await self._record(check, done)
        return done

    async def _new_check(self) -> HostKeyCheck:
        pin = self._connector.trust.pinned(self._name)
        known = KnownKeys()
        if pin is None:
            alias = self._route.host_key_alias or self._route.host
            known = await asyncio.to_thread(known_keys, self._route.known_hosts, alias, self._route.port)
        return HostKeyCheck(self._name, self._route.where, pin=pin, wanted=self.wanted, known=known)

    async def _other_key_types(
        self, tunnel: asyncssh.SSHClientConnection | None, check: HostKeyCheck, failure: ConnectFailure
    ) -> tuple[_Done, HostKeyCheck] | None:
        """A fingerprint does not say of which type its key is: ask the server for its other keys."""
        if failure.code != "host-key-changed" or not check.by_fingerprint or check.offered is None:
            return None
        shown = host_key.family_of(check.offered.split()[0])
        for family, names in host_key.FAMILIES.items():
            if family == shown:
                continue
            again = await self._new_check()
            try:
                return await self._attempt(tunnel, again, list(names)), again
            except ConnectFailure as other:
                # sshd just hangs up when it has no key of this type
                if other.code not in ("host-key-changed", "no-common-algorithm", "hung-up"):
                    raise
        return None

    async def _attempt(
        self, tunnel: asyncssh.SSHClientConnection | None, check: HostKeyCheck, algorithms: list[str]
    ) -> _Done:
        timing, route = self._connector.timing, self._route
        closed: asyncio.Future[LinkLost | None] = asyncio.get_running_loop().create_future()
        seconds = max(timing.connect, min(route.connect_timeout or 0.0, 60.0))
        limit = asyncio.timeout(seconds)
        patience = _Patience(limit, timing.login, self._gate, self._connector.asker)
        passwords = PasswordSource(self._box, self._connector.vault, patience, env_name=self.password_env)
        identities = Identities(self._box, route, self._connector.vault, patience)
        client = BoxClient(
            route.where,
            check,
            identities,
            passwords,
            on_connected=patience.on_connected,
            on_lost=lambda exc: _lost(closed, self._box, exc),
        )
        sock: socket.socket | None = None
        try:
            async with limit:
                await identities.prepare()
                sock = None if tunnel is not None else await self._socket()
                conn = await self._handshake(client, check, algorithms, tunnel, sock)
        except BaseException as exc:
            if sock is not None:
                sock.close()
            if not isinstance(exc, asyncssh.Error | OSError | ValueError | TimeoutError):
                raise
            raise await self._explain(exc, check, identities, passwords, patience) from None
        finally:
            patience.finish()
            identities.close()
        passwords.accepted()
        key = conn.get_server_host_key()
        fingerprint = key.get_fingerprint() if key is not None else ""
        return _Done(conn, client, closed, fingerprint)

    async def _socket(self) -> socket.socket:
        if self._route.proxy_command is None:
            return await dial(self._route.host, self._route.port)
        self._proxy = await ProxyCommand.start(self._route.proxy_command)
        self._undo.append(self._proxy.close)
        return self._proxy.sock

    async def _handshake(
        self,
        client: BoxClient,
        check: HostKeyCheck,
        algorithms: list[str],
        tunnel: asyncssh.SSHClientConnection | None,
        sock: socket.socket | None,
    ) -> asyncssh.SSHClientConnection:
        pinned = [asyncssh.import_public_key(check.pinned_key)] if check.pinned_key else []
        options: dict[str, Any] = {
            "config": [],  # the user's configuration was resolved by ssh itself
            "known_hosts": (pinned, [], []),
            "server_host_key_algs": algorithms,
            "x509_trusted_certs": None,
            "username": self._route.user,
            "client_keys": None,  # the client callback hands them out, and asks the agent
            "gss_host": None,
            "disable_trivial_auth": True,  # a server that lets anybody in is no server of ours
            "encryption_algs": list(_CIPHERS),
            "keepalive_interval": self._connector.timing.keepalive,
            "keepalive_count_max": self._connector.timing.keepalive_misses,
            "connect_timeout": None,  # one deadline around everything, which can wait for the operator
            "login_timeout": 0,
            "utf8_decode_errors": "replace",
        }
        return await asyncssh.connect(
            self._route.host,
            self._route.port,
            client_factory=lambda: client,
            tunnel=Way(sock) if sock is not None else tunnel or (),
            **options,
        )

    async def _explain(
        self,
        exc: Exception,
        check: HostKeyCheck,
        identities: Identities,
        passwords: PasswordSource,
        patience: _Patience,
    ) -> ConnectFailure:
        where = self._route.where if self._name == self._box else f"the jump host {self._route.where}"
        if check.failure is not None:
            return check.failure
        if identities.failure is not None:
            return identities.failure
        if isinstance(exc, TimeoutError) and patience.connected:
            return unreachable(
                f"{self._box}: {where} accepted the connection and did not finish the login in time.",
                do="It may be overloaded or still booting; check it in the provider's console.",
                code="login-timeout",
            )
        if self._proxy is not None and not isinstance(exc, asyncssh.PermissionDenied):
            said = await self._proxy.settled()
            return unreachable(
                f"{self._box}: the ProxyCommand did not lead to {where}"
                + (f"; it said: “{said}”." if said else "."),
                do="Run `ssh` to this host in a terminal to see whether the proxy works there.",
                code="proxy-failed",
            )
        failure = fold(exc, self._box, where)
        if failure.state is LinkState.REFUSED:
            return _login_refused(self._box, where, self._route, identities, passwords, self.password_env)
        if isinstance(exc, asyncssh.ConnectionLost) and not patience.connected:
            return hung_up(self._box, where)
        return failure

    def _remember(self, check: HostKeyCheck) -> None:
        if check.failure is not None and check.offered is not None:
            self._connector.trust.offer(self._name, check.offered, self._route.where)

    async def _record(self, check: HostKeyCheck, done: _Done) -> None:
        """Pin a key met for the first time; after the login, so that a wrong address pins nothing."""
        if check.how is None or check.offered is None:
            return
        try:
            await asyncio.to_thread(
                self._connector.trust.record,
                self._name,
                check.offered,
                check.how,
                self._connector.clock(),
                endpoint=self._route.where,
                note=check.note,
            )
        except BaseException:
            done.conn.abort()
            raise


def _login_refused(
    box: str,
    where: str,
    route: Route,
    identities: Identities,
    passwords: PasswordSource,
    password_env: str | None,
) -> ConnectFailure:
    """Say what was tried, and whether a secret would help."""
    tried = [f"the key {name}" for name in identities.offered]
    tried += ["the password"] if passwords.given else []
    said = f"{box}: {where} refused the login"
    notes = "".join(f" {safe(note, 200)}." for note in identities.notes)
    if identities.unanswered or (passwords.unanswered and not passwords.given and not route.key_named):
        wanted = "passphrase" if identities.unanswered else "password"
        hint = f" ${password_env} is not set." if passwords.env_missing else ""
        return ConnectFailure(
            f"{box}: {where} needs a {wanted}.{hint}{notes}",
            state=LinkState.NEEDS_SECRET,
            retry=False,
            do=f"Connect again and type it, or {_other_way(wanted)}.",
            code="needs-secret",
        )
    if not tried:
        return refused(
            f"{said}: there is no key to offer.{notes}",
            do="Name a key for this box, or load one into the agent.",
        )
    return refused(
        f"{said}: it took neither {' nor '.join(tried)}.{notes}"
        if len(tried) > 1
        else f"{said}: it did not take {tried[0]}.{notes}",
        do="Check the user name and that this key or password belongs to this box, then connect again.",
    )


def _other_way(wanted: str) -> str:
    return "load the key into the ssh agent" if wanted == "passphrase" else "name a variable that holds it"


def _lost(closed: asyncio.Future[LinkLost | None], box: str, exc: Exception | None) -> None:
    if not closed.done():
        reason = safe(str(exc), 200) if exc is not None else "the other side closed it"
        closed.set_result(LinkLost(f"The link to {box} was lost: {reason}."))
