"""What a wizard says of each record: what ran, what was expected, what was observed. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tui.box.transfer.meter import Progress
from tui.custody.codes import CODES
from tui.custody.digest import HashProgress
from tui.custody.leftovers import Decision
from tui.custody.proof import checkpoint_passes, metric_passes
from tui.custody.statement import public_uri
from tui.model.custody import (
    CheckpointFinding,
    CopyReport,
    DigestReport,
    Gap,
    LoadReport,
    MetricFinding,
    MetricReport,
    ReadbackReport,
    Refusal,
    Roster,
)
from tui.model.teardown import LeftoverView, StepProgress, StepState, StepView, Trouble
from tui.model.text import SafeText, amount, safe

MOST = 40
"""Lines, refusals and gaps told of one step; what is beyond is counted."""


def files(count: int, size: int) -> str:
    """``214 files, 3.4 GB``."""
    return f"{count:,} file{'' if count == 1 else 's'}, {amount(size)}"


def short(digest: str) -> str:
    """The beginning of a digest, enough to compare by eye."""
    return digest.removeprefix("sha256:")[:12]


# --- troubles ---------------------------------------------------------------------------------------------


def refusals(found: Sequence[Refusal]) -> tuple[Trouble, ...]:
    """Refusals as they are shown."""
    told = [
        Trouble(one.code, safe(one.detail, 400), safe(one.path or "", 400), safe(one.clears, 300))
        for one in found
    ]
    return _counted(told)


def gaps(found: Sequence[Gap], reasons: dict[str, str] | None = None) -> tuple[Trouble, ...]:
    """Gaps as they are shown, each with the operator's reason where he gave one."""
    said = reasons or {}
    told = [
        Trouble(
            one.code,
            safe(one.detail, 400),
            clears=safe(_clears(one.code), 300),
            reason=safe(one.reason or said.get(one.code, ""), 300),
        )
        for one in found
    ]
    return _counted(told)


def _clears(code: str) -> str:
    return CODES[code].clears if code in CODES else ""


def _counted(told: list[Trouble]) -> tuple[Trouble, ...]:
    if len(told) <= MOST:
        return tuple(told)
    return (*told[:MOST], Trouble("more", safe(f"and {len(told) - MOST} more")))


def lines(said: Iterable[str]) -> tuple[SafeText, ...]:
    """Lines as they are shown; what is beyond `MOST` is counted."""
    told = [safe(line, 400) for line in said]
    return tuple(told) if len(told) <= MOST else (*told[:MOST], safe(f"and {len(told) - MOST} more"))


def _state(against: Sequence[object]) -> StepState:
    return "refused" if against else "done"


# --- progress ---------------------------------------------------------------------------------------------


def hashing(at: HashProgress) -> StepProgress:
    return StepProgress(
        at.bytes, at.bytes_total, at.files, at.files_total, at.rate, at.eta_s, safe(at.tool, 80)
    )


def moving(at: Progress) -> StepProgress:
    """A transfer. One that stalls says so in place of a rate."""
    note, rate = at.note, at.rate
    if at.silent_s > 5 and at.done < at.total and not note:
        note, rate = f"nothing came for {at.silent_s:.0f} s", None
    elif at.links > 1 and not note:
        note = f"link {at.links}"
    return StepProgress(at.done, at.total, at.files, at.files_total, rate, at.eta_s, safe(note, 120))


# --- steps ------------------------------------------------------------------------------------------------


def roster_step(roster: Roster, said: dict[str, str], *, reused: bool) -> StepView:
    size = sum(one.size for one in roster.artifacts)
    undecided = [one for one in roster.leftovers if one.decision is None]
    kept = sum(one.decision == "keep" for one in roster.leftovers)
    state: StepState = _state(roster.refusals)
    if undecided and all(one.code == "unclassified" for one in roster.refusals):
        state = "needs-you"
    others = f"{len(roster.leftovers)} groups not on it"
    if roster.leftovers:
        scrapped = len(roster.leftovers) - kept - len(undecided)
        words = [
            f"{n} {word}"
            for n, word in ((kept, "kept"), (scrapped, "scrapped"), (len(undecided), "undecided"))
            if n
        ]
        others += f": {', '.join(words)}"
    return StepView(
        "roster",
        state,
        safe(f"{files(len(roster.artifacts), size)} · {others}"),
        safe(f"lists {roster.root} twice and everything else that the {roster.verb} takes"),
        safe("no file that still grows, none missing that is declared, every other group decided"),
        lines(_roster_lines(roster)),
        refusals=refusals(roster.refusals),
        gaps=gaps(roster.gaps, said),
        at=roster.taken_at,
        reused=reused,
    )


