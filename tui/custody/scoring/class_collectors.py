"""Collectors for metrics of classes: labels counted against each other, the score of each target."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tui.custody.predictions.cells import Labels
from tui.custody.predictions.foreign import Unreadable
from tui.custody.predictions.tables import Batch
from tui.custody.scoring.collecting import Collector, Params, Scheme, ScoreReader, Tally, softmax_logs
from tui.custody.scoring.figures import Undecided

CLASSES = 4096
HELD_BYTES = 2 << 30
_BINARY = (("0", "1"), ("false", "true"))
"""What a binary task's classes are called, the positive one last."""


class LabelCounts(Collector):
    """Predicted labels against targets. Without labels the best score decides, the first of equals."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self._scheme, self._params = scheme, params
        self._target = scheme.column("target")
        self._reader: ScoreReader | None = None
        self._witness: ScoreWitness | None = None
        scored = scheme.roles.scores is not None or scheme.roles.logits is not None
        if scored and (scheme.roles.prediction is None or params.threshold is not None):
            self._reader = scheme.score_reader()
            self.columns = (self._target, *self._reader.columns)
        else:
            self.columns = (self._target, scheme.column("prediction"))
            if scored and not scheme.prediction_declared:
                self._witness = ScoreWitness(scheme)
                self.columns += self._witness.reader.columns
        self.labels = Labels()
        self.tally = Tally()
        self._pairs: Counter[int] = Counter()
        self._hits: list[Any] = []
        self._tied_hits = self._tied_losses = 0

    def add(self, batch: Batch) -> None:
        predictions = None if self._reader else batch[self.columns[1]]
        if predictions is not None and predictions.dtype != object and predictions.ndim == 2:
            targets = batch[self._target]
            if targets.ndim == 1:  # a matrix of scores stands in the prediction column
                self._reader = self._scheme.score_reader()
        if self._reader is not None:
            self._add_scores(self._reader, batch)
        else:
            self._add_labels(batch[self._target], predictions)
            if self._witness is not None:
                self._witness.see(batch, self.columns[1])

    def _add_labels(self, targets: Any, predictions: Any) -> None:
        if _nested(targets) or _nested(predictions):
            targets, predictions = self._flattened(targets, predictions)
            actual, predicted = self.labels.codes(targets), self.labels.codes(predictions)
        else:
            if predictions.dtype != object and np.issubdtype(predictions.dtype, np.floating):
                self.tally.nonfinite += int(np.count_nonzero(~np.isfinite(predictions)))
            actual, predicted = self.labels.codes(targets), self.labels.codes(predictions)
        self._count(actual, predicted)

    def _flattened(self, targets: Any, predictions: Any) -> tuple[Any, Any]:
        """Labels of rows that hold many (tokens, pixels), one after the other."""
        flat_targets, flat_predictions = _flat(targets), _flat(predictions)
        if len(flat_targets) != len(flat_predictions):
            raise Undecided("not-declared", "targets and predictions of a row have different lengths")
        return flat_targets, flat_predictions

    def _add_scores(self, reader: ScoreReader, batch: Batch) -> None:
        scores = reader.read(batch)
        if reader.unbounded and self._params.threshold is None:
            raise Undecided(
                "not-declared", "the scores are no probabilities; declare a threshold, or name them as logits"
            )
        places = reader.places(batch[self._target])
        values = scores.values
        self.tally.nonfinite += int(np.count_nonzero(_nonfinite(values[~scores.missing], reader.logits)))
        best = self._decided(values)
        codes = np.array([self.labels.code(name) for name in reader.names], dtype=np.int64)
        present = ~scores.missing & (places >= 0)
        highest = values[present].max(axis=1, keepdims=True) if present.any() else values[present]
        among = values[present] == highest
        tied = among.sum(axis=1) > 1
        if self._params.threshold is None:
            mine = among[np.arange(len(among)), places[present]]
            self._tied_hits += int((tied & mine).sum())
            self._tied_losses += int((tied & mine & (best[present] == places[present])).sum())
        self._count(
            np.where(places >= 0, codes[places], -1),
            np.where(scores.missing, -1, codes[best]),
        )

    def _decided(self, values: Any) -> Any:
        if self._params.threshold is not None:
            if values.shape[1] != 2:
                raise Undecided(
                    "not-declared", "a threshold is declared, but there are more than two classes"
                )
            return (values[:, 1] > self._params.threshold).astype(np.int64)
        return values.argmax(axis=1)

    def _count(self, actual: Any, predicted: Any) -> None:
        if self._params.ignore is not None:
            kept = actual != self.labels.code(str(self._params.ignore))
            actual, predicted = actual[kept], predicted[kept]
        present = self.tally.count(predicted < 0, actual < 0)
        actual, predicted = actual[present], predicted[present]
        keys, counts = np.unique((actual << 32) + predicted, return_counts=True)
        self._pairs.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        self._hits.append(actual == predicted)

    def finish(self) -> None:
        self.tally.finish()
        if self._reader is None:
            self._refuse_fractions()
            self._refuse_other_words()
        if self._witness is not None and self._witness.contradiction:
            raise Undecided("disagree", self._witness.contradiction)

    def _refuse_fractions(self) -> None:
        """Probabilities in a label column would count as wrong answers, all of them."""
        actual = {key >> 32 for key in self._pairs}
        whole = all(self.labels.names[code].lstrip("-").isdigit() for code in actual)
        for key in self._pairs:
            name = self.labels.names[key & 0xFFFFFFFF]
            if whole and _fraction(name):
                raise Undecided(
                    "not-declared",
                    f"the prediction column holds {name[:40]!r}, no class: name it as scores in [custody]",
                )

    def _refuse_other_words(self) -> None:
        """Several labels on each side and none of them on both: written differently, not all wrong."""
        actual = {key >> 32 for key in self._pairs}
        predicted = {key & 0xFFFFFFFF for key in self._pairs}
        if len(actual) > 1 and len(predicted) > 1 and not actual & predicted:
            one, other = (
                sorted(self.labels.names[code] for code in side)[:3] for side in (actual, predicted)
            )
            raise Undecided(
                "not-declared",
                f"targets {', '.join(name[:40] for name in one)} and predictions "
                f"{', '.join(name[:40] for name in other)} have no label in common",
            )

    @property
    def hits(self) -> Any:
        """Row by row, whether the prediction is the target."""
        return np.concatenate(self._hits) if self._hits else np.empty(0, dtype=bool)

    @property
    def correct(self) -> int:
        return sum(count for key, count in self._pairs.items() if key >> 32 == key & 0xFFFFFFFF)

    @property
    def total(self) -> int:
        return sum(self._pairs.values())

    @property
    def tied(self) -> tuple[int, int]:
        """Fewest and most correct rows, were equal best scores ranked otherwise."""
        return self.correct - self._tied_losses, self.correct - self._tied_losses + self._tied_hits

    def confusion(self) -> Any:
        """Target against prediction, classes in order of name.

        Raises:
            Undecided: too many classes.
        """
        names = self.names
        if len(names) > CLASSES:
            raise Undecided("not-declared", f"more than {CLASSES:,} classes")
        place = {name: index for index, name in enumerate(names)}
        matrix: Any = np.zeros((len(names), len(names)), dtype=np.int64)
        for key, count in self._pairs.items():
            actual, predicted = self.labels.names[key >> 32], self.labels.names[key & 0xFFFFFFFF]
            matrix[place[actual], place[predicted]] += count
        return matrix

    @property
    def names(self) -> list[str]:
        """Classes that occur, and both classes of a binary task also where one does not."""
        occurring = {self.labels.names[code] for key in self._pairs for code in (key >> 32, key & 0xFFFFFFFF)}
        binary = next((set(pair) for pair in _BINARY if occurring <= set(pair)), set())
        positive = set() if self._scheme.positive is None else {self._scheme.positive}
        return sorted(occurring | binary | positive, key=lambda name: (len(name), name))

    @property
    def positive(self) -> int | None:
        """Place of the positive class among `names`; None where the task is not binary."""
        names = self.names
        if self._scheme.positive is not None:
            return names.index(self._scheme.positive)
        return next((names.index(one) for zero, one in _BINARY if set(names) == {zero, one}), None)


class ScoreWitness:
    """Holds a column of predicted labels against the scores beside it: a label that no score supports is odd.

    More than two classes: the best score names the label. Two: some threshold parts the labels.
    """

    def __init__(self, scheme: Scheme) -> None:
        self.reader = scheme.score_reader()
        self._able = True
        self._rows = self._apart = 0
        self._lowest_positive, self._highest_negative = np.inf, -np.inf

    def see(self, batch: Batch, column: str) -> None:
        """Look at a batch. Scores that can't be read bear no witness."""
        if not self._able:
            return
        try:
            values = self.reader.read(batch).values
            places = self.reader.places(batch[column])
        except (Undecided, Unreadable):
            self._able = False
            return
        known = (places >= 0) & np.isfinite(values).all(axis=1)
        values, places = values[known], places[known]
        self._rows += len(values)
        if self.reader.width > 2:
            own = values[np.arange(len(values)), places]
            self._apart += int((values.max(axis=1) > own).sum())
        elif len(values):
            ups, downs = values[places == 1, 1], values[places == 0, 1]
            self._lowest_positive = min(self._lowest_positive, float(ups.min(initial=np.inf)))
            self._highest_negative = max(self._highest_negative, float(downs.max(initial=-np.inf)))

    @property
    def contradiction(self) -> str:
        """What is odd, or nothing."""
        if not self._able:
            return ""
        otherwise = "one of the two was altered, or something else decided the labels (declare their column)"
        if self._apart:
            rows = f"{self._apart:,} of {self._rows:,} rows"
            return f"the predicted labels are not those of the best scores in {rows}: {otherwise}"
        if self._lowest_positive < self._highest_negative:
            return f"no threshold on the scores gives the predicted labels: {otherwise}"
        return ""


