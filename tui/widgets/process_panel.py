"""The processes on the box: the run's own first, what holds memory on the cards beside it."""

from __future__ import annotations

from typing import Any

from tui.fleet.age import short
from tui.model.reading import Reading
from tui.model.telemetry import Candidate, GpuProcess, ProcessInfo, Telemetry
from tui.widgets.figures import NA, size
from tui.widgets.gpu_panel import MIB
from tui.widgets.lines import Line, Span, fit
from tui.widgets.panel import Panel, Sight, na, unread

SHOWN = 8
WIDE = 72
STATES = {"Z": "zombie", "D": "waits on disk", "T": "stopped"}


class ProcessPanel(Panel):
    """The heaviest processes of ours, and those on the cards."""

    TITLE = "processes"
    OF_JOB = True
    MEANING = "The heaviest processes of ours on the box."
    PART, PERIODS = "processes", 5.0

    def reading(self, sight: Sight) -> Reading[Any] | None:
        return sight.telemetry.processes if sight.telemetry else None

    def body(self, sight: Sight, width: int) -> list[Line]:
        return process_lines(sight, width)


def process_lines(sight: Sight, width: int) -> list[Line]:
    """One line a process: pid, since when, memory of the machine and of the cards, command."""
    telemetry = sight.telemetry
    if telemetry is None or telemetry.processes.value is None:
        return [na(unread(sight, telemetry.processes if telemetry else None), width, sight.glyphs)]
    own = _own(sight)
    known = _with_own(telemetry, own)
    vram = _vram(telemetry)
    shown = known if width >= WIDE else known[:SHOWN]
    lines: list[Line] = [_heading(width)] if known else []
    lines += [_line(p, vram.get(p.pid), own is not None and p.pid == own.pid, width, sight) for p in shown]
    if len(known) > len(shown):
        lines.append(((f"  {len(known) - len(shown)} more", "dim"),))
    pids = {p.pid for p in known}
    others = [p for p in telemetry.gpu_processes.value or () if p.pid not in pids]
    lines += [_on_card(p, width, sight) for p in others]
    return lines or [(("  none of ours", "dim"),)]


def candidate_line(candidate: Candidate, width: int, sight: Sight) -> Line:
    """What looks like a run and is not watched: command, memory on the cards, where it logs."""
    vram = "" if candidate.gpu_mem_mib is None else size(candidate.gpu_mem_mib * MIB, binary=True)
    pid = f"{candidate.pid}" if candidate.pid is not None else candidate.session or ""
    right = fit(vram, 10, right=True) if vram else ""
    head = f"  {fit(pid, 8)} "
    room = max(4, width - len(head) - len(right))
    return ((head, "dim"), (fit(candidate.command, room, ellipsis=sight.glyphs.ellipsis), ""), (right, "dim"))


def _own(sight: Sight) -> ProcessInfo | None:
    if sight.elsewhere or sight.run is None or sight.run.truth is None:
        return None  # what was seen where it is watched has a number of that machine
    return sight.run.truth.process


def _with_own(telemetry: Telemetry, own: ProcessInfo | None) -> list[ProcessInfo]:
    """The run's process first, then the rest in the probe's order: the heaviest first."""
    rest = list(telemetry.processes.value or ())
    if own is None:
        return rest
    return [own, *(p for p in rest if p.pid != own.pid)]


def _vram(telemetry: Telemetry) -> dict[int, float]:
    held: dict[int, float] = {}
    for process in telemetry.gpu_processes.value or ():
        if process.mem_used_mib is not None:
            held[process.pid] = held.get(process.pid, 0.0) + process.mem_used_mib
    return held


def _heading(width: int) -> Line:
    cells = (
        f"  {'PID':>7} {'UP':>5}{'RSS':>10}{'VRAM' if width >= WIDE else '':>{11 if width >= WIDE else 0}}"
    )
    return ((fit(f"{cells}  COMMAND", width), "dim"),)


def _line(process: ProcessInfo, vram: float | None, own: bool, width: int, sight: Sight) -> Line:
    up = short(process.elapsed_s) if process.elapsed_s is not None else NA
    rss = size(process.rss_bytes, binary=True)
    mark = sight.glyphs.now if own else " "
    cells: list[Span] = [(f" {mark}{process.pid:>7} {up:>5}{rss:>10}", "strong" if own else "")]
    if width >= WIDE:
        cells.append((f"{size(vram * MIB, binary=True) if vram is not None else sight.glyphs.none:>11}", ""))
    state = STATES.get(process.state, "")
    if state:
        cells.append((f"  {state}", "attention" if process.state == "Z" else ""))
    used = sum(len(text) for text, _ in cells) + 2
    command = fit(process.command, max(0, width - used), ellipsis=sight.glyphs.ellipsis)
    return (*cells, (f"  {command.rstrip()}", "strong" if own else ""))


def _on_card(process: GpuProcess, width: int, sight: Sight) -> Line:
    """A process that the driver lists under a pid that is not one of ours, as in most containers."""
    held = NA if process.mem_used_mib is None else size(process.mem_used_mib * MIB, binary=True)
    where = "GPU" if process.gpu_index is None else f"GPU {process.gpu_index}"
    said = f"  {process.pid:>7}  {where} {held}  {process.command or 'no name known'}"
    return ((fit(said, width, ellipsis=sight.glyphs.ellipsis), "dim"),)
