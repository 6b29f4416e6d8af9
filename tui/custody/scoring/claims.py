"""Which predictions each reported figure speaks of. Where that is not plain, nothing is chosen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path, PurePosixPath

from tui.custody.predictions.files import Source, declared_source, folders, inside, recognised_sources, shown
from tui.custody.scoring.names import Meaning, is_bookkeeping, is_count, meaning
from tui.custody.scoring.reported import (
    METRICS_FILE,
    SUMMARY_FILE,
    BadMetrics,
    MetricsFile,
    Reported,
    read_metrics,
)
from tui.model.metrics import Declaration, DeclaredMetric, MeasuredMetric, MetricProblem

SOURCES = 2_000
MOST_SAMPLES = 10**12


@dataclass(frozen=True)
class Claim:
    """A reported figure, what its name means, and the predictions it is about.

    Attributes:
        source: name of the population; None where `unclear` says why.
    """

    reported: Reported
    meaning: Meaning
    file: str | None
    declared: DeclaredMetric | None = None
    source: str | None = None
    unclear: str = ""


@dataclass
class Claims:
    """Everything a run says about its metrics, and where its predictions lie.

    Attributes:
        counts: how many samples the metrics file itself gives, per population.
    """

    claims: list[Claim] = field(default_factory=list)
    sources: dict[str, Source] = field(default_factory=dict)
    counts: dict[str, set[int]] = field(default_factory=dict)
    problems: list[MetricProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def collect_claims(root: Path, declaration: Declaration) -> Claims:
    """Read every metrics file of a run and find the predictions beside it."""
    found = Claims()
    files = _metrics_files(root, declaration, found) + _summary_files(root, declaration)
    found.sources = _sources(root, declaration, [path.parent for path, _ in files])
    declared = list(declaration.metrics)
    for path, file in files:
        beside = [other for where, other in files if where.parent == path.parent and other is not file]
        _claims_of_file(file, declared, found, beside if SUMMARY_FILE.fullmatch(path.name) else ())
    reported = {(claim.file, claim.declared.name) for claim in found.claims if claim.declared is not None}
    names = {name for _, name in reported}
    for metric in declared:
        if metric.reported is not None and metric.name not in names:
            figure = Reported((metric.name,), Decimal(metric.reported))
            found.claims.append(_paired(figure, metric, None, set(), found))
        elif metric.name not in names:
            found.problems.append(
                MetricProblem(
                    code="metric-not-reported",
                    path=metric.file,
                    detail=f"The declared metric {metric.name!r} is in no metrics file.",
                )
            )
    return found


def _metrics_files(root: Path, declaration: Declaration, found: Claims) -> list[tuple[Path, MetricsFile]]:
    paths: dict[str, Path] = {}
    for folder in folders(root):
        path = folder / METRICS_FILE
        if path.is_file() or path.is_symlink():
            paths[shown(path.relative_to(root).as_posix())] = path
    for name in sorted({metric.file for metric in declaration.metrics if metric.file is not None}):
        paths.setdefault(PurePosixPath(name).as_posix(), root / name)
    files = []
    for name, path in sorted(paths.items(), key=lambda item: (item[0].count("/"), item[0])):
        try:
            if ".." in PurePosixPath(name).parts or not inside(root, path):
                raise BadMetrics(f"{name} is no file of this run")
            files.append((path, read_metrics(path, name)))
        except BadMetrics as error:
            found.problems.append(MetricProblem(code="metrics-unreadable", path=name, detail=f"{error}."))
    return files


def _summary_files(root: Path, declaration: Declaration) -> list[tuple[Path, MetricsFile]]:
    """Summaries of trainers, where there is something to hold them against. A damaged one reports nothing."""
    declared = {path.parent for p in declaration.populations for _, path in declared_source(root, p).files}
    named = {metric.file for metric in declaration.metrics}
    found = []
    for folder in folders(root):
        names = sorted(entry.name for entry in _listed(folder) if SUMMARY_FILE.fullmatch(entry.name))
        if not names or not (folder in declared or recognised_sources(root, folder)):
            continue
        for name in names:
            shown_name = shown((folder / name).relative_to(root).as_posix())
            if shown_name in named or not inside(root, folder / name):
                continue
            try:
                file = read_metrics(folder / name, shown_name)
            except BadMetrics:
                continue
            wanted = [figure for figure in file.figures if _is_plain(figure, shown_name, declaration)]
            found.append((folder / name, replace(file, figures=wanted, lists=[])))
    return found


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except OSError:
        return []


def _is_plain(figure: Reported, file: str, declaration: Declaration) -> bool:
    """A summary's figure of a test, by a name that is known; durations and the training's losses are none."""
    if _declared_for(figure, file, declaration.metrics) is not None or is_count(figure.path):
        return True
    said = meaning(figure.path)
    return said.metric is not None and said.split != "train" and not said.over_time


def _sources(root: Path, declaration: Declaration, where: Iterable[Path]) -> dict[str, Source]:
    sources = {source.name: source for source in (declared_source(root, p) for p in declaration.populations)}
    taken = {path for source in sources.values() for _, path in source.files}
    spoken_for = {source.folder for source in sources.values()}
    for folder in dict.fromkeys(where):
        for source in recognised_sources(root, folder):
            mine = {path for _, path in source.files}
            if mine & taken or (source.unclear and source.folder in spoken_for) or source.name in sources:
                continue
            if len(sources) < SOURCES:
                sources[source.name] = source
    return sources


def _folder(name: str) -> str:
    parent = PurePosixPath(name).parent.as_posix()
    return "" if parent == "." else parent


def _claims_of_file(
    file: MetricsFile, declared: Sequence[DeclaredMetric], found: Claims, beside: Sequence[MetricsFile]
) -> None:
    """`beside`: files that speak of other splits of the same predictions' folder."""
    spoken = (figure for one in (file, *beside) for figure in one.figures)
    splits = {meaning(figure.path).split for figure in spoken} - {None, "train"}
    skipped: list[str] = []
    for figure in file.figures:
        metric = _declared_for(figure, file.name, declared)
        if metric is None and figure.in_words and meaning(figure.path).metric is None:
            continue  # a version or a date, say
        if metric is None and is_count(figure.path):
            _take_count(figure, file.name, splits, found)
        elif metric is None and is_bookkeeping(figure.path):
            skipped.append(figure.name)
        else:
            found.claims.append(_paired(figure, metric, file.name, splits, found))
    if skipped:
        shown = ", ".join(skipped[:8])
        found.notes.append(f"{file.name}: not figures of predictions, so not recomputed: {shown}")
    for name in file.lists:
        found.problems.append(
            MetricProblem(
                code="list-not-compared",
                path=file.name,
                detail=f"{name!r} is a list, which is not compared.",
                gap=True,
            )
        )


