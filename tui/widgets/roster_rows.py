"""The instance roster as data: one row per run, or per box without one. Pure; the widget only draws it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from tui.fleet import judge, money
from tui.fleet.age import age_word, is_stale, short
from tui.model.run import Progress, RunState
from tui.model.snapshot import Attention, BoxView, FleetSnapshot, RunView
from tui.model.telemetry import Telemetry
from tui.model.text import safe
from tui.widgets.glyphs import Glyphs, strip

Key: TypeAlias = tuple[str, str]
"""Box and run name; an empty run name stands for a box without a run."""

SORTS = ("attention", "name", "age", "inode", "disk", "gpu", "cost")


@dataclass(frozen=True, slots=True)
class Cell:
    """What one column shows in one row, and how it is styled (names of `ink.STYLES`)."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the roster.

    Attributes:
        cells: by column id.
        order: sort values by sort name; None sorts last whatever the direction.
        rank: 0 danger, 1 attention, 2 unknown, 3 fine, 4 quiet; the default order.
        stale: the numbers are too old to be read as the present.
        stamp: changes when new numbers came in, also when they are the same.
        changed: columns whose number differs from the look before.
    """

    key: Key
    cells: Mapping[str, Cell]
    order: Mapping[str, float | str | None]
    rank: int
    stale: bool
    stamp: tuple[float, float] = (0.0, 0.0)
    changed: frozenset[str] = field(default=frozenset())

    @property
    def text(self) -> str:
        """What the filter looks at."""
        return " ".join(cell.text for cell in self.cells.values())


NUMBERS = ("GPU", "VRAM", "DISK", "INODE")
_GLYPH_OF_RUN = {
    RunState.RUNNING: "running",
    RunState.STARTING: "starting",
    RunState.STALLED: "attention",
    RunState.FINISHED: "stopped",
    RunState.DEAD: "gone",
    RunState.UNKNOWN: "unknown",
    RunState.UNREACHABLE: "unknown",
}
_STYLE_OF_RUN = {
    RunState.STALLED: "attention",
    RunState.DEAD: "danger",
    RunState.UNKNOWN: "dim",
    RunState.UNREACHABLE: "dim",
    RunState.FINISHED: "strong",
}
_RANK = {"danger": 0, "attention": 1, "unknown": 2, "starting": 2}


def rows_of(snapshot: FleetSnapshot, now: float, glyphs: Glyphs, period_s: float = 2.0) -> list[Row]:
    """The rows in the order of the fleet file."""
    currencies = {b.instance.currency for b in snapshot.boxes if b.instance.price_per_hour is not None}
    rows = []
    for box in snapshot.boxes:
        runs: Sequence[RunView | None] = snapshot.runs_on(box.name) or (None,)
        for place, run in enumerate(runs):
            others = [r for r in runs if r is not None and r is not run]
            seen = replace(box, attention=_without(box.attention, others))
            cards = snapshot.machine_of(box, run) if run is not None else box
            mixed = len(currencies) > 1
            rows.append(_row(seen, cards, run, now, glyphs, period_s, mixed=mixed, first=place == 0))
    return rows


def _without(found: tuple[Attention, ...], others: Iterable[RunView]) -> tuple[Attention, ...]:
    foreign = {a for run in others for a in run.attention}
    return tuple(a for a in found if a not in foreign)


def _row(
    box: BoxView,
    cards: BoxView | None,
    run: RunView | None,
    now: float,
    glyphs: Glyphs,
    period_s: float,
    *,
    mixed: bool,
    first: bool,
) -> Row:
    word = judge.box_word(box, now, period_s)
    taken = box.telemetry.taken_at if box.telemetry else None
    # A box that was never probed has no old numbers to grey out.
    stale = taken is not None and is_stale(taken, now, period_s)
    values = numbers(box.telemetry)
    if cards is None or cards.name != box.name:  # its job runs on another machine than it is watched on
        there = numbers(cards.telemetry if cards is not None else None)
        values |= {name: there[name] for name in ("GPU", "VRAM")}
    spent = money.spent(money.metered(box), whole_minute(now))
    cells = {
        "BOX": Cell(safe(box.name), "strong"),
        "PLATFORM": Cell(safe(box.instance.platform), "dim"),
        "STATE": _state(word, run, glyphs),
        "BOX STATE": Cell(f"{glyph_of(word.kind, glyphs)} {word.word}", _style_of(word.kind)),
        "RUN STATE": _run_state(run, glyphs),
        "RUN": Cell(safe(run.name) if run else glyphs.none, "" if run else "dim"),
        "PROGRESS": _progress(run, glyphs),
        "WORST": _worst(box, values, glyphs),
        "$/H": _price(box, glyphs, mixed=mixed) if first else Cell("", "dim"),
        "SPENT": Cell("?" if spent is None else f"{spent:,.2f}", "money") if first else Cell(""),
        "NEXT CLOCK": _clock(box, now, glyphs),
        "AGE": Cell(
            age_word(taken, now, period_s) if taken is not None else glyphs.none, "dim" if stale else ""
        ),
        **{name: _number(name, values[name], box, glyphs) for name in NUMBERS},
    }
    rank = _rank(word.kind, run)
    order: dict[str, float | str | None] = {
        "attention": float(rank),
        "name": box.name.casefold(),
        "age": None if taken is None else now - taken,
        "inode": values["INODE"],
        "disk": values["DISK"],
        "gpu": values["GPU"],
        "cost": box.instance.price_per_hour,
    }
    stamp = (taken or 0.0, run.progress.at if run and run.progress else 0.0)
    return Row((box.name, run.name if run else ""), cells, order, rank, stale, stamp)


def whole_minute(now: float) -> float:
    """The time that money is computed for: sums that grow every second would be painted every second."""
    return now // 60 * 60


def numbers(telemetry: Telemetry | None) -> dict[str, float | None]:
    """The four percentages of a box: mean GPU use, fullest card, fullest mount by bytes and by inodes."""
    gpus = (telemetry.gpus.value if telemetry else None) or ()
    mounts = (telemetry.filesystems.value if telemetry else None) or ()
    util = [g.util_pct for g in gpus if g.util_pct is not None]
    vram = [
        100 * g.mem_used_mib / g.mem_total_mib for g in gpus if g.mem_used_mib is not None and g.mem_total_mib
    ]
    return {
        "GPU": sum(util) / len(util) if util else None,
        "VRAM": max(vram, default=None),
        "DISK": max((f.use_pct for f in mounts if f.use_pct is not None), default=None),
        "INODE": max((f.inode_use_pct for f in mounts if f.inode_use_pct is not None), default=None),
    }


def glyph_of(kind: str, glyphs: Glyphs) -> str:
    """The glyph of a `judge.BoxWord` kind."""
    by_kind = {
        "running": glyphs.running,
        "starting": glyphs.starting,
        "stopped": glyphs.stopped,
        "unknown": glyphs.unknown,
        "gone": glyphs.gone,
        "attention": glyphs.attention,
        "danger": glyphs.attention,
    }
    return by_kind.get(kind, glyphs.none)


def _style_of(kind: str) -> str:
    return kind if kind in ("attention", "danger") else "dim" if kind in ("unknown", "starting") else ""


def _state(word: judge.BoxWord, run: RunView | None, glyphs: Glyphs) -> Cell:
    """Where one column must do for both: the box's state, or the run's once the box itself is well."""
    if word.kind == "running" and run is not None and run.state is not RunState.RUNNING:
        return _run_state(run, glyphs)
    return Cell(f"{glyph_of(word.kind, glyphs)} {word.word}", _style_of(word.kind))


def _run_state(run: RunView | None, glyphs: Glyphs) -> Cell:
    if run is None:
        return Cell(glyphs.none, "dim")
    text, style = run_word(run.state, glyphs)
    return Cell(text, style)


def run_word(state: RunState, glyphs: Glyphs) -> tuple[str, str]:
    """How a run's state is written and styled wherever it stands."""
    return f"{glyph_of(_GLYPH_OF_RUN[state], glyphs)} {state.value}", _STYLE_OF_RUN.get(state, "")


