"""Collectors for metrics of numbers, tokens and boxes, and of a stored score per sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tui.custody.predictions.cells import Labels, id_text, label, numbers, ragged
from tui.custody.predictions.tables import Batch, objects
from tui.custody.scoring.collecting import Collector, Params, Scheme, Tally, softmax_logs
from tui.custody.scoring.detection import Scene
from tui.custody.scoring.figures import Undecided

PADDING = -100
"""The target of tokens that do not count, as PyTorch and Transformers have it."""
_TRUTH = {"true": 1.0, "false": 0.0}


class Errors(Collector):
    """Differences between predicted and true numbers, one or many a row."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self.columns = (scheme.column("target"), scheme.column("prediction"))
        self.tally = Tally()
        self.half = 0.0
        self._absolute: list[float] = []
        self._squared: list[float] = []
        self.values = 0

    def add(self, batch: Batch) -> None:
        target, prediction = (batch[column] for column in self.columns)
        if _lists(target) or _lists(prediction):
            self._add_rows(ragged(target), ragged(prediction))
            return
        true, guess = numbers(target), numbers(prediction)
        self._check(true.values, guess.values)
        present = self.tally.count(guess.missing, true.missing)
        self.half = max(self.half, true.half + guess.half)
        rows = int(present.sum())
        error = (guess.values[present] - true.values[present]).reshape(rows, -1)
        self._take(error)

    @staticmethod
    def _check(true: Any, guess: Any) -> None:
        if true.shape[1:] != guess.shape[1:]:
            raise Undecided(
                "not-declared", f"a target has the shape {true.shape[1:]}, a prediction {guess.shape[1:]}"
            )

    def _add_rows(self, true: list[Any | None], guess: list[Any | None]) -> None:
        missing = (np.array([g is None for g in guess]), np.array([t is None for t in true]))
        self.tally.count(*missing)
        for t, g in zip(true, guess, strict=True):
            if t is not None and g is not None:
                self._check(t[None], g[None])
                self._take((g - t).reshape(1, -1))

    def _take(self, error: Any) -> None:
        self.tally.nonfinite += int(np.count_nonzero(~np.isfinite(error).all(axis=1)))
        self._absolute += np.abs(error).sum(axis=1).tolist()
        self._squared += (error * error).sum(axis=1).tolist()
        self.values += error.size

    def finish(self) -> None:
        self.tally.finish()

    @property
    def absolute(self) -> Any:
        """Sum of absolute errors, row by row."""
        return np.array(self._absolute)

    @property
    def squared(self) -> Any:
        return np.array(self._squared)


