"""Definitions of each metric: which collector they need and how the figure is had from it.

Where a name alone leaves several definitions open (F1 over which average?), all are computed; the declaration
may settle it, and the finding always says which one was met.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tui.custody.scoring import formulas, number_figures
from tui.custody.scoring.array_collectors import Errors, Pairs, Scenes, Tokens
from tui.custody.scoring.class_collectors import LabelCounts, ScoreMatrix, TargetScores
from tui.custody.scoring.collecting import Collector, Params
from tui.custody.scoring.detection import COCO_THRESHOLDS, mean_average_precision
from tui.custody.scoring.figures import Figure, Undecided
from tui.custody.scoring.formulas import mean
from tui.custody.scoring.image_collectors import VOID, ImageQuality, Masks
from tui.custody.scoring.images import Window
from tui.model.metrics import Average

Measure = Literal["precision", "recall", "f1", "iou"]
Make = Callable[[Any, Params], Collector]
Compute = Callable[[Any, Params], Figure]


@dataclass(frozen=True)
class Definition:
    """One way to compute a metric.

    Attributes:
        key: names it in findings, such as ``f1 (macro)``.
        second: what the second implementation is asked for; None where it has no such definition.
        rows: the value of each row, in file order, to hold a stored per-sample score against.
    """

    key: str
    make: Make
    compute: Compute
    second: str | None = None
    rows: Callable[[Any], Any] | None = None


def definitions(metric: str, params: Params) -> tuple[Definition, ...]:
    """The definitions a metric's name and declared parameters leave open, the most usual first."""
    if metric in ("f1", "precision", "recall"):
        wanted: tuple[Average, ...] = (
            (params.average,) if params.average else ("binary", "macro", "weighted", "micro")
        )
        return tuple(_averaged(metric, average) for average in wanted)
    found = _TABLE[metric]
    if metric == "auroc" and params.average == "macro":
        return found[1:]
    if metric in ("auroc", "average-precision") and params.average == "binary":
        return found[:1]
    return found


def _counted(collector: LabelCounts, figure: Figure) -> Figure:
    note = collector.tally.note
    return Figure(math.nan, note=note) if note else figure


def _accuracy(collector: LabelCounts, params: Params) -> Figure:
    total = collector.total
    low, high = collector.tied
    return _counted(collector, Figure(collector.correct / total, tie_low=low / total, tie_high=high / total))


def _error_rate(collector: LabelCounts, params: Params) -> Figure:
    found = _accuracy(collector, params)
    return Figure(
        (collector.total - collector.correct) / collector.total if not found.note else math.nan,
        tie_low=1 - (found.tie_high or 0.0),
        tie_high=1 - (found.tie_low or 0.0),
        note=found.note,
    )


def _averaged(metric: str, average: Average) -> Definition:
    measure: Measure = {"f1": "f1", "precision": "precision", "recall": "recall"}[metric]  # type: ignore[assignment]

    def compute(collector: LabelCounts, params: Params) -> Figure:
        positive = collector.positive
        if average == "binary" and positive is None:
            raise Undecided(
                "not-declared", "the classes are not 0 and 1: declare the positive one, or an average"
            )
        value = formulas.averaged(collector.confusion(), measure, average, positive or 0)
        return _counted(collector, Figure(value))

    return Definition(f"{metric} ({average})", LabelCounts, compute, f"{metric}:{average}")


def _balanced(collector: LabelCounts, params: Params) -> Figure:
    return _counted(collector, Figure(formulas.balanced_accuracy(collector.confusion())))


def _top_k(collector: TargetScores, params: Params) -> Figure:
    if params.k is None:
        raise Undecided("not-declared", "top-k of which k? declare k")
    if collector.tally.note:
        return Figure(math.nan, note=collector.tally.note)
    share = {
        ties: int((collector.ranks(ties) < params.k).sum()) / collector.tally.rows
        for ties in ("first", "none", "all")
    }
    return Figure(share["first"], tie_low=share["all"], tie_high=share["none"])


def _nll(collector: TargetScores, params: Params) -> Figure:
    logs, least, most = collector.logs()
    if collector.tally.note:
        return Figure(math.nan, note=collector.tally.note)
    value, low, high = -mean(logs), -mean(most), -mean(least)
    zeros = int(np.count_nonzero(np.isneginf(logs)))
    note = f"{zeros:,} targets have the probability 0: declare the clamp that was used" if zeros else ""
    return Figure(value, low=low, high=high, note=note)


def _class_perplexity(collector: TargetScores, params: Params) -> Figure:
    return _exponential(_nll(collector, params))


def _exponential(figure: Figure) -> Figure:
    return Figure(
        _exp(figure.value),
        low=None if figure.low is None else _exp(figure.low),
        high=None if figure.high is None else _exp(figure.high),
        note=figure.note,
    )


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _token_nll(collector: Tokens, params: Params) -> Figure:
    notes = [collector.tally.note] if collector.tally.note else []
    if collector.padded:
        notes.append(f"{collector.padded:,} tokens with the target {collector.ignore} do not count")
    value = math.nan if collector.tally.note else collector.nll
    return Figure(value, note="; ".join(notes))


