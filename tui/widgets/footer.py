"""The last line: the verbs that apply now, most wanted first, as many as fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tui.widgets.glyphs import glyphs_of
from tui.widgets.lines import Line, Lines, Span, length


@dataclass(frozen=True, slots=True)
class Verb:
    """A key as people read it, what it does, and how far in front it stands (1 is first)."""

    key: str
    label: str
    rank: int


def footer_line(verbs: Iterable[Verb], width: int, always: Sequence[Verb] = ()) -> Line:
    """As many verbs as fit into `width` cells, in order of rank; `always` keeps its place at the end."""
    tail: list[Span] = []
    for verb in always:
        tail += _spans(verb)
    line: list[Span] = [(" ", "")]
    for verb in sorted(verbs, key=lambda v: v.rank):
        spans = _spans(verb)
        if length(line) + length(spans) + length(tail) > width:
            break
        line += spans
    return tuple(line + tail) if length(line) + length(tail) <= width else tuple(line)


def _spans(verb: Verb) -> list[Span]:
    return [(verb.key, "strong"), (f" {verb.label}   " if verb.label else "   ", "dim")]


class Footer(Lines):
    """Shows verbs; says something else for once when asked to."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._verbs: tuple[Verb, ...] = ()
        self._always: tuple[Verb, ...] = ()

    def offer(self, verbs: Iterable[Verb], always: Iterable[Verb] = ()) -> None:
        """Set the verbs that apply now."""
        self._verbs, self._always = tuple(verbs), tuple(always)
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        line = footer_line(self._verbs, self.size.width, self._always)
        if glyphs_of(self).name == "ascii":
            line = tuple((_ASCII.get(text, text), style) for text, style in line)
        self.show((line,))


_ASCII: Mapping[str, str] = {"↑": "up", "↓": "down", "↑↓": "up/down"}
