"""What reported metrics are called: the many spellings of a name, its direction, the split it speaks of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from tui.model.metrics import Average, Direction

DIRECTIONS: dict[str, Direction] = {
    "accuracy": "up", "top-k": "up", "balanced-accuracy": "up", "error-rate": "down", "f1": "up",
    "precision": "up", "recall": "up", "auroc": "up", "average-precision": "up", "map": "up", "map-50": "up",
    "map-75": "up", "map-50-95": "up", "iou": "up", "miou": "up", "psnr": "up", "ssim": "up",
    "perplexity": "down", "nll": "down", "mae": "down", "mse": "down", "rmse": "down", "mape": "down",
    "r2": "up", "pearson": "up", "mcc": "up", "kappa": "up", "specificity": "up", "dice": "up",
}  # fmt: skip
"""Every metric that can be recomputed, and which way is better."""

KNOWN_DIRECTIONS: dict[str, Direction] = {
    "loss": "down", "lpips": "down", "fid": "down", "nmse": "down", "wer": "down", "cer": "down",
    "bleu": "up", "rouge": "up", "rougel": "up", "em": "up", "exactmatch": "up", "spearman": "up",
}  # fmt: skip
"""Directions of names that have no formula here."""

FRACTIONS = frozenset(DIRECTIONS) - {
    "psnr",
    "perplexity",
    "nll",
    "mae",
    "mse",
    "rmse",
    "mcc",
    "r2",
    "pearson",
    "kappa",
}
"""Metrics between 0 and 1, which people also write in percent."""

_SPELLINGS = {
    "accuracy": "accuracy acc top1 top1acc top1accuracy acc1 acc@1 accuracytop1 prec@1 pixelaccuracy",
    "balanced-accuracy": "balancedaccuracy balancedacc",
    "error-rate": "errorrate top1error",
    "f1": "f1 f1score fscore",
    "precision": "precision prec",
    "recall": "recall sensitivity",
    "auroc": "auroc auc rocauc aucroc",
    "average-precision": "averageprecision auprc prauc aucpr",
    "map": "map meanaverageprecision ap",
    "map-50": "map50 mapd5 map@50 map@d5 ap50 ap@50 ap@d5",
    "map-75": "map75 mapd75 map@75 map@d75 ap75 ap@75",
    "map-50-95": "map5095 mapd5d95 map@50d95 map@d5d95 map@5095 cocomap map50to95",
    "iou": "iou jaccard jaccardindex",
    "miou": "miou meaniou meanjaccard",
    "psnr": "psnr psnrdb",
    "ssim": "ssim",
    "perplexity": "perplexity ppl",
    "nll": "nll negativeloglikelihood logloss crossentropy nllloss crossentropyloss",
    "mae": "mae meanabsoluteerror",
    "mse": "mse meansquarederror",
    "rmse": "rmse rootmeansquarederror",
    "mape": "mape meanabsolutepercentageerror",
    "r2": "r2 r2score rsquared",
    "pearson": "pearson pearsonr pearsoncorr pearsoncorrelation pcc plcc",
    "mcc": "mcc matthews matthewscorrcoef matthewscorrelation matthewscorrelationcoefficient",
    "kappa": "kappa cohenkappa cohenskappa",
    "specificity": "specificity tnr truenegativerate",
    "dice": "dice dicecoefficient dicescore dsc meandice mdice",
}
_METRIC_OF = {spelling: metric for metric, line in _SPELLINGS.items() for spelling in line.split()} | {
    re.sub(r"[^a-z0-9]", "", metric): metric for metric in DIRECTIONS
}

_TOP_K = re.compile(
    r"(?:top|acc@|accuracy@|prec@)(\d{1,5})(?:acc|accuracy)?\Z|(?:acc|accuracy)(?:top)?(\d{1,5})\Z"
)
_AVERAGES = ("macro", "micro", "weighted", "binary")
_SPLITS = {
    "test": "test", "val": "val", "valid": "val", "validation": "val", "eval": "val", "evaluation": "val",
    "dev": "val", "predict": "test", "train": "train", "training": "train",
}  # fmt: skip
_OVER_TIME = {"best", "max", "min", "last", "final", "ema"}
_WRAPPERS = {"value", "score", "mean", "overall", "average", "avg", "result"}
_COUNTS = {
    "samples", "nsamples", "numsamples", "samplecount", "count", "examples", "numexamples", "nexamples",
    "images", "numimages", "nimages", "ntest",
}  # fmt: skip
_BOOKKEEPING = {
    "step", "steps", "epoch", "epochs", "iteration", "iterations", "iter", "seed", "lr", "learningrate",
    "version", "timestamp", "date", "runtime", "second", "seconds", "time", "duration", "elapsed", "ms",
    "flops", "params", "parameters", "throughput", "latency", "fps", "batchsize", "worldsize", "rank",
    "threshold", "numclasses", "support", "mb", "mib", "gb", "gib", "bytes", "memory", "mem", "vram", "watts",
    "watt", "power", "energy", "kwh", "joules", "celsius", "temperature", "utilization", "tflops", "gflops",
    "macs", "mfu", "cost", "usd", "hours", "minutes", "qps", "hz",
}  # fmt: skip
_OF_MANY = re.compile(r"p\d{1,3}|mean|avg|std|min|max|total|peak|median")
"""What a measure taken many times is summed up by."""


@dataclass(frozen=True)
class Meaning:
    """What a reported name says.

    Attributes:
        metric: a key of `DIRECTIONS`; None where no definition is known.
        split: ``test``, ``val`` or ``train`` where the name says so.
        over_time: best, last or averaged over the run, so not what one set of predictions gives.
        percent: the name says that it is in percent.
    """

    metric: str | None
    k: int | None = None
    average: Average | None = None
    split: str | None = None
    over_time: bool = False
    percent: bool = False
    plain: str = ""

    @property
    def direction(self) -> Direction | None:
        """Which way is better; None where that is not known."""
        return DIRECTIONS.get(self.metric or "") or KNOWN_DIRECTIONS.get(self.plain)


def meaning(path: tuple[str, ...]) -> Meaning:
    """The meaning of a reported name, given as the keys that lead to it."""
    parts = [part for key in path for part in key.split("/") if part]
    while len(parts) > 1 and _squeezed(parts[-1]) in _WRAPPERS:
        parts.pop()
    inner = parts.pop() if len(parts) > 1 and _squeezed(parts[-1]) in _AVERAGES else ""
    words = _words(parts[-1]) if parts else []
    outer = [word for part in parts[:-1] for word in _words(part)]
    split = next((_SPLITS[word] for word in (*words, *outer) if word in _SPLITS), None)
    rest = [word for word in words if word not in _SPLITS]
    over_time = any(word in _OVER_TIME for word in rest) or any(word in ("best", "last") for word in outer)
    rest = [word for word in rest if word not in _OVER_TIME]
    percent = "%" in rest or "pct" in rest or "percent" in rest
    rest = [word for word in rest if word not in ("%", "pct", "percent")]
    average = next((word for word in _AVERAGES if word in (_squeezed(inner), *rest, *outer)), None)
    plain = _squeezed(" ".join(word for word in rest if word not in (*_AVERAGES, "avg", "ovr")))
    metric, k = _metric(plain)
    return Meaning(metric, k, cast("Average | None", average), split, over_time, percent, plain)


def _metric(plain: str) -> tuple[str | None, int | None]:
    if plain in _METRIC_OF:
        return _METRIC_OF[plain], None
    top = _TOP_K.match(plain)
    if top is None:
        return None, None
    k = int(top[1] or top[2])
    return ("accuracy", None) if k == 1 else ("top-k", k)


def is_count(path: tuple[str, ...]) -> bool:
    """The name says how many samples there are."""
    words = [word for word in _words(path[-1]) if word not in _SPLITS] or _words(path[-1])
    return _squeezed(" ".join(words)) in _COUNTS


def is_bookkeeping(path: tuple[str, ...]) -> bool:
    """The name is of something no prediction can give: an epoch, a seed, a duration."""
    words = [word for word in _words(path[-1]) if word not in _SPLITS]
    while len(words) > 1 and _OF_MANY.fullmatch(words[-1]):
        words.pop()
    return any(word in _BOOKKEEPING for word in (words[-1] if words else "", _squeezed(" ".join(words))))


def _words(name: str) -> list[str]:
    """Lower-case words of a name in snake, kebab or camel case; a decimal point joins its number."""
    text = re.sub(r"0?\.(?=\d)", "d", re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", name))
    return re.findall(r"[a-z0-9@]+|%", text.lower())


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9@%]", "", name.lower())
