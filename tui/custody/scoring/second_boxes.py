"""The second implementation for boxes: pycocotools over the same rows. Runs in a child process."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np

from tui.custody.predictions.cells import Labels, id_text, label, ragged
from tui.custody.scoring.asks import Ask
from tui.custody.scoring.recompute import Opened


def overlap_precision(low: float, high: float) -> Callable[[Opened, Ask], Any]:
    def answer(opened: Opened, ask: Ask) -> Any:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        truth, found = _coco(opened)
        reference = COCO()
        reference.dataset = truth
        with contextlib.redirect_stdout(io.StringIO()):
            reference.createIndex()
            evaluation = COCOeval(reference, reference.loadRes(found) if found else COCO(), "bbox")
            evaluation.params.iouThrs = np.linspace(low, high, round((high - low) / 0.05) + 1)
            evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
            evaluation.params.maxDets = [100]
            evaluation.evaluate()
            evaluation.accumulate()
        precision = evaluation.eval["precision"]
        return float(precision[precision > -1].mean())

    return answer


def _coco(opened: Opened) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The boxes in COCO's own structure, images numbered in the order of their ids."""
    scheme, book = opened.scheme, Labels()
    rows: list[tuple[str, Any, Any, Any, Any, Any]] = []
    boxes, scores, true = (scheme.column(role) for role in ("pred_boxes", "pred_scores", "target_boxes"))
    labels, true_labels = (scheme.roles.boxes.get(role) for role in ("pred_labels", "target_labels"))
    columns = [c for c in (boxes, scores, true, labels, true_labels, scheme.roles.id) if c is not None]
    for batch in opened.batches(columns):
        lists = [ragged(batch[column]) for column in (boxes, scores, true)]
        for row, (b, s, t) in enumerate(zip(*lists, strict=True)):
            name = (
                f"{len(rows):012d}"
                if scheme.roles.id is None
                else (id_text(batch[scheme.roles.id][row]) or "")
            )
            mine = [0] * len(s) if labels is None else [book.code(label(v) or "") for v in batch[labels][row]]
            theirs = (
                [0] * len(t)
                if true_labels is None
                else [book.code(label(v) or "") for v in batch[true_labels][row]]
            )
            rows.append((name, b.reshape(-1, 4), s, mine, t.reshape(-1, 4), theirs))
    rows.sort(key=lambda row: row[0])
    truth: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    for image, (_, b, s, mine, t, theirs) in enumerate(rows, start=1):
        for box, code in zip(t.tolist(), theirs, strict=True):
            corner = _cornered(box)
            place = {"id": len(truth) + 1, "image_id": image, "category_id": code + 1, "bbox": list(corner)}
            truth.append({**place, "area": corner[2] * corner[3], "iscrowd": 0})
        for box, score, code in zip(b.tolist(), s.tolist(), mine, strict=True):
            found.append(
                {"image_id": image, "category_id": code + 1, "bbox": list(_cornered(box)), "score": score}
            )
    categories = [{"id": code + 1} for code in range(max(len(book.names), 1))]
    images = [{"id": image + 1} for image in range(len(rows))]
    return {"images": images, "annotations": truth, "categories": categories, "info": {}}, found


def _cornered(box: list[float]) -> tuple[float, float, float, float]:
    return box[0], box[1], box[2] - box[0], box[3] - box[1]
