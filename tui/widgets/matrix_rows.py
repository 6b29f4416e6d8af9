"""A queue's cells in lines of text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tui.model.queue import CellView, MatrixView
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, clip, fit, length, wrap

SORTS = ("matrix", "state", "box")
"""Orders of the list."""

ORDERS: Mapping[str, str] = {"matrix": "in the matrix's order", "state": "worst first", "box": "by box"}
"""The same in words."""

WIDE = 100
NARROW = 72
_STATE = 13
_TRY = 5
_VALUE = 12
_LEAST = 5
"""Cells of a value below which it is left out: what is cut to two letters tells nothing."""
_LABEL = 12

WORST: Mapping[str, int] = {
    word: place
    for place, word in enumerate(
        (
            "failed",
            "lost",
            "blocked",
            "unreachable",
            "unknown",
            "?",
            "running",
            "claimed",
            "waiting",
            "complete",
        )
    )
}
"""How much each state wants the operator, most first."""

_STYLES = {"failed": "danger", "lost": "danger", "blocked": "attention", "unreachable": "attention"}
_VERDICTS = ("sealed", "accepted", "evaluated")


@dataclass(frozen=True, slots=True)
class Columns:
    """Cells of each column. `values` follow the matrix's names, as many as there is room for."""

    values: tuple[int, ...]
    box: int
    marks: tuple[int, int, int]
    heads: tuple[str, str, str]


