"""The loss curve, as far as the log shows losses: its own scale, with the numbers that make it one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tui.widgets.figures import significant
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, fit
from tui.widgets.panel import Panel, Sight

HEIGHT = 5
AXIS = 10


class CurvePanel(Panel):
    """Losses read from the log; gone where the log shows none."""

    TITLE = "loss"
    MEANING = "Losses read from the log's own lines, newest at the right."

    def wanted(self, sight: Sight) -> bool:
        return sight.run is not None and sight.run.progress is not None and bool(sight.run.progress.losses)

    def title(self, sight: Sight) -> list[Span]:
        words: list[Span] = [(self.TITLE, "title")]
        if sight.run is not None and sight.run.progress is not None:
            words.append((f" {significant(sight.run.progress.loss)}", "strong"))
        return words

    def word(self, sight: Sight) -> Span:
        progress = sight.run.progress if sight.run else None
        return (f"last {len(progress.losses)}", "dim") if progress else ("", "")

    def body(self, sight: Sight, width: int) -> list[Line]:
        progress = sight.run.progress if sight.run else None
        return curve_lines(progress.losses if progress else (), width, sight.glyphs)


def curve_lines(losses: Sequence[float], width: int, glyphs: Glyphs, height: int = HEIGHT) -> list[Line]:
    """The curve in `height` rows, highest value above. A loss that is no number is a gap, and is counted."""
    room = max(1, width - AXIS)
    columns = spread(losses, room)
    finite = [v for v in columns if v is not None]
    broken = sum(not math.isfinite(v) for v in losses)
    lines: list[Line] = []
    if finite:
        low, high = min(finite), max(finite)
        rows = rows_of(columns, low, high, height, glyphs)
        for i, row in enumerate(rows):
            axis = {0: significant(high), height - 1: significant(low)}.get(i, "")
            lines.append(((fit(axis, AXIS - 1, right=True) + " ", "dim"), (row, "")))
    if broken:
        words = f"  {glyphs.attention} {broken} of the last {len(losses)} are no number"
        lines.append(((fit(words, width, ellipsis=glyphs.ellipsis), "danger"),))
    return lines


def spread(losses: Sequence[float], width: int) -> list[float | None]:
    """One value a column: the mean where several share one, None where none of them is a number."""
    if len(losses) <= width:
        return [v if math.isfinite(v) else None for v in losses]
    columns: list[float | None] = []
    for i in range(width):
        part = losses[i * len(losses) // width : (i + 1) * len(losses) // width]
        finite = [v for v in part if math.isfinite(v)]
        columns.append(sum(finite) / len(finite) if finite else None)
    return columns


def rows_of(
    columns: Sequence[float | None], low: float, high: float, height: int, glyphs: Glyphs
) -> list[str]:
    """Filled columns from `low`, which keeps one step, to `high`; the first row is the topmost."""
    steps = len(glyphs.strip)
    span = (high - low) or 1.0
    fills = [None if v is None else 1 + round((v - low) / span * (height * steps - 1)) for v in columns]
    rows = []
    for level in range(height - 1, -1, -1):
        cells = []
        for fill in fills:
            here = 0 if fill is None else max(0, min(steps, fill - level * steps))
            cells.append(glyphs.strip[here - 1] if here else " ")
        rows.append("".join(cells))
    return rows
