"""The loss curve, as far as the log shows losses: its own scale, with the numbers that make it one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tui.fleet.curve_marks import Marks, marks_of
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
    """The curve in `height` rows, highest value above, with what is wrong about it above and below.

    A loss that is no number is a gap with a mark over it; spikes and a plateau are marked and said in words.
    """
    room = max(1, width - AXIS)
    columns = spread(losses, room)
    finite = [v for v in columns if v is not None]
    marks = marks_of(losses)
    lines: list[Line] = []
    if marks.broken or marks.spikes:
        lines.append(((" " * AXIS, ""), *mark_row(marks, len(losses), len(columns), glyphs)))
    if finite:
        low, high = min(finite), max(finite)
        rows = rows_of(columns, low, high, height, glyphs)
        for i, row in enumerate(rows):
            axis = {0: significant(high), height - 1: significant(low)}.get(i, "")
            lines.append(((fit(axis, AXIS - 1, right=True) + " ", "dim"), (row, "graph")))
    for words, style in mark_words(marks, len(losses), glyphs):
        lines.append(((fit(f"  {words}", width, ellipsis=glyphs.ellipsis), style),))
    return lines


def mark_row(marks: Marks, count: int, width: int, glyphs: Glyphs) -> list[Span]:
    """One cell a column: where losses are no number, and where they jump."""
    cells: list[Span] = [(" ", "")] * width
    for places, glyph, style in (
        (marks.spikes, glyphs.attention, "attention"),
        (marks.broken, glyphs.gone, "danger"),
    ):
        for place in places:
            cells[place if count <= width else min(width - 1, place * width // count)] = (glyph, style)
    return cells


def mark_words(marks: Marks, count: int, glyphs: Glyphs) -> Iterator[Span]:
    """What the marks mean, and a plateau, which has a length and no place."""
    if marks.broken:
        yield f"{glyphs.gone} {len(marks.broken)} of the last {count} are no number", "danger"
    if marks.spikes:
        many = "spikes" if len(marks.spikes) > 1 else "spike"
        yield f"{glyphs.attention} {len(marks.spikes)} {many} in the last {count}", "attention"
    if marks.level_for:
        yield f"{glyphs.rule} plateau: level for the last {marks.level_for}", ""


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
