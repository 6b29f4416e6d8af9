"""Asks the operator for a password through the screens, and waits with a deadline."""

from __future__ import annotations

import asyncio

from tui.fleet.store import Store
from tui.model.command import GiveSecret
from tui.model.event import LinkChanged, SecretAsked
from tui.model.instance import Link, LinkState
from tui.model.text import SafeText, safe

DEADLINE_S = 180.0


class StoreAsker:
    """One open question per box; what is typed goes to the one who asked and nowhere else."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, asyncio.Future[str]] = {}

    async def ask(self, box: str, prompt: str) -> str | None:
        """The operator's answer, or None when none came in time."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[box] = future
        asked = SecretAsked(box, safe(prompt, 200))
        link = Link(LinkState.NEEDS_SECRET, self._store.clock(), SafeText("Waiting for a password."))
        await self._store.put(LinkChanged(box, link))
        await self._store.put(asked)
        try:
            return await asyncio.wait_for(future, DEADLINE_S)
        except TimeoutError:
            return None
        finally:
            self._waiting.pop(box, None)

    def answer(self, given: GiveSecret) -> bool:
        """Hand over what was typed; False when nothing was asked (the secret is forgotten)."""
        future = self._waiting.get(given.box)
        if future is None or future.done():
            return False
        future.set_result(given.secret)
        return True
