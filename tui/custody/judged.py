"""The last two reports before an approval: checkpoints loaded and metrics recomputed, from the readback."""

from __future__ import annotations

from collections.abc import Iterable

from tui.checkpoints.acceptance import effect_of
from tui.custody.codes import refusal
from tui.model.custody import (
    CheckpointFinding,
    Gap,
    LoadReport,
    MetricFinding,
    MetricReport,
    Moment,
    ReadbackReport,
    Refusal,
)
from tui.model.metrics import Measured
from tui.model.verdict import CheckpointVerdict, Examination


def load_report(readback: ReadbackReport, found: Examination, now: Moment) -> LoadReport:
    """What the checkpoints of a readback are.

    The files are hashed once more while they are examined: what was changed since the readback is refused.
    """
    gaps = (
        Gap(code=p.code, detail=_words(p.path, p.detail)) for p in found.problems if effect_of(p) == "gap"
    )
    return LoadReport(
        readback=readback.digest,
        checkpoints=tuple(_checkpoint(one) for one in found.checkpoints),
        refusals=tuple(_changed(readback, found)),
        gaps=tuple(dict.fromkeys(gaps)),
        finished_at=now,
    )


def metric_report(load: LoadReport, measured: Measured, now: Moment) -> MetricReport:
    """Every reported metric beside its recomputation; its own problems become gaps or refusals."""
    refused = (
        refusal("metric-wrong", _words(p.path or "", p.detail)) for p in measured.problems if not p.gap
    )
    gaps = (Gap(code=p.code, detail=_words(p.path or "", p.detail)) for p in measured.problems if p.gap)
    return MetricReport(
        load=load.digest,
        metrics=tuple(
            MetricFinding(
                name=one.name,
                reported=one.reported,
                recomputed=one.recomputed,
                direction=one.direction,
                verdict=one.verdict,
                population=one.population,
            )
            for one in measured.metrics
        ),
        refusals=tuple(refused),
        gaps=tuple(dict.fromkeys(gaps)),
        finished_at=now,
    )


def _checkpoint(one: CheckpointVerdict) -> CheckpointFinding:
    return CheckpointFinding(
        path=one.path,
        verdict=one.verdict,
        code=one.code,
        detail=one.detail or one.reason,
        tensors=one.tensors,
        elements=one.elements,
        nonfinite=one.nonfinite,
    )


def _changed(readback: ReadbackReport, found: Examination) -> Iterable[Refusal]:
    here = {file.path: file.sha256 for file in found.files}
    for one in readback.files:
        if (here.get(one.path) or "").removeprefix("sha256:") != one.sha256.removeprefix("sha256:"):
            yield refusal("readback-changed", "It is not what was read back.", one.path)


def _words(path: str, detail: str) -> str:
    return f"{path}: {detail}" if path else detail
