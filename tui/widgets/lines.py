"""Lines of styled text, repainted by difference: the base of everything rgt draws besides inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.model.text import safe

Span: TypeAlias = tuple[str, str]
"""Text, and the names of its styles separated by blanks (see `STYLES`); ``""`` is plain."""

Line: TypeAlias = tuple[Span, ...]

STYLES = frozenset(
    ("dim", "rule", "title", "accent", "attention", "danger", "fine", "money", "strong", "under", "cursor")
)
"""Style names a span may carry; each is a component class ``lines--NAME``, coloured by the theme."""


def fit(text: str, width: int, *, right: bool = False, ellipsis: str = "…") -> str:
    """`text` in exactly `width` cells: cut with an ellipsis, or padded."""
    if width <= 0:
        return ""
    size = cell_len(text)
    if size > width:
        return set_cell_size(text, width - 1) + ellipsis
    pad = " " * (width - size)
    return pad + text if right else text + pad


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


def length(line: Iterable[Span]) -> int:
    """Cells a line takes."""
    return sum(cell_len(text) for text, _ in line)


class Lines(Widget, can_focus=False):
    """Shows lines, one span after the other, cut or padded to its width; never markup.

    Only lines that differ from what stands on the screen are repainted.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"lines--{name}" for name in STYLES}
    DEFAULT_CSS = "Lines { width: 1fr; height: 1; }"

    def __init__(
        self, lines: Sequence[Line] = (), *, id: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = tuple(lines)
        self._styles_at = -1
        self._spans: dict[str, Style] = {}
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
        changed = [y for y in range(max(len(old), len(new))) if old[y : y + 1] != new[y : y + 1]]
        self.repaint(changed)

    def repaint(self, rows: Iterable[int]) -> None:
        """Paint these rows of the widget again."""
        width, height = self.size
        regions = [Region(0, y, width, 1) for y in rows if 0 <= y < height]
        if regions:
            self.refresh(*regions)

    def line_at(self, y: int) -> tuple[Line, bool]:
        """The line in row `y` of the widget, and whether it is the selected one."""
        return (self._lines[y] if y < len(self._lines) else ()), False

    def render_line(self, y: int) -> Strip:
        self.painted += 1
        line, selected = self.line_at(y)
        base = self.rich_style
        if selected:
            base += self.span_style("cursor")
        segments = [Segment(_literal(text), base + self.span_style(name)) for text, name in line if text]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def span_style(self, names: str) -> Style:
        """The style of a span, by the theme."""
        if self._styles_at != self.app._css_update_count:
            self._styles_at = self.app._css_update_count
            self._spans = {}
        style = self._spans.get(names)
        if style is None:
            style = Style()
            for name in names.split():
                style += self.get_component_rich_style(f"lines--{name}", partial=True)
            self._spans[names] = style
        return style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._spans = {}


def _literal(text: str) -> str:
    """The last gate before the terminal: text of any origin, without a single control code."""
    return text if text.isprintable() else safe(text)
