"""Progress told in columns: a heading once, and then a row of bare figures per epoch or step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.triage.progress_line import Found, read_line

_WIDE = re.compile(r"\s*[|│┃]\s*|\s{2,}|\t")
_TAB = 8  # columns: tabs are shown as the blanks up to the next stop
_COMMAS = re.compile(r"\s*,\s*")
_FIGURE = re.compile(r"(?i)[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?\Z")
_EPOCHS = frozenset({"epoch", "epochs", "ep", "e", "轮次", "轮数"})  # "E" and "#" are spaCy's
_STEPS = frozenset({"#", "step", "steps", "global_step", "iter", "iteration", "iterations", "步数"})
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
        self._headings: tuple[_Heading, ...] = ()

    def read(self, text: str) -> Found:
        """Everything about progress in the next line of plain text."""
        headings = _headings(text)
        if headings:
            self._headings = headings
            return Found()
        found = read_line(text)
        if not self._headings or found.training or found.finished:
            return found
        return next((row for one in self._headings if (row := _row(text, one))), found)


def _headings(text: str) -> tuple[_Heading, ...]:
    """The ways to read a line as a heading: names of two words stand one blank apart, as do short columns."""
    low = text.lower()
    if len(text) > 500 or ("loss" not in low and "损失" not in low) or "=" in text or ":" in text:
        return ()
    stops = [low[at : at + _TAB] for at in range(0, len(low), _TAB)]
    tabbed = _WIDE.split("".join(f"  {part}" if begins else part for part, begins in _columns(stops)).strip())
    ways = (_heading(cells_of(low)), _heading(tabbed))
    return tuple(dict.fromkeys(way for way in ways if way is not None))


def _columns(stops: list[str]) -> Iterator[tuple[str, bool]]:
    """Pieces between tab stops, and whether a column begins with each."""
    before = " "
    for part in stops:
        yield part, before.endswith(" ") and not part.startswith(" ")
        before = part


def _heading(cells: list[str]) -> _Heading | None:
    names = [cell.strip("'\"[] ") for cell in cells]
    epoch = next((place for place, name in enumerate(names) if name in _EPOCHS), None)
    step = next((place for place, name in enumerate(names) if name in _STEPS), None)
    loss = next((names.index(name) for name in _LOSSES if name in names), None)
    about_loss = any("loss" in name or "损失" in name for name in names)
    if (epoch is None and step is None) or not about_loss or any(map(_FIGURE.match, names)):
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
    text = text.strip(" |│┃\r\n")
    wide = _WIDE.split(text)
    return wide if len(wide) > 1 else _COMMAS.split(text)


def _count(cells: list[str], place: int | None) -> int | None:
    cell = cells[place] if place is not None else ""
    return int(cell) if cell.isascii() and cell.isdecimal() and len(cell) <= 15 else None
