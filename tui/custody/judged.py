"""The last two reports before an approval: checkpoints loaded and metrics recomputed, from the readback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tui.checkpoints.acceptance import effect_of
from tui.custody.codes import gap, refusal
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


def load_report(
    readback: ReadbackReport, found: Examination, now: Moment, more: Iterable[Gap] = ()
) -> LoadReport:
    """What the checkpoints of a readback are.

    The files are hashed once more while they are examined: what was changed since the readback is refused.

    Args:
        more: gaps of the place where they were examined.
    """
    told = (
        Gap(code=p.code, detail=_words(p.path, p.detail)) for p in found.problems if effect_of(p) == "gap"
    )
    return LoadReport(
        readback=readback.digest,
        checkpoints=tuple(_checkpoint(one) for one in found.checkpoints),
        refusals=tuple(_changed(readback, {file.path: file.sha256 or "" for file in found.files})),
        gaps=tuple(dict.fromkeys((*more, *told))),
        finished_at=now,
    )


def unloaded_report(
    readback: ReadbackReport, checkpoints: Iterable[str], digests: Mapping[str, str], why: str, now: Moment
) -> LoadReport:
    """A readback whose checkpoints nobody could look into, hashed once more all the same.

    Args:
        checkpoints: their paths.
        digests: by path, as the files are now.
        why: what the place lacks.
    """
    findings = (
        CheckpointFinding(path=path, verdict="not-loaded", code="not-loaded", detail=why)
        for path in checkpoints
    )
    return LoadReport(
        readback=readback.digest,
        checkpoints=tuple(findings),
        refusals=tuple(_changed(readback, digests)),
        gaps=(gap("no-python-there", why),),
        finished_at=now,
    )


def metric_report(
    load: LoadReport, measured: Measured, now: Moment, more: Iterable[Gap] = ()
) -> MetricReport:
    """Every reported metric beside its recomputation; its own problems become gaps or refusals."""
    refused = (refusal(p.code, p.detail, p.path or None) for p in measured.problems if not p.gap)
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
        gaps=tuple(dict.fromkeys((*more, *gaps))),
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


def _changed(readback: ReadbackReport, here: Mapping[str, str]) -> Iterable[Refusal]:
    for one in readback.files:
        if here.get(one.path, "").removeprefix("sha256:") != one.sha256.removeprefix("sha256:"):
            yield refusal("readback-changed", "It is not what was read back.", one.path)


def _words(path: str, detail: str) -> str:
    return f"{path}: {detail}" if path else detail
