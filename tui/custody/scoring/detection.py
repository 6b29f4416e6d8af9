"""Mean average precision of boxes, as COCO evaluates it (all areas, at most 100 detections an image)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

COCO_THRESHOLDS = tuple(float(t) for t in np.linspace(0.5, 0.95, 10))
RECALLS = np.linspace(0.0, 1.0, 101)
MOST = 100


@dataclass(frozen=True)
class Scene:
    """One image: boxes as x1, y1, x2, y2, class codes, and a score for each predicted box."""

    id: str
    boxes: Any
    scores: Any
    labels: Any
    true_boxes: Any
    true_labels: Any


def mean_average_precision(scenes: Sequence[Scene], thresholds: Sequence[float]) -> float:
    """Mean over classes that have true boxes and over overlap thresholds; NaN when there is no true box.

    Scenes are taken in the order of their ids: COCO breaks ties between equal scores of two images so.
    """
    ordered = sorted(scenes, key=lambda scene: scene.id)
    classes = sorted({int(label) for scene in ordered for label in scene.true_labels})
    if not classes:
        return math.nan
    values = [value for label in classes for value in _class_precision(ordered, label, thresholds)]
    return math.fsum(values) / len(values)


def _class_precision(scenes: Sequence[Scene], label: int, thresholds: Sequence[float]) -> list[float]:
    """Average precision of one class at each threshold."""
    scores: list[Any] = []
    matched: list[Any] = []
    truths = 0
    for scene in scenes:
        mine, true = scene.labels == label, scene.true_labels == label
        order = np.argsort(-scene.scores[mine], kind="stable")[:MOST]
        overlap = box_iou(scene.boxes[mine][order], scene.true_boxes[true])
        scores.append(scene.scores[mine][order])
        matched.append(np.stack([_matches(overlap, threshold) for threshold in thresholds]))
        truths += int(true.sum())
    order = np.argsort(-np.concatenate(scores), kind="stable")
    hits = np.concatenate(matched, axis=1)[:, order]
    return [_interpolated(row, truths) for row in hits]


def box_iou(first: Any, second: Any) -> Any:
    """Overlap of each box of one set with each of another."""
    corner = np.maximum(first[:, None, :2], second[None, :, :2])
    far = np.minimum(first[:, None, 2:], second[None, :, 2:])
    shared = np.prod(np.clip(far - corner, 0, None), axis=2)
    union = _area(first)[:, None] + _area(second)[None, :] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def _area(boxes: Any) -> Any:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _matches(overlap: Any, threshold: float) -> Any:
    """Which detections, best score first, find a true box of their own: the free one they overlap most."""
    free = np.ones(overlap.shape[1], dtype=bool)
    hits = np.zeros(overlap.shape[0], dtype=bool)
    for index, row in enumerate(overlap):
        allowed = np.flatnonzero(free & (row >= min(threshold, 1 - 1e-10)))
        if len(allowed):
            best = allowed[::-1][np.argmax(row[allowed][::-1])]  # of equal overlaps COCO takes the last
            free[best] = False
            hits[index] = True
    return hits


def _interpolated(hits: Any, truths: int) -> float:
    """Precision at 101 recalls, each the best precision reached at that recall or beyond."""
    found = np.cumsum(hits)
    precision = found / np.arange(1, len(hits) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    places = np.searchsorted(found / truths, RECALLS, side="left")
    sampled = np.append(precision, 0.0)[np.minimum(places, len(precision))]
    return float(np.mean(sampled))
