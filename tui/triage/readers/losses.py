"""NaN and Inf in the figures a training prints, and whether they stayed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.model.incident import Fact
from tui.triage.columns import cells_of
from tui.triage.finding import Hit
from tui.triage.view import View

FRAGMENTS = (rb"nan(?<![a-z_]nan)s?(?![a-z_]| iterations)", rb"inf(?<![a-z_]inf)(?:inity)?(?![a-z_])")

_NONE = r"[-+]?(?:nan|inf(?:inity)?)"
_NUMBER = rf"(?P<value>{_NONE}(?![\w/])|[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?%?(?![\w/]))"
# Names of 80 characters at most: without a bound a line of nothing but names takes the cube of its length.
_NAMED = re.compile(
    r"(?i)(?<![\w/.-])(?P<before>(?:[\w./-]{1,80}[ ]){0,2})"
    r"(?P<name>(?:[\w./-]{0,80}(?<![a-z])(?:loss(?:es)?|(?<=train[-_])(?:rmse|mse|mae|logloss)"
    r"|(?<!\S)learn(?=: )|cost|nll|perplexity|ppl|elbo)|[\w./-]{0,80}loss"
    r"|[A-Za-z]{0,80}Loss|损失|训练损失|验证损失)"
    r"(?:[_/.-](?!scal|mask|weight|type|fn|func|coef|nan|inf|count|is)[\w./-]{1,80})?)"
    r"(?:[ ]?\([\w -]{1,16}\))?['\"]?[ \t]*(?:[:=|：]|->|is|＝)?[ \t]*(?:tensor\(|np\.float\d\d\("
    r"|['\"(\[])?[ ]*" + _NUMBER
)
_GRAD = re.compile(
    r"(?i)(?<![\w/])(?:total[ _])?(?:grad(?:ient)?[ _.-]?norm|gnorm|global[ _]norm|norm)['\"]?[ ]*[:=|]?[ ]*"
    r"(?:tensor\(|['\"(])?[ ]*" + _NUMBER
)
_NOT_TRAIN = re.compile(
    r"(?i)(?:^|[\s_/.(-])(?:val|valid|validation|eval|evaluation|test|dev)(?:$|[\s_/.)-])|验证"
)
_NO_LOSS = re.compile(
    r"(?i)best|min(?:imum)?\b|min_|prev|previous|last_best|init|target|threshold|limit|max_|clip|old|from"
    r"|improv|patience"
    r"|if|when|whether|detect|no|not|without|avoid|handle|replace|skip"
)
_YOLO = re.compile(
    r"^\s*\d+/\d+\s+\d+(?:\.\d+)?[GM]i?B?((?:\s+(?:nan|inf|\d+(?:\.\d+)?(?:e[-+]?\d+)?))+)(?=\s|$)",
    re.IGNORECASE,
)
_DARKNET = re.compile(r"(?:^|\s)(?P<value>[-\w.]+), (?P<mean>[-\w.]+) avg loss,")
_MANY = 10  # finite windows after a single bad one: the run has got over it


@dataclass(frozen=True, slots=True)
class Figure:
    """What one row says: whether its training loss and its gradient norm are finite. None: not told."""

    at: int
    loss: bool | None
    grad: bool | None
    zero: bool
    value: str = ""
    validation: bool | None = None


def _finite(value: str) -> bool:
    return not re.search(r"(?i)nan|inf", value)


def figures(view: View) -> list[Figure]:
    """The rows that tell a loss, in order."""
    if "losses" not in view.cache:
        view.cache["losses"] = [f for i in range(len(view.rows)) if (f := _figure(view, i)) is not None]
    found: list[Figure] = view.cache["losses"]
    return found


def _figure(view: View, index: int) -> Figure | None:
    one = view.rows[index]
    if (column := _column(view, index)) is not None:
        return column
    if (
        "loss" not in one.low
        and "norm" not in one.low
        and "nan" not in one.low
        and "损失" not in one.low
        and "inf" not in one.low
    ):
        return None
    yolo = _YOLO.match(one.head)
    if yolo:
        parts = yolo[1].split()[:4]
        return Figure(index, all(map(_finite, parts)), None, False, parts[0])
    darknet = _DARKNET.search(one.text)
    if darknet:
        return Figure(index, _finite(darknet["mean"]), None, False, darknet["value"])
    train: list[tuple[str, str]] = []
    validation: list[tuple[str, str]] = []
    for match in _NAMED.finditer(one.text):
        name = match["name"].lower()
        before = match["before"].lower()
        if _NO_LOSS.search(before) or _NO_LOSS.match(name) or "best" in name:
            continue
        if _NOT_TRAIN.search(before[-12:]) or _NOT_TRAIN.search(name) or " valid" in one.low[: match.start()]:
            validation.append((name, match["value"]))
            continue
        train.append((name, match["value"]))
    grad = _GRAD.search(one.text)
    grad_finite = _finite(grad["value"]) if grad else None
    if not train and not validation and grad is None:
        return None
    if view.quoted(index, 0):
        return None
    value = _main(_losses(train))
    bad = [v for _, v in _losses(validation) if not _finite(v)]
    return Figure(
        index,
        _finite(value) if value is not None else None,
        grad_finite,
        value is not None and _finite(value) and float(value.rstrip("%")) == 0.0,
        value or "",
        not bad if validation else None,
    )


_CELL = re.compile(r"(?i)\[?\s*(?P<value>[-+]?(?:nan|inf(?:inity)?|\d+\.?\d*(?:e[-+]?\d+)?))\b")
_BELOW = 60  # rows below its heading in which a table is read


def _headings(view: View) -> list[tuple[int, list[str]]]:
    """Rows that head a table with a column of the loss."""
    if "headings" not in view.cache:
        view.cache["headings"] = [
            (index, cells)
            for index, one in enumerate(view.rows)
            if "loss" in one.low
            and not re.search(r"(?<![a-z])\d|[:=]", one.head.lower())
            and len(cells := cells_of(one.head)) > 1
        ]
    found: list[tuple[int, list[str]]] = view.cache["headings"]
    return found


def _column(view: View, index: int) -> Figure | None:
    """A row of figures under such a heading, by the column of the training loss."""
    heads = [one for one in _headings(view) if one[0] < index <= one[0] + _BELOW]
    if not heads:
        return None
    names, cells = heads[-1][1], cells_of(view.rows[index].head)
    if len(cells) != len(names) or not cells[0].strip().isdecimal():
        return None
    for name, cell in zip(names, cells, strict=True):
        match = _CELL.match(cell.strip())
        if "loss" in name.lower() and not _NOT_TRAIN.search(name) and match:
            value = match["value"]
            return Figure(index, _finite(value), None, _finite(value) and float(value) == 0.0, value)
    return None


def _losses(told: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without the perplexity where a loss is told: it is e to the loss, and infinite long before that."""
    return [one for one in told if not _PERPLEXITY.search(one[0])] or told


