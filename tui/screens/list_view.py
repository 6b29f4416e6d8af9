"""A view that is one list: rule, items, the selected item in full, keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.widget import Widget

from tui.model.snapshot import FleetSnapshot
from tui.screens.typed_line import TypedLine
from tui.screens.view import View
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Line, Lines, Span, wrap
from tui.widgets.match import matcher
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule


class ListView(View):
    """Base of the views that list something. Subclasses say what stands in it."""

    HEADING: ClassVar[str] = ""

    def compose(self) -> ComposeResult:
        yield Rule(self.HEADING, id="top")
        yield Picker()
        yield Rule(id="bottom")
        yield Lines(id="below")
        yield from self.entry()
        yield Footer()

    def entry(self) -> Iterator[Widget]:
        """What stands between the list and the keys."""
        yield from ()

    def on_resize(self) -> None:
        self._refresh()

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        self._refresh()

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        """Head line and items for a list `width` cells wide."""
        raise NotImplementedError

    def nothing(self) -> str:
        """What an empty list says."""
        return "Nothing here."

    def below(self, width: int) -> Sequence[Line]:
        """The selected item in full."""
        return ()

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        """What stands in the rule at the left and at the right."""
        return ((self.HEADING, "title"),), ()

    def keys(self) -> list[Verb]:
        """The footer."""
        return self.verbs("back")

    def _refresh(self) -> None:
        width = self.size.width
        if not width:
            return
        head, items = self.items(width)
        picker = self.query_one(Picker)
        if not items:
            parts = wrap(self.nothing(), max(10, width - 4))
            items = [Item(None, (("  ", ""), (part, "dim"))) for part in parts]
            head = head and ()  # a list that has no head has none when it is empty, either
        picker.show_items(items, head)
        self._below()
        self.query_one("#top", Rule).label(*self.heading())
        self.offer()

    def offer(self) -> None:
        """Show the keys that do something now."""
        copies = "" if self.query_one(Picker).selected is not None else self.key_of("copy")
        self.query_one(Footer).offer([verb for verb in self.keys() if verb.key != copies], self.verbs("help"))

    @on(Picker.Moved)
    def _below(self) -> None:
        lines = self.below(self.size.width)
        box = self.query_one("#below", Lines)
        box.styles.height = len(lines)
        self.query_one("#bottom").display = bool(lines)
        box.show(lines)


class FilteredList(ListView):
    """A list whose items a line of text can narrow; `items` asks `keep` of each."""

    def __init__(self) -> None:
        super().__init__()
        self.query_text = ""
        self.keep: Callable[[str], bool] = matcher("")

    def entry(self) -> Iterator[Widget]:
        yield TypedLine()

    def filter_spans(self) -> Sequence[Span]:
        """What stands in the rule about the filter."""
        return (("  filter ", "dim"), (self.query_text, "accent")) if self.query_text else ()

    def none_matches(self) -> str:
        """What stands in for items that the filter left none of."""
        return f"Nothing matches the filter. {self.key_of('back')} shows all."

    def offer(self) -> None:
        if self.query_one(TypedLine).open:
            self.query_one(Footer).offer([Verb("enter", "filter", 1), Verb("esc", "leave", 2)])
        else:
            super().offer()

    def action_filter(self, text: str = "") -> None:
        """Show only what matches; an empty line shows all."""
        if text:
            self._filter(text)
            return
        self.query_one(TypedLine).ask("filter", "/", "text   !not this   /regex/   -f fuzzy", self._filter)
        self.offer()

    def _filter(self, text: str) -> None:
        self.keep, self.query_text = matcher(text), text.strip()
        self._refresh()

    @on(TypedLine.Closed)
    def _typed(self, message: TypedLine.Closed) -> None:
        self.query_one(Picker).focus()
        self.query_one(TypedLine).carry_out(message, self.host.say)
        self.offer()

    def action_back(self) -> None:
        """Close the line, drop the filter, else leave."""
        if self.query_one(TypedLine).open:
            self.query_one(TypedLine).close()
        elif self.query_text:
            self._filter("")
        else:
            self.dismiss(None)