def _token_perplexity(collector: Tokens, params: Params) -> Figure:
    return _exponential(_token_nll(collector, params))


def _binary_curve(one: Callable[[Any, Any], float]) -> Compute:
    def compute(collector: ScoreMatrix, params: Params) -> Figure:
        scores, places = collector.scores, collector.places
        if scores.shape[1] != 2:
            raise Undecided("not-declared", "there are more than two classes")
        if collector.tally.note:
            return Figure(math.nan, note=collector.tally.note)
        ranking = scores[:, 1] - scores[:, 0] if collector.reader.logits else scores[:, 1]
        value = one(ranking, places == 1)
        if math.isnan(value):
            raise Undecided("no-ground-truth", "it is not defined: all targets are of one class")
        return Figure(value)

    return compute


def _curve_over_classes(one: Callable[[Any, Any], float]) -> Compute:
    def compute(collector: ScoreMatrix, params: Params) -> Figure:
        if params.average in ("micro", "weighted"):
            raise Undecided("unknown-metric", f"no {params.average} average of it is known here")
        scores, places = collector.scores, collector.places
        if collector.tally.note:
            return Figure(math.nan, note=collector.tally.note)
        value, absent = formulas.over_classes(one, scores, places)
        if math.isnan(value):
            raise Undecided("no-ground-truth", "it is not defined: all targets are of one class")
        names = ", ".join(repr(collector.reader.names[index][:40]) for index in absent[:3])
        return Figure(
            value, note=f"{len(absent)} classes without targets are left out ({names})" if absent else ""
        )

    return compute


def _boxes(thresholds: tuple[float, ...]) -> Compute:
    def compute(collector: Scenes, params: Params) -> Figure:
        if collector.tally.note:
            return Figure(math.nan, note=collector.tally.note)
        value = mean_average_precision(collector.scenes, thresholds)
        if math.isnan(value):
            raise Undecided("no-ground-truth", "there is no true box")
        return Figure(value)

    return compute


def _mask_iou(average: Average, *, without_void: bool = False) -> Compute:
    return _mask_overlap("iou", average, without_void=without_void)


def _mask_overlap(measure: Measure, average: Average, *, without_void: bool = False) -> Compute:
    def compute(collector: Masks, params: Params) -> Figure:
        if without_void and not collector.has_void:
            raise Undecided("not-declared", f"no target pixel is {VOID}")
        confusion = collector.confusion(without_void=without_void)
        if average == "binary" and len(confusion) > 2:
            raise Undecided("not-declared", "masks hold more than the classes 0 and 1")
        if average == "binary" and len(confusion) < 2:
            return Figure(0.0, note="no pixel is of class 1")
        return Figure(formulas.averaged(confusion, measure, average))

    return compute


def _iou_per_image(collector: Masks, params: Params) -> Figure:
    return Figure(mean(np.array(collector.each)))


def _label_iou(average: Average) -> Compute:
    def compute(collector: LabelCounts, params: Params) -> Figure:
        positive = collector.positive
        if average == "binary" and positive is None:
            raise Undecided("not-declared", "the classes are not 0 and 1")
        return _counted(
            collector, Figure(formulas.averaged(collector.confusion(), "iou", average, positive or 0))
        )

    return compute


def _psnr(collector: ImageQuality, params: Params) -> Figure:
    return _image_figure(collector, mean(collector.psnrs()))


def _pooled_psnr(collector: ImageQuality, params: Params) -> Figure:
    pixels = np.array(collector.pixels, dtype=np.float64)
    pooled = math.fsum((np.array(collector.mse) * pixels).tolist()) / float(pixels.sum())
    return _image_figure(collector, formulas.psnr(pooled, collector.data_range))


def _ssim(window: Window) -> Compute:
    def compute(collector: ImageQuality, params: Params) -> Figure:
        return _image_figure(collector, mean(collector.similarities(window)))

    return compute


def _image_figure(collector: ImageQuality, value: float) -> Figure:
    if collector.tally.note:
        return Figure(math.nan, note=collector.tally.note)
    return Figure(value, note=collector.range_note)


def _dice_per_image(collector: Masks, params: Params) -> Figure:
    return Figure(mean(np.array(collector.each_dice)))


def _of_labels(one: Callable[[Any], float]) -> Compute:
    def compute(collector: LabelCounts, params: Params) -> Figure:
        value = one(collector.confusion())
        if math.isnan(value) and not collector.tally.note:
            raise Undecided("no-ground-truth", "it is not defined: all labels are of one class")
        return _counted(collector, Figure(value))

    return compute


def _specificity(collector: LabelCounts, params: Params) -> Figure:
    if collector.positive is None:
        raise Undecided("not-declared", "the classes are not 0 and 1: declare the positive one")
    return _counted(collector, Figure(formulas.specificity(collector.confusion(), collector.positive)))


def _each_hit(collector: LabelCounts) -> Any:
    return collector.hits.astype(np.float64)


def _each_nll(collector: TargetScores) -> Any:
    return -collector.logs()[0]


