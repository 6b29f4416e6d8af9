"""What a search beyond the lines in memory found, and which range it covered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from tui.model.log import SearchHit, SearchResult
from tui.model.text import plain
from tui.widgets.figures import size
from tui.widgets.glyphs import glyphs_of
from tui.widgets.lines import Line, Span, fit
from tui.widgets.logstatus import title_line
from tui.widgets.picker import Item, Picker


class SearchList(Picker):
    """Hits as a list; enter goes to a line that is in memory. Hidden until a search is started."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "choose", "go there", show=False)]
    DEFAULT_CSS = "SearchList { display: none; height: 40%; min-height: 4; }"

    class Chosen(Message):
        """The operator wants to see this hit in the log."""

        def __init__(self, hit: SearchHit) -> None:
            super().__init__()
            self.hit = hit

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._pattern = ""
        self._old: tuple[SearchResult, ...] = ()
        self.result: SearchResult | None = None

    def start(self, pattern: str, answered: Sequence[SearchResult]) -> None:
        """A search was asked for. `answered` are results of earlier ones, which do not answer it."""
        self._pattern, self._old, self.result = pattern, tuple(answered), None
        self.display = True
        self._fill()

    def close(self) -> None:
        self.display = False

    def apply(self, results: Sequence[SearchResult], run: str | None) -> None:
        """Take in the newest answer to the search that was started."""
        if not self.display:
            return
        for result in reversed(results):
            ours = result.run == run and result.pattern == self._pattern
            if ours and not any(result is old for old in self._old):
                if result is not self.result:
                    self.result = result
                    self._fill()
                return

    def on_resize(self) -> None:
        super().on_resize()
        self._fill()

    def _fill(self) -> None:
        width = self.size.width
        if not width:
            return
        hits = self.result.hits if self.result else ()
        items = [Item(i, self._line(hit, width)) for i, hit in enumerate(hits)]
        self.show_items(items, title_line(self._title(), self._word(), width, glyphs_of(self)))

    def _title(self) -> list[Span]:
        return [("search", "title"), (f' "{self._pattern}"', "")]

    def _word(self) -> Span:
        if self.result is None:
            return ("searching the spool and the box", "attention")
        count = len(self.result.hits)
        more = "+" if self.result.capped else ""
        found = f"{count:,}{more} found in {self.result.covered}"
        return (found, "dim") if self.result.complete else (f"{found}, still searching", "attention")

    def _line(self, hit: SearchHit, width: int) -> Line:
        where = f"{hit.number:,}" if hit.number is not None else "on the box"
        if hit.number is None and hit.offset is not None:
            where = f"at {size(hit.offset)}"
        head = f" {fit(where, 11, right=True)}  "
        return (
            (head, "dim"),
            (fit(plain(hit.text), width - len(head), ellipsis=glyphs_of(self).ellipsis), ""),
        )

    @property
    def hit(self) -> SearchHit | None:
        """The hit under the cursor."""
        if self.result is None or not self.result.hits:
            return None
        return self.result.hits[self.cursor]

    def action_choose(self) -> None:
        if self.hit is not None:
            self.post_message(self.Chosen(self.hit))
