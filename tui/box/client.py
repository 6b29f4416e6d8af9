"""Our side of one SSH login, as asyncssh calls it.

Imports asyncssh, so it is imported late (with the first connection).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import asyncssh

from tui.box.host_key import HostKeyCheck
from tui.box.identities import Identities
from tui.box.secrets import PasswordSource
from tui.model.text import SafeText, safe


class BoxClient(asyncssh.SSHClient):
    """Answers the questions of one login.

    Args:
        on_connected: called when TCP stands.
        on_lost: called when the connection is over, with the reason or None.

    Attributes:
        rtt: seconds that the server took to say which ways to log in there are: a round trip and what it did
            meanwhile. None before that.
    """

    def __init__(
        self,
        where: str,
        check: HostKeyCheck,
        identities: Identities,
        passwords: PasswordSource,
        *,
        on_connected: Callable[[], None],
        on_lost: Callable[[Exception | None], None],
    ) -> None:
        self._where = where
        self._check = check
        self._identities = identities
        self._passwords = passwords
        self._on_connected = on_connected
        self._on_lost = on_lost
        self.banner: SafeText = SafeText("")
        self.rtt: float | None = None
        self._asked = 0.0

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._on_connected()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost(exc)

    # Not a coroutine, ever: asyncssh does not await it, and a coroutine object is true.
    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        return self._check.accepts(key.export_public_key().decode("ascii").strip())

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.banner = safe(" ".join(f"{self.banner} {msg}".split()), 500)

    def begin_auth(self, username: str) -> None:
        self._asked = time.monotonic()

    async def public_key_auth_requested(self) -> asyncssh.SSHKeyPair | None:
        self._answered()
        return await self._identities.next()

    async def password_auth_requested(self) -> str | None:
        self._answered()
        return await self._passwords.password(f"Password for {self._where}:")

    def kbdint_auth_requested(self) -> str:
        self._answered()
        return ""

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> Sequence[str] | None:
        return await self._passwords.challenge(list(prompts))

    def _answered(self) -> None:
        if self.rtt is None:
            self.rtt = time.monotonic() - self._asked
