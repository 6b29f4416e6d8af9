"""A plan to reclaim, and what came of it, as entries of a list. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tui.model.reclaim import ReclaimPlan, ReclaimView, Removal
from tui.model.storage import Reclaimable
from tui.model.text import safe
from tui.widgets.chooser import Entry
from tui.widgets.figures import size
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, broken, clip, fit, wrap
from tui.widgets.storage_words import LEVELS, computed, conclusion, observed

_INK = {"removed": "strong", "failed": "danger", "unknown": "danger", "skipped": "attention"}
_STATE, _FIGURE = 10, 12
"""Cells of what became of an entry, and of an amount."""


def reclaim_entries(plan: ReclaimPlan, view: ReclaimView | None, width: int, glyphs: Glyphs) -> list[Entry]:
    """The whole list, each path in full, what it adds up to, and what came of it.

    Args:
        view: None before anything was consented to.
    """
    removals = view.removals if view is not None else ()
    found = [Entry(tuple(_head(plan, view, width)))]
    for n, one in enumerate(plan.entries):
        became = removals[n] if n < len(removals) else None
        found.append(
            Entry(tuple(clip(line, width - 1, glyphs.ellipsis) for line in _rows(one, became, width)))
        )
    found += [Entry(_wrapped(f"not read: {text}", width, "attention")) for text in plan.unread]
    return found


def _head(plan: ReclaimPlan, view: ReclaimView | None, width: int) -> Iterator[Line]:
    many = "1 place" if len(plan.entries) == 1 else f"{len(plan.entries)} places"
    files = "?" if plan.files is None else f"{plan.files:,}"
    total = f"{many}, {files} files, {size(plan.bytes)} on {plan.mount}"
    yield from _wrapped(total, width, "strong")
    if view is not None and view.said:
        yield from _wrapped(view.said, width, "strong" if view.over else "attention")
    if view is not None and view.over:
        yield from _wrapped(observed(view), width, "strong")
        return
    yield from _wrapped(computed(plan), width, "")
    yield from _wrapped(LEVELS[plan.level], width, "danger" if plan.level == 3 else "dim")
    yield from _wrapped(conclusion(plan), width, "dim")


def _rows(one: Reclaimable, became: Removal | None, width: int) -> Iterator[Line]:
    state = "" if became is None or became.state == "waits" else became.state
    files = "? files" if one.files is None else f"{one.files:,} files"
    amounts = f"{fit(files, _FIGURE, right=True)} {fit(size(one.bytes), _FIGURE, right=True)}"
    tag = ("comes back", "dim") if one.returns else ("for ever", "danger")
    yield ((f" {fit(state, _STATE)}", _INK.get(state, "accent")), (amounts, ""), ("  ", ""), tag)
    yield from (((f"   {part}", "strong"),) for part in broken(one.path, max(10, width - 4)))
    yield from _wrapped(f"{one.kind}: {one.why}", width, "dim", "   ")
    if became is not None and became.why:
        yield from _wrapped(became.why, width, "attention", "   ")


def _wrapped(text: str, width: int, style: str, margin: str = " ") -> tuple[Line, ...]:
    parts = wrap(safe(text), max(10, width - len(margin) - 2))
    return tuple(((margin, ""), (part, style)) for part in parts)
