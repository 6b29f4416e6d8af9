"""Where a value comes from: the command, when it ran, what it printed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult

from tui.fleet.age import long
from tui.model.reading import Reading
from tui.model.snapshot import BoxView, FleetSnapshot, RunView
from tui.model.text import safe
from tui.screens.view import View
from tui.widgets.footer import Footer
from tui.widgets.lines import Line, broken, fit, wrap
from tui.widgets.picker import Item, Picker
from tui.widgets.roster_columns import COLUMNS
from tui.widgets.rule import Rule


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known about the origin of one value.

    Attributes:
        title: whose value it is: ``ablate-01 INODE%``.
        value: as shown.
        meaning: what the number is, in a sentence.
        command: what ran on the box, or which file of this computer says it; empty when nothing did.
        taken_at: when, by this computer's clock; None when never.
        raw: the lines that were printed.
        reason: why the value is not known.
    """

    title: str
    value: str
    meaning: str
    command: str = ""
    taken_at: float | None = None
    raw: tuple[str, ...] = ()
    reason: str = ""


def of_reading(title: str, value: str, meaning: str, reading: Reading[Any]) -> Explanation:
    """The explanation of a value that one reading gave."""
    source = reading.source
    if source is None:
        return Explanation(title, value, meaning, reason=reading.reason)
    return Explanation(title, value, meaning, source.command, source.taken_at, source.raw, reading.reason)


_FROM_GPUS = {
    "GPU": "Mean utilisation over the cards, in percent of the last sample period of the driver.",
    "VRAM": "Memory in use on the fullest card, in percent.",
}
_FROM_DISKS = {
    "DISK": "Bytes used on the fullest mount, in percent of what may be used.",
    "INODE": "Inodes used on the mount that has the fewest left, in percent.",
    "WORST": "The highest of GPU memory, disk bytes and inodes, in percent.",
}
_FROM_FILE = {
    "BOX": "The name given in fleet.toml.",
    "PLATFORM": "The platform named in fleet.toml.",
    "$/H": "The price in fleet.toml; ? means that none is given.",
    "SPENT": "Price times the hours since rented_at in fleet.toml; it is not the platform's bill.",
    "NEXT CLOCK": "The next date on which the platform acts on this box, computed from fleet.toml.",
    "RUN": "The run's name in fleet.toml.",
}


def of_column(box: BoxView, run: RunView | None, column: str, value: str) -> Explanation:
    """The explanation of one cell of the roster."""
    head = next((one.title for one in COLUMNS if one.id == column), column)
    title = f"{box.name} {run.name if run and column in ('RUN', 'RUN STATE', 'PROGRESS') else ''} {head}"
    title = " ".join(title.split())
    telemetry = box.telemetry
    if column in _FROM_FILE:
        return Explanation(title, value, _FROM_FILE[column], "fleet.toml")
    if column == "PROGRESS":
        return _progress(title, value, run)
    if column == "RUN STATE" and run is not None:
        return Explanation(title, value, f"Judged from the evidence: {run.why}.", taken_at=run.truth_at)
    if column in _FROM_GPUS or column in _FROM_DISKS:
        meaning = _FROM_GPUS.get(column) or _FROM_DISKS[column]
        if telemetry is None:
            return Explanation(title, value, meaning, reason="not probed in this session")
        reading: Reading[Any] = telemetry.gpus if column in _FROM_GPUS else telemetry.filesystems
        return of_reading(title, value, meaning, reading)
    taken = telemetry.taken_at if telemetry else None
    why = f"Link: {box.link.state.value}. {box.link.detail}".strip()
    evidence = " ".join([why, *(a.text for a in box.attention), f"Run: {run.why}." if run else ""])
    return Explanation(
        title, value, evidence.strip(), taken_at=taken, reason="" if taken else "no probe answered yet"
    )


def _progress(title: str, value: str, run: RunView | None) -> Explanation:
    progress = run.progress if run else None
    meaning = (
        "Read from the newest log line that names an epoch or step. "
        "The strip is the loss, on a scale from 0 to the maximum it shows."
    )
    if run is None or progress is None:
        return Explanation(title, value, meaning, reason="no such line was seen in this log yet")
    return Explanation(
        title, value, meaning, f"log {run.spec.log or ''}".strip(), progress.at, (progress.line,)
    )


def explain_lines(e: Explanation, now: float, width: int) -> list[Line]:
    """The explanation as lines of at most `width` cells."""
    lines: list[Line] = []

    def entry(label: str, text: str, style: str = "") -> None:
        for i, part in enumerate(wrap(safe(text), max(10, width - 14))):
            lines.append(((fit(f"  {label}" if i == 0 else "", 12), "dim"), (part, style)))

    entry("value", e.value or "none", "strong")
    entry("is", e.meaning)
    if e.reason:
        entry("not known", e.reason, "attention")
    if e.command:
        entry("source", e.command)
    if e.taken_at is not None:
        clock = time.strftime("%H:%M:%S", time.localtime(e.taken_at))
        entry("taken", f"{clock}, {long(max(0.0, now - e.taken_at))} ago")
    if e.raw:
        lines.append(())
        lines.append((("  as it was printed", "dim"),))
        for printed in e.raw[:200]:
            lines += [((f"  {part}", ""),) for part in broken(safe(printed), max(10, width - 4))]
    return lines


class ExplainScreen(View):
    """Shows one explanation; `y` copies the command and what it printed."""

    VIEW = "explain"

    def __init__(self, explanation: Explanation) -> None:
        super().__init__()
        self._explanation = explanation

    def compose(self) -> ComposeResult:
        yield Rule(f"explain: {safe(self._explanation.title)}")
        yield Picker()
        yield Footer()

    def on_resize(self) -> None:
        self._draw()

    def apply(self, snapshot: FleetSnapshot, log_runs: frozenset[str]) -> None:
        self.query_one(Footer).offer(self.verbs("back", "copy"), self.verbs("help"))

    def _draw(self) -> None:
        lines = explain_lines(self._explanation, self.host.clock(), self.size.width)
        self.query_one(Picker).show_items([Item(n, line) for n, line in enumerate(lines)])

    def action_copy(self) -> None:
        e = self._explanation
        parts = (e.command, *(e.raw or (e.value,)))
        self.host.say(self.host.copy_text("\n".join(part for part in parts if part)))
