"""Evidence in, diagnosis out. Pure: it reads no file and asks no box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui.model.incident import Diagnosis, Evidence, Fact, Severity
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, safe
from tui.triage import predicates, weigh
from tui.triage.finding import Finding, Hit
from tui.triage.inputs import NOTHING_KNOWN, Known, Said
from tui.triage.needles import DROPPED, FOLDED
from tui.triage.outcome import outcome
from tui.triage.remarks import remarks
from tui.triage.rules import Ready, Rules
from tui.triage.scan import Digest
from tui.triage.view import View, of_text

LOG = SafeText("log")
_PER_RULE = 60
"""Hits of one rule in one text that are weighed: as many from its beginning as from its end."""


def diagnose(
    rules: Rules,
    log: Digest | None = None,
    said: Sequence[Said] = (),
    telemetry: Telemetry | None = None,
    known: Known = NOTHING_KNOWN,
) -> Diagnosis:
    """Say what is wrong with a run or a box.

    Args:
        log: what `tui.triage.scan.scan` kept of the run's log.
        said: answers of commands: looks, and what ssh or a scheduler said.
        telemetry: the newest probe.
        known: what was known before and besides.

    Returns:
        The first cause first. Never raises on any input.
    """
    views = _views(log, said, telemetry, known)
    found = [finding for index, view in enumerate(views) for finding in _in_view(rules, view, index)]
    found += _in_telemetry(rules, telemetry, known)
    kept, ruled_out = weigh.settled(found, views)
    log_view = views[0] if log is not None else None
    ended_well = log_view is not None and _ended_well(log_view, kept)
    state = outcome(known, telemetry, ended_well=ended_well, has_log=log is not None)
    incidents = weigh.incidents(kept, views, rules.catalog, telemetry, known)
    taken = [telemetry.taken_at] if telemetry else []
    taken += [one.at for one in said if one.at is not None]
    verdict = weigh.verdict(incidents, state, rules.catalog, has_log=log is not None)
    return Diagnosis(state, verdict, incidents, max(taken, default=None), ruled_out, remarks(views))


def _ended_well(view: View, kept: Sequence[Finding]) -> bool:
    """A regular end; that of a tracker says nothing where something fatal stands before it."""
    if view.finished_at is None:
        return False
    died = any(one.view == 0 and one.at is not None and one.severity == "fatal" for one in kept)
    return not (view.only_closed and died)


def _views(log: Digest | None, said: Sequence[Said], telemetry: Telemetry | None, known: Known) -> list[View]:
    views: list[View] = []
    if log is not None:
        views.append(
            View("log", LOG, log.rows, known, telemetry, known.rc, whole=log.whole, cut_at_end=log.cut_at_end)
        )
    elif known.rc:  # a run that left nothing but its status
        views.append(View("log", LOG, (), known, telemetry, known.rc))
    views += [of_text(one, known, telemetry) for one in said]
    for view in views:
        view.others = tuple(other for other in views if other is not view)
    return views


def _in_view(rules: Rules, view: View, index: int) -> Iterator[Finding]:
    subjects = [*predicates.subjects(view.telemetry, view.known), predicates.of_view(view)]
    for ready in rules.ready:
        if view.kind not in ready.rule.reads:
            continue
        asks_view = any(ask.subject == "said" for ask in ready.when)
        if not (ready.match or ready.reader or asks_view):
            continue
        rows = predicates.matching(ready.when, subjects)
        if ready.when and not rows:
            continue
        if ready.match:
            hits: Iterator[Hit] = _matches(rules, ready, view)
        elif ready.reader:
            hits = ready.reader.read(view, ready.cls)
        else:
            hits = iter([Hit(None, _told(rows), source="rc")])
        for hit in _bounded(hit for hit in hits if _allowed(ready, view, hit)):
            yield _finding(ready, hit, view, index)


def _told(rows: list[predicates.Subject]) -> str:
    said = next((one for one in rows if one.name == "said"), None)
    return f"{said.source}: exit status {said.values.get('rc')}" if said else "as was known"


def _bounded(hits: Iterator[Hit]) -> list[Hit]:
    found = list(hits)
    return found if len(found) <= 2 * _PER_RULE else found[:_PER_RULE] + found[-_PER_RULE:]


def _candidates(rules: Rules, view: View) -> Sequence[int]:
    """Rows that hold any word of any rule."""
    if "candidates" not in view.cache:
        search = rules.finder.search
        view.cache["candidates"] = [
            index
            for index, one in enumerate(view.rows)
            if search(one.text.encode("utf-8", "replace").translate(FOLDED, DROPPED))
        ]
    found: list[int] = view.cache["candidates"]
    return found


def _matches(rules: Rules, ready: Ready, view: View) -> Iterator[Hit]:
    worded = all(pattern.words for pattern in ready.match)
    for index in _candidates(rules, view) if worded else range(len(view.rows)):
        one = view.rows[index]
        for pattern in ready.match:
            match = pattern.find(one)
            if match is None:
                continue
            if not view.quoted(index, match.start()) and not view.source_line(index):
                yield Hit(index, facts=_facts(match.groupdict(), one.rank) | _told_near(ready, view, index))
            break


_NEAR = 30
_LISTS = frozenset({"globals", "missing"})


def _told_near(ready: Ready, view: View, index: int) -> dict[str, Fact]:
    """Facts from the lines around; the nearest after the line first, then before it."""
    facts: dict[str, Fact] = {}
    if not ready.tells:
        return facts
    places = [index, *range(index + 1, index + _NEAR), *range(index - 1, index - _NEAR, -1)]
    for pattern in ready.tells:
        for place in places:
            if not 0 <= place < len(view.rows):
                continue
            match = pattern.find(view.rows[place])
            if match:
                for name, value in _facts(match.groupdict(), None).items():
                    facts.setdefault(name, value)
                break
    return facts


def _facts(groups: dict[str, str | None], rank: int | None) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for name, value in groups.items():
        if value is None or not value.strip():
            continue
        if name in _LISTS:
            facts[name] = tuple(str(safe(part.strip(), 200)) for part in value.split(","))
        elif name.endswith("_cuda") and value.isdecimal():  # 11040 stands for 11.4
            facts[name.removesuffix("_cuda")] = f"{int(value) // 1000}.{int(value) % 1000 // 10}"
        else:
            facts[name.rstrip("_")] = _typed(value.strip())
    if rank is not None:
        facts.setdefault("rank", rank)
    return facts


def _typed(value: str) -> str | int | float:
    if value.isdecimal() and len(value) < 16 and (value == "0" or value[0] != "0"):
        return int(value)
    return str(safe(value, 400))


def _allowed(ready: Ready, view: View, hit: Hit) -> bool:
    """Whether what must also hold does, and nothing speaks against it."""
    rule = ready.rule
    if hit.at is not None:
        one = view.rows[hit.at]
        if any(pattern.find(one) for pattern in ready.unless):
            return False
    if rule.within and hit.at is not None:
        rows = view.rows[max(0, hit.at - rule.within) : hit.at + rule.within + 1]
    else:
        rows = view.rows
    if ready.also and not any(p.find(one) for one in rows for p in ready.also):
        return False
    return not any(p.find(one) for one in rows for p in ready.without)


def _finding(ready: Ready, hit: Hit, view: View, index: int) -> Finding:
    rule = ready.rule
    severity: Severity = hit.severity or rule.severity or ready.entry.front.severity
    evidence: list[Evidence] = []
    if hit.at is not None:
        one = view.rows[hit.at]
        evidence.append(Evidence(view.origin(hit.at), safe(one.text.strip(), 600), one.number, view.at))
    if hit.words:
        source = safe(hit.source) if hit.source else view.source
        evidence.append(Evidence(source, safe(hit.words), None, view.at))
    return Finding(
        ready.cls,
        rule,
        index,
        hit.at,
        tuple(evidence),
        severity,
        rule.rank if hit.rank is None else hit.rank,
        rule.confidence if hit.confidence is None else hit.confidence,
        {**rule.facts, **hit.facts},
        hit.settled,
    )


def _in_telemetry(rules: Rules, telemetry: Telemetry | None, known: Known) -> Iterator[Finding]:
    """Rules that need no text."""
    subjects = predicates.subjects(telemetry, known)
    at = telemetry.taken_at if telemetry else None
    for ready in rules.ready:
        if ready.match or ready.reader or any(ask.subject == "said" for ask in ready.when):
            continue
        for subject in predicates.matching(ready.when, subjects)[:8]:
            if subject.name in ("known", "run") and len({ask.subject for ask in ready.when}) > 1:
                continue
            facts = {"subject": subject.label, **ready.rule.facts}
            yield Finding(
                ready.cls, ready.rule, -1, None, (predicates.evidence(subject, ready.when, at),),
                ready.rule.severity or ready.entry.front.severity, ready.rule.rank, ready.rule.confidence,
                facts, settled=True,
            )  # fmt: skip
