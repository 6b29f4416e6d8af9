"""A recovery ladder as entries of a list. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tui.fleet.age import age_word
from tui.model.storage import Ladder, Place, Protected, Reclaimable
from tui.model.text import safe
from tui.widgets.chooser import Entry
from tui.widgets.gauge import bar_spans
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, clip, end_of, fit, wrap
from tui.widgets.storage_words import amount, conclusion

WIDE = 90
FIGURE = 14
"""Cells of an amount."""


def storage_entries(
    made: Ladder, width: int, glyphs: Glyphs, marks: Collection[str] = frozenset()
) -> list[Entry]:
    """The rungs in order: what is full, who fills it, what may go, what stays, what is missing then.

    Args:
        marks: paths that are marked to go.
    """
    return [
        Entry(tuple(_head(made, width, glyphs))),
        *_section("writers", [((str(w), ""),) for w in made.writers], width, glyphs, "nobody seen writing"),
        *_places("largest", made.largest, made, width, glyphs),
        *_reclaim(made, width, glyphs, marks),
        *_protected(made.protected, made, width, glyphs),
        *_section("not read", [((str(w), "attention"),) for w in made.unread], width, glyphs),
    ]


def _head(made: Ladder, width: int, glyphs: Glyphs) -> Iterator[Line]:
    share = made.used / made.limit if made.used is not None and made.limit else None
    used, limit = amount(made.used, made), amount(made.limit, made)
    level = "danger" if share is not None and share > 0.95 else "attention" if share and share > 0.85 else ""
    pct = f" ({share * 100:.0f} %)" if share is not None else ""
    said = f" {used.removesuffix(' files')} of {limit}{pct}"
    cells = max(6, min(40, width - len(f" {made.resource} ") - len(said) - 1))
    figures: Line = (
        (f" {made.resource} ", "strong"),
        *bar_spans(share, cells, glyphs, tick=made.target_pct / 100, level=level),
        (said, level),
    )
    yield clip(figures, width - 1, glyphs.ellipsis)
    where = f"{made.mount} is {made.fstype or 'a file system of unknown type'} on {made.source or 'n/a'}"
    yield clip(((f" {safe(where)}", "dim"),), width - 1, glyphs.ellipsis)
    for part in wrap(conclusion(made), max(10, width - 3)):
        yield ((f" {part}", "strong"),)


def _section(
    label: str, rows: Sequence[Line], width: int, glyphs: Glyphs, nothing: str = ""
) -> Iterator[Entry]:
    if not rows and nothing:
        rows = [((nothing, "dim"),)]
    for n, row in enumerate(rows):
        head: Span = (f" {fit(label if n == 0 else '', 10)}", "dim")
        yield Entry((clip((head, *row), width - 1, glyphs.ellipsis),))


def _places(label: str, places: Sequence[Place], made: Ladder, width: int, glyphs: Glyphs) -> Iterator[Entry]:
    rows: list[Line] = []
    for place in places[:6]:
        count = place.files if made.resource == "inodes" else place.bytes
        path = end_of(place.path, max(10, width - FIGURE - 16), ellipsis=glyphs.ellipsis)
        rows.append(((fit(amount(count, made), FIGURE, right=True), ""), (f"  {path}", "")))
    yield from _section(label, rows, width, glyphs)


def _reclaim(made: Ladder, width: int, glyphs: Glyphs, marks: Collection[str]) -> Iterator[Entry]:
    if not made.reclaim:
        words: Line = (("nothing here is proven to come back by itself", "dim"),)
        yield from _section("may go", [words], width, glyphs)
    for n, one in enumerate(made.reclaim):
        lines = tuple(_reclaimable(one, n, made, width, glyphs, marked=one.path in marks))
        yield Entry(lines, ("reclaim", n))


def _reclaimable(
    one: Reclaimable, n: int, made: Ladder, width: int, glyphs: Glyphs, *, marked: bool
) -> Iterator[Line]:
    sign: Span = (glyphs.mark if marked else " ", "accent")
    head: Span = (fit("may go" if n == 0 else "", 10), "dim")
    count = one.files if made.resource == "inodes" else one.bytes
    path = end_of(one.path, max(10, width - FIGURE - 34), ellipsis=glyphs.ellipsis)
    tag: Span = ("  comes back", "dim") if one.returns else ("  for ever", "danger")
    yield clip(
        (sign, head, (fit(amount(count, made), FIGURE, right=True), "strong"), (f"  {path}", ""), tag),
        width - 1,
        glyphs.ellipsis,
    )
    why = f"{one.kind}: {one.why}"
    yield clip(((" " * (FIGURE + 13), ""), (why, "dim")), width - 1, glyphs.ellipsis)


def _protected(rows: Sequence[Protected], made: Ladder, width: int, glyphs: Glyphs) -> Iterator[Entry]:
    lines: list[Line] = []
    for one in rows:
        count = one.files if made.resource == "inodes" else one.bytes
        path = end_of(one.path, max(10, width // 2 - FIGURE), ellipsis=glyphs.ellipsis)
        lines.append(
            ((fit(amount(count, made), FIGURE, right=True), ""), (f"  {path}", ""), (f"  {one.why}", "dim"))
        )
    yield from _section("stays", lines, width, glyphs)


def taken(made: Ladder, now: float, period_s: float) -> str:
    """How old the survey is."""
    age = age_word(made.at, now, period_s)
    return "surveyed just now" if age == "live" else f"surveyed {age} ago"
