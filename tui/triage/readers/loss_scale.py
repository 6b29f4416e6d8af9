"""The dynamic loss scale of fp16 training: halved now and then at first, never for long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui.model.incident import Fact
from tui.triage.finding import Hit
from tui.triage.view import View

WORDS = ("loss scale to", "reducing to ", "reducing loss scale", "loss scale reduced")
_REDUCED = re.compile(
    r"(?i)(?:reducing(?: loss scale)? to|loss scaler? \d+ reducing loss scale to|setting loss scale to:?"
    r"|decreas(?:ing|ed) loss scale to|loss scale reduced to"
    r"|lowering loss scale to)\s*(?P<to>\d[\d.]*(?:e[-+]?\d+)?)"
)
_ENOUGH = 4
_LOW = 16.0
_GONE = 1.0
_NOTHING = 1e-30  # smaller than any gradient: nothing can be learned any more


def sinking(view: View, cls: str) -> Iterator[Hit]:
    """A long run of halvings down to a scale at which gradients vanish."""
    found: list[tuple[int, float]] = []
    for index, one in enumerate(view.rows):
        match = _REDUCED.search(one.text)
        if match is None or (one.rank is not None and found and one.rank != view.rows[found[0][0]].rank):
            continue
        value = float(match["to"].rstrip("."))
        if found and value >= found[-1][1]:
            if value == found[-1][1]:
                continue  # another rank says the same
            found = []
        found.append((index, value))
    if not found or any(at > found[-1][0] + 3 for at in view.strong_after(found[-1][0])):
        return
    ended = view.finished_at is not None and view.finished_at > found[-1][0]
    low, many = found[-1][1] <= _LOW and not ended, len(found) >= _ENOUGH
    if (low and many) or found[-1][1] < _GONE:
        facts: dict[str, Fact] = {"scale": found[-1][1], "halvings": len(found)}
        gone = found[-1][1] < _NOTHING
        yield Hit(found[0][0], facts=facts, severity="fatal" if gone else None, settled=True)
