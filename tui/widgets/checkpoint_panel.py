"""The checkpoints on the box: name, size, age by the box's clock, newest first."""

from __future__ import annotations

from typing import Any

from tui.fleet.age import long
from tui.model.reading import Reading
from tui.model.telemetry import CheckpointFile, RunTruth
from tui.model.text import safe
from tui.widgets.figures import count, size
from tui.widgets.gauge import LABEL
from tui.widgets.lines import Line, Span, end_of, fit
from tui.widgets.panel import Panel, Sight, apart, na, packed, unread

SHOWN = 6
"""Checkpoints named in the side panel; zoomed, all that the probe told."""

WIDE = 72


class CheckpointPanel(Panel):
    """Checkpoints of the run in view."""

    TITLE = "checkpoints"
    MEANING = "Files that the run's pattern matches; ages by the box's clock."
    PART, PERIODS = "slow", 5.0

    def wanted(self, sight: Sight) -> bool:
        return sight.run is not None

    def reading(self, sight: Sight) -> Reading[Any] | None:
        truth = _truth(sight)
        return truth.checkpoints if truth else None

    def title(self, sight: Sight) -> list[Span]:
        truth = _truth(sight)
        words: list[Span] = [(self.TITLE, "title")]
        if truth is not None and truth.checkpoint_count is not None:
            words.append((f" {count(truth.checkpoint_count)}", ""))
        return words

    def body(self, sight: Sight, width: int) -> list[Line]:
        return checkpoint_lines(sight, width)


def checkpoint_lines(sight: Sight, width: int) -> list[Line]:
    """One line a file; paths where there is room, else names."""
    truth = _truth(sight)
    reading = truth.checkpoints if truth else None
    if truth is None or reading is None or reading.value is None:
        return [na(_why(sight, reading), width, sight.glyphs)]
    if not reading.value:
        assert sight.run is not None  # a truth is that of a run
        asked = end_of(safe(sight.run.spec.checkpoints or ""), width - 19, ellipsis=sight.glyphs.ellipsis)
        return [((f"  no file matches {asked}", "dim"),)]
    wide = width >= WIDE
    files = reading.value if wide else reading.value[:SHOWN]
    lines = [_line(f, width, sight, whole_path=wide, newest=i == 0) for i, f in enumerate(files)]
    total = truth.checkpoint_count
    if total is not None and total > len(files):
        lines.append(((f"  {total - len(files):,} older", "dim"),))
    return lines


def checkpoint_summary(sight: Sight, width: int) -> Line:
    """The newest checkpoint in one line."""
    head: Span = (fit("  saved", LABEL), "dim")
    truth = _truth(sight)
    reading = truth.checkpoints if truth else None
    if truth is None or reading is None or reading.value is None:
        return (head, *na(_why(sight, reading), width - LABEL, sight.glyphs, indent=0))
    if not reading.value:
        return (head, ("no file matches the run's pattern", "dim"))
    newest = reading.value[0]
    name = newest.path.rsplit("/", 1)[-1]
    parts: list[Line] = [((_age(newest, sight), ""),), ((size(newest.size_bytes), ""),), ((name, "dim"),)]
    return packed((head,), parts, width)


def _why(sight: Sight, reading: Reading[Any] | None) -> str:
    if sight.run is not None and not sight.run.spec.checkpoints:
        return "the run names no checkpoints"
    return unread(sight, reading)


def _truth(sight: Sight) -> RunTruth | None:
    return sight.run.truth if sight.run else None


def _age(file: CheckpointFile, sight: Sight) -> str:
    seconds = sight.box_now - file.modified_at
    if seconds < -60:
        return "from the future"  # the box's clock was set back, or the file came from elsewhere
    if seconds < 10:
        return "just now"
    return f"{long(seconds - seconds % (10 if seconds < 60 else 60))} ago"


def _line(file: CheckpointFile, width: int, sight: Sight, *, whole_path: bool, newest: bool) -> Line:
    name = file.path if whole_path else file.path.rsplit("/", 1)[-1]
    right: Line = (
        (fit(size(file.size_bytes), 8, right=True), "" if newest else "dim"),
        (fit(_age(file, sight), 14, right=True), "" if newest else "dim"),
    )
    return apart(((f"  {name}", "" if newest else "dim"),), right, width, sight.glyphs)
