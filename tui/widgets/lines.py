"""Lines of styled text, repainted by difference: the base of everything rgt draws besides inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, zip_longest
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.model.text import safe
from tui.widgets.glyphs import glyphs_of
from tui.widgets.ink import ink_of

Span: TypeAlias = tuple[str, str]
"""Text, and the names of its styles separated by blanks (see `ink.STYLES`); ``""`` is plain."""

Line: TypeAlias = tuple[Span, ...]


def fit(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """`text` in exactly `width` cells: cut with an ellipsis, or padded."""
    if width <= 0:
        return ""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, width - 1) + ellipsis
    pad = " " * (width - size)
    return pad + text if right else text + pad


def end_of(text: str, width: int, *, ellipsis: str = "…") -> str:
    """At most `width` cells of the end of `text`: a path's last parts say more than its first."""
    if cell_len(text) <= width:
        return text
    kept = text[-max(1, width - 1) :]
    while kept and cell_len(kept) > width - 1:
        kept = kept[1:]
    return ellipsis + kept


PATH_LEAST = 12
"""Cells that a shortened path keeps at least: its last parts, or nobody knows which one is meant."""


def shortened(text: str, width: int, *, ellipsis: str = "…") -> str:
    """A sentence with its longest path cut at the front, so that what is said of it fits into `width` cells.

    What still does not fit is left to the caller: only a path says the same with less.
    """
    over = cell_len(text) - width
    path = max((word for word in text.split() if "/" in word.strip("/")), key=cell_len, default="")
    if over <= 0 or not path:
        return text
    return text.replace(path, end_of(path, max(PATH_LEAST, cell_len(path) - over), ellipsis=ellipsis), 1)


def wrap(text: str, width: int) -> list[str]:
    """Break a sentence into lines of at most `width` cells, at blanks where there are any."""
    lines: list[str] = []
    current = ""
    for word in text.split():
        while cell_len(word) > width > 1:
            if current:
                lines.append(current)
                current = ""
            head = _head(word, width)
            lines.append(head)
            word = word[len(head) :]
        joined = f"{current} {word}" if current else word
        if cell_len(joined) > width and current:
            lines.append(current)
            joined = word
        current = joined
    if current:
        lines.append(current)
    return lines


def broken(text: str, width: int) -> list[str]:
    """Break a line of output after each `width` cells; its blanks stay, since they make its columns."""
    parts: list[str] = []
    while cell_len(text) > width > 1:
        head = _head(text, width)
        parts.append(head)
        text = text[len(head) :]
    return [*parts, text]


def _head(word: str, width: int) -> str:
    taken = 0
    for i, char in enumerate(word):
        taken += cell_len(char)
        if taken > width:
            return word[: max(1, i)]
    return word


def clip(line: Iterable[Span], width: int, ellipsis: str = "…") -> Line:
    """A line in at most `width` cells, with an ellipsis where it was cut."""
    spans: list[Span] = []
    room = width
    for text, style in line:
        size = cell_len(text)
        if size > room:
            return (*spans, (fit(text, room, ellipsis=ellipsis), style))
        spans.append((text, style))
        room -= size
    return tuple(spans)


def edged(line: Line, glyph: str, style: str) -> Line:
    """A line with the cursor's mark in its first cell, where that is blank."""
    if not line or not line[0][0].startswith(" "):
        return line
    (text, own), *rest = line
    left: Line = ((text[1:], own),) if text[1:] else ()
    return ((glyph, style), *left, *rest)


NEAR = 10
"""Cells between two changes below which one write is cheaper than moving the cursor in between."""


def differences(old: Line, new: Line) -> list[tuple[int, int]]:
    """Where two lines differ, as (start, cells); 0 cells means to the end of the line."""
    if old == new:
        return []
    parts: list[tuple[int, int]] = []
    x = 0
    for before, after in zip_longest(old, new):
        if before is None or after is None or cell_len(before[0]) != cell_len(after[0]):
            parts.append((x, 0))
            break
        cells = cell_len(after[0])
        if before != after:
            if parts and x - sum(parts[-1]) <= NEAR:
                parts[-1] = (parts[-1][0], x + cells - parts[-1][0])
            else:
                parts.append((x, cells))
        x += cells
    return parts


def length(line: Iterable[Span]) -> int:
    """Cells a line takes."""
    return sum(cell_len(text) for text, _ in line)


class Lines(Widget, can_focus=False):
    """Shows lines, one span after the other, cut or padded to its width; never markup.

    Only lines that differ from what stands on the screen are repainted.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = "Lines { width: 1fr; height: 1; }"

    def __init__(
        self, lines: Sequence[Line] = (), *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = tuple(lines)
        self.painted = 0
        """Lines painted so far, counted for tests and for `doctor`."""

    @property
    def lines(self) -> tuple[Line, ...]:
        return self._lines

    @property
    def text(self) -> str:
        """What is shown, as plain text."""
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self._lines)

    def show(self, lines: Sequence[Line]) -> None:
        """Replace the lines; what did not change is not painted again."""
        old, new = self._lines, tuple(lines)
        self._lines = new
        rows = range(min(self.size.height, max(len(old), len(new))))
        self.repaint_parts(
            (y, differences(*(side[y] if y < len(side) else () for side in (old, new)))) for y in rows
        )

    def repaint(self, rows: Iterable[int]) -> None:
        """Paint these rows of the widget again."""
        self.repaint_parts((y, [(0, 0)]) for y in rows)

    def repaint_parts(self, rows: Iterable[tuple[int, Sequence[tuple[int, int]]]]) -> None:
        """Paint parts of rows again: row, and (start, cells) of each part; 0 cells means to the end."""
        width, height = self.size
        regions = [
            Region(x, y, min(cells, width - x) if cells else width - x, 1)
            for y, parts in rows
            for x, cells in parts
            if 0 <= y < height and x < width
        ]
        if regions:
            self.refresh(*regions)

    def line_at(self, y: int) -> tuple[Line, bool]:
        """The line in row `y` of the widget, and whether it is the selected one."""
        return (self._lines[y] if y < len(self._lines) else ()), False

    def render_line(self, y: int) -> Strip:
        self.painted += 1
        line, selected = self.line_at(y)
        base, ink = self.rich_style, ink_of(self.app)
        style = ink.style
        if selected:
            cursor = style("cursor")
            base += cursor
            style = ink.flat if cursor.reverse else style
        segments = [
            Segment("".join(_literal(text) for text, _ in spans), base + style(name))
            for name, spans in groupby(line, key=lambda span: span[1])
        ]
        strip = Strip(segments)
        width = self.size.width
        if strip.cell_length > width and cell_len("".join(text for text, _ in line).rstrip()) > width:
            dots = Segment(glyphs_of(self).ellipsis, segments[-1].style)  # cut, and not only blanks
            return Strip([*strip.crop(0, width - 1), dots]).adjust_cell_length(width, base)
        return strip.adjust_cell_length(width, base)

    def span_style(self, names: str) -> Style:
        """The style of a span, by the theme."""
        return ink_of(self.app).style(names)


def _literal(text: str) -> str:
    """The last gate before the terminal: text of any origin, without a single control code."""
    return text if text.isprintable() else safe(text)