def columns_of(view: MatrixView, width: int) -> Columns:
    """What fits: values and boxes as wide as they are, where there is room; states and verdicts always."""
    heads, marks, most = ("SEALED", "ACCEPTED", "EVALUATED"), (12, 14, 14), 16
    if width < WIDE:
        heads, marks = ("SEAL", "ACC", "EVAL"), (5, 5, 5)
    if width < NARROW:
        heads, marks, most = ("S", "A", "E"), (2, 2, 2), 9
    box = min(most, max([3, *(cell_len(one.by or one.box) for one in view.cells)])) + 2
    room = width - 4 - _STATE - _TRY - sum(marks) - box
    wanted = [
        min(_VALUE, max([cell_len(name), *(cell_len(one.values[n]) for one in view.cells)])) + 2
        for n, name in enumerate(view.names)
    ]
    del wanted[max(0, room // _LEAST) :]
    while wanted and sum(wanted) > room:
        wanted[wanted.index(max(wanted))] -= 1
    return Columns(tuple(wanted), box, marks, heads)


def head_line(view: MatrixView, columns: Columns, width: int, glyphs: Glyphs) -> Line:
    """The names of the columns."""
    told = dict(view.counts)
    words = [
        f"{told.get(word, 0)} {head}" if width >= WIDE and view.at is not None else head
        for head, word in zip(columns.heads, _VERDICTS, strict=True)
    ]
    parts = [
        _column(name, cells, glyphs.ellipsis) for name, cells in zip(view.names, columns.values, strict=False)
    ]
    parts += [fit("BOX", columns.box), fit("STATE", _STATE), fit("TRY", _TRY)]
    parts += [fit(word, cells) for word, cells in zip(words, columns.marks, strict=True)]
    return clip((("   " + "".join(parts), "dim"),), width - 1, glyphs.ellipsis)


def cell_line(one: CellView, columns: Columns, width: int, glyphs: Glyphs) -> Line:
    """One cell in one line."""
    glyph, style = _state(one.state, glyphs)
    dots = glyphs.ellipsis
    spans: list[Span] = [(f" {glyph} ", style)]
    spans += [
        (_column(value, cells, dots), "") for value, cells in zip(one.values, columns.values, strict=False)
    ]
    spans += [
        (_column(one.by or one.box, columns.box, dots), "strong" if one.by else "dim"),
        (fit("?" if one.state == "unknown" else one.state, _STATE), style),
        (
            fit("?" if one.attempt is None else str(one.attempt or glyphs.none), _TRY),
            "" if one.attempt else "dim",
        ),
    ]
    for word, cells in zip(_VERDICTS, columns.marks, strict=True):
        mark, look = _mark(getattr(one, word), glyphs)
        spans.append((fit(mark, cells), look))
    return clip(spans, width - 1, dots)


def _column(text: str, cells: int, ellipsis: str) -> str:
    """A value with two blanks behind it, where there is room for that."""
    return fit(fit(text, max(1, cells - 2), ellipsis=ellipsis), cells)


def _state(state: str, glyphs: Glyphs) -> Span:
    mark = {
        "failed": glyphs.gone,
        "lost": glyphs.gone,
        "blocked": glyphs.attention,
        "running": glyphs.running,
        "claimed": glyphs.starting,
        "waiting": glyphs.dot,
        "complete": glyphs.done,
    }.get(state, glyphs.unknown)
    quiet = "dim" if state in ("waiting", "claimed", "?", "unknown") else ""
    return mark, _STYLES.get(state, quiet)


def _mark(mark: bool | None, glyphs: Glyphs) -> Span:
    if mark is None:
        return glyphs.unknown, "dim"
    return (glyphs.done, "strong") if mark else (glyphs.none, "dim")


def counts_spans(view: MatrixView, glyphs: Glyphs, width: int) -> list[Span]:
    """How many cells are in each state, worst first: in words where there is room, else by their glyphs."""
    told = dict(view.counts)
    words = sorted((word for word in told if word in WORST), key=lambda word: WORST[word])
    spans: list[Span] = []
    for word in words:
        spans += [
            (f" {glyphs.dot} " if spans else "", "dim"),
            (f"{told[word]} {word}", _STYLES.get(word, "")),
        ]
    if length(spans) <= width:
        return spans
    short: dict[str, tuple[int, str]] = {}
    for word in words:
        glyph, style = _state(word, glyphs)
        count, before = short.get(glyph, (0, style))
        short[glyph] = (count + told[word], before)
    spans = [(f"{glyph}{count}  ", style) for glyph, (count, style) in short.items()]
    return list(clip([*spans[:-1], (spans[-1][0].rstrip(), spans[-1][1])], max(0, width), glyphs.ellipsis))


def arranged(cells: Sequence[CellView], order: str, keep: Callable[[str], bool]) -> list[CellView]:
    """The cells that match, in an order of `SORTS`."""
    found = [
        one
        for one in cells
        if keep(f"{one.name} {' '.join(one.values)} {one.box} {one.by or ''} {one.state}")
    ]
    if order == "state":
        return sorted(found, key=lambda one: WORST.get(one.state, len(WORST)))
    return sorted(found, key=lambda one: one.by or one.box) if order == "box" else found


_SAYS: Mapping[str, tuple[str, str]] = {
    "sealed": ("an export of it is sealed on its box", "no export of it is sealed"),
    "accepted": (
        "its durable copy was read back by somebody else",
        "no copy of it was read back by somebody else",
    ),
    "evaluated": ("its metrics were recomputed, and agree", "its metrics were not recomputed"),
}


def detail_lines(view: MatrixView, one: CellView, width: int, *, low: bool = False) -> Iterator[Line]:
    """One cell in full: what its box says, and what each witness says."""
    style = _STYLES.get(one.state, "")
    trial = "" if one.attempt is None else f", try {one.attempt}"
    by = f", claimed by {one.by}" if one.by else ""
    yield from _labelled("state", f"{one.state} on {one.box}{by}{trial}: {one.why}", width, style)
    if low:
        return
    values = ", ".join(f"{name}={value}" for name, value in zip(view.names, one.values, strict=True))
    yield from _labelled("cell", f"{one.name}  ({values})", width)
    for word in _VERDICTS:
        mark = getattr(one, word)
        yes, no = _SAYS[word]
        yield from _labelled(
            word,
            "? nobody could be asked" if mark is None else yes if mark else no,
            width,
            "" if mark else "dim",
        )


def _labelled(label: str, text: str, width: int, style: str = "") -> Iterator[Line]:
    for number, part in enumerate(wrap(text, max(10, width - _LABEL - 3))):
        yield ((fit(f"  {label if not number else ''}", _LABEL) + " ", "dim"), (part, style))
