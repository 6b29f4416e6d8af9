"""The log view's rows as cells: what `LogReader` lays out, in styles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line
from tui.widgets.logplace import SEPARATOR, Row
from tui.widgets.logreader import ERROR_LIKE, LogReader
from tui.widgets.logrows import Overlay, cells_of, exact, row, window

MATCH = Style(reverse=True)
KEPT = Style(underline=True)
"""Text that the search and a keep filter found: told without colour, so that it shows in every theme."""

GUTTER = 2
"""Cells left of the text: the cursor, and a mark or a sign for error-like lines."""


@dataclass(frozen=True, slots=True)
class Look:
    """The pane's size and the theme's styles, by name."""

    width: int
    height: int
    glyphs: Glyphs
    base: Style
    style: Callable[[str], Style]
    focused: bool

    def strip(self, line: Line) -> Strip:
        """A line of named spans, as wide as the pane."""
        segments = [Segment(text, self.base + self.style(name)) for text, name in line if text]
        return Strip(exact(segments, self.width, self.base), self.width)


def filled(lines: Sequence[Line], height: int, look: Look) -> list[Strip]:
    """Lines, and blank ones below them down to `height`."""
    strips = [look.strip(line) for line in lines[: max(0, height)]]
    return strips + [look.strip(())] * (height - len(strips))


def body(reader: LogReader, look: Look, top: Sequence[Line], empty: Sequence[Line]) -> list[Strip]:
    """The pane but for its last row.

    Args:
        top: what stands above the log's lines.
        empty: what stands in for a log without any.
    """
    height = look.height - 1
    rows = reader.layout()
    if not rows:
        if reader.filtered and reader.hidden:
            empty = ((("  every line in memory is hidden; 0 drops the filters", "dim"),),)
        return filled([*top, *empty], height, look)
    strips = [look.strip(line) for line in top]
    strips += [_row(reader, place, look) for place in rows]
    strips += [look.strip(())] * (height - len(strips))
    return strips[: max(0, height)]


def _row(reader: LogReader, place: Row, look: Look) -> Strip:
    if place.part == SEPARATOR:
        return look.strip(_separator(reader, place, look.glyphs))
    if place.number in reader.buffer.gaps:
        return look.strip(_gap(reader.text(place.number), look))
    line = reader.decoded(place.number)
    room, cut, blank = look.width - GUTTER, False, 0
    if reader.wrap:
        starts = reader.breaks(place.number)
        part = min(place.part, len(starts) - 1)
        start = starts[part]
        end = starts[part + 1] if part + 1 < len(starts) else len(line.text)
    else:
        start, end, blank = window(line.text, reader.skip, room)
        if end < len(line.text) and cells_of(line.text[start:], room) > room - blank:
            start, end, blank = window(line.text, reader.skip, room - 1)
            cut = True
    cells = row(
        line, start, end, room - cut, look.base, _overlays(reader, place.number, line.text, look), blank
    )
    if cut:
        cells.append(Segment(look.glyphs.ellipsis, look.base + look.style("dim")))
    return Strip([*_gutter(reader, place, line.text, look), *cells], look.width)


def _overlays(reader: LogReader, number: int, text: str, look: Look) -> list[Overlay]:
    found: list[Overlay] = []
    filters = reader.filters
    if filters.context and reader.filtered and not filters.wants(text):
        found.append(Overlay(0, len(text), look.style("dim")))
    for rule in filters.active:
        if rule.keep:
            found += [Overlay(a, b, KEPT) for a, b in rule.pattern.spans(text)]
    if reader.search is not None:
        found += [Overlay(a, b, MATCH) for a, b in reader.search.spans(text)]
    return found


def _gutter(reader: LogReader, place: Row, text: str, look: Look) -> list[Segment]:
    at_cursor = look.focused and place.number == reader.place.cursor
    bar = Segment(look.glyphs.cursor if at_cursor else " ", look.base + look.style("accent"))
    if place.part == 0 and place.number in reader.marks:
        return [bar, Segment(look.glyphs.mark, look.base + look.style("strong"))]
    if place.part == 0 and ERROR_LIKE.matches(text):
        return [bar, Segment("!", look.base + look.style("danger"))]
    return [bar, Segment(" ", look.base)]


def _separator(reader: LogReader, place: Row, glyphs: Glyphs) -> Line:
    shown = reader.shown()
    index = shown.at_or_after(place.number)
    skipped = shown.skipped_before(index)
    left_memory = index == len(shown.held) and index > 0
    said = f"{skipped:,} lines left memory meanwhile" if left_memory else f"{skipped:,} hidden"
    return (("  " + glyphs.rule * 2 + f" {said} " + glyphs.rule * 2, "dim"),)


def _gap(text: str, look: Look) -> Line:
    """Lost bytes: a rule through the log, so that nobody reads across it unawares."""
    said = "  " + look.glyphs.rule * 2 + f" {text.strip(' ─-')} "
    return ((said + look.glyphs.rule * max(0, look.width - cell_len(said)), "attention"),)