class TargetScores(Collector):
    """For each row how its target ranks among the scores, and the logarithm of its probability."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self._target = scheme.column("target")
        self.reader = scheme.score_reader()
        self.columns = (self._target, *self.reader.columns)
        self.tally = Tally()
        self._clamp = params.clamp
        self._parts: list[tuple[Any, ...]] = []

    def add(self, batch: Batch) -> None:
        scores = self.reader.read(batch)
        places = self.reader.places(batch[self._target])
        present = self.tally.count(scores.missing, places < 0)
        values, places = scores.values[present], places[present]
        self.tally.nonfinite += int(np.count_nonzero(_nonfinite(values, self.reader.logits)))
        own = values[np.arange(len(values)), places][:, None]
        above = (values > own).sum(axis=1)
        equal = values == own
        before = (equal & (np.arange(values.shape[1]) < places[:, None])).sum(axis=1)
        self._parts.append(
            (above, before, equal.sum(axis=1) - 1, *self._logs(values, own[:, 0], scores.half))
        )

    def _logs(self, values: Any, own: Any, half: float) -> tuple[Any, Any, Any]:
        """Log-probability of the target, and the least and most it may be given the stored digits."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.reader.logits:
                highest = values.max(axis=1)
                logs = own - highest - np.log(np.exp(values - highest[:, None]).sum(axis=1))
                return logs, logs - 2 * half, logs + 2 * half
            floor = self._clamp or 0.0
            return (
                np.log(np.maximum(own, floor)),
                np.log(np.maximum(own - half, floor)),
                np.log(np.minimum(np.maximum(own + half, floor), 1.0)),
            )

    def finish(self) -> None:
        self.tally.finish()

    def _joined(self, index: int) -> Any:
        return np.concatenate([part[index] for part in self._parts])

    def ranks(self, ties: str) -> Any:
        """Scores that rank before the target's; of equal ones the first columns, none, or all."""
        above = self._joined(0)
        return above + {"first": self._joined(1), "none": 0, "all": self._joined(2)}[ties]

    def logs(self) -> tuple[Any, Any, Any]:
        """Log-probabilities of the targets: as stored, at least, at most.

        Raises:
            Undecided: the scores are neither probabilities nor named as logits.
        """
        if self.reader.kind == "raw":
            raise Undecided(
                "not-declared", "the scores do not sum to 1; name them as logits in [custody] if so"
            )
        return self._joined(3), self._joined(4), self._joined(5)


