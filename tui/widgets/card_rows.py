"""Who uses which GPU, over all boxes: one row a process on a card, one for a card without any. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tui.fleet.age import age_word, is_stale
from tui.model.snapshot import BoxView, FleetSnapshot, RunView
from tui.model.telemetry import Gpu, GpuProcess, unowned_vram_mib
from tui.model.text import safe
from tui.widgets.figures import NA, percent, size
from tui.widgets.glyphs import Glyphs
from tui.widgets.gpu_panel import MIB, RESERVED_MIB
from tui.widgets.lines import Line, Span, clip, fit, wrap

WIDE, ROOMY = 100, 72
"""From these widths on the card's name, and how full its memory is, have a column."""

Key: TypeAlias = tuple[str, int, int]
"""Box, card and pid; -1 stands for a card or a process that is not known."""


@dataclass(frozen=True, slots=True)
class Use:
    """One process on one card.

    Attributes:
        gpu: None where the box tells no card; `why` says what it told.
        process: None where no process is listed for the card.
        run: the watched run whose process it is.
        first: whether it is the card's first row, which has the card's figures.
        free: nothing is on the card; None where that can't be told, as from old figures.
        old: the figures are too old to be read as the present.
    """

    box: BoxView
    gpu: Gpu | None
    process: GpuProcess | None
    run: RunView | None
    first: bool = True
    free: bool | None = None
    why: str = ""
    old: bool = False

    @property
    def card(self) -> tuple[str, int]:
        """Which card it is."""
        return self.box.name, -1 if self.gpu is None else self.gpu.index

    @property
    def key(self) -> Key:
        return *self.card, -1 if self.process is None else self.process.pid

    @property
    def text(self) -> str:
        """What the filter looks at."""
        gpu = self.gpu
        said = [self.box.name, self.why, "free" if self.free else ""]
        said += [f"gpu {gpu.index}", gpu.name] if gpu is not None else []
        said += [str(self.process.pid), self.process.command] if self.process is not None else []
        said += [self.run.name] if self.run is not None else []
        return " ".join(map(str, said))


def uses(snapshot: FleetSnapshot, now: float, period_s: float) -> Iterator[Use]:
    """Every use of every card, by box and card. A box that is over has none."""
    for box in snapshot.boxes:
        if box.ended is not None:
            continue
        cards = box.telemetry.gpus if box.telemetry is not None else None
        if cards is None or cards.value is None:
            why = cards.reason if cards is not None else f"{box.link.state.value}; not probed yet"
            yield Use(box, None, None, None, why=str(why))
            continue
        old = box.telemetry is not None and is_stale(box.telemetry.taken_at, now, period_s)
        for gpu in cards.value:
            for use in _on(box, gpu, len(cards.value) == 1, snapshot.runs_on(box.name)):
                yield replace(use, old=True, free=None) if old else use


SORTS = ("box", "free", "use", "memory")


def arranged(found: Iterable[Use], order: str, keep: Callable[[str], bool]) -> list[Use]:
    """The uses that `keep` takes, in one of `SORTS`; each card's figures stand where it is named first.

    The order ``free`` has free cards first, ``use`` and ``memory`` the highest; what is not known comes last.
    """
    kept = [use for use in found if keep(use.text)]
    if order != "box":
        kept.sort(key=lambda use: _rank(use, order))
    before = [None, *(use.card for use in kept)]
    return [replace(use, first=use.card != last) for use, last in zip(kept, before, strict=False)]


def _rank(use: Use, order: str) -> float:
    if order == "free":
        return 0.0 if use.free else 1.0 if use.free is None and use.gpu is not None else 2.0
    value = use.gpu.util_pct if use.gpu is not None else None
    if order == "memory":
        value = use.process.mem_used_mib if use.process is not None else None
    return 1.0 if value is None else -value


def _on(box: BoxView, gpu: Gpu, only: bool, runs: tuple[RunView, ...]) -> Iterator[Use]:
    assert box.telemetry is not None
    listed = box.telemetry.gpu_processes
    if listed.value is None:
        yield Use(box, gpu, None, None, why=f"{NA}: {listed.reason}")
        return
    mine = [one for one in listed.value if _is_on(one, gpu, only)]
    mine.sort(key=lambda one: -(one.mem_used_mib or 0.0))
    for place, one in enumerate(mine):
        yield Use(box, gpu, one, _run_of(one, runs), place == 0, free=False)
    if not mine:
        held = unowned_vram_mib(gpu, listed.value)
        if held is None:
            held = gpu.mem_used_mib
        free = None if held is None else held <= RESERVED_MIB
        said = f"{size(held * MIB, binary=True)} held by no listed process" if held is not None else NA
        yield Use(box, gpu, None, None, free=free, why="free" if free else said)


