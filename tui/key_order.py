"""Keys one after another: each is given away when the one before it has done what it does.

Textual gives a key to what has the focus at that moment. Of keys that come at once, over a slow line or from
a program, all but the first went to what had the focus before: of ``/seed`` only the stroke was understood,
and the letters acted on the view behind the line that it opened.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from textual import events
from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump
from textual.timer import Timer

PATIENCE_S = 1.0
"""How long a key waits for the one before it: even on a busy computer a view opens in less."""

AT_ONCE = frozenset(("ctrl+c", "ctrl+q"))
"""Keys that wait for nothing: they leave."""

Typed = events.Key | events.Paste


class Passed(Message):
    """Follows a key on its way from the focused widget up to the app: when it comes, the key is done."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class KeyOrder:
    """Decides when each key of `app` is given away."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._waiting: deque[Typed] = deque()
        self._next: Typed | None = None  # on its way back to the app
        self._number = 0  # of the key that is under way; 0: none is
        self._given = 0
        self._timer: Timer | None = None

    @property
    def busy(self) -> bool:
        """Whether a key is under way, or waits."""
        return self._number > 0

    def hold(self, event: Typed) -> bool:
        """Whether this key has to wait; it then comes again by itself."""
        if event is self._next:
            self._next = None
        elif self._number:
            self._waiting.append(event)
            return True
        else:
            self._begin()
        return False

    def follow(self, target: MessagePump) -> None:
        """The key was given to `target`: find out when it is done."""
        number = self._number
        self._timer = self._app.set_timer(PATIENCE_S, lambda: self._done(number))
        target.post_message(Passed(number))

    def passed(self, message: Passed) -> None:
        """What the key did is done, but for what it left to be done soon: a view that mounts, a new focus."""
        self._app.screen.call_later(self._app.call_later, self._done, message.number)

    def _done(self, number: int) -> None:
        if number != self._number:
            return
        if self._timer is not None:
            self._timer.stop()
        if self._waiting:
            self._begin()  # from here on: the other one of trace and timer may come for the one before
            self._next = self._waiting.popleft()
            self._app.post_message(self._next)
        else:
            self._number = 0

    def _begin(self) -> None:
        self._given += 1
        self._number = self._given
