"""A queue's cells in lines of text. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tui.model.queue import CellView, MatrixView
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, clip, fit, wrap

SORTS = ("matrix", "state", "box")
"""Orders of the list: the matrix's own, worst first, by box."""

WIDE = 100
_STATE = 14
_VALUE = 12
_BOX = 16
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
    """Cells of each column. `values` follow the matrix's names."""

    values: tuple[int, ...]
    box: int
    marks: tuple[int, int, int]


def columns_of(view: MatrixView, width: int) -> Columns:
    """What fits: values and boxes as wide as they are, as far as there is room."""
    marks = (8, 10, 11) if width >= WIDE else (5, 5, 6)
    box = min(_BOX, max([3, *(cell_len(one.by or one.box) for one in view.cells)])) + 2
    room = width - 3 - _STATE - 4 - sum(marks) - box
    wanted = [
        min(_VALUE, max([cell_len(name), *(cell_len(one.values[n]) for one in view.cells)])) + 2
        for n, name in enumerate(view.names)
    ]
    while wanted and sum(wanted) > max(room, 4 * len(wanted)):
        wanted[wanted.index(max(wanted))] -= 1
    return Columns(tuple(wanted), box, marks)


def head_line(view: MatrixView, columns: Columns, width: int, glyphs: Glyphs) -> Line:
    """The names of the columns."""
    words = ("SEALED", "ACCEPTED", "EVALUATED") if width >= WIDE else ("SEAL", "ACC", "EVAL")
    parts = [
        fit(name, cells, ellipsis=glyphs.ellipsis)
        for name, cells in zip(view.names, columns.values, strict=True)
    ]
    parts += [fit("BOX", columns.box), fit("STATE", _STATE), fit("TRY", 4)]
    parts += [fit(word, cells) for word, cells in zip(words, columns.marks, strict=True)]
    return clip((("   " + "".join(parts), "dim"),), width - 1, glyphs.ellipsis)


def cell_line(one: CellView, columns: Columns, width: int, glyphs: Glyphs) -> Line:
    """One cell in one line."""
    glyph, style = _state(one.state, glyphs)
    dots = glyphs.ellipsis
    spans: list[Span] = [(f" {glyph} ", style)]
    spans += [
        (_column(value, cells, dots), "") for value, cells in zip(one.values, columns.values, strict=True)
    ]
    spans += [
        (_column(one.by or one.box, columns.box, dots), "accent" if one.by else "dim"),
        (fit("?" if one.state == "unknown" else one.state, _STATE), style),
        (fit("?" if one.attempt is None else str(one.attempt), 4), "" if one.attempt else "dim"),
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
    """How many cells are in each state, worst first, then how many carry each verdict."""
    told = dict(view.counts)
    words = sorted((word for word in told if word in WORST), key=lambda word: WORST[word])
    words += [word for word in _VERDICTS if word in told]
    spans: list[Span] = []
    for word in words:
        spans += [
            (f" {glyphs.dot} " if spans else "", "dim"),
            (f"{told[word]} {word}", _STYLES.get(word, "")),
        ]
    return list(clip(spans, max(0, width), glyphs.ellipsis))


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
