"""What a metric needs of a population, taken in batch by batch: the part all collectors share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tui.custody.predictions.cells import Labels, Numbers, numbers, stacked
from tui.custody.predictions.roles import Roles, Scores
from tui.custody.predictions.tables import Batch
from tui.custody.scoring.figures import Undecided
from tui.model.metrics import Average, DeclaredMetric

SUM_SLACK = 1e-3
"""How far the scores of a row may be from summing to 1 and still be probabilities."""


@dataclass(frozen=True)
class Params:
    """What a declaration says about one metric's definition; None where it says nothing."""

    average: Average | None = None
    k: int | None = None
    ignore: int | None = None
    data_range: float | None = None
    clamp: float | None = None
    threshold: float | None = None

    @classmethod
    def of(cls, declared: DeclaredMetric | None) -> Params:
        """The parameters a declared metric carries."""
        if declared is None:
            return cls()
        return cls(**{name: getattr(declared, name) for name in cls.__dataclass_fields__})


@dataclass(eq=False)
class Scheme:
    """How the columns of one population are read. All collectors share one reader of scores."""

    roles: Roles
    classes: tuple[str, ...] | None = None
    positive: str | None = None
    ground_truth: bool = True
    prediction_declared: bool = False
    _reader: ScoreReader | None = None

    def score_reader(self) -> ScoreReader:
        """The reader of its scores.

        Raises:
            Undecided: no column is plainly a score.
        """
        if self._reader is None:
            self._reader = ScoreReader(self)
        return self._reader

    def column(self, role: str) -> str:
        """The column of a role.

        Raises:
            Undecided: there is none, or it can't be told which.
        """
        if role in self.roles.unclear:
            raise Undecided("not-declared", self.roles.unclear[role])
        found: str | None = getattr(self.roles, role, None) or self.roles.boxes.get(role)
        if found is not None:
            return found
        if role.startswith("target"):
            raise Undecided("no-ground-truth", "no column holds the targets")
        raise Undecided("not-declared", f"no column is plainly the {role.replace('_', ' ')}")


