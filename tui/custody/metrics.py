"""Every reported metric of a folder recomputed from its full prediction population.

The work is done in children (`tui.custody.scoring`): first the reference in plain NumPy, then torchmetrics
over the same rows. A figure stands only where both agree. Last the user's own evaluator, if one is declared.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tui.custody.child import Ended, Limits, run_own
from tui.custody.evaluator import Answer, EvaluatorFailed, evaluate
from tui.custody.predictions.files import declared_source
from tui.custody.scoring.asks import Ask, Examined
from tui.custody.scoring.claims import Claims, collect_claims, unread
from tui.custody.scoring.figures import agrees, decimal_text, same
from tui.custody.table import read_table
from tui.model.failure import Exit, Failure
from tui.model.metrics import Declaration, Evaluator, Measured, MeasuredMetric, MetricProblem
from tui.model.text import safe

DECLARATION_FILE = "custody.toml"
JOB_FILE = "job.toml"
TIMEOUT = 1800.0
"""Seconds for each of the two implementations."""
MEMORY = 24 << 30
"""Address space of a child. Libraries reserve far more than they use."""

_ANSWERS = TypeAdapter(list[float | None])
_INSTALL = "pip install 'remote-gpu-trainer[verify]'"


def _never() -> bool:
    return False


def verify_metrics(
    root: Path,
    declaration: Declaration | None = None,
    *,
    timeout: float = TIMEOUT,
    stop: Callable[[], bool] = _never,
    answer: Answer | None = None,
) -> Measured:
    """Recompute the metrics that a folder reports.

    Blocks until it is done; call it in a thread where a screen must stay alive.

    Args:
        root: a sealed export, a run, or any folder with ``metrics.json`` files beside predictions.
        declaration: what the job file says; by default ``custody.toml`` in the folder, else ``job.toml``
            where the predictions it names lie there. The evaluator in them is never run.
        timeout: seconds for each implementation.
        stop: asked several times a second whether to give up.
        answer: of the declared evaluator, where it was run elsewhere; by default it is run here.

    Raises:
        Failure: there is no such folder, or its ``custody.toml`` is not valid.
    """
    if not root.is_dir():
        raise Failure(f"{root} is no folder.", do="Give the folder that holds the results.", exit=Exit.USAGE)
    notes: list[str] = []
    if declaration is None:
        declaration = _found_declaration(root, notes)
    plain = Declaration(  # a job file's table says more than the children know
        predictions=declaration.populations, metrics=declaration.metrics, evaluator=declaration.evaluator
    )
    work = _Work(root.resolve(), plain, timeout, stop, answer)
    report = work.report()
    return report.model_copy(update={"notes": (*notes, *report.notes)})


def _found_declaration(root: Path, notes: list[str]) -> Declaration:
    """What the folder says of itself. It may say where its predictions are, not what this computer runs."""
    name, found = DECLARATION_FILE, _own_table(root / DECLARATION_FILE)
    if found is None:
        name, found = JOB_FILE, _job_table(root, notes)
    if found is None:
        return Declaration()
    notes.append(f"declared by {name} in the folder itself")
    named = [name for p in found.populations for name in (p.ids, *p.target_files) if isinstance(name, str)]
    if any(_leaves(name) for name in named):
        raise Failure(
            f"{name} names a file outside the folder.",
            do="Give the run's name instead of a folder, or put the file into the folder.",
        )
    if found.evaluator is not None:
        notes.append(f"the evaluator in {name} was not run: a folder under test does not choose programs")
    return found.model_copy(update={"evaluator": None})


def _own_table(path: Path) -> Declaration | None:
    """The folder's own declaration: a ``[custody]`` table, or the tables in it alone. Raises Failure."""
    if path.is_symlink() or not path.is_file():
        return None
    found = read_table(path)
    if found is not None:
        return found
    flat = tomllib.loads(path.read_text("utf-8"))
    try:
        return Declaration.model_validate(flat) if flat else None
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise Failure(
            f"{path.name} has no [custody] table, and {safe(place, 80)} is not understood without one.",
            do="Write [[custody.predictions]] and [[custody.metrics]], as in a job file.",
        ) from None


