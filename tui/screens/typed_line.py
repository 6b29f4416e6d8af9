"""One line to type into at the bottom of a view: a search, a filter, a number, a file name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from tui.model.failure import Failure
from tui.widgets.lines import Lines

KEPT = 50
"""Lines remembered for each kind of question."""


class TypedLine(Horizontal):
    """Hidden until something is asked. Up and down bring back what was typed to the same question."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "recall(-1)", "earlier", show=False),
        Binding("down", "recall(1)", "later", show=False),
    ]
    DEFAULT_CSS = """
    TypedLine { height: 1; display: none; }
    TypedLine.-open { display: block; }
    TypedLine > Lines { height: 1; }
    """

    class Closed(Message):
        """The line is gone again. `submit` is None when the operator thought better of it."""

        def __init__(self, text: str, submit: Callable[[str], None] | None) -> None:
            super().__init__()
            self.text = text
            self.submit = submit

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._kind = ""
        self._submit: Callable[[str], None] | None = None
        self._earlier: dict[str, list[str]] = {}
        self._recalled = 0

    def compose(self) -> ComposeResult:
        yield Lines()
        yield Input(compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False

    @property
    def open(self) -> bool:
        return self.has_class("-open")

    def ask(self, kind: str, sign: str, hint: str, submit: Callable[[str], None]) -> None:
        """Ask for a line.

        Args:
            kind: questions of one kind share their history.
            sign: what stands before the line.
            submit: called with the line; an empty one counts.
        """
        self._kind, self._submit, self._recalled = kind, submit, 0
        label, field = self.query_one(Lines), self.query_one(Input)
        label.styles.width = len(sign) + 2
        label.show((((f" {sign} ", "accent"),),))
        field.value = ""
        field.placeholder = hint
        self.add_class("-open")
        field.focus()

    def remember(self, kind: str, lines: Sequence[str]) -> None:
        """Let questions of this kind bring back lines from before, the newest last."""
        self._earlier.setdefault(kind, list(lines)[-KEPT:])

    def carry_out(self, message: Closed, told: Callable[[str, str], None]) -> None:
        """Do what was typed. What can't be done is told, and asked anew with the text as it was.

        Args:
            told: takes a sentence and its level.
        """
        if message.submit is None:
            return
        try:
            message.submit(message.text)
        except Failure as failure:
            told(failure.line, "attention")
            self.again(message)

    def again(self, message: Closed) -> None:
        """Ask the same question anew with what was typed to it, because the answer was no good."""
        self._submit = message.submit
        field = self.query_one(Input)
        field.value = message.text
        field.cursor_position = len(field.value)
        self.add_class("-open")
        field.focus()

    def close(self) -> None:
        """Take the line away without an answer."""
        self._leave("", None)

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value
        history = self._earlier.setdefault(self._kind, [])
        if text and (not history or history[-1] != text):
            history.append(text)
            del history[:-KEPT]
        self._leave(text, self._submit)

    def _leave(self, text: str, submit: Callable[[str], None] | None) -> None:
        if self.open:
            self.remove_class("-open")
            self._submit = None
            self.post_message(self.Closed(text, submit))

    def action_recall(self, step: int) -> None:
        """Bring back an earlier line."""
        history = self._earlier.get(self._kind, [])
        self._recalled = max(-len(history), min(0, self._recalled + step))
        field = self.query_one(Input)
        field.value = history[self._recalled] if self._recalled else ""
        field.cursor_position = len(field.value)

    def on_key(self, event: events.Key) -> None:
        if event.key == "tab":  # a line being typed keeps the focus; esc leaves it
            event.stop()
            event.prevent_default()