class Collector:
    """Takes in the batches of a population.

    Attributes:
        columns: those it needs.
        scans: it wants to see all batches once before the first is added.
    """

    columns: tuple[str, ...]
    scans = False

    def scan(self, batch: Batch) -> None:
        """Look at a batch of the first pass."""

    def add(self, batch: Batch) -> None:
        """Take in a batch.

        Raises:
            Undecided: the columns hold something this metric is not defined for.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """All batches were seen.

        Raises:
            Undecided: there is no figure to be had of them.
        """
        raise NotImplementedError


@dataclass
class Tally:
    """Counts rows that lack what a metric needs."""

    rows: int = 0
    without_prediction: int = 0
    without_target: int = 0
    nonfinite: int = 0

    def count(self, prediction: Any, target: Any) -> Any:
        """Count a batch by its masks of missing values; gives the rows that have both."""
        self.rows += len(target)
        self.without_prediction += int(prediction.sum())
        self.without_target += int(target.sum())
        return ~(prediction | target)

    def finish(self) -> None:
        """Judge the whole.

        Raises:
            Undecided: targets or predictions are missing.
        """
        if not self.rows:
            raise Undecided("population-incomplete", "there is no prediction at all")
        if self.without_target == self.rows:
            raise Undecided("no-ground-truth", "the target column is empty")
        lacking = []
        if self.without_prediction:
            lacking.append(f"{self.without_prediction:,} of {self.rows:,} rows have no prediction")
        if self.without_target:
            lacking.append(f"{self.without_target:,} of {self.rows:,} rows have no target")
        if lacking:
            raise Undecided("population-incomplete", " and ".join(lacking))

    @property
    def note(self) -> str:
        """What to say of values that are no numbers."""
        if not self.nonfinite:
            return ""
        return f"{self.nonfinite:,} of {self.rows:,} predictions are not finite (NaN or infinite)"


@dataclass
class ScoreReader:
    """Reads the scores of a batch as rows by classes, and where each row's target stands among them.

    Attributes:
        logits: the columns hold logits, by their role.
        simplex: so far every row is a set of probabilities that sum to 1.
        unbounded: a single score is no probability, so only its order means something.
    """

    scheme: Scheme
    logits: bool = False
    simplex: bool = True
    found: Scores = field(init=False)
    labels: Labels = field(default_factory=Labels)
    width: int = 0
    unbounded: bool = False
    _last: tuple[Batch, Numbers] | None = None

    def __post_init__(self) -> None:
        roles = self.scheme.roles
        unclear = roles.unclear.get("scores") or roles.unclear.get("logits")
        if roles.scores is None and unclear is not None:
            raise Undecided("not-declared", unclear)
        if roles.scores is not None:
            self.found = roles.scores
        elif roles.logits is not None:
            self.found, self.logits = roles.logits, True
        elif roles.prediction is not None:
            self.found = Scores((roles.prediction,), self.scheme.classes)
        else:
            raise Undecided("not-declared", "no column is plainly a score per class")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.found.columns

    def read(self, batch: Batch) -> Numbers:
        """Scores as rows by classes. A single score becomes two: of the negative and the positive class.

        Raises:
            Undecided: a row is no vector of scores.
        """
        if self._last is None or self._last[0] is not batch:
            self._last = (batch, self._read(batch))
        return self._last[1]

    def _read(self, batch: Batch) -> Numbers:
        if len(self.columns) > 1:
            scores = stacked([batch[column] for column in self.columns])
        else:
            scores = numbers(batch[self.columns[0]])
        values = scores.values
        if values.ndim == 1:
            self._check_single(values[~scores.missing])
            other = np.zeros_like(values) if self.logits else 1 - values
            values = np.stack([other, values], axis=1)
        if values.ndim != 2:
            raise Undecided("not-declared", "the score column holds more than one vector a row")
        if self.width and values.shape[1] != self.width:
            raise Undecided("not-declared", "rows have different numbers of scores")
        self.width = values.shape[1]
        scores = Numbers(values, scores.missing, scores.half)
        self._look(scores)
        return scores

    def _check_single(self, values: Any) -> None:
        if self.logits:
            return
        if self.scheme.roles.scores is None:
            raise Undecided("not-declared", "no column is plainly a score per class")
        finite = values[np.isfinite(values)]
        self.unbounded |= bool(len(finite) and (finite.min() < 0 or finite.max() > 1))

    def _look(self, scores: Numbers) -> None:
        present = scores.values[~scores.missing]
        if self.simplex and not self.logits and len(present):
            slack = SUM_SLACK + self.width * scores.half
            close = np.abs(present.sum(axis=1) - 1) <= slack
            inside = (present >= 0).all(axis=1) & (present <= 1 + slack).all(axis=1)
            broken = ~np.isfinite(present).all(axis=1)
            self.simplex = bool((close & inside | broken).all())

    @property
    def kind(self) -> str:
        """``logits``, ``probabilities``, or ``raw`` where only the order of scores means something."""
        return "logits" if self.logits else ("probabilities" if self.simplex else "raw")

    @property
    def names(self) -> tuple[str, ...]:
        """Class names in column order; numbers where nothing names them."""
        named = self.found.classes or self.scheme.classes
        if named is not None and len(named) == self.width:
            return tuple(named)
        if named is not None:
            raise Undecided(
                "not-declared", f"{len(named)} classes are named, but there are {self.width} scores"
            )
        if self.width == 2 and self.scheme.positive is not None:
            return ("", self.scheme.positive)
        return tuple(str(index) for index in range(self.width))

    def places(self, targets: Any) -> Any:
        """Column of each target; -1 where the target is missing.

        Raises:
            Undecided: a target has no column.
        """
        codes = self.labels.codes(targets)
        place_of = {name: index for index, name in enumerate(self.names)}
        if self.width == 2 and set(place_of) == {"0", "1"}:
            place_of |= {"false": 0, "true": 1}
        table = np.array([place_of.get(name, -2) for name in self.labels.names] + [-1], dtype=np.int64)
        if self.width == 2 and self.names[0] == "":
            table[:-1][table[:-1] == -2] = 0
        places = table[codes]
        if (places == -2).any():
            name = self.labels.names[int(codes[places == -2][0])]
            raise Undecided(
                "not-declared", f"no score column belongs to the target {name[:80]!r}; name the classes"
            )
        return places


def softmax_logs(logits: Any) -> Any:
    """Logarithms of the probabilities along the last axis."""
    highest = np.max(logits, axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shifted = logits - highest
        return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
