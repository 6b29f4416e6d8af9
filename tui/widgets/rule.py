"""A thin line between two regions, with its title and hints in it."""

from __future__ import annotations

from collections.abc import Iterable

from tui.widgets.glyphs import Glyphs, glyphs_of
from tui.widgets.lines import Line, Lines, Span, fit, length


def rule_line(width: int, glyphs: Glyphs, title: Iterable[Span] = (), right: Iterable[Span] = ()) -> Line:
    """``─ title ──────── right ─`` in exactly `width` cells; the right part goes first when room is short."""
    title, right = tuple(title), tuple(right)
    line = glyphs.rule
    head: tuple[Span, ...] = ((f"{line} ", "rule"), *title, (" ", "")) if title else ((line, "rule"),)
    tail: tuple[Span, ...] = ((" ", ""), *right, (f" {line}", "rule")) if right else ()
    room = width - length(head) - length(tail)
    if room < 1 and tail:
        tail = ()
        room = width - length(head)
    if room < 0:
        text = "".join(text for text, _ in head)
        return ((fit(text, width, ellipsis=glyphs.ellipsis), "title"),)
    return (*head, (line * room, "rule"), *tail)


class Rule(Lines):
    """A rule as wide as its container."""

    def __init__(self, title: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._title: tuple[Span, ...] = ((title, "title"),) if title else ()
        self._right: tuple[Span, ...] = ()

    def label(self, title: Iterable[Span] | str, right: Iterable[Span] = ()) -> None:
        """Set what stands in the rule."""
        self._title = ((title, "title"),) if isinstance(title, str) else tuple(title)
        self._right = tuple(right)
        self._draw()

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        self.show((rule_line(self.size.width, glyphs_of(self), self._title, self._right),))
