"""When the screen is drawn: once for however many snapshots came meanwhile, and only what is in sight."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.message import Message
from textual.screen import ModalScreen

from tui.guard import Guard
from tui.lending import Lending

if TYPE_CHECKING:
    from tui.model.snapshot import FleetSnapshot

AGES_S = 2.0
"""How often ages are judged again while nothing arrives; only words that change are painted."""


class Frame(Message, bubble=False):
    """There is a newer snapshot to draw. At most one of these is on its way at any time."""


class Frames:
    """Has `app` drawn.

    Args:
        snapshot: gives the newest one.
    """

    def __init__(
        self, app: App[Any], guard: Guard, lending: Lending, snapshot: Callable[[], FleetSnapshot]
    ) -> None:
        self._app, self._guard, self._lending, self._snapshot = app, guard, lending, snapshot
        self._touched: set[str] = set()
        self._due = False

    def ask(self, runs: frozenset[str] = frozenset()) -> None:
        """Draw soon; `runs` have new lines. What has the terminal now is not drawn over."""
        self._touched |= runs
        if not self._due and not self._lending.away:
            self._due = True
            self._app.post_message(Frame())

    def keep_up(self, clock: Callable[[], float]) -> None:
        """Draw from now on also when nothing is heard: ages grow, and at each full minute what was spent."""
        self._app.set_interval(AGES_S, self.ask)
        self._await_minute(clock)

    def _await_minute(self, clock: Callable[[], float]) -> None:
        def passed() -> None:
            self.ask()
            self._await_minute(clock)

        self._app.set_timer(60.5 - clock() % 60, passed)

    def draw(self) -> None:
        """Draw the newest snapshot on what is in sight: the view in front, and a sheet over it."""
        self._due = False
        touched, self._touched = frozenset(self._touched), set()
        with self._app.batch_update():
            for screen in reversed(self._app.screen_stack):
                apply = getattr(screen, "apply", None)
                if apply is not None and screen.is_mounted:
                    try:
                        apply(self._snapshot(), touched)
                    except Exception as error:  # noqa: BLE001 - one bad picture must not end the watch
                        self._guard.fault("draw", error)
                if not isinstance(screen, ModalScreen):
                    break
