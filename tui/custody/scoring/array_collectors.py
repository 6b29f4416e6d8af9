"""Collectors for metrics of numbers, images, masks, tokens, boxes, and of a stored score per sample."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tui.custody.predictions.cells import Labels, id_text, label, numbers, ragged
from tui.custody.predictions.tables import Batch, objects
from tui.custody.scoring import images
from tui.custody.scoring.collecting import Collector, Params, Scheme, Tally, softmax_logs
from tui.custody.scoring.detection import Scene
from tui.custody.scoring.figures import Undecided
from tui.custody.scoring.formulas import averaged, psnr

MASK_CLASSES = 4096
VOID = 255
"""The mask value that by convention marks pixels nobody labelled."""
PADDING = -100
"""The target of tokens that do not count, as PyTorch and Transformers have it."""
_CHANNELS = (1, 3, 4)
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


class ImageQuality(Collector):
    """Mean squared error and structural similarity of each image."""

    scans = True

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self.columns = (scheme.column("target"), scheme.column("prediction"))
        self.tally = Tally()
        self._range = params.data_range
        self._declared = params.data_range is not None
        self._low, self._high = math.inf, -math.inf
        self._kind = ""
        self.mse: list[float] = []
        self.pixels: list[int] = []
        self.similarity: dict[images.Window, list[float]] = {"gaussian": [], "mirrored": [], "uniform": []}
        self._too_small: set[images.Window] = set()

    def scan(self, batch: Batch) -> None:
        target = batch[self.columns[0]]
        self._kind = "object" if target.dtype == object else target.dtype.str[1:]
        for row in self._rows(target):
            if row is not None and row.size:
                self._low, self._high = min(self._low, float(row.min())), max(self._high, float(row.max()))

    @staticmethod
    def _rows(values: Any) -> list[Any | None]:
        if values.ndim < 3 and values.dtype != object:
            raise Undecided("not-declared", "the columns hold no images")
        return ragged(values)

    @property
    def data_range(self) -> float:
        """Largest minus smallest possible value: declared, else by the type or the range of the targets.

        Raises:
            Undecided: it can't be told.
        """
        if self._range is None:
            self._range = self._recognised()
        return self._range

    def _recognised(self) -> float:
        if self._kind in ("u1", "u2"):
            return 255.0 if self._kind == "u1" else 65535.0
        if self._low >= 0 and self._high <= 1:
            return 1.0
        if self._low >= -1 and self._high <= 1:
            return 2.0
        if self._low >= 0 and self._high <= 255:
            return 255.0
        raise Undecided("not-declared", "the range of image values is not plain; declare data_range")

    @property
    def range_note(self) -> str:
        return "" if self._declared else f"image values are taken to span {self.data_range:g}"

    def add(self, batch: Batch) -> None:
        true, guess = (self._rows(batch[column]) for column in self.columns)
        self.tally.count(np.array([g is None for g in guess]), np.array([t is None for t in true]))
        for t, g in zip(true, guess, strict=True):
            if t is not None and g is not None:
                self._add_one(t, g)

    def _add_one(self, true: Any, guess: Any) -> None:
        if true.shape != guess.shape or true.ndim not in (2, 3):
            raise Undecided(
                "not-declared", f"images of the shapes {true.shape} and {guess.shape} can't be compared"
            )
        self.tally.nonfinite += not np.isfinite(guess).all()
        self.mse.append(float(np.mean((guess - true) ** 2)))
        self.pixels.append(true.size)
        for window, values in self.similarity.items():
            planes = _planes(true, guess)
            if planes is None or not images.fits(planes[0].shape[1], planes[0].shape[2], window):
                self._too_small.add(window)
            else:
                values.append(images.ssim(*planes, self.data_range, window))

    def finish(self) -> None:
        self.tally.finish()

    def psnrs(self) -> Any:
        """Of each image, in dB."""
        return np.array([psnr(mse, self.data_range) for mse in self.mse])

    def similarities(self, window: images.Window) -> Any:
        """Of each image.

        Raises:
            Undecided: an image is smaller than the window, or its channels can't be told from its rows.
        """
        if window in self._too_small:
            raise Undecided(
                "not-declared", f"an image is no height × width × channels, or too small ({window})"
            )
        return np.array(self.similarity[window])


def _planes(true: Any, guess: Any) -> tuple[Any, Any] | None:
    """Both images as channels × height × width; None where the channels are not plain."""
    if true.ndim == 2:
        return true[None], guess[None]
    first, last = true.shape[0] in _CHANNELS, true.shape[2] in _CHANNELS
    if first == last:
        return None
    return (true, guess) if first else (np.moveaxis(true, 2, 0), np.moveaxis(guess, 2, 0))


class Masks(Collector):
    """Pixels counted by true and predicted class, over all images and for each."""

    def __init__(self, scheme: Scheme, params: Params) -> None:
        self.columns = (scheme.column("target"), scheme.column("prediction"))
        self.tally = Tally()
        self.ignore = params.ignore
        self._counts: Any = np.zeros((1, 1), dtype=np.int64)
        self.each: list[float] = []

    def add(self, batch: Batch) -> None:
        true, guess = (ragged(batch[column]) for column in self.columns)
        self.tally.count(np.array([g is None for g in guess]), np.array([t is None for t in true]))
        for t, g in zip(true, guess, strict=True):
            if t is not None and g is not None:
                self._add_one(t, g)

    def _add_one(self, true: Any, guess: Any) -> None:
        if true.shape != guess.shape or true.ndim == 0:
            raise Undecided("not-declared", "the columns hold no masks of one shape")
        true, guess = self._whole(true.reshape(-1)), self._whole(guess.reshape(-1))
        if self.ignore is not None:
            kept = true != self.ignore
            true, guess = true[kept], guess[kept]
        if not len(true):
            return
        size = int(max(true.max(), guess.max())) + 1
        counts = np.bincount(true * size + guess, minlength=size * size).reshape(size, size)
        self.each.append(averaged(counts, "iou", "macro"))
        self._counts = _sum_of(self._counts, counts)

    @staticmethod
    def _whole(values: Any) -> Any:
        if not np.isfinite(values).all() or (values % 1).any() or values.min(initial=0) < 0:
            raise Undecided("not-declared", "masks hold something else than class numbers")
        if values.max(initial=0) >= MASK_CLASSES:
            raise Undecided("not-declared", f"masks hold more than {MASK_CLASSES:,} classes")
        return values.astype(np.int64)

    def finish(self) -> None:
        self.tally.finish()
        if not self._counts.any():
            raise Undecided("population-incomplete", "no pixel of the masks counts")

    def confusion(self, *, without_void: bool = False) -> Any:
        """Target against prediction over all images.

        Args:
            without_void: leave out pixels whose target is 255.
        """
        if not without_void:
            return self._counts
        kept = self._counts.copy()
        kept[VOID] = 0
        return kept

    @property
    def has_void(self) -> bool:
        """Targets hold 255 beside small class numbers, so it may mark pixels that do not count."""
        rows = self._counts.sum(axis=1)
        return (
            self.ignore is None
            and len(rows) == VOID + 1
            and bool(rows[VOID])
            and not rows[VOID - 50 : VOID].any()
        )


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


def _sum_of(first: Any, second: Any) -> Any:
    """Two square counts of perhaps different sizes."""
    size = max(len(first), len(second))
    total: Any = np.zeros((size, size), dtype=np.int64)
    for counts in (first, second):
        total[: len(counts), : len(counts)] += counts
    return total


def _lists(values: Any) -> bool:
    return values.dtype == object and any(isinstance(value, list | np.ndarray) for value in values[:16])
