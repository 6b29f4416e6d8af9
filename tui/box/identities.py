"""The private keys to offer at one login: few, in a sensible order, unlocked only when the server wants them.

Imports asyncssh, so it is imported late (with the first connection).
"""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path

import asyncssh

from tui.box.errors import ConnectFailure, refused
from tui.box.secrets import Asker, Vault
from tui.box.ssh_config import Route
from tui.model.text import safe

_OFFERED_MAX = 5  # sshd gives up after 6 failures (MaxAuthTries), and a password may still have to follow
_AGENT_S = 5.0
_PASSPHRASE_TRIES = 3


class Identities:
    """Hands out key pairs one by one: `prepare` before the login, `close` after it.

    Attributes:
        offered: names of the keys that were tried.
        unanswered: a passphrase was asked for and not given.
        notes: keys that could not be used, and why.
        failure: the key this box names cannot be used.
    """

    def __init__(self, box: str, route: Route, vault: Vault, asker: Asker) -> None:
        self._box, self._route, self._vault, self._asker = box, route, vault, asker
        self._agent: asyncssh.SSHAgentClient | None = None
        self._queue: deque[asyncssh.SSHKeyPair | Path] = deque()
        self.failure: ConnectFailure | None = None
        self.offered: list[str] = []
        self.unanswered = False
        self.notes: list[str] = []

    async def prepare(self) -> None:
        """Find the keys and ask the agent. Raises ConnectFailure when the key this box names is not there."""
        self._queue = deque(await self._plan())

    async def next(self) -> asyncssh.SSHKeyPair | None:
        """The next key to offer, or None. Called within the login, so it keeps a `failure` for later."""
        while self._queue and len(self.offered) < _OFFERED_MAX:
            entry = self._queue.popleft()
            if isinstance(entry, Path):
                try:
                    loaded = await self._load(entry)
                except ConnectFailure as failure:
                    self.failure = failure
                    return None
                self._queue.extendleft(reversed(loaded))
                continue
            self.offered.append(safe(entry.get_comment("utf-8", "replace") or entry.get_algorithm(), 200))
            return entry
        return None

    def close(self) -> None:
        """Let go of the agent. Key pairs that it signs with are of no use afterwards."""
        if self._agent is not None:
            self._agent.close()
            self._agent = None

    async def _plan(self) -> list[asyncssh.SSHKeyPair | Path]:
        """As ssh orders them: named keys that the agent holds, its other keys, then the files."""
        files = [path for path in self._route.keys if self._present(path)]
        public = {path: await asyncio.to_thread(_public_half, path) for path in files}
        held = await self._agent_keys()
        by_agent = [held.pop(data) for data in public.values() if data is not None and data in held]
        in_agent = {pair.key_public_data for pair in by_agent}
        from_file = [path for path in files if public[path] not in in_agent and path.suffix != ".pub"]
        others = [] if self._route.identities_only else list(held.values())
        room = _OFFERED_MAX - len(by_agent) - min(len(from_file), 2)  # the agent must not crowd out the files
        return [*by_agent, *others[: max(0, room)], *from_file]

    def _present(self, path: Path) -> bool:
        if path.is_file():
            return True
        if self._route.key_named:
            raise refused(
                f"{self._box}: the key file {path} is not there.",
                do="Correct the key of this box.",
                code="no-key",
            )
        return False

    async def _agent_keys(self) -> dict[bytes, asyncssh.SSHKeyPair]:
        """The agent's keys by public half; none when it does not answer, which is noted."""
        if self._route.agent is None:
            return {}
        try:
            async with asyncio.timeout(_AGENT_S):
                self._agent = await asyncssh.connect_agent(self._route.agent)
                pairs = await self._agent.get_keys()
        except (asyncssh.Error, OSError, ValueError, TimeoutError) as exc:
            self.notes.append(f"the ssh agent did not answer ({safe(str(exc), 100) or 'timeout'})")
            return {}
        return {pair.key_public_data: pair for pair in pairs}

    async def _load(self, path: Path) -> list[asyncssh.SSHKeyPair]:
        try:
            return list(await asyncio.to_thread(asyncssh.load_keypairs, str(path)))
        except OSError as exc:
            return self._unusable(path, exc.strerror or str(exc))
        except asyncssh.KeyImportError as exc:
            if not str(exc).startswith("Passphrase"):
                return self._unusable(path, str(exc))
        try:
            public = await asyncio.to_thread(_read_public, path)
        except (OSError, ValueError):  # an old format whose public half is locked, too
            key = await self._unlock(path)
            return [] if key is None else list(asyncssh.load_keypairs([key]))
        return [_LockedKey(public, path, self)]

    def _unusable(self, path: Path, why: str) -> list[asyncssh.SSHKeyPair]:
        if self._route.key_named:
            raise refused(
                f"{self._box}: the key file {path} cannot be used: {safe(why, 200)}.",
                do="Correct the key of this box.",
                code="bad-key",
            )
        self.notes.append(f"{path}: {safe(why, 200)}")
        return []

    async def _unlock(self, path: Path) -> asyncssh.SSHKey | None:
        """Ask for the passphrase until it fits. None: there was no (right) answer."""
        purpose = f"passphrase {path}"
        data = await asyncio.to_thread(path.read_bytes)
        for attempt in range(_PASSPHRASE_TRIES + 1):
            passphrase = self._vault.get(self._box, purpose) if attempt == 0 else None
            if passphrase is None and attempt == 0:
                continue
            if passphrase is None:
                again = "Wrong passphrase. " if attempt > 1 else ""
                passphrase = await self._asker.ask(self._box, safe(f"{again}Passphrase for {path}:", 300))
            if passphrase is None:
                self.unanswered = True
                return None
            try:
                # bcrypt takes about 100 ms on purpose
                key = await asyncio.to_thread(asyncssh.import_private_key, data, passphrase)
            except ValueError:
                self._vault.drop(self._box, purpose)
                continue
            self._vault.put(self._box, purpose, passphrase)
            return key
        self.notes.append(f"{path}: wrong passphrase")
        return None


class _LockedKey(asyncssh.SSHKeyPair):
    """An encrypted key, offered by its public half: the passphrase is asked for when the server wants it."""

    _key_type = "local"

    def __init__(self, public: asyncssh.SSHKey, path: Path, source: Identities) -> None:
        super().__init__(
            public.algorithm,
            public.algorithm,
            public.sig_algorithms,
            public.sig_algorithms,
            public.public_data,
            str(path),
        )
        self._path = path
        self._source = source

    async def sign_async(self, data: bytes) -> bytes:
        key = await self._source._unlock(self._path)
        if key is None:
            raise ValueError("no passphrase")  # asyncssh goes on with the next key
        pair = asyncssh.load_keypairs([key])[0]
        pair.set_sig_algorithm(self.sig_algorithm)
        return await asyncio.to_thread(pair.sign, data)


def _read_public(path: Path) -> asyncssh.SSHKey:
    try:
        return asyncssh.read_public_key(f"{path}.pub")
    except (OSError, ValueError):
        return asyncssh.read_public_key(str(path))


def _public_half(path: Path) -> bytes | None:
    try:
        return _read_public(path).public_data
    except (OSError, ValueError):
        return None
