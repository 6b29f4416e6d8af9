"""One log line as screen rows: colours decoded, wrapped or cut to the pane, matches laid over.

Only lines in view come through here, so decoding costs what is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rich.cells import get_character_cell_size
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.model.text import NO_INK, Colour, Ink, LogText, safe, spans


@dataclass(frozen=True, slots=True)
class Decoded:
    """A line's text, and the style of each stretch of it: (start, end, style), rising and without overlap."""

    text: str
    styles: tuple[tuple[int, int, Style], ...] = ()


@dataclass(frozen=True, slots=True)
class Overlay:
    """A style laid over characters [start, end) of a line, such as a match."""

    start: int
    end: int
    style: Style


def decode(line: LogText) -> Decoded:
    """Split a log line into text and colours."""
    if "\x1b" not in line:
        return Decoded(line)
    text: list[str] = []
    styles: list[tuple[int, int, Style]] = []
    at = 0
    for piece, ink in spans(line):
        end = at + len(piece)
        if ink is not NO_INK:
            styles.append((at, end, style_of(ink)))
        text.append(piece)
        at = end
    return Decoded("".join(text), tuple(styles))


@lru_cache(512)
def style_of(ink: Ink) -> Style:
    """How a stretch of a log line is drawn; what the log does not say is left to the theme."""
    return Style(
        color=_colour(ink.fg),
        bgcolor=_colour(ink.bg),
        bold=ink.bold or None,
        dim=ink.dim or None,
        italic=ink.italic or None,
        underline=ink.underline or None,
        reverse=ink.reverse or None,
        strike=ink.strike or None,
    )


def _colour(colour: Colour | None) -> Color | None:
    if colour is None:
        return None
    return Color.from_ansi(colour) if isinstance(colour, int) else Color.from_rgb(*colour)


def breaks(text: str, width: int) -> Sequence[int]:
    """Where each row of a line starts when it is folded at `width` cells; wide characters are not split."""
    width = max(2, width)
    if text.isascii():
        return range(0, max(1, len(text)), width)
    starts, used = [0], 0
    for i, character in enumerate(text):
        cells = get_character_cell_size(character)
        if used + cells > width:
            starts.append(i)
            used = 0
        used += cells
    return starts


def window(text: str, skip: int, width: int) -> tuple[int, int, int]:
    """What of a line shows in `width` cells after `skip` cells.

    Returns:
        First character, the one after the last, and the cells to leave blank before them where the left
        edge cuts a wide character.
    """
    if text.isascii():
        return min(skip, len(text)), min(skip + width, len(text)), 0
    cell = first = blank = 0
    for first, character in enumerate(text):  # noqa: B007 - used after the loop
        if cell >= skip:
            break
        cell += get_character_cell_size(character)
    else:
        if cell <= skip:
            return len(text), len(text), 0
        first = len(text)
    blank = cell - skip
    end, used = first, blank
    while end < len(text) and used + (cells := get_character_cell_size(text[end])) <= width:
        used += cells
        end += 1
    return first, end, blank


def cells_of(text: str, most: int) -> int:
    """Width of a text in cells, counted no further than just past `most`."""
    if text.isascii():
        return len(text)
    total = 0
    for character in text:
        total += get_character_cell_size(character)
        if total > most:
            break
    return total


def row(
    line: Decoded,
    start: int,
    end: int,
    width: int,
    base: Style,
    overlays: Iterable[Overlay] = (),
    blank: int = 0,
) -> list[Segment]:
    """Characters [start, end) of a line, after `blank` empty cells, as segments of exactly `width` cells."""
    edges = {start, end}
    layers = [Overlay(*stretch) for stretch in line.styles] + list(overlays)
    layers = [layer for layer in layers if layer.start < end and layer.end > start]
    for layer in layers:
        edges.add(max(start, layer.start))
        edges.add(min(end, layer.end))
    cuts = sorted(edges)
    segments = [Segment(" " * blank, base)] if blank else []
    for a, b in pairwise(cuts):
        style = base
        for layer in layers:
            if layer.start <= a and layer.end >= b:
                style += layer.style
        segments.append(Segment(_literal(line.text[a:b]), style))
    return exact(segments, width, base)


def exact(segments: list[Segment], width: int, base: Style) -> list[Segment]:
    """Pad or cut segments to exactly `width` cells."""
    strip = Strip(segments)
    if strip.cell_length == width:
        return segments
    return list(strip.adjust_cell_length(width, base))


def _literal(text: str) -> str:
    """The last gate before the terminal: not a control code passes, whatever the buffer holds."""
    return text if text.isprintable() else safe(text, len(text))


def changed(old: Strip, new: Strip) -> tuple[int, int]:
    """Where two rows of a pane differ, as (first cell, cells); no cells where they do not.

    Rows of a log that scrolls by are much alike: the clock they begin with, the blanks they end in. Those
    cells need not cross a slow line again.
    """
    if old == new:
        return 0, 0
    if old.cell_length != new.cell_length:
        return 0, new.cell_length
    before, after = list(old), list(new)
    head = _alike(before, after)
    tail = _alike([_turned(s) for s in reversed(before)], [_turned(s) for s in reversed(after)])
    return head, max(1, new.cell_length - head - tail)


def _alike(one: list[Segment], other: list[Segment]) -> int:
    """Cells at the start that are the same in both."""
    cells = 0
    for a, b in zip(one, other, strict=False):
        if a == b:
            cells += a.cell_length
            continue
        if a.style == b.style and a.text.isascii() and b.text.isascii():
            pairs = zip(a.text, b.text, strict=False)
            cells += next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(a.text), len(b.text)))
        break
    return cells


def _turned(segment: Segment) -> Segment:
    return Segment(segment.text[::-1], segment.style)