_AUROC = (
    Definition("AUROC (binary)", ScoreMatrix, _binary_curve(formulas.auroc), "auroc:binary"),
    Definition(
        "AUROC (macro, one against rest)", ScoreMatrix, _curve_over_classes(formulas.auroc), "auroc:macro"
    ),
)
_AP = (
    Definition(
        "average precision (binary)", ScoreMatrix, _binary_curve(formulas.average_precision), "ap:binary"
    ),
    Definition(
        "average precision (macro)", ScoreMatrix, _curve_over_classes(formulas.average_precision), "ap:macro"
    ),
)
_COCO = Definition("mAP (COCO, 0.5:0.95)", Scenes, _boxes(COCO_THRESHOLDS), "map:50-95")
_MIOU = (
    Definition("mIoU", Masks, _mask_iou("macro"), "iou:macro"),
    Definition("mIoU (without 255)", Masks, _mask_iou("macro", without_void=True), "iou:void"),
    Definition("mIoU (mean over images)", Masks, _iou_per_image, None, lambda c: np.array(c.each)),
)
_IOU_ONE = Definition("IoU (class 1)", Masks, _mask_iou("binary"), "iou:binary")

_TABLE: dict[str, tuple[Definition, ...]] = {
    "accuracy": (Definition("accuracy", LabelCounts, _accuracy, "accuracy", _each_hit),),
    "error-rate": (Definition("error rate", LabelCounts, _error_rate, "error-rate"),),
    "balanced-accuracy": (Definition("balanced accuracy", LabelCounts, _balanced, "balanced-accuracy"),),
    "top-k": (Definition("top-k accuracy", TargetScores, _top_k, "top-k"),),
    "auroc": _AUROC,
    "average-precision": _AP,
    "map": (_COCO, _AP[1], _AP[0]),
    "map-50": (Definition("mAP (COCO, 0.5)", Scenes, _boxes((0.5,)), "map:50"),),
    "map-75": (Definition("mAP (COCO, 0.75)", Scenes, _boxes((0.75,)), "map:75"),),
    "map-50-95": (_COCO,),
    "iou": (
        _IOU_ONE,
        *_MIOU,
        Definition("IoU of labels (binary)", LabelCounts, _label_iou("binary"), "jaccard:binary"),
        Definition("IoU of labels (macro)", LabelCounts, _label_iou("macro"), "jaccard:macro"),
    ),
    "miou": (*_MIOU, Definition("IoU of labels (macro)", LabelCounts, _label_iou("macro"), "jaccard:macro")),
    "psnr": (
        Definition("PSNR (mean over images)", ImageQuality, _psnr, "psnr:mean", lambda c: c.psnrs()),
        Definition("PSNR (of the pooled error)", ImageQuality, _pooled_psnr, "psnr:pooled"),
    ),
    "ssim": (
        Definition(
            "SSIM (Gaussian window)",
            ImageQuality,
            _ssim("gaussian"),
            "ssim:inside",
            lambda c: c.similarities("gaussian"),
        ),
        Definition(
            "SSIM (Gaussian window, mirrored borders)", ImageQuality, _ssim("mirrored"), "ssim:mirrored"
        ),
        Definition("SSIM (uniform window)", ImageQuality, _ssim("uniform")),
    ),
    "nll": (
        Definition("negative log-likelihood", TargetScores, _nll, "nll", _each_nll),
        Definition("negative log-likelihood (of tokens)", Tokens, _token_nll, "token-nll"),
    ),
    "perplexity": (
        Definition("perplexity (of tokens)", Tokens, _token_perplexity, "perplexity"),
        Definition("perplexity (of classes)", TargetScores, _class_perplexity, "exp-nll"),
    ),
    "mcc": (Definition("Matthews correlation", LabelCounts, _of_labels(formulas.matthews), "mcc"),),
    "kappa": (Definition("Cohen's kappa", LabelCounts, _of_labels(formulas.kappa), "kappa"),),
    "specificity": (Definition("specificity (binary)", LabelCounts, _specificity, "specificity"),),
    "dice": (
        Definition("Dice (class 1)", Masks, _mask_overlap("f1", "binary"), "dice:binary"),
        Definition("Dice (mean over classes)", Masks, _mask_overlap("f1", "macro"), "dice:macro"),
        Definition("Dice (mean over images)", Masks, _dice_per_image, rows=lambda c: np.array(c.each_dice)),
        _averaged("f1", "binary"),
        _averaged("f1", "macro"),
    ),
    "r2": (Definition("R²", Pairs, number_figures.r2, "r2"),),
    "pearson": (Definition("Pearson correlation", Pairs, number_figures.pearson, "pearson"),),
    "mape": (Definition("MAPE", Pairs, number_figures.mape, "mape"),),
    "mae": (Definition("MAE", Errors, number_figures.mae, "mae", lambda c: c.absolute),),
    "mse": (Definition("MSE", Errors, number_figures.mse, "mse", lambda c: c.squared),),
    "rmse": (Definition("RMSE", Errors, number_figures.rmse, "rmse"),),
}
