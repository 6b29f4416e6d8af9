"""The second implementation: torchmetrics (and pycocotools for boxes, `second_boxes`) over the same rows.

Runs in a child process, which alone pays for torch. It shares how files are read and classes are matched with
the reference, and nothing of the formulas.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchmetrics.functional as tm
import torchmetrics.functional.classification as tmc
import torchmetrics.functional.image as tmi
from torchmetrics.classification import MulticlassF1Score, MulticlassJaccardIndex
from torchmetrics.functional.text import perplexity

from tui.custody.predictions.cells import Labels, numbers, ragged
from tui.custody.predictions.foreign import Unreadable
from tui.custody.predictions.tables import Batch
from tui.custody.scoring.asks import Ask
from tui.custody.scoring.claims import collect_claims
from tui.custody.scoring.collecting import ScoreReader
from tui.custody.scoring.figures import Undecided
from tui.custody.scoring.recompute import Opened, open_source
from tui.custody.scoring.second_boxes import overlap_precision
from tui.model.metrics import Declaration

VOID = 255
_AVERAGES = ("binary", "micro", "macro", "weighted")
_BINARY = {
    "f1": tmc.binary_f1_score,
    "precision": tmc.binary_precision,
    "recall": tmc.binary_recall,
    "jaccard": tmc.binary_jaccard_index,
}
_MANY = {
    "f1": tmc.multiclass_f1_score,
    "precision": tmc.multiclass_precision,
    "recall": tmc.multiclass_recall,
    "jaccard": tmc.multiclass_jaccard_index,
}


def answers(root: Path, declaration: Declaration, asks: Sequence[Ask]) -> list[float | None]:
    """A figure for each ask; None where the second implementation can't give one."""
    warnings.simplefilter("ignore")
    sources = collect_claims(root, declaration).sources
    found: list[float | None] = []
    for ask in asks:
        try:
            found.append(float(_ANSWERS[ask.what](open_source(sources[ask.source]), ask)))
        except (Undecided, Unreadable, KeyError, ImportError, RuntimeError, ValueError, IndexError):
            found.append(None)
    return found


def _labels(opened: Opened, ask: Ask) -> tuple[Any, Any, int, list[str]]:
    """Predicted and true classes as tensors, how many classes there are, and their names."""
    scheme, book = opened.scheme, Labels()
    target = scheme.column("target")
    predicted: list[Any] = []
    actual: list[Any] = []
    reader = None
    if scheme.roles.prediction is None or ask.threshold is not None:
        reader = scheme.score_reader()
    columns = (target, *(reader.columns if reader else (scheme.column("prediction"),)))
    for batch in opened.batches(columns):
        guess = batch[columns[1]]
        if reader is None and guess.dtype != object and guess.ndim == 2 and batch[target].ndim == 1:
            reader = scheme.score_reader()
        if reader is None:
            actual.append(book.codes(_flat(batch[target])))
            predicted.append(book.codes(_flat(guess)))
            continue
        scores = torch.from_numpy(reader.read(batch).values)
        best = scores[:, 1] > ask.threshold if ask.threshold is not None else scores.argmax(dim=1)
        places = reader.places(batch[target])
        codes = np.array([book.code(name) for name in reader.names])
        actual.append(codes[places])
        predicted.append(codes[best.long().numpy()])
    for name in ("0", "1") if set(book.names) <= {"0", "1"} else ():
        book.code(name)
    return _tensor(predicted), _tensor(actual), len(book.names), book.names


def _flat(values: Any) -> Any:
    if values.dtype != object:
        return values.reshape(-1)
    if any(isinstance(value, list | np.ndarray) for value in values[:16]):
        return np.concatenate([np.asarray(value).reshape(-1) for value in values])
    return values


def _tensor(parts: list[Any]) -> Any:
    return torch.from_numpy(np.concatenate(parts))


def _kept(opened: Opened, ask: Ask) -> tuple[Any, Any, int, list[str]]:
    predicted, actual, count, names = _labels(opened, ask)
    if ask.ignore is not None and str(ask.ignore) in names:
        kept = actual != names.index(str(ask.ignore))
        predicted, actual = predicted[kept], actual[kept]
    return predicted, actual, max(count, 2), names


def _accuracy(opened: Opened, ask: Ask) -> Any:
    predicted, actual, count, _ = _kept(opened, ask)
    return tmc.multiclass_accuracy(predicted, actual, count, average="micro")


def _balanced(opened: Opened, ask: Ask) -> Any:
    predicted, actual, count, _ = _kept(opened, ask)
    each = tmc.multiclass_recall(predicted, actual, count, average=None)
    return each[torch.bincount(actual, minlength=count) > 0].double().mean()


def _averaged(measure: str, average: str) -> Callable[[Opened, Ask], Any]:
    def answer(opened: Opened, ask: Ask) -> Any:
        predicted, actual, count, names = _kept(opened, ask)
        if average == "binary":
            positive = opened.scheme.positive or ("1" if "1" in names else "true")
            code = names.index(positive) if positive in names else -1
            return _BINARY[measure]((predicted == code).int(), (actual == code).int())
        return _MANY[measure](predicted, actual, count, average=average)

    return answer


