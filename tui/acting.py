"""Finds who does what the registry calls by a name, and has it done."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import App

from tui.actions import BY_ID, Action, Level
from tui.guard import Guard
from tui.lending import Lending
from tui.model.failure import Failure

if TYPE_CHECKING:
    from tui.screens.everywhere import Everywhere


class Acting:
    """Acts on the focused widget, its parents, the screen, the app, or what is there in every view.

    Args:
        say: shows one sentence at a level.
        everywhere: what may be asked for in every view; None before the views are loaded.
        rgt: how a verb is run on this terminal.
    """

    def __init__(
        self,
        app: App[Any],
        guard: Guard,
        lending: Lending,
        *,
        say: Callable[[str, str], None],
        everywhere: Callable[[], Everywhere | None],
        rgt: Sequence[str],
        read_only: bool,
    ) -> None:
        self._app, self._guard, self._lending = app, guard, lending
        self._say, self._everywhere = say, everywhere
        self._rgt, self._read_only = tuple(rgt), read_only

    async def perform(self, action_id: str, text: str | None = None) -> None:
        """Do what the registry calls `action_id`, behind the one guard."""
        action = BY_ID.get(action_id)
        if action is None:
            self._say(f"There is no command {action_id!r}.", "attention")
        elif self._read_only and action.level > Level.OBSERVE:
            self._say(f"{action.id} changes something; this is read-only mode.", "attention")
        elif (handler := self._handler(action)) is None:
            self._say(f"{action.label.removeprefix(': ')}: nothing to do that with here.", "attention")
        else:
            await self._guard.act(action.id, lambda: handler(text) if text is not None else handler())

    def _handler(self, action: Action) -> Callable[..., Any] | None:
        name, app = f"action_{action.id}", self._app
        near = app.focused.ancestors_with_self if app.focused else ()
        places = [*near, app.screen, app, self._everywhere()]
        found = next((getattr(p, name) for p in places if callable(getattr(p, name, None))), None)
        return found if found is not None or not action.runs else partial(self._run_verb, action)

    def _run_verb(self, action: Action, text: str = "") -> None:
        """Hand the terminal to a verb about what is selected; Enter comes back from what it said."""
        everywhere = self._everywhere()
        if everywhere is None:
            raise Failure("Nothing is selected yet.")
        if not text and action.takes and not action.takes.startswith("["):
            everywhere.action_command(f"{action.id} ")
            return
        self._guard.spawn(self._verb(everywhere.verb_words(action, text)), action.id)

    async def _verb(self, words: Sequence[str]) -> None:
        await self._lending.lend([*self._rgt, *words], f"rgt {shlex.join(words)}", stay=True)