def _roster_lines(roster: Roster) -> Iterator[str]:
    for role in dict.fromkeys(one.role for one in roster.artifacts):
        mine = [one for one in roster.artifacts if one.role == role]
        names = ", ".join(one.path for one in mine[:3]) + (" …" if len(mine) > 3 else "")
        yield f"{role}: {files(len(mine), sum(one.size for one in mine))}: {names}"
    for writer in roster.writers[:5]:
        yield f"written to: {writer.path}: {writer.evidence}"


def leftovers(roster: Roster, decided: dict[str, Decision]) -> tuple[LeftoverView, ...]:
    """The groups in the roster's order, checkpoint-like ones first, with what was decided since."""
    return tuple(
        LeftoverView(
            one.group,
            safe(one.title, 300),
            one.count,
            one.size,
            tuple(safe(path, 300) for path in one.examples),
            one.checkpoint_like,
            decided[one.group].word if one.group in decided else one.decision or "",
            safe(decided[one.group].reason if one.group in decided else one.reason, 300),
        )
        for one in roster.leftovers
    )


def unlisted(roster: Roster, decided: dict[str, Decision]) -> tuple[LeftoverView, ...]:
    """Tiers that could not be listed whole: giving one up is a decision, too; nothing of it can be kept."""
    paths = dict.fromkeys(one.path for one in roster.refusals if one.code == "tier-unlisted" and one.path)
    return tuple(
        LeftoverView(
            f"unlisted:{path}",
            safe(f"what nobody could list in {path}", 300),
            0,
            0,
            decision=decided[f"unlisted:{path}"].word if f"unlisted:{path}" in decided else "",
        )
        for path in paths
    )


def digest_step(roster: Roster, report: DigestReport, *, reused: bool) -> StepView:
    count, size = len(report.files), sum(one.size for one in report.files)
    tools = ", ".join(dict.fromkeys(one.tool for one in report.files if one.tool)) or "nothing"
    return StepView(
        "digest",
        _state(report.refusals),
        safe(f"{count:,}/{len(roster.artifacts):,} match the box · manifest {short(report.manifest)}"),
        safe(f"hashes every artifact on {roster.victim.name}, on all its cores"),
        safe(f"{len(roster.artifacts):,} digests, and no file that changes while it is read"),
        lines([f"{files(count, size)}, by {tools}", f"manifest-sha256.txt has {report.manifest}"]),
        refusals=refusals(report.refusals),
        at=report.taken_at,
        reused=reused,
    )


def copy_step(roster: Roster, report: CopyReport, *, reused: bool) -> StepView:
    uri = public_uri(report.destination)
    told = [
        f"{files(len(report.files), report.size)}, {report.route}",
        f"sealed as {uri}" if report.bag else f"not finished: {uri}",
    ]
    if report.resumed:
        told.append(f"{amount(report.resumed)} were there already and were hashed again")
    for one in report.admissions:
        gone = f"gone at {one.removed_at}" if one.removed_at else "NOT SEEN TO BE GONE"
        told.append(f"single-use key {one.fingerprint} on {one.target}: {gone}")
    return StepView(
        "copy",
        _state(report.refusals),
        safe(f"{files(len(report.files), report.size)} in {uri}"),
        safe(f"copies to {uri}"),
        safe(f"{len(roster.artifacts):,} files, each with its digest from step 2, then sealed"),
        lines(told),
        refusals=refusals(report.refusals),
        gaps=gaps(report.gaps),
        at=report.finished_at,
        reused=reused,
    )


