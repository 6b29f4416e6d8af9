"""The receipt of each link of the chain: what it came to, with the digests of it and of the one before.

Pure. A roster or report is pointed at by its digest and never copied into its receipt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tui.custody.codes import refusal
from tui.custody.manifest import MANIFEST
from tui.custody.proof import checkpoint_passes, metric_passes
from tui.custody.statement import Evidence, Receipt, Result, Subject, about, consumer_of, copy_evidence
from tui.model.custody import (
    CopyReport,
    DigestReport,
    LoadReport,
    MetricReport,
    ReadbackReport,
    Refusal,
    Roster,
)
from tui.model.text import amount


def roster_receipt(roster: Roster) -> Receipt:
    """What must survive, and what was decided about everything else."""
    decided = [one for one in roster.leftovers if one.decision is not None]
    told = "; ".join(f"{one.decision} {one.group} ({one.count} files)" for one in decided)
    size = sum(one.size for one in roster.artifacts)
    return Receipt(
        act="roster",
        result=_result(roster.refusals),
        at=roster.taken_at,
        subjects=(about(roster, "roster"), about(roster.victim, roster.victim.name)),
        victim=roster.victim,
        run=roster.run,
        detail=f"For {roster.verb}: {len(roster.artifacts)} files, {amount(size)}. {told}".strip(),
        refusals=roster.refusals,
        gaps=roster.gaps,
    )


def digest_receipt(roster: Roster, digests: DigestReport, manifest: Path) -> Receipt:
    """The SHA-256 sums of a run. The digest of the manifest's own bytes is anchored here.

    Args:
        manifest: where the list lies on this computer.
    """
    pointer = Evidence(
        uri=str(manifest),
        sha256=digests.manifest,
        size=None,
        provider="this computer",
        mutability="mutable",
        verified_at=digests.taken_at,
    )
    return Receipt(
        act="digest-report",
        result=_result(digests.refusals),
        at=digests.taken_at,
        subjects=(
            about(digests, "digest report"),
            Subject(name=MANIFEST, sha256=digests.manifest),
            about(roster, "roster"),
        ),
        victim=roster.victim,
        run=roster.run,
        detail=f"{len(digests.files)} of {len(roster.artifacts)} files hashed.",
        evidence=(pointer,),
        refusals=digests.refusals,
    )


def copy_receipt(roster: Roster, digests: DigestReport, copied: CopyReport) -> Receipt:
    """What a pull came to, with the keys that were let in for it."""
    keys = [
        f"Single-use key {one.fingerprint} of {one.source}: let in by {one.target} at {one.admitted_at}, "
        + (f"gone at {one.removed_at}." if one.removed_at else "perhaps still there.")
        for one in copied.admissions
    ]
    return Receipt(
        act="copy-report",
        result=_result(copied.refusals),
        at=copied.finished_at,
        subjects=(about(copied, "copy report"), about(digests, "digest report")),
        victim=roster.victim,
        run=roster.run,
        detail=" ".join([f"{len(copied.files)} files, {copied.route}.", *keys]),
        evidence=() if copied.refusals else (copy_evidence(digests, copied),),
        refusals=copied.refusals,
        gaps=copied.gaps,
    )


def readback_receipt(
    roster: Roster, digests: DigestReport, copied: CopyReport, readback: ReadbackReport
) -> Receipt:
    """What a readback came to."""
    return Receipt(
        act="readback-report",
        result=_result(readback.refusals),
        at=readback.finished_at,
        subjects=(about(readback, "readback report"), about(copied, "copy report")),
        victim=roster.victim,
        run=roster.run,
        detail=f"Read by {consumer_of(readback)}.",
        evidence=() if readback.refusals else (copy_evidence(digests, copied, readback),),
        refusals=readback.refusals,
        gaps=readback.gaps,
    )


def load_receipt(roster: Roster, loaded: LoadReport) -> Receipt:
    """What the checkpoints of a readback are. One that does not load is a refusal here."""
    against = (*loaded.refusals, *_unloaded(loaded))
    return Receipt(
        act="load-report",
        result=_result(against),
        at=loaded.finished_at,
        subjects=(about(loaded, "load report"), Subject(name="readback report", sha256=loaded.readback)),
        victim=roster.victim,
        run=roster.run,
        detail=f"Checkpoints: {_count(one.verdict for one in loaded.checkpoints)}.",
        refusals=against,
        gaps=loaded.gaps,
    )


def metric_receipt(roster: Roster, measured: MetricReport) -> Receipt:
    """What became of the reported metrics. A wrong one is a refusal here."""
    against = (*measured.refusals, *_wrong(measured))
    return Receipt(
        act="metric-report",
        result=_result(against),
        at=measured.finished_at,
        subjects=(about(measured, "metric report"), Subject(name="load report", sha256=measured.load)),
        victim=roster.victim,
        run=roster.run,
        detail=f"Metrics: {_count(one.verdict for one in measured.metrics)}.",
        refusals=against,
        gaps=measured.gaps,
    )


def _unloaded(loaded: LoadReport) -> Iterator[Refusal]:
    for one in loaded.checkpoints:
        if not checkpoint_passes(one):
            yield refusal("checkpoint-refused", f"{one.verdict} ({one.code}): {one.detail}", one.path)


def _wrong(measured: MetricReport) -> Iterator[Refusal]:
    for one in measured.metrics:
        if not metric_passes(one):
            figures = f"{one.reported or 'none'} reported, {one.recomputed or 'none'} recomputed"
            yield refusal("metric-wrong", f"{one.name}: {figures} ({one.verdict}).")


def _count(words: Iterable[str]) -> str:
    """``3 ok, 1 refused``; ``none`` without any."""
    told = list(words)
    return ", ".join(f"{told.count(word)} {word}" for word in dict.fromkeys(told)) or "none"


def _result(refusals: tuple[Refusal, ...]) -> Result:
    return "refused" if refusals else "passed"
