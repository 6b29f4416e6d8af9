"""The handbook page of one run: commands and places for who knows nothing of it, each to be copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult

from tui.model.command import ReadHandbook
from tui.model.handbook import HandbookView
from tui.model.text import safe
from tui.screens.list_view import ListView
from tui.widgets.footer import Footer, Verb
from tui.widgets.lines import Line, Lines, Span, clip, fit, wrap
from tui.widgets.picker import Item, Picker
from tui.widgets.rule import Rule

_TITLE = 13


class HandbookScreen(ListView):
    """What is known of a run, a line each; `y` copies the one under the cursor."""

    VIEW = "handbook"
    HEADING: ClassVar[str] = "handbook"

    def __init__(self, run: str) -> None:
        super().__init__()
        self._run = run

    def compose(self) -> ComposeResult:
        yield Rule(self.HEADING, id="top")
        yield Lines(id="note")
        yield Picker()
        yield Rule(id="bottom")
        yield Lines(id="below")
        yield Footer()

    def on_mount(self) -> None:
        super().on_mount()
        self.host.send(ReadHandbook(self._run))

    @property
    def page(self) -> HandbookView | None:
        """None until it was looked up."""
        page = self.host.snapshot.handbook
        return page if page is not None and page.run == self._run else None

    def heading(self) -> tuple[Sequence[Span], Sequence[Span]]:
        page = self.page
        word = "launched by rgt" if page is not None and page.launched else ""
        return ((f"handbook: {safe(self._run)}", "title"),), ((word, "dim"),) if word else ()

    def items(self, width: int) -> tuple[Line | None, Sequence[Item]]:
        page, dots = self.page, self.host.glyphs.ellipsis
        self._note(page, width)
        found = []
        for title, text in page.lines if page is not None else ():
            line = clip(((fit(f"  {title}", _TITLE + 2), "dim"), (text, "")), width - 1, dots)
            found.append(Item(title, line))
        return None, found

    def _note(self, page: HandbookView | None, width: int) -> None:
        note = page.note if page is not None else ""
        style = "attention" if page is not None and page.launched else "strong"
        lines = [((f"  {part}", style),) for part in wrap(note, max(20, width - 4))]
        box = self.query_one("#note", Lines)
        box.styles.height = len(lines)
        box.display = bool(lines)
        box.show(lines)

    def nothing(self) -> str:
        return "Looking it up." if self.page is None else "Nothing else is known here."

    def below(self, width: int) -> Sequence[Line]:
        most, parts = 5 if self.size.height < 24 else 8, wrap(self._selected(), max(20, width - 4))
        cut = self.host.glyphs.ellipsis if len(parts) > most else ""
        return [
            ((f"  {part}{cut if place == most else ''}", ""),) for place, part in enumerate(parts[:most], 1)
        ]

    def keys(self) -> list[Verb]:
        return self.verbs("back", "copy")

    def _selected(self) -> str:
        key = self.query_one(Picker).selected
        return next((text for title, text in (self.page.lines if self.page else ()) if title == key), "")

    def action_copy(self) -> None:
        text = self._selected()
        self.host.say(self.host.copy_text(text) if text else "There is nothing here to copy.")