def readback_step(
    copied: CopyReport, report: ReadbackReport, said: dict[str, str], *, reused: bool
) -> StepView:
    size = sum(one.size for one in report.files)
    cold = "cold" if report.cold else "not proven cold"
    who = report.consumer.box or "this computer"
    wrong = [
        f"{word}: {path}"
        for word, paths in (
            ("missing", report.missing),
            ("extra", report.extra),
            ("different", report.different),
        )
        for path in paths
    ]
    return StepView(
        "readback",
        _state(report.refusals),
        safe(f"{len(report.files):,}/{len(copied.files):,} read by {who} · {report.independence}, {cold}"),
        safe(f"restores {public_uri(copied.destination)} into {public_uri(report.consumer)}"),
        safe(f"exactly {len(copied.files):,} files, none missing or extra, every byte as hashed on the box"),
        lines([f"{files(len(report.files), size)} agree", *wrong]),
        refusals=refusals(report.refusals),
        gaps=gaps(report.gaps, said),
        at=report.finished_at,
        reused=reused,
    )


def load_step(report: LoadReport, said: dict[str, str], *, reused: bool) -> StepView:
    bad = [one for one in report.checkpoints if not checkpoint_passes(one)]
    good = [one for one in report.checkpoints if one.verdict == "ok"]
    found = [*refusals(report.refusals), *map(_checkpoint_trouble, bad)]
    return StepView(
        "load",
        _state(found),
        safe(_load_brief(report.checkpoints, good, bad)),
        safe("loads every checkpoint in a jailed process, with no code of its own"),
        safe("complete, undamaged, every number finite"),
        lines(_checkpoint_line(one) for one in report.checkpoints),
        refusals=tuple(found[:MOST]),
        gaps=gaps(report.gaps, said),
        at=report.finished_at,
        reused=reused,
    )


def _load_brief(
    every: Sequence[CheckpointFinding], good: Sequence[CheckpointFinding], bad: Sequence[CheckpointFinding]
) -> str:
    if bad:
        return f"{bad[0].path}: {bad[0].verdict}"
    if not every:
        return "no checkpoint is among the files"
    if len(good) == 1 and good[0].tensors is not None:
        finite = "NOT all finite" if good[0].nonfinite else "all finite"
        return f"{good[0].path}  {good[0].tensors:,} tensors, {finite}"
    return f"{len(good)} of {len(every)} checkpoints load" + (
        "" if len(good) == len(every) else "; the rest is told as a gap"
    )


def _checkpoint_line(one: CheckpointFinding) -> str:
    parts = [f"{one.path}: {one.verdict}"]
    if one.tensors is not None:
        parts.append(f"{one.tensors:,} tensors, {one.elements or 0:,} numbers")
    if one.nonfinite is not None:
        parts.append("all finite" if not one.nonfinite else f"{one.nonfinite:,} not finite")
    return ", ".join([*parts, one.detail] if one.detail else parts)


def _checkpoint_trouble(one: CheckpointFinding) -> Trouble:
    clears = _clears(one.code) or _clears("checkpoint-refused")
    return Trouble(
        one.code or one.verdict, safe(f"{one.verdict}: {one.detail}", 400), safe(one.path, 400), safe(clears)
    )


def metrics_step(report: MetricReport, said: dict[str, str], *, reused: bool) -> StepView:
    bad = [one for one in report.metrics if not metric_passes(one)]
    found = [*refusals(report.refusals), *map(_metric_trouble, bad)]
    recomputed = sum(one.verdict == "recomputed" for one in report.metrics)
    first = bad[0] if bad else next(iter(report.metrics), None)
    brief = (
        "no metric is reported"
        if first is None
        else f"{recomputed} of {len(report.metrics)} recomputed · {_metric(first)}"
    )
    return StepView(
        "metrics",
        _state(found),
        safe(brief),
        safe("recomputes every reported metric from the predictions, all of them"),
        safe("the ids that are declared, each once; the figures as reported, to the last digit given"),
        lines(
            f"{_metric(one)}, {one.verdict}" + (f", over {one.population:,}" if one.population else "")
            for one in report.metrics
        ),
        refusals=tuple(found[:MOST]),
        gaps=gaps(report.gaps, said),
        at=report.finished_at,
        reused=reused,
    )


def _metric(one: MetricFinding) -> str:
    arrow = {"up": " ↑", "down": " ↓", None: ""}[one.direction]
    return f"{one.name}{arrow} {one.reported or 'none'} reported, {one.recomputed or 'none'} recomputed"


def _metric_trouble(one: MetricFinding) -> Trouble:
    return Trouble(
        "metric-wrong",
        safe(f"{_metric(one)} ({one.verdict})", 400),
        clears=safe(_clears("metric-wrong")),
    )
