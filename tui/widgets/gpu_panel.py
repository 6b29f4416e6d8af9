"""The cards: utilisation over time, memory against its size, temperature, power, what throttles them."""

from __future__ import annotations

from typing import Any

from tui.model.reading import Reading
from tui.model.telemetry import Gpu, GpuProcess, unowned_vram_mib
from tui.widgets.figures import NA, pair, percent, size
from tui.widgets.gauge import LABEL, gauge
from tui.widgets.lines import Line, Span, fit
from tui.widgets.panel import Panel, Sight, apart, na, packed, unread
from tui.widgets.strip import history

MIB = 1024 * 1024
RESERVED_MIB = 600
"""What a driver keeps for itself on a card; less than this held by nobody is no news."""

STRIP = 16
"""Columns of history in the one-line summary."""

FULL_CARDS = 3
"""Up to so many cards get all their lines; beyond it two lines each."""


class GpuPanel(Panel):
    """All cards of the box."""

    TITLE = "GPU"
    OF_JOB = True
    MEANING = "Utilisation and memory as the driver tells them; the strip runs from 0 to 100 %."
    PART, PERIODS = "gpus", 2.0

    def reading(self, sight: Sight) -> Reading[Any] | None:
        return sight.telemetry.gpus if sight.telemetry else None

    def title(self, sight: Sight) -> list[Span]:
        words: list[Span] = [(self.TITLE, "title")]
        if sight.simulates("GPU"):
            words.append((" simulated", "dim"))
        return words

    def body(self, sight: Sight, width: int) -> list[Line]:
        return gpu_lines(sight, width)


def gpu_lines(sight: Sight, width: int) -> list[Line]:
    """Every card in full, or two lines each where there are many."""
    reading = sight.telemetry.gpus if sight.telemetry else None
    if sight.telemetry is None or reading is None or reading.value is None:
        return [na(unread(sight, reading), width, sight.glyphs)]
    if not reading.value:
        return [(("  no GPU on this box", "dim"),)]
    processes = sight.telemetry.gpu_processes.value
    lines: list[Line] = []
    for place, gpu in enumerate(reading.value):
        lines.append(_head(gpu, width, sight))
        if len(reading.value) <= FULL_CARDS:
            lines += [_util(gpu, place, width, sight), _memory(gpu, width, sight)]
        else:
            lines.append(_short(gpu, place, width, sight))
        lines += _remarks(gpu, processes, width, sight)
    return lines


def gpu_summary(sight: Sight, width: int) -> Line:
    """All cards in one line: utilisation and memory of each, temperature of the hottest."""
    head: Span = (fit("  GPU", LABEL), "dim")
    reading = sight.telemetry.gpus if sight.telemetry else None
    if reading is None or reading.value is None:
        return (head, *na(unread(sight, reading), width - LABEL, sight.glyphs, indent=0))
    if not reading.value:
        return (head, ("no GPU on this box", "dim"))
    gpus = reading.value
    hot = max((g.temp_c for g in gpus if g.temp_c is not None), default=None)
    memory = " ".join(percent(_memory_pct(g)) for g in gpus[:4])
    if len(gpus) == 1:
        used: Line = ((_strip(0, STRIP, sight), "graph"), (fit(percent(gpus[0].util_pct), 6, right=True), ""))
    else:
        util = " ".join(percent(g.util_pct) for g in gpus[:4])
        used = ((f"{len(gpus)} cards  ", "dim"), (util, ""))
    parts: list[Line] = [
        used,
        (("mem ", "dim"), (memory, "")),
        (("simulated", "dim"),) if sight.simulates("GPU") else (),
        *((span,) for g in gpus for span in _health(g)[:1]),
        ((_degrees(hot, sight), ""),),
    ]
    return packed((head,), parts, width)


def _head(gpu: Gpu, width: int, sight: Sight) -> Line:
    power = NA if gpu.power_w is None else f"{gpu.power_w:.0f}"
    limit = "" if gpu.power_limit_w is None else f"/{gpu.power_limit_w:.0f}"
    right: list[Span] = [
        (f"  {_degrees(gpu.temp_c, sight)}", "" if gpu.temp_c is not None else "dim"),
        (fit(f"{power}{limit} W", 11, right=True), "" if gpu.power_w is not None else "dim"),
    ]
    if gpu.power_w is None:
        right[1] = (fit(NA, 11, right=True), "dim")
    return apart(
        ((f"  {gpu.index} ", "strong"), (gpu.name.removeprefix("NVIDIA "), "")),
        tuple(right),
        width,
        sight.glyphs,
    )


