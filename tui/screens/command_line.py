"""The ``:`` line: typed commands with completion and history, over any view."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from tui.model.failure import Failure
from tui.screens.command_words import Words, complete, parse
from tui.screens.view import Sheet
from tui.widgets.lines import Line, Lines, Span, fit, wrap
from tui.widgets.rule import Rule

SHOWN = 6
"""Suggestions in sight."""


_KEYS: tuple[Span, ...] = (("tab", "strong"), (" completes   ", "dim"), ("esc", "strong"), (" leaves", "dim"))


class CommandLine(Sheet[tuple[str, str | None]]):
    """Returns the action's id and its argument, or None when the operator thought better of it.

    Args:
        words: what can be said here.
        prefill: what stands on the line at first.
    """

    CSS_PATH = "sheet.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete(1)", "complete", show=False, priority=True),
        Binding("shift+tab", "complete(-1)", "complete", show=False, priority=True),
        Binding("up", "recall(-1)", "earlier", show=False),
        Binding("down", "recall(1)", "later", show=False),
    ]

    def __init__(self, words: Words, prefill: str = "") -> None:
        super().__init__()
        self._words = words
        self._prefill = prefill
        self._stem = prefill  # what completion completes: the line as typed by hand
        self._chosen = -1
        self._recalled = 0

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Rule("command", id="title")
            yield Lines(id="suggestions")
            with Horizontal(classes="entry"):
                yield Lines((((":", "accent"),),), classes="sign")
                yield Input(self._prefill, compact=True, select_on_focus=False)

    def on_mount(self) -> None:
        self.query_one("#title", Rule).label("command", _KEYS)
        field = self.query_one(Input)
        field.cursor_blink = False
        field.focus()
        field.cursor_position = len(field.value)
        self._suggest()

    def action_complete(self, step: int) -> None:
        """Put the next suggestion on the line."""
        found = complete(self._stem, self._words)
        if not found:
            return
        if len(found) == 1:
            self._stem = found[0].line
            self._chosen = -1
            self._put(self._stem)
        else:
            self._chosen = (self._chosen + step) % len(found)
            self._put(found[self._chosen].line.rstrip())
        self._suggest()

    def action_recall(self, step: int) -> None:
        """Put an earlier line back."""
        history = self.host.typed
        self._recalled = max(-len(history), min(0, self._recalled + step))
        self._put(history[self._recalled] if self._recalled else self._stem)

    def _put(self, text: str) -> None:
        field = self.query_one(Input)
        with field.prevent(Input.Changed):
            field.value = text
        field.cursor_position = len(text)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._stem, self._chosen = event.value, -1
        self._suggest()

    def _suggest(self, problem: str = "") -> None:
        lines: list[Line] = []
        lines += [((f"  {part}", "attention"),) for part in wrap(problem, max(20, self.size.width - 4))]
        found = complete(self._stem, self._words)
        start = max(0, self._chosen - SHOWN + 1)
        shown = found[start : start + SHOWN]
        cells = min(24, max([14, *(len(one.line) + 3 for one in shown if one.help)]))
        for place, suggestion in enumerate(shown, start):
            chosen = place == self._chosen
            name = f"  {suggestion.line}"
            name = fit(name, cells) if suggestion.help else name  # a name alone is never cut
            lines.append(
                ((name, "accent" if chosen else "strong"), (suggestion.help, "" if chosen else "dim"))
            )
        box = self.query_one("#suggestions", Lines)
        box.styles.height = len(lines)
        box.show(lines)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        line = event.value.strip()
        if not line:
            self.dismiss(None)
            return
        try:
            action, rest = parse(line, self._words)
        except Failure as failure:
            self._suggest(failure.line)
            return
        history = self.host.typed
        if not history or history[-1] != line:
            history.append(line)
            del history[:-100]
        self.dismiss((action.id, rest))
