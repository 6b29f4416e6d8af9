"""Disks, cards and memory of a box as rows of the detail. Pure."""

from __future__ import annotations

from rich.cells import cell_len

from tui.fleet.age import long
from tui.model.snapshot import BoxView, Growth, RunView
from tui.model.telemetry import Filesystem, Gpu, Telemetry
from tui.widgets.figures import pair, size
from tui.widgets.gauge import bar_spans
from tui.widgets.glyphs import Glyphs
from tui.widgets.lines import Line, Span, end_of, fit, length
from tui.widgets.mount_words import read_only_spans

AMOUNTS = 86
"""Cells that both gauges take with their amounts: a row that is cut loses its unit."""


def disk_rows(
    box: BoxView, run: RunView | None, glyphs: Glyphs, telemetry: Telemetry, room: int
) -> list[list[Span]]:
    """Each mount with its gauges, the fullest first; `run` is the one that writes on them."""
    mounts = telemetry.filesystems.value
    if mounts is None:
        return [[(f"n/a: {telemetry.filesystems.reason}", "dim")]]
    growth = dict(box.growth)
    ranked = sorted(mounts, key=lambda f: -max(f.inode_use_pct or 0.0, f.use_pct or 0.0))
    name_width = min(24, max((cell_len(f.mount) for f in mounts), default=0))
    rows: list[list[Span]] = []
    for fs in ranked:
        rows += _disk(fs, growth.get(fs.mount, Growth()), box, run, glyphs, name_width, room)
    return rows


def _disk(
    fs: Filesystem,
    growth: Growth,
    box: BoxView,
    run: RunView | None,
    glyphs: Glyphs,
    name_width: int,
    room: int,
) -> list[list[Span]]:
    """One mount: in one line with amounts, in one line without, or in two, by the room there is."""
    name: list[Span] = [(fit(end_of(fs.mount, name_width, ellipsis=glyphs.ellipsis), name_width), "")]
    if fs.error:
        return [[*name, (f"  n/a: {fs.error}", "dim")]]
    amounts = room >= name_width + AMOUNTS
    cells = 12 if amounts else 6 if room < 46 else 8
    two_lines = room < name_width + len("  inodes   91%  bytes   74%") + 2 * cells
    gauges: list[Span] = []
    levels = {word: _level(box, word, fs) for word in ("inodes", "bytes")}
    for word, pct in (("inodes", fs.inode_use_pct), ("bytes", fs.use_pct)):
        level = levels[word]
        gauges += [(f"  {word} ", "dim"), *_gauge(pct, cells, glyphs, tick=0.9, level=level)]
        gauges.append((" n/a " if pct is None else f"{pct:4.0f}%", level))
        if amounts:
            gauges.append((fit(_amount(fs, word), 19 if word == "inodes" else 16, right=True), "dim"))
    tail: list[Span] = []
    word, soon = _full_in(growth)
    if soon:
        tail.append((f"  {soon}", levels[word]))  # coloured where the box's attention says so, not by itself
    tail += read_only_spans(fs, run)
    if two_lines:
        fits = length(name) + length(tail) <= room
        return [[*name, *tail], gauges] if fits else [name, gauges, tail]
    if length(name) + length(gauges) + length(tail) <= room:
        return [[*name, *gauges, *tail]]
    return [[*name, *gauges], [(" " * name_width, ""), *tail]]


def _level(box: BoxView, word: str, fs: Filesystem) -> str:
    """How bad the box's attention calls the inodes or bytes of a mount; empty where it says nothing."""
    prefix = "inodes " if word == "inodes" else "disk "
    about = (a for a in box.attention if a.short.startswith(prefix) and f" on {fs.mount}:" in a.text)
    return next((a.level for a in about), "")


def _gauge(
    pct: float | None, cells: int, glyphs: Glyphs, *, tick: float | None = None, level: str = ""
) -> Line:
    return bar_spans(None if pct is None else pct / 100, cells, glyphs, tick=tick, level=level)


