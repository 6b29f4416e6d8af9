"""The panels in one line each, for panes without room beside the log."""

from __future__ import annotations

from tui.widgets.checkpoint_panel import checkpoint_summary
from tui.widgets.disk_panel import disk_summary
from tui.widgets.gpu_panel import gpu_summary
from tui.widgets.lines import Line, Lines, Span
from tui.widgets.memory_panel import memory_summary
from tui.widgets.panel import Sight


class Summary(Lines, can_focus=True):
    """GPU, disks, memory, newest checkpoint; `rows` of them, the last ones joined where rows are short."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows = 4
        self.sight = self._there = Sight()

    def apply(self, sight: Sight, there: Sight | None = None) -> None:
        """Take in the newest picture; `there` is of the machine that runs it, where that is another one."""
        self.sight, self._there = sight, there or sight
        self.draw()

    def draw(self) -> None:
        width = self.size.width
        if not width:
            return
        lines = summary_lines(self.sight, self._there, width)[: self.rows]
        if self.has_focus:
            lines = [((self.sight.glyphs.cursor, "accent"), *_without_margin(line)) for line in lines]
        self.show(lines)

    def on_resize(self) -> None:
        self.draw()

    def on_focus(self) -> None:
        self.draw()

    def on_blur(self) -> None:
        self.draw()


def summary_lines(sight: Sight, there: Sight, width: int) -> list[Line]:
    """All lines, most wanted first; `there` is of the machine that runs it."""
    lines = [gpu_summary(there, width), disk_summary(sight, width), memory_summary(there, width)]
    return [*lines, checkpoint_summary(sight, width)] if sight.run is not None else lines


def _without_margin(line: Line) -> tuple[Span, ...]:
    (text, style), *rest = line
    return ((text[1:], style), *rest)
