"""How far a training run is, read from its log."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from tui.model.run import Progress
from tui.model.text import LogText, SafeText, plain
from tui.triage.columns import Lines
from tui.triage.progress_line import Found, read_own

NEWEST = 200
"""Lines of a batch that are looked at; a log that writes more between two looks is ahead of any reader."""

_CLOSED = re.compile(r"(?i)wandb: |\bsynced \d+ w&b file")  # a tracker closes its run however that ended
_DIED = re.compile(
    r"Traceback \(most recent call last\)|^\W*(?:\w+\.)*[A-Z]\w+(?:Error|Exception|Interrupt)\b"
)
LOSSES = 120
"""Loss figures kept for the curve."""


class ProgressReader:
    """Folds the lines of one run into its progress.

    A line without a total does not undo the total known before, and a training line after a regular end
    means that the run goes on.

    Args:
        own: the operator's pattern for progress lines; then only a regular end is read besides.
    """

    def __init__(self, own: str | None = None) -> None:
        self._own = re.compile(own) if own else None
        self._lines = Lines()
        self._died = False  # an error stands behind the newest training line
        self._epoch: int | None = None
        self._epochs: int | None = None
        self._step: int | None = None
        self._steps: int | None = None
        self._in_epoch = False
        self._fraction = False
        self._loss: float | None = None
        self._losses: deque[float] = deque(maxlen=LOSSES)
        self._eta: float | None = None
        self._line = SafeText("")
        self._finished = False

    def feed(self, lines: Sequence[LogText], at: float) -> Progress | None:
        """Read the newest lines; the last may be an unfinished one, such as a progress bar.

        Args:
            at: when they arrived, seconds since the epoch.

        Returns:
            The progress, or None when these lines say nothing about it.
        """
        told = False
        newest = lines[-NEWEST:]
        for index, line in enumerate(newest, 1):
            told |= self._take(plain(line), last=index == len(newest))
        return self._progress(at) if told else None

    def _take(self, text: SafeText, *, last: bool) -> bool:
        found = self._lines.read(text)
        if self._own is not None and not found.finished:
            found = read_own(self._own, text)
        if found.finished and self._died and _CLOSED.match(text):
            return False
        if found.finished:
            self._finished, self._eta, self._line = True, None, text
            return True
        if found.steps is not None and found.step is None and self._step is None:
            self._steps = found.steps  # "Total optimization steps = 1,200", before the first of them
        self._died = not found.training and (self._died or _DIED.search(text) is not None)
        if not found.training or (last and self._may_be_cut(found, text)):
            return False
        self._finished = False
        if found.loss is not None:
            self._loss = found.loss
            if text != self._line:
                self._losses.append(found.loss)
        self._count_on(found)
        if found.eta_s is not None:
            self._eta = found.eta_s if found.overall_eta or self._unit() == "step" else None
        elif found.step is not None:
            self._eta = None
        if found.epoch is not None or found.step is not None or not self._line:
            self._line = text
        if found.closed and self._epochs is not None and self._epoch == self._epochs:
            self._finished = True
        return True

    def _may_be_cut(self, found: Found, text: SafeText) -> bool:
        """Whether this is the beginning of a line whose counter has more digits to come: ``step 33``."""
        step = found.step
        return step is not None and step < (self._step or 0) and text.endswith(str(step))

    def _count_on(self, found: Found) -> None:
        if found.epoch is not None:
            if found.epochs is not None or self._epochs is None or found.epoch <= self._epochs:
                self._epoch = found.epoch
            self._epochs = found.epochs if found.epochs is not None else self._epochs
            self._fraction = found.fraction
        if found.step is not None:
            if found.steps is None and found.step >= (self._step or 0) and not self._in_epoch:
                self._step = found.step  # "step 120" of the total named elsewhere
                if self._steps is not None and found.step > self._steps:
                    self._steps = None
            else:
                restarted = found.step < (self._step or 0) and found.steps == self._steps
                if found.in_epoch or (restarted and self._epoch is not None and not self._fraction):
                    self._in_epoch = True
                self._step, self._steps = found.step, found.steps

    def _unit(self) -> str:
        if self._epoch is not None and (self._epochs is not None or self._in_epoch or self._step is None):
            return "epoch"
        return "step" if self._step is not None else ""

    def _progress(self, at: float) -> Progress:
        unit = self._unit()
        done, total = (self._epoch, self._epochs) if unit == "epoch" else (self._step, self._steps)
        return Progress(
            unit=unit,
            done=done,
            total=total,
            loss=self._loss,
            eta_s=self._eta,
            at=at,
            line=self._line,
            losses=tuple(self._losses),
            finished=self._finished,
        )