class ScoreMatrix(Collector):
    """All scores, kept: curves need them in order."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self._target = scheme.column("target")
        self.reader = scheme.score_reader()
        self.columns = (self._target, *self.reader.columns)
        self.tally = Tally()
        self._scores: list[Any] = []
        self._places: list[Any] = []
        self._held = 0

    def add(self, batch: Batch) -> None:
        scores = self.reader.read(batch)
        places = self.reader.places(batch[self._target])
        present = self.tally.count(scores.missing, places < 0)
        values = scores.values[present]
        self.tally.nonfinite += int(np.count_nonzero(_nonfinite(values, self.reader.logits)))
        if self.reader.logits and len(values):
            values = np.exp(softmax_logs(values)) if self.reader.width > 2 else values
        self._held += values.nbytes
        if self._held > HELD_BYTES:
            raise Undecided("unreadable", f"its scores need more than {HELD_BYTES >> 30} GiB of memory")
        self._scores.append(values)
        self._places.append(places[present])

    def finish(self) -> None:
        self.tally.finish()

    @property
    def scores(self) -> Any:
        return np.concatenate(self._scores)

    @property
    def places(self) -> Any:
        return np.concatenate(self._places)


def _nonfinite(values: Any, logits: bool) -> Any:
    """Rows with a value that is no number. A logit of minus infinity is one: a masked class."""
    bad: Any = ~np.isfinite(values)
    if logits:
        masked: Any = np.isneginf(values)
        return (bad & ~masked).any(axis=1) | masked.all(axis=1)
    return bad.any(axis=1)


def _nested(values: Any) -> bool:
    if values.dtype != object:
        return bool(values.ndim > 1)
    return any(isinstance(value, list | np.ndarray) for value in values[:16])


def _flat(values: Any) -> Any:
    if values.dtype != object:
        return values.reshape(-1)
    if any(value is None for value in values):
        raise Undecided("population-incomplete", "a row holds no list of labels")
    return np.concatenate([np.asarray(value).reshape(-1) for value in values])


def _fraction(name: str) -> bool:
    try:
        return not float(name).is_integer()
    except (ValueError, OverflowError):
        return False
