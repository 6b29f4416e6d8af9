"""Metrics of classes, scores and errors, each as a pure function of what was collected.

Conventions where textbooks differ are those of scikit-learn and COCO, and named in the docstrings.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from tui.model.metrics import Average


def mean(values: Any) -> float:
    """The mean, exactly rounded, so that the order of the rows can't show in the last digit."""
    return math.fsum(values.tolist()) / len(values) if len(values) else math.nan


def accuracy(confusion: Any) -> float:
    """Share of the diagonal. `confusion` counts target (row) against prediction (column)."""
    total = int(confusion.sum())
    return int(np.trace(confusion)) / total if total else math.nan


def class_scores(confusion: Any, measure: Literal["precision", "recall", "f1", "iou"]) -> tuple[Any, Any]:
    """Numerator and denominator of a measure for each class."""
    hits = np.diag(confusion).astype(np.float64)
    predicted, actual = confusion.sum(axis=0).astype(np.float64), confusion.sum(axis=1).astype(np.float64)
    if measure == "precision":
        return hits, predicted
    if measure == "recall":
        return hits, actual
    if measure == "f1":
        return 2 * hits, predicted + actual
    return hits, predicted + actual - hits


def averaged(
    confusion: Any, measure: Literal["precision", "recall", "f1", "iou"], average: Average, positive: int = 1
) -> float:
    """Precision, recall, F1 or IoU over classes.

    A quotient 0/0 counts as 0. ``macro`` is over classes that occur as a target or a prediction, ``weighted``
    by how often each is the target.

    Args:
        positive: the class of ``binary``.
    """
    top, bottom = class_scores(confusion, measure)
    if average == "micro":
        return _ratio(float(top.sum()), float(bottom.sum()))
    each = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)
    if average == "binary":
        return float(each[positive])
    actual = confusion.sum(axis=1)
    occurs = (actual + confusion.sum(axis=0)) > 0
    if average == "macro":
        return mean(each[occurs])
    return _ratio(math.fsum((each * actual).tolist()), float(actual.sum()))


def balanced_accuracy(confusion: Any) -> float:
    """Mean recall over the classes that have targets."""
    top, bottom = class_scores(confusion, "recall")
    return mean(top[bottom > 0] / bottom[bottom > 0])


def specificity(confusion: Any, positive: int) -> float:
    """Share of the other classes' targets that were not taken for the positive class."""
    others = np.delete(confusion, positive, axis=0)
    return _ratio(float(np.delete(others, positive, axis=1).sum()), float(others.sum()))


def matthews(confusion: Any) -> float:
    """Correlation of targets and predictions over any number of classes; 0 where one of them never varies."""
    total, hits = float(confusion.sum()), float(np.trace(confusion))
    predicted, actual = confusion.sum(axis=0).astype(np.float64), confusion.sum(axis=1).astype(np.float64)
    spread = math.sqrt(float(total**2 - predicted @ predicted) * float(total**2 - actual @ actual))
    return _ratio(hits * total - float(predicted @ actual), spread)


def kappa(confusion: Any) -> float:
    """Cohen's kappa, unweighted; NaN where chance alone would agree always."""
    total = float(confusion.sum())
    chance = float(confusion.sum(axis=0).astype(np.float64) @ confusion.sum(axis=1)) / total**2
    return (float(np.trace(confusion)) / total - chance) / (1 - chance) if chance < 1 else math.nan


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom else 0.0


def auroc(scores: Any, positive: Any) -> float:
    """Area under the ROC curve by ranks, equal scores counting half; NaN unless both classes occur."""
    ups = int(positive.sum())
    downs = len(positive) - ups
    if not ups or not downs:
        return math.nan
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return (math.fsum(ranks[places][positive].tolist()) - ups * (ups + 1) / 2) / (ups * downs)


def average_precision(scores: Any, positive: Any) -> float:
    """Precision summed over the steps of recall, one step a distinct score, without interpolation."""
    ups = int(positive.sum())
    if not ups:
        return math.nan
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(positive[order])
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    precision = hits[ends] / (ends + 1)
    recall = hits[ends] / ups
    return math.fsum((np.diff(recall, prepend=0.0) * precision).tolist())


def over_classes(one: Any, scores: Any, targets: Any) -> tuple[float, list[int]]:
    """Mean of a one-against-rest measure over the classes that have targets, and the classes that have none.

    Args:
        one: a function of one class's scores and of which rows are its own.
        scores: rows by classes.
        targets: column index of each row's class.
    """
    values: list[float] = []
    absent: list[int] = []
    for index in range(scores.shape[1]):
        value = one(scores[:, index], targets == index)
        if math.isnan(value):
            absent.append(index)
        else:
            values.append(value)
    return mean(np.array(values)), absent


def psnr(mse: float, data_range: float) -> float:
    """Peak signal-to-noise ratio in dB; infinite for equal images."""
    return math.inf if mse == 0 else 10 * math.log10(data_range**2 / mse)
