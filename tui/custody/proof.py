"""The proof that nothing is lost: made only from a chain in which every report stands on the one before.

Wrong numbers and lost data refuse. Missing paperwork is a gap, which is recorded and stops nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tui.checkpoints import codes as checkpoint_codes
from tui.custody.codes import gap, refusal
from tui.custody.identity import identified, surely_same
from tui.custody.moments import moment, seconds
from tui.model.custody import (
    CheckpointFinding,
    CopyReport,
    DigestReport,
    Gap,
    LoadReport,
    MetricFinding,
    MetricReport,
    Moment,
    Place,
    Proof,
    ReadbackReport,
    Refusal,
    Roster,
    Sha256,
    Tier,
    Verb,
    Victim,
)

LASTS_S = 3600.0
"""How long a proof may be acted on."""

CLOCK_SLACK_S = 60.0
"""How much later than now a date may be before the clock is taken to have gone back."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The reports of one run, each made from the one before."""

    roster: Roster
    digests: DigestReport
    copied: CopyReport
    readback: ReadbackReport
    load: LoadReport
    metrics: MetricReport


@dataclass(frozen=True, slots=True)
class Money:
    """What was spent and what goes on billing, in words: ``12.40 USD``; what is not known says ``?``."""

    spent: str
    bills_afterwards: str


def make_proof(
    roster: Roster,
    digests: DigestReport,
    copied: CopyReport,
    readback: ReadbackReport,
    load: LoadReport,
    metrics: MetricReport,
    victim: Victim,
    money: Money,
    now: float,
    *,
    verb: Verb | None = None,
    lasts_s: float = LASTS_S,
) -> Proof | tuple[Refusal, ...]:
    """The proof for one machine and one verb, or everything that stands against it.

    Args:
        victim: the machine as it is known now, which must be the one the roster was taken on.
        now: seconds since the epoch.
        verb: what is about to be done, None for what the roster was taken for.
    """
    chain = Chain(roster, digests, copied, readback, load, metrics)
    against = tuple(_against(chain, victim, verb or roster.verb, now))
    if against:
        return against
    destroys, survives = _fates(roster.tiers)
    return Proof(
        run=roster.run,
        victim=victim,
        verb=roster.verb,
        roster=roster.digest,
        digests=digests.digest,
        copied=copied.digest,
        readback=readback.digest,
        load=load.digest,
        metrics=metrics.digest,
        destroys=destroys,
        survives=survives,
        bills_afterwards=money.bills_afterwards,
        spent=money.spent,
        copied_at=copied.finished_at,
        gaps=_gaps(chain),
        made_at=moment(now),
        expires_at=moment(now + lasts_s),
    )


def _against(chain: Chain, victim: Victim, verb: Verb, now: float) -> Iterator[Refusal]:
    yield from _told(chain)
    yield from _links(chain)
    yield from _machine(chain, victim, verb)
    yield from _roster(chain.roster)
    yield from _files(chain)
    yield from _places(chain)
    yield from _checkpoints(chain)
    yield from _metrics(chain.metrics)
    yield from _dates(chain, now)


def _told(chain: Chain) -> Iterator[Refusal]:
    """What the steps refused themselves."""
    for report in _reports(chain):
        yield from report.refusals


def _reports(
    chain: Chain,
) -> tuple[Roster, DigestReport, CopyReport, ReadbackReport, LoadReport, MetricReport]:
    return chain.roster, chain.digests, chain.copied, chain.readback, chain.load, chain.metrics


def _links(chain: Chain) -> Iterator[Refusal]:
    links: tuple[tuple[str, Sha256, Sha256], ...] = (
        ("The SHA-256 sums", chain.digests.roster, chain.roster.digest),
        ("The copy", chain.copied.digests, chain.digests.digest),
        ("The readback", chain.readback.copy_report, chain.copied.digest),
        ("The load report", chain.load.readback, chain.readback.digest),
        ("The metric report", chain.metrics.load, chain.load.digest),
    )
    for title, says, is_ in links:
        if says != is_:
            yield refusal("chain-broken", f"{title} names {says[:15]}…, the step before it is {is_[:15]}….")