def _job_table(root: Path, notes: list[str]) -> Declaration | None:
    """What the job file in the folder says, where the folder is the one it speaks of."""
    path = root / JOB_FILE
    if path.is_symlink() or not path.is_file():
        return None
    try:
        found = read_table(path)
    except Failure as failure:
        notes.append(f"{JOB_FILE} in the folder was not used: {failure.line}")
        return None
    if found is None or not found.populations:
        return None
    there = all(declared_source(root, population).files for population in found.populations)
    return found if there else None


def _leaves(name: str) -> bool:
    return Path(name).is_absolute() or ".." in Path(name).parts


class _Work:
    """One verification."""

    def __init__(
        self,
        root: Path,
        declaration: Declaration,
        timeout: float,
        stop: Callable[[], bool],
        answer: Answer | None = None,
    ) -> None:
        self._root, self._declaration = root, declaration
        self._timeout, self._stop, self._answer = timeout, stop, answer
        self._problems: list[MetricProblem] = []

    def report(self) -> Measured:
        claims = collect_claims(self._root, self._declaration)
        if not claims.claims:
            return Measured(problems=tuple(claims.problems), notes=tuple(claims.notes))
        if importlib.util.find_spec("numpy") is None:
            return self._nothing(
                claims, f"NumPy is not installed, so nothing could be recomputed: {_INSTALL}"
            )
        ended, answer = self._ask("examine")
        try:
            examined = Examined.model_validate(answer)
        except ValidationError:
            return self._nothing(claims, f"the predictions could not be read: {_why(ended)}")
        findings = list(examined.report.metrics)
        self._second(findings, examined.asks)
        self._own_evaluator(findings)
        return Measured(
            metrics=tuple(findings),
            problems=(*examined.report.problems, *self._problems),
            notes=examined.report.notes,
        )

    @staticmethod
    def _nothing(claims: Claims, why: str) -> Measured:
        problem = MetricProblem(code="predictions-unreadable", detail=f"{why[:1].upper()}{why[1:]}.")
        return Measured(
            metrics=unread(claims, why), problems=(*claims.problems, problem), notes=tuple(claims.notes)
        )

    def _ask(self, what: str, asks: Sequence[Ask] = ()) -> tuple[Ended, Any]:
        request = {
            "what": what,
            "root": os.fspath(self._root),
            "declaration": self._declaration.model_dump(mode="json", by_alias=True),
            "asks": [ask.model_dump(mode="json") for ask in asks],
        }
        with tempfile.TemporaryDirectory(prefix="rgt-metrics-") as home:
            ended = run_own(
                "tui.custody.scoring",
                home=Path(home),
                limits=Limits(self._timeout, MEMORY, 1 << 20),
                given=json.dumps(request).encode("ascii"),
                stop=self._stop,
            )
        try:
            return ended, json.loads(ended.out) if ended.code == 0 and not ended.why else None
        except (ValueError, RecursionError):
            return ended, None

    def _second(self, findings: list[MeasuredMetric], asks: Sequence[Ask]) -> None:
        """Hold each figure against the second implementation's."""
        if not asks:
            return
        absent = [name for name in ("torch", "torchmetrics") if importlib.util.find_spec(name) is None]
        if absent:
            self._alone(f"{' and '.join(absent)} not installed ({_INSTALL})")
            return
        ended, answer = self._ask("second", asks)
        try:
            values = _ANSWERS.validate_python(answer)
        except ValidationError:
            values = []
        if len(values) != len(asks):
            self._alone(_why(ended))
            return
        silent = 0
        for ask, value in zip(asks, values, strict=True):
            if value is None:
                silent += 1
            else:
                findings[ask.finding] = _weighed(findings[ask.finding], ask, value)
        if silent:
            self._alone(f"it has no answer for {silent} of {len(asks)} figures")

    def _alone(self, why: str) -> None:
        self._problems.append(
            MetricProblem(
                code="second-opinion-missing",
                detail=f"Figures were recomputed by one implementation alone: {why}.",
                gap=True,
            )
        )

    def _own_evaluator(self, findings: list[MeasuredMetric]) -> None:
        evaluator = self._declaration.evaluator
        if evaluator is None:
            return
        try:
            figures = self._figures(evaluator)
        except EvaluatorFailed as error:
            self._problems.append(
                MetricProblem(
                    code="evaluator-failed", detail=f"The declared evaluator gave nothing: {error}."
                )
            )
            return
        program = Path(evaluator.command[0]).name
        there = f", on {safe(self._answer.where, 80)}" if self._answer else ""
        declared = {metric.name: metric.digits for metric in self._declaration.metrics}
        names = Counter(finding.name for finding in findings)
        for place, finding in enumerate(findings):
            value = figures.get(_in_folder(finding))
            if value is None and names[finding.name] == 1:
                value = figures.get(finding.name)
            if value is not None and finding.reported is not None:
                digits = declared.get(finding.name)
                findings[place] = _evaluated(finding, value, digits, safe(program), there)

    def _figures(self, evaluator: Evaluator) -> Mapping[str, Decimal]:
        """Its figures, from here or from where it was run. Raises EvaluatorFailed."""
        if self._answer is None:
            return evaluate(evaluator, self._root, stop=self._stop)
        if self._answer.figures is None:
            raise EvaluatorFailed(f"on {safe(self._answer.where, 80)}, {safe(self._answer.failed, 300)}")
        return {name: Decimal(value) for name, value in self._answer.figures.items()}