_PERPLEXITY = re.compile(r"(?:ppl|perplexity)\Z")
_TOTALS = ("loss", "total_loss", "train_loss", "train/loss", "loss_total", "training_loss", "lm loss")


def _main(train: list[tuple[str, str]]) -> str | None:
    """The value that counts: that of the total where the row tells one, else the worst."""
    if not train:
        return None
    for name, value in train:
        if name in _TOTALS:
            return value
    return next((value for _, value in train if not _finite(value)), train[0][1])


def not_finite(view: View, cls: str) -> Iterator[Hit]:
    """A loss that is NaN or infinite, or hidden as 0.0 beside a gradient norm of NaN."""
    told = [f for f in figures(view) if f.loss is not None]
    bad = [f for f in told if f.loss is False or (f.zero and f.grad is False)]
    if not bad:
        return
    last = bad[-1].at
    after = [f for f in told if f.at > last and f.loss and not f.zero]
    if not after:
        first = _first_of_last_run(told, bad)
        hidden: dict[str, Fact] = {"detail": "zero_loss"} if first.loss else {}
        yield Hit(
            first.at, facts=hidden | {"windows": len(bad)}, severity="fatal", settled=True, confidence=0.9
        )
    elif (len(bad) > 2 or len(after) < _MANY) and not all(view.handled(f.at) for f in bad):
        facts: dict[str, Fact] = {"detail": "transient", "windows": len(bad)}
        yield Hit(bad[0].at, facts=facts, severity="warning", settled=True, confidence=0.6)


def _first_of_last_run(told: list[Figure], bad: list[Figure]) -> Figure:
    """Where the values went bad for good."""
    good = [f.at for f in told if f.loss and not (f.zero and f.grad is False)]
    since = max((at for at in good if at < bad[-1].at), default=-1)
    return next(f for f in bad if f.at > since)


def gradients(view: View, cls: str) -> Iterator[Hit]:
    """Gradient norms that stay NaN although the loss is finite."""
    told = [f for f in figures(view) if f.grad is not None]
    run: list[Figure] = []
    for one in reversed(told):
        if one.grad or one.loss is False or one.zero:
            break
        run.append(one)
    trained = [f for f in figures(view) if run and f.at > run[-1].at and f.loss and f.grad is None]
    if len(run) >= 3 and len(trained) <= len(run):  # else only what is skipped is told, and little is
        yield Hit(run[-1].at, facts={"detail": "grad_norm_only", "windows": len(run)}, settled=True)


def validation(view: View, cls: str) -> Iterator[Hit]:
    """A validation loss that is NaN at last, while that of training is finite."""
    told = [f for f in figures(view) if f.validation is not None]
    trained = [f for f in figures(view) if f.loss is not None]
    if not told or told[-1].validation or any(f.loss is False for f in trained[-3:]):
        return
    if len(told) == 1 and not trained:
        return
    yield Hit(told[-1].at, facts={"detail": "validation_only"}, settled=True)
