"""Reported metrics, the predictions they are recomputed from, and what came of it.

`Declaration` is the part of a job file's ``[custody]`` table that speaks of metrics. Not imported by anything
the first frame needs: this module brings pydantic.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Direction = Literal["up", "down"]
"""Which way is better."""

Verdict = Literal[
    "recomputed",
    "differs",
    "re-aggregated",
    "no-ground-truth",
    "population-incomplete",
    "not-declared",
    "unknown-metric",
    "disagree",
    "unreadable",
]
"""What is known of a reported figure.

``recomputed``: raw predictions and targets of the full population give the reported figure.
``differs``: they do not. ``re-aggregated``: only the mean of a stored per-sample score was taken; weaker.
``no-ground-truth``: there is nothing to compare predictions with, so no figure is given.
``population-incomplete``: samples are missing, extra, doubled or without a prediction.
``not-declared``: it can't be told which file or column the figure comes from; nothing was guessed.
``unknown-metric``: no definition of that name is known here.
``disagree``: the two implementations, or ties and stored digits, do not decide; unknown, never a pass.
``unreadable``: the predictions could not be read, or what reads them is not installed.
"""

Average = Literal["binary", "micro", "macro", "weighted"]
Name = Annotated[str, Field(min_length=1, max_length=256)]
File = Annotated[str, Field(min_length=1, max_length=4096)]
Digits = Annotated[str, Field(pattern=r"^[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,4})?$")]


class Frozen(BaseModel):
    """Frozen, and nothing in it that the model does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Population(Frozen):
    """Predictions of one test set.

    Attributes:
        name: how metrics name it; by default the folder the files lie in.
        files: paths or globs relative to the run, which together hold each sample once.
        ids: the exact ids: a list, or the path of a file that lists them (absolute, or relative to the run).
        count: how many samples there are.
        id, target, prediction, scores, logits: column names; several score columns are one per class.
        pred_boxes, pred_scores, pred_labels, target_boxes, target_labels: columns of a detection file, one
            row per image, boxes as x1, y1, x2, y2.
        targets: paths or globs of the files that hold the targets, where they do not stand beside the
            predictions; absolute, or relative to the run. Rows are joined by id; each id must be in both.
        targets_id: their id column; by default recognised by its name.
        classes: class names in the order of the score columns.
        positive: the positive class of binary metrics.
        ground_truth: False for a test that has none; its metrics are given no number.
        kind: captures of a device stay apart from what software computed.
    """

    name: Name | None = None
    files: tuple[File, ...] = Field(min_length=1, max_length=4096)
    ids: tuple[str, ...] | File | None = None
    count: int | None = Field(default=None, ge=0)
    id: Name | None = None
    target: Name | None = None
    prediction: Name | None = None
    scores: tuple[Name, ...] | Name | None = None
    logits: tuple[Name, ...] | Name | None = None
    pred_boxes: Name | None = None
    pred_scores: Name | None = None
    pred_labels: Name | None = None
    target_boxes: Name | None = None
    target_labels: Name | None = None
    targets: tuple[File, ...] | File | None = None
    targets_id: Name | None = None
    classes: tuple[str, ...] | None = None
    positive: str | None = None
    ground_truth: bool = True
    kind: Literal["software", "hardware"] = "software"

    @property
    def target_files(self) -> tuple[str, ...]:
        return (self.targets,) if isinstance(self.targets, str) else self.targets or ()

    @model_validator(mode="after")
    def _targets_agree(self) -> Population:
        if self.targets_id is not None and not self.target_files:
            raise ValueError("targets_id is given without targets")
        if self.target_files and not self.ground_truth:
            raise ValueError("targets are given for a test that has no ground truth")
        return self


class DeclaredMetric(Frozen):
    """One metric and how it is defined.

    Attributes:
        name: its name in the metrics file, nested keys joined by ``/``.
        metric: a name of the catalogue, such as ``f1``, ``top-k``, ``map-50``; by default taken from `name`.
        predictions: the population's name.
        file: the metrics file, relative to the run; by default any that holds `name`.
        reported: the figure itself, where no file holds it.
        digits: decimals to compare at, where fewer than the reported ones are meant.
        k: of top-k.
        ignore: a target value that does not count.
        data_range: largest minus smallest possible value of an image, for PSNR and SSIM.
        clamp: smallest probability before the logarithm.
        threshold: probability above which a binary sample counts as positive.
    """

    name: Name
    metric: Name | None = None
    predictions: Name | None = None
    file: File | None = None
    reported: Digits | None = None
    direction: Direction | None = None
    digits: int | None = Field(default=None, ge=0, le=17)
    average: Average | None = None
    k: int | None = Field(default=None, ge=1, le=100_000)
    ignore: int | None = None
    data_range: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    clamp: float | None = Field(default=None, gt=0, lt=0.5)
    threshold: float | None = Field(default=None, allow_inf_nan=False)


