"""Gauges: a bar for used of limit, on the same scale as its neighbours, with the figure beside it."""

from __future__ import annotations

import math

from tui.widgets.figures import NA
from tui.widgets.glyphs import Glyphs, bar
from tui.widgets.lines import Line, fit

LABEL = 9
"""Cells of the label column of all gauges, so that their bars stand under one another."""


def bar_spans(
    fraction: float | None, width: int, glyphs: Glyphs, *, tick: float | None = None, level: str = ""
) -> Line:
    """A bar in its track, in exactly `width` cells: what is used is seen against what there is.

    Args:
        level: ``attention`` or ``danger`` where the value asks for it; a bar without it is quiet.
    """
    drawn = bar(fraction, width, glyphs, tick=tick)
    filled = len(drawn.rstrip(glyphs.bar_empty + glyphs.bar_tick))
    track, mark, rest = drawn[filled:].partition(glyphs.bar_tick)
    spans = ((drawn[:filled], level or "dim"), (track, "rule"), (mark, "dim"), (rest, "rule"))
    return tuple(span for span in spans if span[0])


def gauge(
    label: str,
    pct: float | None,
    figure: str,
    width: int,
    glyphs: Glyphs,
    *,
    figure_width: int = 16,
    tick_pct: float | None = None,
    level: str = "",
    why: str = "",
) -> Line:
    """One gauge in exactly `width` cells.

    Args:
        pct: 0 to 100; None when it is not known: then `why` stands in place of the bar.
        figure: the number beside the bar, right-aligned in `figure_width`.
        tick_pct: where action is due.
        level: ``attention`` or ``danger`` where the value asks for it.
    """
    head = fit(f"  {label}", LABEL, ellipsis=glyphs.ellipsis)
    if pct is None or not math.isfinite(pct):
        said = f"{NA}  {why}" if why else NA
        return ((head, "dim"), (fit(said, max(0, width - LABEL), ellipsis=glyphs.ellipsis), "dim"))
    room = width - LABEL - figure_width - 1
    tick = None if tick_pct is None else tick_pct / 100
    return (
        (head, "dim"),
        *bar_spans(pct / 100, max(0, room), glyphs, tick=tick, level=level),
        (" " if room > 0 else "", ""),
        (fit(figure, figure_width, right=True, ellipsis=glyphs.ellipsis), level),
    )


def level_of(pct: float | None, attention_pct: float, danger_pct: float) -> str:
    """The style name of a percentage against its thresholds."""
    if pct is None or not math.isfinite(pct) or pct < attention_pct:
        return ""
    return "danger" if pct >= danger_pct else "attention"
