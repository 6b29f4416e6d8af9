"""What all views share: their keys, the newest picture when they come to the front, sheets at the bottom."""

from __future__ import annotations

import time
from typing import ClassVar, TypeVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen

from tui.actions import for_view
from tui.model.snapshot import FleetSnapshot
from tui.screens.host import Host, host_of
from tui.screens.keys import install, keys_of, shown
from tui.widgets.footer import Verb

T = TypeVar("T")

SURE_S = 5.0
"""Within this time the same key means that it was meant."""


class View(Screen[None]):
    """A whole screen of the app."""

    VIEW: ClassVar[str] = ""
    AUTO_FOCUS = "Picker"
    _asked: tuple[str, float] = ("", 0.0)

    @property
    def host(self) -> Host:
        return host_of(self)

    def on_mount(self) -> None:
        install(self, self.VIEW)

    def on_screen_resume(self) -> None:
        self.apply(self.host.snapshot, frozenset())

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        """Draw a snapshot; called at most once a frame, for the view in front only."""

    def twice(self, action_id: str, what: str) -> bool:
        """Whether the same was asked for a moment ago, too; else says that it takes a second time.

        The check of an action that loses what the operator wrote and is one slip of a finger away.
        """
        asked, at = self._asked
        self._asked = (what, time.monotonic())
        if asked == what and time.monotonic() - at < SURE_S:
            self._asked = ("", 0.0)
            return True
        self.host.say(f"{self.key_of(action_id) or 'The same'} again {what}.")
        return False

    def key_of(self, action_id: str) -> str:
        """How the key of an action is written; empty when the action does not exist here."""
        return key_of(self.host, self.VIEW, action_id)

    def verbs(self, *wanted: str) -> list[Verb]:
        """Footer entries of the actions that exist in this view, in the registry's order.

        Args:
            wanted: ids that apply now; all that have a rank when empty.
        """
        return [
            Verb(self.key_of(a.id), a.label.removeprefix(": "), a.footer or (0 if a.id == "back" else 50 + i))
            for i, a in enumerate(for_view(self.VIEW, read_only=self.host.read_only))
            if self.key_of(a.id) and (a.id in wanted if wanted else a.footer > 0)
        ]


class Sheet(ModalScreen[T]):
    """A few lines at the bottom over the view below it; esc closes it without any effect."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.act('back')", "back", show=False)]

    @property
    def host(self) -> Host:
        return host_of(self)


def key_of(host: Host, view: str, action_id: str) -> str:
    """How the first key of an action is written; empty where the view has no such action."""
    for action in for_view(view, read_only=host.read_only):
        if action.id == action_id:
            keys = keys_of(action, host.key_overrides)
            return shown(keys[0], ascii_only=host.glyphs.name == "ascii") if keys else ""
    return ""
