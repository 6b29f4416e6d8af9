"""From claims and what the predictions give to findings: the reference's verdict on every reported figure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tui.custody.predictions.cells import label
from tui.custody.predictions.files import Source
from tui.custody.scoring.array_collectors import Stored, Tokens
from tui.custody.scoring.asks import Ask, Examined
from tui.custody.scoring.claims import Claim, Claims, collect_claims, reported_text
from tui.custody.scoring.collecting import Params
from tui.custody.scoring.figures import Figure, Undecided, decimal_text, judge, same
from tui.custody.scoring.formulas import mean
from tui.custody.scoring.image_collectors import ImageQuality, Masks
from tui.custody.scoring.names import FRACTIONS, KNOWN_DIRECTIONS
from tui.custody.scoring.recompute import Computed, Recomputed, Wanted, recompute
from tui.model.metrics import (
    Declaration,
    Direction,
    Measured,
    MeasuredMetric,
    MetricProblem,
    Verdict,
)

ROW_SLACK = 1e-3
"""How far a stored per-sample score may be from the recomputed one, relative above one."""
_BLOCKING: tuple[Verdict, ...] = ("population-incomplete", "no-ground-truth")


def examine(root: Path, declaration: Declaration) -> Examined:
    """Recompute every reported metric of a folder in this process, by the reference implementation alone."""
    claims = collect_claims(root, declaration)
    wanted: dict[str, dict[Wanted, None]] = {}
    for claim in claims.claims:
        if claim.source is not None:
            wanted.setdefault(claim.source, {}).setdefault(_wanted(claim))
    problems, notes = list(claims.problems), list(claims.notes)
    results: dict[str, Recomputed] = {}
    for name, wants in wanted.items():
        counts = claims.counts.get(name, set())
        results[name] = recompute(claims.sources[name], list(wants), counts, root)
        notes += results[name].notes
        problems += _population_problems(claims.sources[name], results[name], counts)
    findings: list[MeasuredMetric] = []
    asks: list[Ask] = []
    for claim in claims.claims:
        finding, ask = _finding(claim, claims, results, len(findings))
        if finding is None:
            notes.append(f"{claim.file}: {claim.reported.name} is null, so nothing is claimed")
            continue
        findings.append(finding)
        asks += [] if ask is None else [ask]
        problems += _direction_problem(claim)
    return Examined(
        report=Measured(metrics=tuple(findings), problems=tuple(problems), notes=tuple(notes)),
        asks=tuple(asks),
    )


def _wanted(claim: Claim) -> Wanted:
    params = Params.of(claim.declared)
    said = claim.meaning
    return Wanted(
        said.metric,
        Params(said.average, said.k, params.ignore, params.data_range, params.clamp, params.threshold),
        said.plain,
    )


def _population_problems(source: Source, result: Recomputed, counts: set[int]) -> Iterable[MetricProblem]:
    path = source.files[0][0] if source.files else source.folder or None
    check = result.population
    if result.failed is not None and result.failed.verdict == "unreadable":
        yield MetricProblem(code="predictions-unreadable", path=path, detail=f"{result.failed.detail}.")
    if check is None:
        return
    if check.state == "broken":
        yield MetricProblem(code="population-incomplete", path=path, detail=f"{source.name}: {check.detail}.")
    elif check.state in ("counted", "undeclared"):
        yield MetricProblem(
            code="population-not-declared", path=path, detail=f"{source.name}: {check.detail}.", gap=True
        )
    if len(counts) > 1:
        yield MetricProblem(
            code="counts-contradict",
            path=path,
            detail=f"{source.name}: the metrics file gives several numbers of samples; none was used.",
            gap=True,
        )


def _direction_problem(claim: Claim) -> Iterable[MetricProblem]:
    own, declared = claim.meaning.direction, claim.declared.direction if claim.declared else None
    if own is not None and declared is not None and own != declared and claim.meaning.metric is not None:
        better = "larger" if own == "up" else "smaller"
        yield MetricProblem(
            code="direction-contradicts",
            path=claim.file,
            detail=f"{claim.reported.name} is declared to be better {declared}wards; {better} is better.",
        )


@dataclass(frozen=True)
class _Verdict:
    verdict: Verdict
    detail: str = ""
    value: float | None = None
    computed: Computed | None = None


def _finding(
    claim: Claim, claims: Claims, results: dict[str, Recomputed], place: int
) -> tuple[MeasuredMetric | None, Ask | None]:
    result = results.get(claim.source or "")
    source = claims.sources.get(claim.source or "")
    scale = _scale(claim)
    found = _judged(claim, result, scale)
    if claim.reported.value is None and found.verdict != "no-ground-truth":
        return None, None
    direction = (claim.declared.direction if claim.declared else None) or _direction(claim)
    whole = result is not None and result.population is not None
    finding = MeasuredMetric(
        name=claim.reported.name,
        reported=None if claim.reported.value is None else reported_text(claim.reported.value),
        recomputed=None if found.value is None else decimal_text(found.value * scale),
        direction=direction,
        verdict=found.verdict,
        detail=_detail(claim, found, scale, direction),
        definition=found.computed.definition.key if found.computed is not None else None,
        population=result.population.samples if whole and result and result.population else None,
        predictions=claim.source,
        kind=source.declared.kind if source is not None and source.declared is not None else "software",
        file=claim.file,
        required=claim.declared is not None,
    )
    return finding, _ask(claim, found, place, scale)


def _direction(claim: Claim) -> Direction | None:
    return claim.meaning.direction or KNOWN_DIRECTIONS.get(claim.meaning.plain)


def _scale(claim: Claim) -> int:
    """100 where a share is reported in percent: by its name, a percent sign, or because it is more than 1."""
    value = claim.reported.value
    if claim.meaning.metric not in FRACTIONS:
        return 1
    large = value is not None and value.is_finite() and 1 < value.copy_abs() <= 100
    return 100 if claim.meaning.percent or claim.reported.percent or large else 1


def _floor(claim: Claim, scale: int) -> int:
    """Decimals a perfect share is held to: nobody rounds 96 % to 1.0."""
    perfect = claim.meaning.metric in FRACTIONS and claim.reported.value in (0, scale)
    return (1 if scale == 100 else 3) if perfect else 0


def _judged(claim: Claim, result: Recomputed | None, scale: int) -> _Verdict:
    """The verdict on one claim, from the plainest reason for having no figure to the comparison itself."""
    if claim.source is None or result is None:
        known = claim.meaning.metric is not None
        return _Verdict("not-declared" if known else "unknown-metric", claim.unclear)
    if result.failed is not None:
        return _Verdict(result.failed.verdict, result.failed.detail)
    check = result.population
    if check is not None and check.state == "broken":
        return _Verdict("population-incomplete", check.detail)
    outer = {label(key) for key in claim.reported.path[:-1]}
    if claim.declared is None and outer & result.labels:
        return _Verdict("not-declared", "it seems to be the figure of one class; declare how it is defined")
    want = _wanted(claim)
    computed = result.computed.get(want, [])
    figures = [one for one in computed if isinstance(one.result, Figure)]
    if figures:
        return _compared(claim, figures, result.stored.get(want), scale)
    reason = _reason(claim, computed)
    stored = result.stored.get(want)
    if stored is not None and reason.verdict not in ("population-incomplete", "unreadable"):
        return _re_aggregated(claim, stored, scale, reason)
    return reason


def _reason(claim: Claim, computed: Sequence[Computed]) -> _Verdict:
    if claim.meaning.metric is None:
        return _Verdict(
            "unknown-metric", f"no definition of {claim.meaning.plain or claim.reported.name!r} is known here"
        )
    reasons = [one.result for one in computed if isinstance(one.result, Undecided)]
    blocking = [reason for reason in reasons if reason.verdict in _BLOCKING]
    chosen = (blocking or reasons)[0]
    return _Verdict(chosen.verdict, chosen.detail)


def _compared(
    claim: Claim, figures: Sequence[Computed], stored: Stored | Undecided | None, scale: int
) -> _Verdict:
    """The first definition that gives the reported figure; else the most usual one and what others give."""
    value = claim.reported.value
    digits = claim.declared.digits if claim.declared is not None else None
    if value is None:
        return _Verdict("not-declared", "no figure is reported")
    tried: list[_Verdict] = []
    for one in figures:
        assert isinstance(one.result, Figure)
        verdict, detail = judge(value, one.result, digits, scale, floor=_floor(claim, scale))
        shown = None if math.isnan(one.result.value) and verdict != "recomputed" else one.result.value
        tried.append(_Verdict(verdict, detail, shown, one))
    for verdict in ("recomputed", "disagree"):
        for found in tried:
            if found.verdict == verdict:
                return _against_rows(found, stored) if verdict == "recomputed" else found
    others = [
        f"{t.computed.definition.key} gives {decimal_text(t.value * scale)}"
        for t in tried[1:]
        if t.computed and t.value is not None
    ]
    first = tried[0]
    return _Verdict(
        "differs", "; ".join(part for part in (first.detail, *others) if part), first.value, first.computed
    )


def _against_rows(found: _Verdict, stored: Stored | Undecided | None) -> _Verdict:
    """Hold a stored per-sample score against raw predictions: where they part, one of the two was altered."""
    one = found.computed
    if not isinstance(stored, Stored) or one is None or one.definition.rows is None or one.collector is None:
        return found
    rows, kept = one.definition.rows(one.collector), stored.values
    if len(rows) != len(kept):
        return found
    with np.errstate(invalid="ignore"):
        apart = ~(np.abs(rows - kept) <= stored.half + ROW_SLACK * np.maximum(1.0, np.abs(rows))) & (
            rows != kept
        )
    count = int(apart.sum())
    if not count or count * 2 > len(rows):  # most rows apart: the column is something else
        return found
    column = stored.columns[0]
    return _Verdict(
        "differs",
        f"the stored scores {column[:80]!r} contradict the raw predictions in {count:,} rows (first: row "
        f"{int(np.flatnonzero(apart)[0]) + 1}): one of them was altered",
        found.value,
        one,
    )


def _re_aggregated(claim: Claim, stored: Stored | Undecided, scale: int, reason: _Verdict) -> _Verdict:
    if isinstance(stored, Undecided):
        return _Verdict(stored.verdict, stored.detail)
    value = mean(stored.values)
    column = stored.columns[0][:80]
    why = f"only the mean of the stored scores {column!r} could be taken: {reason.detail}"
    reported = claim.reported.value
    digits = claim.declared.digits if claim.declared is not None else None
    if reported is None or math.isnan(value):
        return reason
    if same(reported, value * scale, digits):
        return _Verdict("re-aggregated", why, value)
    return _Verdict("differs", f"not even the mean of the stored scores {column!r} gives it", value)


def _detail(claim: Claim, found: _Verdict, scale: int, direction: Direction | None) -> str:
    parts = [found.detail]
    if found.value is not None and scale == 100:
        parts.append("compared as a percentage")
    reported = claim.reported.value
    if reported is not None and not reported.is_finite() and found.verdict == "differs":
        parts.append(f"{reported} is reported")  # JSON has no number for it
    if (
        found.verdict == "differs"
        and found.value is not None
        and reported is not None
        and direction is not None
    ):
        gain = float(reported) - found.value * scale
        if math.isfinite(gain) and abs(gain) > 1e-12:
            better = (gain > 0) == (direction == "up")
            parts.append(
                f"the reported figure is {'better' if better else 'worse'} than the predictions show"
            )
    return "; ".join(part for part in parts if part)


def _ask(claim: Claim, found: _Verdict, place: int, scale: int) -> Ask | None:
    one = found.computed
    if one is None or one.definition.second is None or found.value is None or claim.source is None:
        return None
    if found.verdict not in ("recomputed", "differs") or not math.isfinite(found.value):
        return None
    params = _wanted(claim).params
    collector = one.collector
    return Ask(
        finding=place,
        source=claim.source,
        what=one.definition.second,
        first=found.value,
        scale=scale,
        k=params.k,
        ignore=collector.ignore if isinstance(collector, Tokens) else params.ignore,
        data_range=collector.data_range if isinstance(collector, ImageQuality) else None,
        clamp=params.clamp,
        threshold=params.threshold,
        classes=len(collector.confusion()) if isinstance(collector, Masks) else None,
    )