def _in_folder(finding: MeasuredMetric) -> str:
    """A finding's name with the folder of its metrics file, as an evaluator of many tests would write it."""
    return f"{(finding.file or '').rpartition('/')[0]}/{finding.name}".lstrip("/")


def _why(ended: Ended) -> str:
    if ended.why == "timeout":
        return "it took too long and was ended"
    if ended.why:
        return "it was stopped" if ended.why == "stopped" else "its answer was too long"
    if ended.code < 0:
        return f"the process that read them was killed by signal {-ended.code}"
    return f"the process that read them ended with {ended.code}: " + safe(
        ended.err.strip().split(b"\n")[-1], 200
    )


def _weighed(finding: MeasuredMetric, ask: Ask, value: float) -> MeasuredMetric:
    """A finding beside the second implementation's figure."""
    second = decimal_text(value * ask.scale)
    if agrees(ask.first, value):
        return finding.model_copy(update={"second": second})
    said = f"the two implementations give {finding.recomputed} and {second}"
    detail = "; ".join(part for part in (said, finding.detail) if part)
    return finding.model_copy(update={"second": second, "verdict": "disagree", "detail": detail})


def _evaluated(
    finding: MeasuredMetric, value: Decimal, digits: int | None, program: str, there: str
) -> MeasuredMetric:
    """A finding beside the evaluator's figure, which decides where our own definitions could not."""
    reported = Decimal(finding.reported or "NaN")
    matches = same(reported, float(value), digits)
    own = finding.verdict in ("recomputed", "differs", "disagree")
    if finding.verdict == "population-incomplete" or (own and matches == (finding.verdict == "recomputed")):
        return finding.model_copy(update={"second": finding.second or str(value)})
    if own:
        said = f"{program} gives {value}, our own definition {finding.recomputed}"
        return finding.model_copy(update={"verdict": "disagree", "detail": said})
    shown = decimal_text(float(value)) if math.isfinite(float(value)) else str(value)
    return finding.model_copy(
        update={
            "verdict": "recomputed" if matches else "differs",
            "recomputed": shown,
            "definition": f"the declared evaluator {program}",
            "detail": f"recomputed by the declared evaluator on a copy{there}",
        }
    )