def _declared_for(figure: Reported, file: str, declared: Sequence[DeclaredMetric]) -> DeclaredMetric | None:
    matching = [metric for metric in declared if metric.name == figure.name and metric.file in (None, file)]
    return next((m for m in matching if m.file is not None), matching[0] if matching else None)


def _take_count(figure: Reported, file: str, splits: set[str | None], found: Claims) -> None:
    claim = _paired(figure, None, file, splits, found)
    value = figure.value
    if claim.source is None or value is None or not 0 <= value < MOST_SAMPLES:
        return
    if value == value.to_integral_value():
        found.counts.setdefault(claim.source, set()).add(int(value))


def _paired(
    figure: Reported,
    declared: DeclaredMetric | None,
    file: str | None,
    splits: set[str | None],
    found: Claims,
) -> Claim:
    said = _meaning(figure, declared)
    claim = Claim(figure, said, file, declared)
    if declared is not None and declared.predictions is not None:
        if declared.predictions in found.sources:
            return replace(claim, source=declared.predictions)
        return replace(claim, unclear=f"no predictions are declared by the name {declared.predictions!r}")
    if said.over_time and declared is None:
        return replace(
            claim,
            unclear="it is the best or last of many evaluations, which one set of predictions can't give",
        )
    source, unclear = _choose(figure, said, _folder(file) if file is not None else "", splits, found.sources)
    return replace(claim, source=source, unclear=unclear)


def _meaning(figure: Reported, declared: DeclaredMetric | None) -> Meaning:
    said = meaning(figure.path)
    if declared is None:
        return said
    if declared.metric is not None:
        named = meaning((declared.metric,))
        said = replace(named, split=said.split, percent=said.percent or named.percent, plain=said.plain)
    said = replace(said, k=declared.k or said.k, average=declared.average or said.average, over_time=False)
    return replace(said, metric="top-k") if said.metric == "accuracy" and (said.k or 1) > 1 else said


def _choose(
    figure: Reported, said: Meaning, folder: str, splits: set[str | None], sources: dict[str, Source]
) -> tuple[str | None, str]:
    """The one population a figure can be about, or why there is none."""
    candidates = _near(figure, folder, sources)
    if said.split is not None and candidates:
        same = [source for source in candidates if source.split == said.split]
        unnamed = [source for source in candidates if source.split is None]
        if not same and (said.split == "train" or len(splits) > 1):
            return None, f"no predictions are plainly those of its split ({said.split})"
        candidates = same or unnamed
    if len(candidates) == 1:
        return candidates[0].name, ""
    if not candidates:
        return None, "no prediction file was found for it; name one in [custody]"
    names = " or ".join(source.name for source in candidates[:4])
    return None, f"its predictions could be {names}; name them in [custody]"


def _near(figure: Reported, folder: str, sources: dict[str, Source]) -> list[Source]:
    """Populations named by the keys around a figure, else those of its folder, else the only one below it."""
    prefix = f"{folder}/" if folder else ""
    below = [s for s in sources.values() if s.folder == folder or s.folder.startswith(prefix) or s.declared]
    outer = set(figure.path[:-1]) | {part for key in figure.path[:-1] for part in key.split("/")}
    named = [s for s in below if outer & {s.name, s.folder, PurePosixPath(s.folder).name}]
    if named:
        return named
    here = [source for source in below if source.folder == folder]
    return here or (below if len(below) == 1 else [])


def reported_text(value: Decimal) -> str:
    """A reported figure as it was written, of bounded length."""
    text = str(value)
    return text if len(text) <= 64 else f"{value:.16e}"


def unread(claims: Claims, why: str) -> tuple[MeasuredMetric, ...]:
    """Findings for a run whose predictions could not be read at all."""
    return tuple(
        MeasuredMetric(
            name=claim.reported.name,
            reported=reported_text(claim.reported.value),
            recomputed=None,
            direction=claim.meaning.direction,
            verdict="unreadable",
            detail=why,
            predictions=claim.source,
            file=claim.file,
            required=claim.declared is not None,
        )
        for claim in claims.claims
        if claim.reported.value is not None
    )
