"""From findings to a diagnosis: what training got over, what came first, and what merely followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tui.model.incident import Fact, Incident, RemedyStep, RuledOut, RunOutcome, Severity
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, safe
from tui.triage.catalog import Catalog
from tui.triage.exclude import excluded
from tui.triage.finding import Finding
from tui.triage.inputs import Known
from tui.triage.readers.endings import root_cause
from tui.triage.readers.exceptions import raised
from tui.triage.view import View

_FEW = 12
"""Windows that other ranks may still print after the failure that ends them all."""

_GENERAL = "proc_exception"
_CAUSE = 3
_GOES_ON = "the program says that it goes on all the same"
_STEP: dict[Severity, int] = {"fatal": 0, "warning": 1, "info": 2}
_MOST = 8
_EVIDENCE = 6


def settled(found: Iterable[Finding], views: Sequence[View]) -> tuple[list[Finding], tuple[RuledOut, ...]]:
    """Drop or soften what training went on after. Gives what is left, and what was left out and why."""
    found = list(found)
    kept: list[Finding] = []
    out: dict[str, RuledOut] = {}
    for finding in found:
        why = _got_over(finding, found, views)
        if why is None:
            kept.append(finding)
            continue
        after = finding.rule.handled if why == _GOES_ON else finding.rule.afterwards
        if after == "same":
            kept.append(finding)
        elif after in ("warning", "info"):
            kept.append(_softened(finding, after, "retrying" if why == _GOES_ON else "went_on"))
        elif finding.cls not in out:
            name = which(finding)
            out[finding.cls] = RuledOut(finding.cls, safe(f"{name}: {why}" if name else why))
    classes = {finding.cls for finding in kept}
    return kept, tuple(one for cls, one in out.items() if cls not in classes)


_STAMP = re.compile(r"\[\s*(\d{1,10}\.\d{1,9})\]")


def which(finding: Finding) -> SafeText:
    """What tells a finding from another of its class: the process, and where or when. Empty: nothing does."""
    parts: list[str] = []
    pid, process = finding.facts.get("pid"), finding.facts.get("process")
    if isinstance(pid, int):
        parts.append(f"pid {pid} ({process})" if process else f"pid {pid}")
    first = finding.evidence[0] if finding.evidence else None
    if first is not None and (stamp := _STAMP.match(first.text)):
        parts.append(f"at kernel time {stamp[1]} s")
    elif first is not None and first.line is not None:
        source = "" if first.source == "log" else f"{first.source} "
        parts.append(f"{source}line {first.line}")
    return safe(", ".join(parts), 120)


def _softened(finding: Finding, severity: Severity, fact: str) -> Finding:
    worse = max(_STEP[severity], _STEP[finding.severity])
    level: Severity = next(name for name, step in _STEP.items() if step == worse)
    return replace(finding, severity=level, facts={**finding.facts, fact: True})


def _got_over(finding: Finding, found: Sequence[Finding], views: Sequence[View]) -> str | None:
    """Why a finding says nothing about the state now; None when it may."""
    if finding.settled or finding.view < 0 or finding.at is None:
        return None
    view = views[finding.view]
    if view.kind not in ("log", "shell"):
        return None
    after = _after(finding, view)
    finished = view.finished_at is not None and view.finished_at > finding.at and not view.only_closed
    last = max(after[-1] if after else -1, view.finished_at or -1 if finished else -1)
    if after or finished:
        ends_badly = any(
            other.view == finding.view and other.at is not None and other.at > last
            and other.severity == "fatal" and not view.handled(other.at)
            for other in found
        )  # fmt: skip
        if not ends_badly:
            return "the run ended well after it" if finished else "training went on after it"
        if len(after) > _FEW or view.restarted_after(finding.at):
            return "training went on after it"
    elif view.restarted_after(finding.at) and not _again(finding, found, view):
        return "it belongs to an earlier attempt"
    if view.handled(finding.at):
        return _GOES_ON
    return None


def _after(finding: Finding, view: View) -> list[int]:
    """Rows that show training at work after a finding.

    A program that ends by an exception writes what it still held back behind the traceback: one figure that
    is the last word of a log does not show that the loop runs.
    """
    after = view.strong_after(finding.at if finding.at is not None else -1)
    last = next((at for at in range(len(view.rows) - 1, -1, -1) if view.rows[at].text.strip()), -1)
    if after == [last] and any(one.at == finding.at and one.frames for one in raised(view)):
        return []
    return after


def _again(finding: Finding, found: Sequence[Finding], view: View) -> bool:
    """Whether something fatal stands after the last new attempt."""
    return any(
        other.view == finding.view and other.at is not None and other.severity == "fatal"
        and not view.restarted_after(other.at)
        for other in found
    )  # fmt: skip


def _key(finding: Finding) -> tuple[int, int, int, int, int]:
    later = finding.view if finding.view >= 0 else 99
    return (_STEP[finding.severity], -finding.tier, later, finding.order, -finding.rank)


def incidents(
    found: Sequence[Finding],
    views: Sequence[View],
    catalog: Catalog,
    telemetry: Telemetry | None,
    known: Known,
) -> tuple[Incident, ...]:
    """The classes that were found, first cause first; what follows from the first is named beside it only."""
    ordered = _behind_its_cause(sorted(found, key=_key))
    by_class: dict[str, list[Finding]] = {}
    named = {(one.view, one.at) for one in found if one.cls != _GENERAL and one.at is not None}
    for finding in ordered:
        if finding.cls == _GENERAL and finding.tier < _CAUSE and (finding.view, finding.at) in named:
            continue  # the same line has a better name
        by_class.setdefault(finding.cls, []).append(finding)
    if not by_class:
        return ()
    first = next(iter(by_class.values()))[0]
    also = {
        cls: which(group[0])
        for cls, group in by_class.items()
        if cls != first.cls and _follows(group[0], first)
    }
    made = [
        _incident(cls, group, views, catalog, also if cls == first.cls else {}, telemetry, known)
        for cls, group in by_class.items()
        if cls not in also
    ]
    return tuple(made[:_MOST])


def _behind_its_cause(ordered: list[Finding]) -> list[Finding]:
    """What was stopped on purpose dies of signals: the stop goes before the deaths that came of it."""
    first = ordered[0] if ordered else None
    if first is None or first.tier > 1 or first.view < 0:
        return ordered
    stops = [
        one for one in ordered
        if one.view == first.view and one.tier >= first.tier and one.cls == "cancelled_by_user"
        and one.order < first.order
    ]  # fmt: skip
    return stops[:1] + [one for one in ordered if one is not stops[0]] if stops else ordered


def _follows(finding: Finding, first: Finding) -> bool:
    """Whether a finding may be a consequence of the first one: later in the same text, or telling less."""
    if first.severity != "fatal" and first.cls != "cancelled_by_user":
        return False
    if finding.view == first.view and finding.view >= 0:
        return True
    return finding.tier < first.tier and finding.view >= 0


def _incident(
    cls: str,
    group: Sequence[Finding],
    views: Sequence[View],
    catalog: Catalog,
    also: Mapping[str, SafeText],
    telemetry: Telemetry | None,
    known: Known,
) -> Incident:
    front = catalog.entries[cls].front
    group = _telling_first(group)
    first = group[0]
    facts: dict[str, Fact] = dict(first.facts)
    for other in group[1:_EVIDENCE]:
        if other.view == first.view:
            for name, value in other.facts.items():
                if name in _SHARED:
                    facts.setdefault(name, value)
    facts = _enriched(facts, first, views)
    lines = list(dict.fromkeys(piece for finding in group for piece in finding.evidence))
    return Incident(
        cls,
        safe(front.title),
        first.severity,
        front.plane,
        round(min(0.99, first.confidence + 0.02 * (len(group) - 1)), 2),
        front.retry,
        tuple(lines[:_EVIDENCE]),
        excluded(cls, facts, telemetry, known),
        tuple(
            RemedyStep(
                safe(_filled(step.text, facts)), step.level,
                safe(_filled(step.command, facts)) if step.command else None, step.look,
            )
            for step in front.remedy
        ),
        tuple(facts.items()),
        tuple(also),
        which(first),
        tuple(also.values()),
    )  # fmt: skip


_NEAR = 40


def _telling_first(group: Sequence[Finding]) -> list[Finding]:
    """Of lines that say the same near each other, the one that says it best goes first."""
    first = group[0]
    near = [
        one for one in group
        if one.view == first.view and one.severity == first.severity and one.order - first.order <= _NEAR
    ]  # fmt: skip
    best = max(near, key=lambda one: (one.rank, -one.order))
    return [best, *(one for one in group if one is not best)]


_SHARED = frozenset(
    {
        "globals", "missing", "arch", "module", "port", "resource", "danger", "errno", "http", "service",
        "path", "joined", "iteration", "scope", "found",
    }
)  # fmt: skip


def _enriched(facts: dict[str, Fact], first: Finding, views: Sequence[View]) -> dict[str, Fact]:
    """Facts that another place of the same text tells: the rank the launcher names as the first to fail."""
    if first.view >= 0:
        root = root_cause(views[first.view])
        if root is not None and root.rank is not None:
            facts.setdefault("rank", root.rank)
            if root.how != "error" and first.cls.startswith(("sigkill", "proc_")) and root.signal:
                facts.setdefault("signal", root.signal)
    return facts


def _filled(text: str, facts: dict[str, Fact]) -> str:
    """Fill ``{name}`` with facts; a name that is not known stays as a placeholder for the operator."""
    for name, value in facts.items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            text = text.replace("{" + name + "}", str(value))
    return text


_NOW: dict[RunOutcome, str] = {
    "running": "The run is alive.",
    "finished": "The run has ended by itself.",
    "dead": "The run is dead.",
    "stalled": "The run is alive and does not get on.",
    "unknown": "",
    "unreachable": "The box does not answer: the run may live on.",
}


def verdict(found: tuple[Incident, ...], state: RunOutcome, catalog: Catalog, *, has_log: bool) -> SafeText:
    """One sentence for the top, and one about the run where something is known about it."""
    if not found:
        seen = {"finished": "The run has ended by itself; nothing points to a fault.",
                "running": "Nothing is wrong that the evidence shows.",
                "dead": "The run is gone, and nothing shows why.",
                "stalled": "The run is alive and silent; nothing shows why.",
                "unreachable": "The box does not answer; the run may live on."}  # fmt: skip
        nothing = "Nothing is wrong that the log shows." if has_log else "There is no evidence of a fault."
        return safe(seen.get(state, nothing))
    first = found[0]
    front = catalog.entries[first.cls].front
    text = _filled(front.verdict or front.title, dict(first.facts))
    text = text if "{" not in text else front.title  # a fact the sentence needs is not known
    return safe(f"{text.rstrip('.')}. {_NOW[state]}".strip())
