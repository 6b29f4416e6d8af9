"""Lends the terminal to another program, such as ssh, and takes it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from textual.app import App

from tui import terminal

if TYPE_CHECKING:
    from asyncio.subprocess import Process


class Lending:
    """Who has the terminal of `app`. `leave` ends the app where it was told to go meanwhile, `back` draws it.

    Attributes:
        away: another program has the terminal.
    """

    def __init__(self, app: App[Any], leave: Callable[[], None], back: Callable[[], None]) -> None:
        self._app = app
        self._leave, self._back = leave, back
        self._guests: list[Process] = []
        self._signalled = False
        self.away = False

    async def lend(self, argv: Sequence[str], banner: str, *, stay: bool = False) -> int | None:
        """Run a program in front of the screen; its exit status, None where rgt itself must go.

        Args:
            stay: what it wrote is left to be read until Enter.
        """
        self.away = True
        try:
            with self._app.batch_update(), self._app.suspend():
                code = await terminal.hand_over(list(argv), banner, self._guests.append, stay=stay)
        finally:
            self.away = False
            self._guests.clear()
        if self._signalled:
            self._leave()
            return None
        self._back()
        return code

    async def shell(self, box: str, argv: Sequence[str]) -> tuple[str, str] | None:
        """A shell on a box; what there is to say of its end, and at what level. None: rgt itself must go."""
        code = await self.lend(argv, f"rgt: a shell on {box}; leave it to come back.")
        if code is None:
            return None
        return f"The shell on {box} {terminal.ended(code)}.", "info" if code == 0 else "attention"

    def end(self) -> None:
        """Ask the program that has the terminal to go, and go after it."""
        self._signalled = True
        for guest in self._guests:
            guest.terminate()
