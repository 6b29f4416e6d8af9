"""A view that is one list: rule, items, the selected item in full, keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from tui.model.snapshot import FleetSnapshot
from tui.screens.view import View
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Line, Lines, Span
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
        yield Footer()

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
            items = [Item(None, (("  ", ""), (self.nothing(), "dim")))]
            head = ()
        picker.show_items(items, head)
        self._below()
        self.query_one("#top", Rule).label(*self.heading())
        self.query_one(Footer).offer(self.keys())

    @on(Picker.Moved)
    def _below(self) -> None:
        lines = self.below(self.size.width)
        box = self.query_one("#below", Lines)
        box.styles.height = len(lines)
        self.query_one("#bottom").display = bool(lines)
        box.show(lines)