class Evaluator(Frozen):
    """The user's own evaluation, run on a copy of the results.

    Attributes:
        command: argument list; no shell reads it.
        output: file it writes its JSON to, relative to the copy; None when it prints it.
        timeout: seconds.
        memory: bytes of address space it may take.
    """

    command: tuple[str, ...] = Field(min_length=1, max_length=1024)
    output: File | None = None
    timeout: float = Field(default=900.0, gt=0, le=86_400)
    memory: int = Field(default=32 << 30, ge=1 << 20)


class Declaration(Frozen):
    """What a job says about its metrics.

    `populations` and `metrics` are written as ``[[custody.predictions]]`` and ``[[custody.metrics]]``.
    """

    populations: tuple[Population, ...] = Field(default=(), max_length=1024, alias="predictions")
    metrics: tuple[DeclaredMetric, ...] = Field(default=(), max_length=4096)
    evaluator: Evaluator | None = None

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Declaration:
        names = [p.name for p in self.populations if p.name is not None]
        if len(names) != len(set(names)):
            raise ValueError("two [[custody.predictions]] have the same name")
        keys = [(m.file, m.name) for m in self.metrics]
        if len(keys) != len(set(keys)):
            raise ValueError("two [[custody.metrics]] have the same name")
        return self


class MeasuredMetric(Frozen):
    """One reported figure beside its recomputation.

    Attributes:
        name: as reported, nested keys joined by ``/``.
        reported, recomputed: decimal text; None where there is none.
        definition: which definition of that name the recomputed figure follows.
        population: samples it was computed over.
        file: the metrics file, relative to the run.
        second: the figure of the second implementation.
        required: the declaration names this metric.
    """

    name: str
    reported: str | None
    recomputed: str | None
    direction: Direction | None
    verdict: Verdict
    detail: str = ""
    definition: str | None = None
    population: int | None = None
    predictions: str | None = None
    kind: Literal["software", "hardware"] = "software"
    file: str | None = None
    second: str | None = None
    required: bool = False

    def as_json(self) -> dict[str, object]:
        """The entry of ``rgt verify --json``. A figure JSON has no number for (NaN) is null."""
        return {
            "name": self.name,
            "reported": _number(self.reported),
            "recomputed": _number(self.recomputed),
            "direction": self.direction,
            "verdict": self.verdict,
            "detail": self.detail,
            "definition": self.definition,
            "population": self.population,
            "predictions": self.predictions,
            "kind": self.kind,
            "file": self.file,
        }


class MetricProblem(Frozen):
    """Something worth knowing that is no figure.

    Attributes:
        gap: missing paperwork, which does not stop anybody.
    """

    code: str
    detail: str
    path: str | None = None
    gap: bool = False

    def as_json(self) -> dict[str, str | None]:
        """The entry under ``problems`` of ``rgt verify --json``."""
        return {"code": self.code, "path": self.path, "detail": self.detail}


class Measured(Frozen):
    """Every reported metric of a folder, and what is wrong with their predictions.

    Attributes:
        notes: what was recognised rather than declared, one sentence each.
    """

    metrics: tuple[MeasuredMetric, ...] = ()
    problems: tuple[MetricProblem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Literal["accepted", "refused", "incomplete"]:
        """``refused`` when a figure is wrong or its population is, ``incomplete`` when one is not known.

        A test that says itself that it has no ground truth and reports no figure is in order. Without any
        reported metric there is nothing to refuse.
        """
        verdicts = {m.verdict for m in self.metrics if not _nothing_claimed(m)}
        if verdicts & {"differs", "population-incomplete"}:
            return "refused"
        open_problem = any(not p.gap for p in self.problems)
        return "incomplete" if open_problem or verdicts - {"recomputed"} else "accepted"

    def as_json(self) -> list[dict[str, object]]:
        """The value of ``metrics`` of ``rgt verify --json``."""
        return [metric.as_json() for metric in self.metrics]


def _nothing_claimed(metric: MeasuredMetric) -> bool:
    return metric.verdict == "no-ground-truth" and metric.reported is None


def _number(figure: str | None) -> float | int | None:
    if figure is None:
        return None
    try:
        return int(figure) if figure.lstrip("+-").isdigit() else _finite(float(figure))
    except ValueError:
        return None


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