def _scores(opened: Opened) -> tuple[Any, Any, ScoreReader]:
    reader = opened.scheme.score_reader()
    target = opened.scheme.column("target")
    values: list[Any] = []
    places: list[Any] = []
    for batch in opened.batches((target, *reader.columns)):
        values.append(reader.read(batch).values)
        places.append(reader.places(batch[target]))
    return _tensor(values), _tensor(places), reader


def _top_k(opened: Opened, ask: Ask) -> Any:
    values, places, reader = _scores(opened)
    assert ask.k is not None
    if ask.k >= reader.width:
        return 1.0
    if (
        ask.k > 1
    ):  # torchmetrics ranks equal scores as torch.topk happens to; ties are kept out by column order
        values = (
            torch.argsort(torch.argsort(values, dim=1, descending=True, stable=True), dim=1).neg().double()
        )
    return tmc.multiclass_accuracy(values, places, reader.width, top_k=ask.k, average="micro")


def _nll(opened: Opened, ask: Ask) -> Any:
    values, places, reader = _scores(opened)
    if reader.kind == "logits":
        return torch.nn.functional.cross_entropy(values, places)
    return torch.nn.functional.nll_loss(torch.log(values.clamp_min(ask.clamp or 0.0)), places)


def _exp_nll(opened: Opened, ask: Ask) -> Any:
    return torch.exp(_nll(opened, ask))


def _curve(binary: Callable[..., Any], per_class: Callable[..., Any] | None) -> Callable[[Opened, Ask], Any]:
    def answer(opened: Opened, ask: Ask) -> Any:
        values, places, reader = _scores(opened)
        if per_class is None:
            ranking = values[:, 1] - values[:, 0] if reader.kind == "logits" else values[:, 1]
            return binary(_spread(ranking), places)
        probabilities = values.softmax(dim=1) if reader.kind == "logits" and reader.width > 2 else values
        known = [index for index in range(reader.width) if 0 < int((places == index).sum()) < len(places)]
        each = [binary(_spread(probabilities[:, index]), (places == index).long()) for index in known]
        return torch.stack([value.double() for value in each]).mean()

    return answer


