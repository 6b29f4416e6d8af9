"""Every non-letter the screens draw, in two sets: Unicode, and ASCII where the terminal draws those wide.

Text that a widget composes itself takes its dashes, dots and rules from here too: ``–``, ``·``, ``…`` and the
block elements are *ambiguous* in Unicode's width table, which CJK terminals resolve to two cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from textual.dom import DOMNode


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of glyphs; each string but `bar_parts` and `strip` members is one cell wide.

    Attributes:
        running, starting, stopped, unknown, gone, attention: state glyphs, always beside a word.
        bar_full, bar_empty: cells of a bar and of the track it runs in. They are less than a row high, or the
            bars of rows would merge; `bar_parts` are the fractions of one cell between them, rising.
        bar_tick: marks a bar's threshold on the track, where the bar does not cover it.
        strip: levels of a history strip, lowest first, evenly spaced from 0 to 100.
        rule: horizontal line; `cursor` stands at the left of the selected row; `mark` beside a marked one.
        none: a value that does not apply; `unknown` is for a value that is not known.
    """

    name: str
    running: str
    starting: str
    stopped: str
    unknown: str
    gone: str
    attention: str
    bar_full: str
    bar_empty: str
    bar_parts: tuple[str, ...]
    bar_tick: str
    strip: tuple[str, ...]
    rule: str
    vrule: str
    cursor: str
    mark: str
    none: str
    dot: str
    ellipsis: str
    up: str
    down: str
    times: str
    degree: str
    done: str
    now: str


UNICODE = Glyphs(
    name="unicode",
    running="●",
    starting="◌",
    stopped="■",
    unknown="?",
    gone="✕",
    attention="▲",
    bar_full="━",
    bar_empty="─",
    bar_parts=("╸",),
    bar_tick="┴",
    strip=("▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"),
    rule="─",
    vrule="│",
    cursor="▌",
    mark="◆",
    none="–",
    dot="·",
    ellipsis="…",
    up="↑",
    down="↓",
    times="×",
    degree="°",
    done="✓",
    now="▶",
)

ASCII = Glyphs(
    name="ascii",
    running="*",
    starting="o",
    stopped="#",
    unknown="?",
    gone="x",
    attention="!",
    bar_full="#",
    bar_empty=".",
    bar_parts=(),
    bar_tick="|",
    strip=("_", ".", ":", "-", "=", "+", "*", "#"),
    rule="-",
    vrule="|",
    cursor=">",
    mark="+",
    none="-",
    dot="-",
    ellipsis="~",
    up="^",
    down="v",
    times="x",
    degree="",
    done="+",
    now=">",
)

SETS = {glyphs.name: glyphs for glyphs in (UNICODE, ASCII)}


def glyphs_of(node: DOMNode) -> Glyphs:
    """The set chosen for this app; widgets in an app that chose none draw Unicode."""
    chosen = getattr(node.app, "glyphs", None)
    return chosen if isinstance(chosen, Glyphs) else UNICODE


def bar(fraction: float | None, width: int, glyphs: Glyphs, *, tick: float | None = None) -> str:
    """A bar of exactly `width` cells.

    Args:
        fraction: 0 to 1, clamped; None (not known) draws not even a track, which would say nothing is used.
        tick: a threshold, 0 to 1, marked on the track.
    """
    if width <= 0:
        return ""
    if fraction is None or math.isnan(fraction):
        return " " * width
    share = min(1.0, max(0.0, fraction))
    steps = len(glyphs.bar_parts) + 1
    filled = round(share * width * steps)
    if share > 0 and filled == 0:
        filled = 1  # something is not nothing
    full, part = divmod(filled, steps)
    cells = [glyphs.bar_full] * full + ([glyphs.bar_parts[part - 1]] if part else [])
    cells += [glyphs.bar_empty] * (width - len(cells))
    if tick is not None:
        place = min(width - 1, max(0, int(tick * width)))
        if cells[place] == glyphs.bar_empty:
            cells[place] = glyphs.bar_tick
    return "".join(cells[:width])


def strip(values: Sequence[float | None], width: int, glyphs: Glyphs, *, top: float = 100.0) -> str:
    """The newest `width` values as levels from 0 to `top`, right-aligned; an unknown one is a gap."""
    levels = len(glyphs.strip) - 1  # the highest fills its cell: strips below each other would merge
    cells = []
    for value in list(values)[-width:] if width > 0 else []:
        if value is None or not math.isfinite(value) or top <= 0:
            cells.append(" ")
        else:
            cells.append(glyphs.strip[min(levels - 1, max(0, int(value / top * levels)))])
    return "".join(cells).rjust(max(0, width))