def _amount(fs: Filesystem, word: str) -> str:
    if word == "inodes":
        if fs.inodes is None or fs.inodes_used is None:
            return ""
        return f"{fs.inodes_used:,} / {fs.inodes:,}" if fs.inodes < 10_000_000 else f"{fs.inodes_used:,}"
    if fs.size_bytes is None or fs.used_bytes is None:
        return ""
    return pair(fs.used_bytes, fs.size_bytes)


def _full_in(growth: Growth) -> tuple[str, str]:
    """Whichever of inodes and bytes runs out first at the present growth, and when in words; or nothing."""
    ends = [
        (growth.inodes_full_in_s, "inodes", growth.inodes_per_s),
        (growth.bytes_full_in_s, "bytes", growth.bytes_per_s),
    ]
    known = [(left, word, rate) for left, word, rate in ends if left is not None and rate is not None]
    if not known:
        return "bytes", ""
    left, word, rate = min(known, key=lambda end: end[0])
    if left == 0:
        return word, f"no {word} left"
    if left > 3 * 86400:
        return word, ""
    speed = f"{rate * 60:,.0f} files/min" if word == "inodes" else f"{size(rate * 60)}/min"
    return word, f"full in {long(left)} at {speed}"


def gpu_rows(box: BoxView, glyphs: Glyphs, telemetry: Telemetry, room: int) -> list[list[Span]]:
    cards = telemetry.gpus.value
    if cards is None:
        return [[(f"n/a: {telemetry.gpus.reason}", "dim")]]
    if not cards:
        return [[("none on this box", "dim")]]
    simulated: list[Span] = [("  simulated", "dim")] if "GPU" in box.instance.simulated else []
    left = room - length(simulated)
    return [[*_gpu(card, glyphs, left), *simulated] for card in cards]


def _gpu(card: Gpu, glyphs: Glyphs, room: int) -> list[Span]:
    named = room >= 62
    cells = 12 if room >= 90 else 6 if room < 46 else 8
    used, total = card.mem_used_mib, card.mem_total_mib
    memory = 100 * used / total if used is not None and total else None
    spans: list[Span] = [(f"{card.index} ", "dim")]
    if named:
        name = card.name.removeprefix("NVIDIA ").removeprefix("GeForce ")
        spans.append((fit(name, 18, ellipsis=glyphs.ellipsis), ""))
    for word, pct in (("use", card.util_pct), ("mem", memory)):
        spans += [(f"  {word} ", "dim"), *_gauge(pct, cells, glyphs)]
        spans.append((" n/a " if pct is None else f"{pct:4.0f}%", ""))
    extras: list[Span] = []
    if used is not None and total:
        extras.append((fit(f"{used / 1024:.1f} / {total / 1024:.0f} GiB", 18, right=True), "dim"))
    if card.temp_c is not None:
        extras.append((f"{card.temp_c:5.0f} {glyphs.degree}C", "dim"))
    if card.power_w is not None:
        extras.append((f"{card.power_w:6.0f} W", "dim"))
    if card.throttle:
        spans.append((f"  throttled: {', '.join(card.throttle)}", "attention"))
    for extra in extras:
        if length(spans) + length([extra]) <= room:
            spans.append(extra)
    return spans


def memory_spans(telemetry: Telemetry) -> list[Span]:
    memory = telemetry.memory.value
    if memory is None:
        return [(f"n/a: {telemetry.memory.reason}", "dim")]
    if memory.used_bytes is None:
        return []
    limit = (
        f"of {size(memory.limit_bytes, binary=True)} (cgroup limit)"
        if memory.limit_bytes
        else "used, no cgroup limit"
    )
    spans: list[Span] = [(f"{size(memory.used_bytes, binary=True)} {limit}", "")]
    if memory.oom_kills:
        spans.append((f"{memory.oom_kills} oom kills since the cgroup was made", ""))
    if memory.shm_size_bytes and memory.shm_used_bytes is not None:
        used, whole = (size(n, binary=True) for n in (memory.shm_used_bytes, memory.shm_size_bytes))
        shm = f"/dev/shm {used} of {whole}"  # noqa: S108
        spans.append((shm, "dim"))
    return spans