def _rank(kind: str, run: RunView | None) -> int:
    if kind == "gone":
        return 5  # nothing is left to do there
    ranks = [_RANK.get(kind, 3)]
    if run is not None:
        ranks.append({RunState.DEAD: 0, RunState.STALLED: 1, RunState.FINISHED: 2}.get(run.state, 3))
    elif kind not in _RANK:
        ranks.append(4)
    return min(ranks) if min(ranks) < 3 else max(ranks)


def count_word(number: int) -> str:
    """A count in at most five cells: ``999``, ``12.4k``, ``3.1M``."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= max(size, 10_000):
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return str(number)


def progress_word(progress: Progress | None) -> str:
    """How far a run says it is: ``ep 41/100``; empty when its log does not say."""
    if progress is None or progress.done is None:
        return "finished" if progress is not None and progress.finished else ""
    return "finished" if progress.finished else reached_word(progress)


def reached_word(progress: Progress | None) -> str:
    """How far a run came, whether it goes on or not; empty when its log does not say."""
    if progress is None or progress.done is None:
        return ""
    unit = {"epoch": "ep", "step": "st", "it": "it"}.get(progress.unit, safe(progress.unit, 12))
    total = "" if progress.total is None else f"/{count_word(progress.total)}"
    return f"{unit} {count_word(progress.done)}{total}".strip()


def _progress(run: RunView | None, glyphs: Glyphs) -> Cell:
    if run is None:
        return Cell(glyphs.none, "dim")
    return Cell(run_progress_word(run))


def run_progress_word(run: RunView) -> str:
    """How far a run is: what it reached where its state already says that it is finished."""
    return (reached_word if run.state is RunState.FINISHED else progress_word)(run.progress)


def loss_strip(progress: Progress | None, width: int, glyphs: Glyphs) -> str:
    """All losses at hand in `width` cells, on a scale from 0 to their maximum; blank when there are none."""
    losses = progress.losses if progress else ()
    finite = [x for x in losses if math.isfinite(x)]
    if not finite or max(finite) <= 0:
        return " " * width
    return strip(_squeezed(losses, width), width, glyphs, top=max(finite))


def _squeezed(values: Sequence[float], cells: int) -> list[float | None]:
    """Means of `cells` equal stretches. A stretch with a NaN in it is a gap: the run should be looked at."""
    if len(values) <= cells:
        return list(values)
    edges = [round(i * len(values) / cells) for i in range(cells + 1)]
    means = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    return [m if math.isfinite(m) else None for m in means]


def _number(name: str, value: float | None, box: BoxView, glyphs: Glyphs) -> Cell:
    if value is None:
        return Cell("" if box.telemetry is None else "n/a", "dim")
    word = {"DISK": "disk ", "INODE": "inodes "}.get(name)
    level = next((a.level for a in box.attention if word and a.short.startswith(word)), "")
    return Cell(f"{glyphs.attention if level else ''}{value:.0f}", level)


def _worst(box: BoxView, values: Mapping[str, float | None], glyphs: Glyphs) -> Cell:
    """The one number a narrow pane has room for: the fullest of memory, disk and inodes."""
    if box.telemetry is None:
        return Cell("", "dim")
    known = [(v, n) for n, v in values.items() if v is not None and n != "GPU"]
    if not known:
        return Cell("n/a", "dim")
    value, name = max(known)
    level = _number(name, value, box, glyphs).style
    return Cell(f"{name.lower()} {value:.0f}%", level)


def _price(box: BoxView, glyphs: Glyphs, *, mixed: bool) -> Cell:
    price = box.instance.price_per_hour
    if box.ended is not None or (box.instance.here and price is None):
        return Cell(glyphs.none, "dim")
    sign = money.SIGNS.get(box.instance.currency, box.instance.currency) if mixed else ""
    return Cell("?", "money") if price is None else Cell(f"{price:.2f}{sign}", "money")


def _clock(box: BoxView, now: float, glyphs: Glyphs) -> Cell:
    clock = box.clock
    if clock is None:
        return Cell(glyphs.none, "dim")
    if clock.at is None:
        return Cell(safe(clock.text))
    left = clock.at - now
    when = short(left) if left >= 0 else "past"
    return Cell(
        f"{safe(clock.text).removeprefix('contract ')} {when}",
        "danger" if left < 86400 and clock.destroys else "",
    )


def mark_changes(rows: Iterable[Row], before: Mapping[Key, Row]) -> list[Row]:
    """Rows with the numbers named that differ from the look before; kept until the next look."""
    marked = []
    for row in rows:
        old = before.get(row.key)
        if old is None:
            marked.append(row)
        elif old.stamp == row.stamp:
            marked.append(replace(row, changed=old.changed))
        else:
            names = (*NUMBERS, "WORST", "PROGRESS")
            differ = frozenset(
                n for n in names if old.cells[n].text != row.cells[n].text and old.cells[n].text
            )
            marked.append(replace(row, changed=differ))
    return marked


def arranged(rows: Iterable[Row], sort: str, *, reverse: bool, keep: Callable[[str], bool]) -> list[Row]:
    """The rows that pass the filter, in order. Numbers sort worst first; what is not known comes last."""
    kept = [row for row in rows if keep(row.text)]
    known = [row for row in kept if row.order[sort] is not None]
    unknown = [row for row in kept if row.order[sort] is None]
    highest_first = sort not in ("attention", "name")
    known.sort(key=lambda row: _sortable(row.order[sort]), reverse=highest_first != reverse)
    return known + unknown


def _sortable(value: float | str | None) -> tuple[float, str]:
    return (value, "") if isinstance(value, float | int) else (0.0, value or "")