def _spread(values: Any) -> Any:
    """Scores between 0 and 1 in the same order: torchmetrics takes others for logits and rounds them."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else torch.zeros_like(values)


def _pairs(opened: Opened) -> tuple[Any, Any]:
    target, prediction = opened.scheme.column("target"), opened.scheme.column("prediction")
    true: list[Any] = []
    guess: list[Any] = []
    for batch in opened.batches((target, prediction)):
        true.append(_numbers(batch, target))
        guess.append(_numbers(batch, prediction))
    return _tensor(guess), _tensor(true)


def _numbers(batch: Batch, column: str) -> Any:
    values = batch[column]
    if values.dtype == object and any(isinstance(value, list) for value in values[:16]):
        return np.concatenate([value.reshape(-1) for value in ragged(values) if value is not None])
    return numbers(values).values.reshape(-1)


def _images(one: Callable[[Any, Any, Ask], Any], *, pooled: bool = False) -> Callable[[Opened, Ask], Any]:
    def answer(opened: Opened, ask: Ask) -> Any:
        target, prediction = opened.scheme.column("target"), opened.scheme.column("prediction")
        values: list[Any] = []
        kept: list[tuple[Any, Any]] = []
        for batch in opened.batches((target, prediction)):
            for t, g in zip(ragged(batch[target]), ragged(batch[prediction]), strict=True):
                pair = _planes(
                    torch.from_numpy(np.ascontiguousarray(g)), torch.from_numpy(np.ascontiguousarray(t))
                )
                if pooled:
                    kept.append((pair[0].reshape(-1), pair[1].reshape(-1)))
                else:
                    values.append(one(*pair, ask))
        if pooled:
            return one(torch.cat([g for g, _ in kept]), torch.cat([t for _, t in kept]), ask)
        return torch.stack(values).mean()

    return answer


def _planes(guess: Any, true: Any) -> tuple[Any, Any]:
    """Both as batch × channels × height × width."""
    if guess.ndim == 2:
        return guess[None, None], true[None, None]
    if guess.shape[0] in (1, 3, 4):
        return guess[None], true[None]
    return guess.permute(2, 0, 1)[None], true.permute(2, 0, 1)[None]


def _psnr(guess: Any, true: Any, ask: Ask) -> Any:
    return tmi.peak_signal_noise_ratio(guess, true, data_range=ask.data_range)


def _ssim(*, inside: bool) -> Callable[[Any, Any, Ask], Any]:
    def answer(guess: Any, true: Any, ask: Ask) -> Any:
        mean, whole = tmi.structural_similarity_index_measure(
            guess, true, data_range=ask.data_range, return_full_image=True
        )
        return whole[..., 5:-5, 5:-5].mean() if inside else mean  # its window has 11 pixels

    return answer


def _masks(kind: type[Any], average: str) -> Callable[[Opened, Ask], Any]:
    """Overlap over all pixels: the measure of class 1, or its mean over the classes that occur."""

    def answer(opened: Opened, ask: Ask) -> Any:
        target, prediction = opened.scheme.column("target"), opened.scheme.column("prediction")
        void = VOID if average == "void" else ask.ignore
        count = max(ask.classes or 2, 2)
        metric = kind(count, average=None if average == "binary" else "macro", ignore_index=void)
        for batch in opened.batches((target, prediction)):
            for t, g in zip(ragged(batch[target]), ragged(batch[prediction]), strict=True):
                metric.update(
                    torch.from_numpy(g).long().reshape(1, -1), torch.from_numpy(t).long().reshape(1, -1)
                )
        found = metric.compute()
        return found[1] if average == "binary" else found

    return answer


def _label_wise(binary: bool, one: Callable[..., Any]) -> Callable[[Opened, Ask], Any]:
    def answer(opened: Opened, ask: Ask) -> Any:
        predicted, actual, count, names = _kept(opened, ask)
        if not binary:
            return one(predicted, actual, count)
        positive = opened.scheme.positive or ("1" if "1" in names else "true")
        code = names.index(positive) if positive in names else -1
        return one((predicted == code).int(), (actual == code).int())

    return answer


def _perplexity(opened: Opened, ask: Ask) -> Any:
    return torch.exp(_token_nll(opened, ask))


def _token_nll(opened: Opened, ask: Ask) -> Any:
    roles = opened.scheme.roles
    found = roles.logits or roles.scores
    assert found is not None
    target, column = opened.scheme.column("target"), found.columns[0]
    total, count = torch.zeros((), dtype=torch.float64), 0
    for batch in opened.batches((target, column)):
        for t, g in zip(ragged(batch[target]), ragged(batch[column]), strict=True):
            tokens = torch.from_numpy(t).long()
            mine = int((tokens != ask.ignore).sum())
            if mine:
                logits = torch.from_numpy(np.ascontiguousarray(g))
                logits = logits if roles.logits else torch.log(logits)
                total += (
                    mine * torch.log(perplexity(logits[None], tokens[None], ignore_index=ask.ignore)).double()
                )
                count += mine
    return total / count


def _error_rate(opened: Opened, ask: Ask) -> Any:
    return 1 - float(_accuracy(opened, ask))


_ANSWERS: dict[str, Callable[[Opened, Ask], Any]] = {
    "accuracy": _accuracy,
    "error-rate": _error_rate,
    "balanced-accuracy": _balanced,
    **{f"{measure}:{average}": _averaged(measure, average) for measure in _MANY for average in _AVERAGES},
    "top-k": _top_k,
    "nll": _nll,
    "exp-nll": _exp_nll,
    "auroc:binary": _curve(tmc.binary_auroc, None),
    "auroc:macro": _curve(tmc.binary_auroc, tmc.binary_auroc),
    "ap:binary": _curve(tmc.binary_average_precision, None),
    "ap:macro": _curve(tmc.binary_average_precision, tmc.binary_average_precision),
    "mcc": _label_wise(False, tmc.multiclass_matthews_corrcoef),
    "kappa": _label_wise(False, tmc.multiclass_cohen_kappa),
    "specificity": _label_wise(True, tmc.binary_specificity),
    "dice:binary": _masks(MulticlassF1Score, "binary"),
    "dice:macro": _masks(MulticlassF1Score, "macro"),
    "r2": lambda opened, ask: tm.r2_score(*_pairs(opened)),
    "pearson": lambda opened, ask: tm.pearson_corrcoef(*_pairs(opened)),
    "mape": lambda opened, ask: tm.mean_absolute_percentage_error(*_pairs(opened)),
    "mae": lambda opened, ask: tm.mean_absolute_error(*_pairs(opened)),
    "mse": lambda opened, ask: tm.mean_squared_error(*_pairs(opened)),
    "rmse": lambda opened, ask: tm.mean_squared_error(*_pairs(opened), squared=False),
    "psnr:mean": _images(_psnr),
    "psnr:pooled": _images(_psnr, pooled=True),
    "ssim:inside": _images(_ssim(inside=True)),
    "ssim:mirrored": _images(_ssim(inside=False)),
    "iou:binary": _masks(MulticlassJaccardIndex, "binary"),
    "iou:macro": _masks(MulticlassJaccardIndex, "macro"),
    "iou:void": _masks(MulticlassJaccardIndex, "void"),
    "perplexity": _perplexity,
    "token-nll": _token_nll,
    "map:50": overlap_precision(0.5, 0.5),
    "map:75": overlap_precision(0.75, 0.75),
    "map:50-95": overlap_precision(0.5, 0.95),
}  # fmt: skip