class Pairs(Collector):
    """True and predicted numbers, one a row, kept: correlations need them all."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self.columns = (scheme.column("target"), scheme.column("prediction"))
        self.tally = Tally()
        self.half_true = self.half_guess = 0.0
        self._true: list[Any] = []
        self._guess: list[Any] = []

    def add(self, batch: Batch) -> None:
        target, prediction = (batch[column] for column in self.columns)
        if _lists(target) or _lists(prediction):
            raise Undecided("not-declared", "a row holds more than one number")
        true, guess = numbers(target), numbers(prediction)
        if true.values.ndim > 1 or guess.values.ndim > 1:
            raise Undecided("not-declared", "a row holds more than one number")
        present = self.tally.count(guess.missing, true.missing)
        self.half_true, self.half_guess = max(self.half_true, true.half), max(self.half_guess, guess.half)
        self._true.append(true.values[present])
        self._guess.append(guess.values[present])
        finite = np.isfinite(self._true[-1]) & np.isfinite(self._guess[-1])
        self.tally.nonfinite += int(np.count_nonzero(~finite))

    def finish(self) -> None:
        self.tally.finish()

    @property
    def true(self) -> Any:
        return np.concatenate(self._true)

    @property
    def guess(self) -> Any:
        return np.concatenate(self._guess)


class Tokens(Collector):
    """Log-probability of each target token. A row holds logits or probabilities, step × vocabulary."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        roles = scheme.roles
        found = roles.logits or roles.scores
        if found is None or len(found.columns) != 1:
            raise Undecided("not-declared", "no column is plainly the logits of each token")
        self.logits = roles.logits is not None
        self.columns = (scheme.column("target"), found.columns[0])
        self.tally = Tally()
        self.ignore = PADDING if params.ignore is None else params.ignore
        self.padded = 0
        self._sums: list[float] = []
        self.count = 0

    def add(self, batch: Batch) -> None:
        true, guess = (ragged(batch[column]) for column in self.columns)
        self.tally.count(np.array([g is None for g in guess]), np.array([t is None for t in true]))
        for t, g in zip(true, guess, strict=True):
            if t is not None and g is not None:
                self._add_one(t, g)

    def _add_one(self, true: Any, guess: Any) -> None:
        if guess.ndim != 2 or true.shape != guess.shape[:1]:
            raise Undecided("not-declared", "a row is not one vector of scores for each target token")
        kept = true != self.ignore
        self.padded += int((~kept).sum())
        true, guess = true[kept].astype(np.int64), guess[kept]
        if len(true) and (true.min() < 0 or true.max() >= guess.shape[1]):
            raise Undecided("not-declared", "a target token lies outside the vocabulary of the scores")
        bad = ~np.isfinite(guess) & ~(self.logits & np.isneginf(guess))
        self.tally.nonfinite += bool(bad.any())
        if not self.logits and (np.abs(guess.sum(axis=1) - 1) > 1e-3).any() and not bad.any():
            raise Undecided(
                "not-declared", "the scores do not sum to 1; name them as logits in [custody] if so"
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = softmax_logs(guess) if self.logits else np.log(guess)
        self._sums.append(math.fsum(logs[np.arange(len(true)), true].tolist()))
        self.count += len(true)

    def finish(self) -> None:
        self.tally.finish()
        if not self.count:
            raise Undecided("population-incomplete", "no token counts")

    @property
    def nll(self) -> float:
        """Mean over all tokens that count."""
        return -math.fsum(self._sums) / self.count


class Scenes(Collector):
    """Predicted and true boxes of each image."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self._boxes = scheme.column("pred_boxes")
        self._scores = scheme.column("pred_scores")
        self._true = scheme.column("target_boxes")
        known = scheme.roles.boxes
        self._labels = known.get("pred_labels"), known.get("target_labels")
        if (self._labels[0] is None) != (self._labels[1] is None):
            raise Undecided("not-declared", "only one of predicted and true boxes has labels")
        self._id = scheme.roles.id
        named = (self._boxes, self._scores, self._true, *self._labels, self._id)
        self.columns = tuple(column for column in named if column is not None)
        self.tally = Tally()
        self.classes = Labels()
        self.scenes: list[Scene] = []

    def add(self, batch: Batch) -> None:
        boxes, scores, true = (ragged(batch[c]) for c in (self._boxes, self._scores, self._true))
        present = self.tally.count(
            np.array([b is None or s is None for b, s in zip(boxes, scores, strict=True)]),
            np.array([t is None for t in true]),
        )
        for row in np.flatnonzero(present).tolist():
            self._add_one(batch, row, boxes[row], scores[row], true[row])

    def _add_one(self, batch: Batch, row: int, boxes: Any, scores: Any, true: Any) -> None:
        boxes, true, scores = _boxes(boxes), _boxes(true), scores.reshape(-1)
        if len(scores) != len(boxes):
            raise Undecided("not-declared", "an image has not one score for each predicted box")
        self.tally.nonfinite += not np.isfinite(scores).all()
        name = f"{len(self.scenes):012d}" if self._id is None else (id_text(batch[self._id][row]) or "")
        codes = [
            np.zeros(len(found), dtype=np.int64)
            if column is None
            else self._codes(batch[column][row], len(found))
            for column, found in zip(self._labels, (boxes, true), strict=True)
        ]
        self.scenes.append(Scene(name, boxes, scores, codes[0], true, codes[1]))

    def _codes(self, labels: Any, count: int) -> Any:
        found = [] if labels is None else list(labels)
        if len(found) != count:
            raise Undecided("not-declared", "an image has not one label for each box")
        names = [label(value) or "" for value in found]
        return np.array([self.classes.code(name) for name in names], dtype=np.int64)

    def finish(self) -> None:
        self.tally.finish()


def _boxes(found: Any) -> Any:
    if found.size == 0:
        return np.zeros((0, 4))
    if found.ndim != 2 or found.shape[1] != 4 or not np.isfinite(found).all():
        raise Undecided("not-declared", "boxes are not lists of four numbers")
    if (found[:, 2] < found[:, 0]).any() or (found[:, 3] < found[:, 1]).any():
        raise Undecided(
            "not-declared", "boxes are not x1, y1, x2, y2: a right or lower edge lies before the other"
        )
    return found


class Stored(Collector):
    """A score that the job itself stored for each sample. Its mean proves nothing about raw predictions."""

    def __init__(self, column: str) -> None:
        self.columns = (column,)
        self._values: list[Any] = []
        self.missing = 0
        self.half = 0.0

    def add(self, batch: Batch) -> None:
        column = batch[self.columns[0]]
        if column.dtype == object:
            truths = [_TRUTH.get(label(value) or "", value) for value in column]
            column = objects(truths)
        found = numbers(column)
        if found.values.ndim != 1:
            raise Undecided("not-declared", f"{self.columns[0][:80]!r} holds more than one score a row")
        self.missing += int(found.missing.sum())
        self.half = max(self.half, found.half)
        self._values.append(found.values)

    def finish(self) -> None:
        if self.missing:
            raise Undecided(
                "population-incomplete", f"{self.missing:,} rows have no {self.columns[0][:80]!r}"
            )
        if not len(self.values):
            raise Undecided("population-incomplete", "there is no prediction at all")

    @property
    def values(self) -> Any:
        return np.concatenate(self._values) if self._values else np.empty(0)


def _lists(values: Any) -> bool:
    return values.dtype == object and any(isinstance(value, list | np.ndarray) for value in values[:16])
