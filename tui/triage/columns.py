"""Progress told in columns: a heading once, and then a row of bare figures per epoch or step."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.triage.progress_line import Found, read_line

_WIDE = re.compile(r"\s{2,}|\t|\s*\|\s*")
_COMMAS = re.compile(r"\s*,\s*")
_FIGURE = re.compile(r"(?i)[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\Z")
_EPOCHS = frozenset({"epoch", "epochs", "ep", "轮次", "轮数"})
_STEPS = frozenset({"step", "steps", "global_step", "iter", "iteration", "iterations", "步数"})
_LOSSES = (
    "train_loss", "train loss", "training loss", "training_loss", "train/loss", "loss", "total_loss",
    "avg_loss", "训练损失", "损失",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Heading:
    """Which cell tells what. None: no cell does."""

    width: int
    epoch: int | None
    step: int | None
    loss: int | None


class Lines:
    """Reads line after line, and remembers the heading of the table it is in."""

    def __init__(self) -> None:
        self._heading: _Heading | None = None

    def read(self, text: str) -> Found:
        """Everything about progress in the next line of plain text."""
        heading = _heading(text)
        if heading is not None:
            self._heading = heading
            return Found()
        found = read_line(text)
        if self._heading is None or found.training or found.finished:
            return found
        return _row(text, self._heading) or found


def _heading(text: str) -> _Heading | None:
    low = text.lower()
    if len(text) > 500 or ("loss" not in low and "损失" not in low) or "=" in text or ":" in text:
        return None
    names = [cell.strip("'\"[] ") for cell in cells_of(low)]
    epoch = next((place for place, name in enumerate(names) if name in _EPOCHS), None)
    step = next((place for place, name in enumerate(names) if name in _STEPS), None)
    loss = next((names.index(name) for name in _LOSSES if name in names), None)
    if (epoch is None and step is None) or loss is None or any(_FIGURE.match(name) for name in names):
        return None
    return _Heading(len(names), epoch, step, loss)


def _row(text: str, heading: _Heading) -> Found | None:
    """A row under `heading`; None where the line is none."""
    cells = cells_of(text)
    if len(cells) != heading.width:
        return None
    epoch, step = _count(cells, heading.epoch), _count(cells, heading.step)
    if epoch is None and step is None:
        return None
    told = cells[heading.loss] if heading.loss is not None else ""
    return Found(epoch=epoch, step=step, loss=float(told) if _FIGURE.match(told) else None)


def cells_of(text: str) -> list[str]:
    """The cells of a row: parted by gaps or strokes, and by commas where there are none."""
    text = text.strip(" |\r\n")
    wide = _WIDE.split(text)
    return wide if len(wide) > 1 else _COMMAS.split(text)


def _count(cells: list[str], place: int | None) -> int | None:
    cell = cells[place] if place is not None else ""
    return int(cell) if cell.isascii() and cell.isdecimal() and len(cell) <= 15 else None