def _is_on(process: GpuProcess, gpu: Gpu, only: bool) -> bool:
    if process.gpu_index is not None:
        return process.gpu_index == gpu.index
    return only if process.gpu_uuid is None or gpu.uuid is None else process.gpu_uuid == gpu.uuid


def _run_of(process: GpuProcess, runs: tuple[RunView, ...]) -> RunView | None:
    """The watched run whose process this is. In most containers the driver tells another pid: then none."""
    for run in runs:
        own = run.truth.process if run.truth is not None else None
        if own is not None and own.pid == process.pid:
            return run
    return None


def head_line(width: int) -> Line:
    card = f"{'CARD':18}" if width >= WIDE else ""
    full = " MEM%" if width >= ROOMY else ""
    return ((f"  {'BOX':{_name(width)}} GPU {card} USE%{full}     PID      HELD  WHAT", "dim"),)


def _name(width: int) -> int:
    return 14 if width >= ROOMY else 12


def use_line(use: Use, width: int, glyphs: Glyphs) -> Line:
    """One use in at most `width` cells; quiet where its figures are old."""
    quiet = "dim" if use.old else ""
    gpu, dots = use.gpu, glyphs.ellipsis
    spans: list[Span] = [
        (f"  {fit(safe(use.box.name) if use.first else '', _name(width), ellipsis=dots)} ", "strong")
    ]
    if gpu is None:
        return clip((*spans, (f"{NA}  {safe(use.why)}", "dim")), width - 1, dots)
    spans.append((f"{gpu.index:>3} " if use.first else "    ", quiet))
    if width >= WIDE:
        name = gpu.name.removeprefix("NVIDIA ").removeprefix("GeForce ") if use.first else ""
        spans.append((fit(name, 18, ellipsis=dots), "dim"))
    for value in (gpu.util_pct, _memory_pct(gpu))[: 2 if width >= ROOMY else 1]:
        said = (percent(value).removesuffix(" %")) if use.first else ""
        spans.append((f"{said:>5}", quiet if value is not None else "dim"))
    if use.process is None:
        style = "dim" if use.free is not False else "attention"
        pad = _WHAT if use.free else 3  # a sentence has the columns of the process that is not there
        spans.append((f"{'':{pad}}{safe(use.why)}", "strong" if use.free else style))
    else:
        held = use.process.mem_used_mib
        amount = NA if held is None else size(held * MIB, binary=True)
        spans.append((f"{use.process.pid:>8}{amount:>10}  ", quiet))
        spans.append(_what(use, quiet))
    return clip(spans, width - 1, dots)


_WHAT = 20
"""Cells of a process before what it runs."""


def _what(use: Use, quiet: str) -> Span:
    if use.run is not None:
        return safe(use.run.name), f"{quiet} strong".strip()
    assert use.process is not None
    return safe(use.process.command) or "no name known", quiet


def _memory_pct(gpu: Gpu) -> float | None:
    if gpu.mem_used_mib is not None and gpu.mem_total_mib:
        return 100 * gpu.mem_used_mib / gpu.mem_total_mib
    return gpu.mem_used_pct


def detail_lines(use: Use, width: int, now: float, period_s: float) -> list[Line]:
    """The selected use in words: whose it is, what runs, how old that is."""
    telemetry = use.box.telemetry
    about = [f"{use.box.name}, GPU {use.gpu.index} {use.gpu.name}" if use.gpu else use.box.name]
    if use.run is not None:
        about.append(f"run {use.run.name}, {use.run.state.value}")
    if use.process is not None:
        about.append(use.process.command or "no name known")
    elif use.why:
        about.append(use.why)
    if telemetry is not None and use.old:
        about.append(f"as of {age_word(telemetry.taken_at, now, period_s)} ago")
    parts = wrap(safe("; ".join(about)), max(20, width - 4))
    return [((f"  {part}", ""),) for part in parts[:3]]


def sum_words(found: list[Use], most: int = 4) -> str:
    """How many cards there are, how many of them are free or not known, in at most so many parts."""
    cards = {use.card: use for use in found if use.gpu is not None}.values()
    words = [f"{len(cards)} {'card' if len(cards) == 1 else 'cards'}"]
    free = sum(use.free is True for use in cards)
    unknown, silent = sum(use.free is None for use in cards), sum(use.gpu is None for use in found)
    words += [f"{free} free"] if free else []
    words += [f"{unknown} not known"] if unknown else []
    words += [f"{silent} {'box' if silent == 1 else 'boxes'} not known"] if silent else []
    return ", ".join(words[:most])
