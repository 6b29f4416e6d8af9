"""Metrics that stay at zero although the losses are finite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.triage.finding import Hit
from tui.triage.readers.losses import figures
from tui.triage.view import View

FRAGMENTS = (rb"all[ .e-]{12,}(?![^\n])",)  # a row of figures: they are dropped
WORDS = (
    "average precision", "bbox_map", "map_50", "map50", "pseudo dice", "val_acc", "eval_acc", "eval_f1",
    "miou", "val_f1", "val_dice", "val_iou", "eval/acc", "val/acc", "val_map", "test_acc", "bbox/ap",
)  # fmt: skip
_ROW = re.compile(
    r"^\s*all\s+(?P<images>\d+)\s+(?P<instances>\d+)(?P<rest>(?:\s+(?:\d[\d.]*(?:e[-+]?\d+)?|nan))+)\s*$"
)
_EPOCH = re.compile(r"^\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s+\d+(?:\.\d+)?[GM]i?B?\s+(?P<box>[\d.]+)")
_NAMED = re.compile(
    r"(?i)(?<![\w])(?:(?:val|valid|validation|eval|test)[ _/](?:\w+[_/])?(?:acc(?:uracy)?|f1|dice|iou"
    r"|miou|map|precision|recall|em"
    r"|bleu|auc)\w*|(?:bbox_|segm_|coco/bbox_)?mAP(?:_?50(?:[-:_]95)?)?|mIoU"
    r"|Average Precision +\(AP\) @\[.{0,40}area= *all.{0,40}\] *)"
    r"['\"]?\s*[:=]\s*(?P<value>-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
)
_DICE = re.compile(r"Pseudo dice \[(?P<values>[^\]]+)\]")
_FIRM = 3


@dataclass(frozen=True, slots=True)
class _Seen:
    at: int
    zero: bool
    epoch: int | None = None
    epochs: int | None = None
    no_box: bool = False


def flat(view: View, cls: str) -> Iterator[Hit]:
    """A table of detection metrics, or named validation metrics, that are all zero to the end."""
    for seen in (_tables(view), _named(view)):
        zeros: list[_Seen] = []
        for one in reversed(seen):
            if not one.zero:
                break
            zeros.append(one)
        if not zeros or any(f.loss is False for f in figures(view)[-3:]):
            continue
        last = zeros[0]
        late = last.epoch is not None and (last.epoch >= 10 or last.epoch == last.epochs)
        if len(zeros) >= _FIRM or (late and (last.no_box or len(seen) == len(zeros))):
            yield Hit(zeros[0].at, facts={"rows": len(zeros)}, settled=True)
            return


def _tables(view: View) -> list[_Seen]:
    found: list[_Seen] = []
    epoch: re.Match[str] | None = None
    for index, one in enumerate(view.rows):
        epoch = _EPOCH.match(one.head) or epoch
        match = _ROW.match(one.head)
        if match is None or int(match["instances"]) == 0:
            continue
        values = [float(v) for v in match["rest"].split()]
        if len(values) < 3:
            continue
        zero = all(v == 0 for v in values)
        if epoch is None:
            found.append(_Seen(index, zero))
        else:
            box = float(epoch["box"]) == 0
            found.append(_Seen(index, zero, int(epoch["epoch"]), int(epoch["epochs"]), box))
    return found


def _named(view: View) -> list[_Seen]:
    found: list[_Seen] = []
    for index, one in enumerate(view.rows):
        dice = _DICE.search(one.text)
        if dice:
            values = [float(v) for v in re.findall(r"\d+(?:\.\d+)?", dice["values"])]
        else:
            values = [float(m["value"]) for m in _NAMED.finditer(one.text)]
        if values:
            found.append(_Seen(index, all(v <= 0 for v in values)))
    return found
