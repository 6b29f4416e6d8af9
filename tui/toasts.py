"""Sentences that stand over the screen for a few seconds: what was just done, and what the workers report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.app import App

from tui.model.text import safe

if TYPE_CHECKING:
    from tui.model.event import Notice

MOST = 3
"""Reports that come together and are shown one by one; more are counted, and listed in their view."""

_SEVERITY = {"attention": "warning", "danger": "error"}


class Toasts:
    """Shows them on `app`; `messages` tells how the view that lists all reports is reached."""

    def __init__(self, app: App[Any], messages: Callable[[], str]) -> None:
        self._app = app
        self._messages = messages
        self._known: tuple[Notice, ...] = ()
        self._pile: tuple[Notice, ...] = ()  # what those in sight say

    def say(self, text: str, level: str = "info") -> None:
        """Show one sentence, once. Levels: ``info``, ``attention``, ``danger``.

        Words of no weight give way to the next ones: a pile of them hides what they are about.
        """
        if level == "info":
            self.hush(but=safe(text))
        self._show(text, level)

    def hush(self, but: str = "") -> None:
        """Take words of no weight out of sight."""
        shown = self._app._notifications
        light = [one for one in shown if one.severity == "information" and one.message != but]
        for toast in light:
            self._app._unnotify(toast, refresh=False)
        if light:
            self._app._refresh_notifications()

    def tell(self, notices: tuple[Notice, ...]) -> None:
        """One for each report that is new, as long as they are few; more would bury the screen."""
        fresh = self._unseen(notices)
        if all(toast.has_expired for toast in self._app._notifications):
            self._pile = ()
        self._pile += fresh
        if len(self._pile) <= MOST:
            for notice in fresh:
                self._show(notice.text, notice.level)
        elif fresh:
            self._app.clear_notifications()
            levels = [notice.level for notice in self._pile]
            worst = next((level for level in ("danger", "attention") if level in levels), "info")
            first = self._pile[levels.index(worst)]
            self.say(f"{len(self._pile)} messages; {self._messages()} lists them. {first.text}", worst)

    def _show(self, text: str, level: str) -> None:
        if any(one.message == safe(text) and not one.has_expired for one in self._app._notifications):
            return
        self._app.notify(safe(text), severity=_SEVERITY.get(level, "information"), markup=False)  # type: ignore[arg-type]

    def _unseen(self, notices: tuple[Notice, ...]) -> tuple[Notice, ...]:
        """The reports that were not shown yet; the store keeps only the newest ones."""
        last = self._known[-1] if self._known else None
        self._known = notices
        places = [place for place, notice in enumerate(notices) if notice is last]
        return notices[places[-1] + 1 :] if places else notices