def _machine(chain: Chain, victim: Victim, verb: Verb) -> Iterator[Refusal]:
    if not identified(victim):
        yield refusal("machine-unidentified", f"{victim.name} has neither an id nor a recorded host key.")
    elif not surely_same(victim, chain.roster.victim):
        yield refusal("other-machine", f"The roster was taken on another machine than {victim.name} is now.")
    if verb != chain.roster.verb:
        yield refusal("proof-other", f"The roster was taken for {chain.roster.verb}, not for {verb}.")


def _roster(roster: Roster) -> Iterator[Refusal]:
    if not roster.artifacts:
        yield refusal("roster-empty", "The roster has no artifact.")
    for writer in roster.writers:
        yield refusal("live-writer", writer.evidence, writer.path)
    for group in roster.leftovers:
        if group.decision is None:
            yield refusal("unclassified", f"{group.title}: {group.count} files.", group.group)
    for role, count in roster.declared:
        there = sum(one.role == role for one in roster.artifacts)
        if there != count:
            yield refusal("roster-count", f"{count} of {role} are declared, {there} are there.")


def _files(chain: Chain) -> Iterator[Refusal]:
    """Every report is about exactly the artifacts, byte for byte."""
    names = {one.path: one.size for one in chain.roster.artifacts}
    if len(names) != len(chain.roster.artifacts):
        yield refusal("files-differ", "The roster names a file twice.")
    hashed = {one.path: (one.size, one.sha256) for one in chain.digests.files}
    sizes = {path: size for path, (size, _) in hashed.items()}
    if sizes != names or len(hashed) != len(chain.digests.files):
        path = _odd_one(names, sizes)
        yield refusal("files-differ", "The SHA-256 sums are not of exactly the roster's files.", path)
    for title, files, code in (
        ("copy", chain.copied.files, "files-differ"),
        ("readback", chain.readback.files, "readback-inexact"),
    ):
        got = {one.path: (one.size, one.sha256) for one in files}
        if got != hashed or len(got) != len(files):
            yield refusal(code, f"The {title} is not byte for byte what was hashed.", _odd_one(hashed, got))
    for what in ("missing", "extra", "different"):
        paths: Sequence[str] = getattr(chain.readback, what)
        if paths:
            yield refusal("readback-inexact", f"{len(paths)} files are {what} in the copy.", paths[0])


def _odd_one(wanted: Mapping[str, object], got: Mapping[str, object]) -> str | None:
    paths = wanted.keys() | got.keys()
    return next((path for path in sorted(paths) if wanted.get(path) != got.get(path)), None)


def _places(chain: Chain) -> Iterator[Refusal]:
    victim = chain.roster.victim
    copy, reader = chain.copied.destination, chain.readback.consumer
    if copy.box == victim.name and not _survives(copy, chain.roster.tiers):
        yield refusal("copy-on-victim", f"{copy.uri} goes with {victim.name}.")
    if reader.box == victim.name:
        yield refusal("read-by-producer", f"It was read back on {victim.name} itself.")


def _survives(place: Place, tiers: Iterable[Tier]) -> bool:
    """Whether the deepest tier that holds a place surely survives."""
    path = PurePosixPath(place.path)
    holding = [tier for tier in tiers if path.is_relative_to(tier.path)]
    deepest = max(holding, key=lambda tier: len(PurePosixPath(tier.path).parts), default=None)
    return ".." not in path.parts and deepest is not None and deepest.survives is True


def _checkpoints(chain: Chain) -> Iterator[Refusal]:
    for finding in chain.load.checkpoints:
        if not checkpoint_passes(finding):
            detail = f"{finding.verdict} ({finding.code}): {finding.detail}"
            yield refusal("checkpoint-refused", detail, finding.path)
    tried = {finding.path for finding in chain.load.checkpoints}
    for one in chain.roster.artifacts:
        if one.role == "checkpoint" and not _was_tried(one.path, tried):
            yield refusal("checkpoint-not-loaded", "Nothing is said of it.", one.path)


