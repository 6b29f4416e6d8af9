"""Collectors for metrics of images and masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tui.custody.predictions.cells import ragged
from tui.custody.predictions.tables import Batch
from tui.custody.scoring import images
from tui.custody.scoring.collecting import Collector, Params, Scheme, Tally
from tui.custody.scoring.figures import Undecided
from tui.custody.scoring.formulas import averaged, psnr

MASK_CLASSES = 4096
VOID = 255
"""The mask value that by convention marks pixels nobody labelled."""
_CHANNELS = (1, 3, 4)


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
        self.each_dice: list[float] = []

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
        self.each_dice.append(averaged(counts, "f1", "macro"))
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


def _sum_of(first: Any, second: Any) -> Any:
    """Two square counts of perhaps different sizes."""
    size = max(len(first), len(second))
    total: Any = np.zeros((size, size), dtype=np.int64)
    for counts in (first, second):
        total[: len(counts), : len(counts)] += counts
    return total
