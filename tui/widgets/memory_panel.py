"""Memory and CPU as the job's cgroup sees them; the machine's own figures are named as the machine's."""

from __future__ import annotations

from typing import Any

from tui.model.reading import Reading
from tui.model.telemetry import Cpu, Memory
from tui.widgets.figures import NA, pair, percent, size
from tui.widgets.gauge import LABEL, gauge, level_of
from tui.widgets.lines import Line, Span, fit
from tui.widgets.panel import Panel, Sight, na, packed, unread


class MemoryPanel(Panel):
    """Limit, use, kills, shared memory, CPU quota."""

    TITLE = "memory"
    OF_JOB = True
    MEANING = "Use less file cache against the limit of the job's cgroup, not of the machine."

    def reading(self, sight: Sight) -> Reading[Any] | None:
        return sight.telemetry.memory if sight.telemetry else None

    def body(self, sight: Sight, width: int) -> list[Line]:
        return memory_lines(sight, width)


def memory_lines(sight: Sight, width: int) -> list[Line]:
    """Use against the cgroup limit, shared memory, kills, CPU."""
    reading = sight.telemetry.memory if sight.telemetry else None
    if sight.telemetry is None or reading is None or reading.value is None:
        return [na(unread(sight, reading), width, sight.glyphs)]
    memory = reading.value
    lines = _use(memory, width, sight)
    if memory.shm_size_bytes:
        pct = None if memory.shm_used_bytes is None else 100 * memory.shm_used_bytes / memory.shm_size_bytes
        figure = pair(memory.shm_used_bytes, memory.shm_size_bytes, binary=True)
        level = level_of(pct, sight.thresholds.memory_pct, 101)
        lines.append(gauge("shm", pct, figure, width, sight.glyphs, figure_width=18, level=level))
    lines.append(_kills(memory, sight))
    return [*lines, *_cpu(sight.telemetry.cpu, width, sight)]


def memory_summary(sight: Sight, width: int) -> Line:
    """Memory in one line."""
    head: Span = (fit("  memory", LABEL), "dim")
    reading = sight.telemetry.memory if sight.telemetry else None
    if reading is None or reading.value is None:
        return (head, *na(unread(sight, reading), width - LABEL, sight.glyphs, indent=0))
    memory = reading.value
    pct = used_pct(memory)
    if pct is None:
        used: Line = ((f"{size(memory.used_bytes, binary=True)} used, no limit", ""),)
        figure: Line = ()
    else:
        level = level_of(pct, sight.thresholds.memory_pct, sight.thresholds.danger_pct)
        used = ((percent(pct), level),)
        figure = ((pair(memory.used_bytes, memory.limit_bytes, binary=True), ""),)
    return packed((head,), [used, figure, (("oom kills ", "dim"), *_kill_words(memory, sight))], width)


def used_pct(memory: Memory) -> float | None:
    """Percent of the cgroup limit; None without one."""
    if not memory.limit_bytes or memory.used_bytes is None:
        return None
    return 100.0 * memory.used_bytes / memory.limit_bytes


def _use(memory: Memory, width: int, sight: Sight) -> list[Line]:
    t = sight.thresholds
    pct = used_pct(memory)
    if pct is not None:
        figure = pair(memory.used_bytes, memory.limit_bytes, binary=True)
        level = level_of(pct, t.memory_pct, t.danger_pct)
        return [
            gauge(
                "used", pct, figure, width, sight.glyphs, figure_width=18, tick_pct=t.memory_pct, level=level
            )
        ]
    used = size(memory.used_bytes, binary=True)
    lines: list[Line] = [
        ((fit("  used", LABEL), "dim"), (used, "" if memory.used_bytes is not None else "dim"))
    ]
    if memory.limit_bytes is None:
        lines.append(((fit("  limit", LABEL), "dim"), ("none set by the cgroup", "dim")))
    else:
        limit = size(memory.limit_bytes, binary=True)
        lines.append(((fit("  limit", LABEL), "dim"), (f"{limit}  its use was not told", "")))
    if memory.host_total_bytes is not None:
        free = size(memory.host_available_bytes, binary=True)
        total = size(memory.host_total_bytes, binary=True)
        lines.append(((fit("  machine", LABEL), "dim"), (f" {free} of {total} free", "dim")))
    return lines


def _kills(memory: Memory, sight: Sight) -> Line:
    return ((fit("  oom kills", LABEL + 3), "dim"), *_kill_words(memory, sight))


def _kill_words(memory: Memory, sight: Sight) -> list[Span]:
    """The count, and whether it grew while rgt looked: only that is news."""
    if memory.oom_kills is None:
        return [(f"{NA}  no count is kept", "dim")]
    before = sight.box.first_oom if sight.box else None
    new = memory.oom_kills - before if before is not None else 0
    if new > 0:
        return [(f"{memory.oom_kills}", "danger"), (f"  {new} since rgt looks", "danger")]
    return [(f"{memory.oom_kills}", ""), ("  none since rgt looks" if memory.oom_kills else "", "dim")]


def _cpu(reading: Reading[Cpu], width: int, sight: Sight) -> list[Line]:
    head: Span = (fit("  cpu", LABEL), "dim")
    cpu = reading.value
    if cpu is None:
        return [(head, *na(unread(sight, reading), width - LABEL, sight.glyphs, indent=0))]
    cores = NA if cpu.cores_visible is None else f"{cpu.cores_visible}"
    quota = f"quota {cpu.quota_cores:g} of {cores} cores" if cpu.quota_cores is not None else ""
    own: Line = ((quota or f"{cores} cores, no quota", ""),)
    load: Line = ((f"machine load {cpu.load1:.1f}", "dim"),) if cpu.load1 is not None else ()
    line = packed((head,), [own, load], width)
    if load and line[-1] != load[0]:
        return [line, ((" " * LABEL, ""), *load)]
    return [line]