def checkpoint_passes(finding: CheckpointFinding) -> bool:
    """Accepted, no checkpoint after all, or what the checkpoints room only tells."""
    if finding.verdict in ("ok", "ignore"):
        return True
    code = checkpoint_codes.CODES.get(finding.code)
    return code is not None and code.effect == "gap"


def _was_tried(path: str, tried: set[str]) -> bool:
    """By itself, as part of a folder that is judged as one, or as a shard of the index beside it."""
    here = PurePosixPath(path)
    if tried & {path, *map(str, here.parents)}:
        return True
    return any(PurePosixPath(t).parent == here.parent and t.endswith(".index.json") for t in tried)


_WRONG = ("differs", "population-incomplete")
_WEAKER = ("re-aggregated", "no-ground-truth", "not-declared", "unknown-metric", "disagree", "unreadable")


def metric_passes(one: MetricFinding) -> bool:
    """Recomputed as reported, or honestly weaker than that, which is a gap."""
    return one.verdict == "recomputed" or one.verdict in _WEAKER


def _metrics(report: MetricReport) -> Iterator[Refusal]:
    for one in report.metrics:
        if not metric_passes(one):
            word = "" if one.verdict in _WRONG else f" ({one.verdict})"
            figures = f"{one.reported or 'none'} reported, {one.recomputed or 'none'} recomputed"
            yield refusal("metric-wrong", f"{one.name}: {figures}{word}.")


def _dates(chain: Chain, now: float) -> Iterator[Refusal]:
    for report in _reports(chain):
        at = _date(report)
        if seconds(at) > now + CLOCK_SLACK_S:
            yield refusal("clock-went-back", f"A report is dated {at}, and it is {moment(now)}.")


def _date(report: Roster | DigestReport | CopyReport | ReadbackReport | LoadReport | MetricReport) -> Moment:
    return report.taken_at if isinstance(report, Roster | DigestReport) else report.finished_at


def _gaps(chain: Chain) -> tuple[Gap, ...]:
    """What the reports warn of, and what they do not say themselves although it follows from them."""
    told = [g for report in _reports(chain) if not isinstance(report, DigestReport) for g in report.gaps]
    codes = {one.code for one in told}
    if chain.readback.independence == "same-device" and "same-device" not in codes:
        told.append(gap("same-device", "The copy and its reader share one disk."))
    if not chain.readback.cold and "cache-not-proven-cold" not in codes:
        told.append(gap("cache-not-proven-cold", "The copy may have been read from memory."))
    told += [_metric_gap(one) for one in chain.metrics.metrics if one.verdict in _WEAKER]
    if not chain.roster.tiers and "survival-unknown" not in codes:
        told.append(gap("survival-unknown", "Nothing is known of what survives."))
    return tuple(dict.fromkeys(told))


def _metric_gap(one: MetricFinding) -> Gap:
    return gap("metric-not-recomputed", f"{one.name}: {one.verdict}.")


def _fates(tiers: Iterable[Tier]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is destroyed and what survives; what nobody can tell counts as destroyed."""
    tiers = tuple(tiers)
    destroys = tuple(tier.path for tier in tiers if tier.survives is not True)
    return destroys if tiers else ("everything on it",), tuple(t.path for t in tiers if t.survives is True)


def proof_stands(proof: Proof, roster: Roster, victim: Victim, verb: Verb, now: float) -> tuple[Refusal, ...]:
    """Whether a proof made earlier still speaks for this act, on this machine, at this moment."""
    against: list[Refusal] = []
    if proof.verb != verb:
        against.append(refusal("proof-other", f"It is for {proof.verb}, not for {verb}."))
    if proof.roster != roster.digest or not surely_same(roster.victim, proof.victim):
        against.append(refusal("proof-other", "It is for another roster."))
    if not surely_same(proof.victim, victim):
        against.append(
            refusal("other-machine", f"The proof is for another machine than {victim.name} is now.")
        )
    if seconds(proof.made_at) > now + CLOCK_SLACK_S:
        against.append(refusal("clock-went-back", f"The proof is dated {proof.made_at}."))
    if now >= seconds(proof.expires_at):
        against.append(refusal("proof-expired", f"It was good until {proof.expires_at}."))
    return tuple(against)
