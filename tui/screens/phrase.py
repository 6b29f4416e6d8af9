"""The line that a phrase is typed into. What was typed ahead, pasted or sent in one burst is no answer."""

from __future__ import annotations

import string
import time
from collections.abc import Callable
from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.keys import _character_to_key
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from tui.screens.host import host_of
from tui.widgets.lines import Lines

SETTLE_S = 0.25
"""How long the keyboard must be silent before the line takes anything."""
AFTER_S = 0.08
"""What comes so soon after Enter was pasted or sent, not typed."""


Word = Literal["gone", "stopped", "there", "unsure"]


def word_of(typed: str, verb: Literal["stop", "destroy"]) -> Word:
    """What the operator says the console shows; whatever is not one of the words asked for is unsure."""
    done: Word = "stopped" if verb == "stop" else "gone"
    words: dict[str, Word] = {done: done, "there": "there"}
    return words.get(typed.strip(), "unsure")


class PhraseInput(Input):
    """A field that takes keys from the keyboard alone.

    Attributes:
        spoiled: why what is in it is no answer, in words.
    """

    # Keys that were on their way to another widget when the line opened come back as keys of the view, which
    # would act on them; the bindings of what has the focus go first.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(_character_to_key(one), "came_ahead", show=False) for one in string.printable.strip() + " "
    ]

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(compact=True, select_on_focus=False, id="typed")
        self.cursor_blink = False
        self._clock = clock
        self._quiet_at = 0.0
        self._submitting: Timer | None = None
        self.spoiled = ""

    class Given(Message):
        """What was typed, exactly; `spoiled` says why it counts for nothing."""

        def __init__(self, text: str, spoiled: str) -> None:
            super().__init__()
            self.text = text
            self.spoiled = spoiled

    class Ahead(Message):
        """Keys came before the question was there, and were thrown away."""

    def open(self) -> None:
        """Take nothing until the keyboard was silent for a moment."""
        self.value = ""
        self.spoiled = ""
        self._quiet_at = self._clock() + SETTLE_S
        self.screen.set_focus(self)  # at once: the next key may be here already

    def on_key(self, event: events.Key) -> None:
        now = min(self._clock(), event.time)  # when it was typed: a busy screen may come to it much later
        if event.key == "escape":
            return
        if now < self._quiet_at:
            self._quiet_at = now + SETTLE_S
            event.stop()
            event.prevent_default()
            self.post_message(self.Ahead())
        elif self._submitting is not None:
            self.spoiled = "More than one line came at once."
            event.stop()
            event.prevent_default()
        elif event.key == "enter":
            event.stop()
            event.prevent_default()
            self._submitting = self.set_timer(AFTER_S, self._submit)
        elif event.key == "tab":
            event.stop()
            event.prevent_default()

    def action_came_ahead(self) -> None:
        """Throw a key away that was meant for the view as it was before."""
        self._quiet_at = max(self._quiet_at, self._clock() + SETTLE_S)
        self.post_message(self.Ahead())

    async def action_submit(self) -> None:
        """An Enter that was on its way elsewhere gives nothing; one that is typed here ends in `on_key`."""
        self.action_came_ahead()

    def _submit(self) -> None:
        """A key that came with Enter may still be with a busy app: what is ahead of this there goes first."""
        self.app.call_later(self.call_later, self._give)

    def _give(self) -> None:
        if host_of(self).keys_wait:
            self._submitting = self.set_timer(AFTER_S, self._submit)
            return
        self._submitting = None
        text, spoiled = self.value, self.spoiled
        self.value, self.spoiled = "", ""
        self._quiet_at = self._clock() + SETTLE_S
        self.post_message(self.Given(text, spoiled))

    def _on_paste(self, event: events.Paste) -> None:
        """A paste is no typing, whatever is in it."""
        event.stop()
        event.prevent_default()
        self.spoiled = "It was pasted."

    def action_paste(self) -> None:
        """Nothing comes from a clipboard."""
        self.spoiled = "It was pasted."


class PhraseLine(Vertical):
    """What is to be typed, and under it the line for it. It opens by a key of its own and never by itself."""

    DEFAULT_CSS = """
    PhraseLine { height: 1; display: none; }
    PhraseLine.-asked { display: block; }
    PhraseLine.-open { height: 2; }
    PhraseLine > Lines { height: 1; }
    PhraseLine > PhraseInput { display: none; margin: 0 0 0 3; }
    PhraseLine.-open > PhraseInput { display: block; }
    """

    def compose(self) -> ComposeResult:
        yield Lines(id="wanted")
        yield PhraseInput()

    @property
    def field(self) -> PhraseInput:
        return self.query_one(PhraseInput)

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def open(self) -> None:
        """Let it be typed."""
        self.add_class("-open")
        self.field.open()

    def close(self) -> None:
        """Take the line away; what was in it is forgotten."""
        self.field.value = ""
        self.remove_class("-open")