def _degrees(celsius: float | None, sight: Sight) -> str:
    return NA if celsius is None else f"{celsius:.0f} {sight.glyphs.degree}C"


def _util(gpu: Gpu, place: int, width: int, sight: Sight) -> Line:
    if gpu.util_pct is None and gpu.mig:
        return ((fit("  util", LABEL), "dim"), (f"{NA}  MIG is on: only its slices have one", "dim"))
    figure = fit(percent(gpu.util_pct), 8, right=True)
    room = width - LABEL - len(figure)
    style = "" if gpu.util_pct is not None else "dim"
    return ((fit("  util", LABEL), "dim"), (_strip(place, room, sight), "graph"), (figure, style))


def _strip(place: int, width: int, sight: Sight) -> str:
    samples = sight.box.history if sight.box else ()
    points = [(s.at, s.gpu_util[place] if place < len(s.gpu_util) else None) for s in samples]
    return history(points, width, sight.glyphs)


def _memory_pct(gpu: Gpu) -> float | None:
    if gpu.mem_used_mib is not None and gpu.mem_total_mib:
        return 100.0 * gpu.mem_used_mib / gpu.mem_total_mib
    return gpu.mem_used_pct


def _memory(gpu: Gpu, width: int, sight: Sight) -> Line:
    pct = _memory_pct(gpu)
    used = None if gpu.mem_used_mib is None else gpu.mem_used_mib * MIB
    total = None if gpu.mem_total_mib is None else gpu.mem_total_mib * MIB
    figure = percent(pct) if used is None or total is None else pair(used, total, binary=True)
    return gauge(
        "memory",
        pct,
        figure,
        width,
        sight.glyphs,
        figure_width=17,
        why=_why(gpu, "mem_used_mib", "mem_total_mib"),
    )


def _short(gpu: Gpu, place: int, width: int, sight: Sight) -> Line:
    strip_room = max(4, width - LABEL - 24)
    return (
        (fit("  util", LABEL), "dim"),
        (_strip(place, strip_room, sight), "graph"),
        (fit(percent(gpu.util_pct), 7, right=True), "" if gpu.util_pct is not None else "dim"),
        ("  memory ", "dim"),
        (fit(percent(_memory_pct(gpu)), 8, right=True), ""),
    )


def _why(gpu: Gpu, *fields: str) -> str:
    return next((f"the tool said {said}" for name, said in gpu.missing if name in fields), "")


def _health(gpu: Gpu) -> list[Span]:
    """What is wrong with a card, worst first."""
    found: list[Span] = []
    words = {"lost": "card lost", "requires_reset": "card needs a reset", "unreadable": "card not readable"}
    if gpu.health:
        found.append((words.get(gpu.health, gpu.health), "danger"))
    if gpu.ecc_uncorrected:
        found.append((f"{gpu.ecc_uncorrected:,} uncorrected ECC errors", "danger"))
    if gpu.remap_failed:
        found.append(("row remapping failed", "danger"))
    if gpu.remap_pending:
        found.append(("a bad row waits for a reset", "attention"))
    if gpu.throttle:
        found.append((f"throttled: {', '.join(gpu.throttle)}", "attention"))
    return found


def _remarks(gpu: Gpu, processes: tuple[GpuProcess, ...] | None, width: int, sight: Sight) -> list[Line]:
    lines: list[Line] = [
        (
            (f"  {sight.glyphs.attention} ", level),
            (fit(text, width - 4, ellipsis=sight.glyphs.ellipsis), level),
        )
        for text, level in _health(gpu)
    ]
    nobody = None if processes is None else unowned_vram_mib(gpu, processes)
    if nobody is not None and nobody > RESERVED_MIB:
        said = f"{size(nobody * MIB, binary=True)} held by no listed process"
        lines.append(((f"    {fit(said, width - 4, ellipsis=sight.glyphs.ellipsis)}", ""),))
    absent = [
        name for name in ("util_pct", "temp_c", "power_w") if getattr(gpu, name) is None and not gpu.mig
    ]
    if gpu.throttle is None:
        absent.append("throttle")
    if absent:
        named = ", ".join(_FIELD_WORDS[name] for name in absent)
        why = next((f": told {said}" for name, said in gpu.missing if name in absent), "")
        lines.append(((fit(f"    {NA}: {named}{why}", width, ellipsis=sight.glyphs.ellipsis), "dim"),))
    return lines


_FIELD_WORDS = {
    "util_pct": "util",
    "temp_c": "temp",
    "power_w": "power",
    "throttle": "throttle",
}
