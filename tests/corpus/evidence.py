"""A case as evidence for triage, and its diagnosis under the names the cases use. Nothing is decided here."""

from __future__ import annotations

import functools
import re
from typing import Any

from tests.corpus.runner import Case
from tui.model.incident import Diagnosis
from tui.model.reading import known as is_known
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, safe
from tui.triage.catalog import load
from tui.triage.engine import diagnose
from tui.triage.inputs import Known, Said, kind_of
from tui.triage.rules import Rules, compiled
from tui.triage.scan import scan

NOW = 1_800_000_000.0


@functools.cache
def rules() -> Rules:
    return compiled(load())


def of_output(case: Case, telemetry: Telemetry | None = None) -> dict[str, Any]:
    """What triage makes of what a command printed."""
    ctx = case.ctx
    text = case.stdout.decode("utf-8", "surrogateescape")
    if ctx.get("processes"):
        text = f"{text}\n{ctx['processes']}"
    command = case.cmd or ""
    said = Said(
        kind_of(command), safe(command.split("\n")[0], 200), text,
        case.stderr.decode("utf-8", "surrogateescape"), case.rc, command, NOW,
    )  # fmt: skip
    return fields(diagnose(rules(), None, [said], telemetry, known(case)))


def of_log(case: Case) -> dict[str, Any]:
    """What triage makes of a log."""
    digest = scan([case.stdout], rules().finder)
    return fields(diagnose(rules(), digest, [], None, known(case)))


def known(case: Case) -> Known:
    """What the program already knew, as the case tells it."""
    ctx = case.ctx
    started, now = ctx.get("job_started"), ctx.get("now")
    if "job_started_s_ago" in ctx:
        started, now = NOW - ctx["job_started_s_ago"], NOW
    return Known(
        boot_id=ctx.get("stored"),
        started_at=started,
        now=now,
        oom_kills=(ctx.get("prev") or {}).get("oom_kill"),
        alive=ctx.get("process_alive"),
        log_age_s=ctx.get("age_s"),
        epochs=ctx.get("max_epochs"),
        ended_far_side="marker" in ctx,
        without_gpu="started without GPU" in str(ctx.get("note", "")),
        host_pids=True if re.search(r"host pid namespace: yes", str(ctx.get("ps", ""))) else None,
    )


def telemetry(**parts: Any) -> Telemetry:
    """A probe with these parts; None leaves one out."""
    known_parts: dict[str, Any] = {
        name: is_known(value) for name, value in parts.items() if value is not None
    }
    return Telemetry(NOW, **known_parts)


def fields(found: Diagnosis) -> dict[str, Any]:
    """The diagnosis as the cases write it."""
    dead = any(one.severity == "fatal" for one in found.incidents)
    answer: dict[str, Any] = {
        "incident": None, "finished": found.outcome == "finished", "job_continues": not dead,
    }  # fmt: skip
    if not found.incidents:
        if any("earlier" in one.why or "training went on" in one.why for one in found.ruled_out):
            answer["note"] = "older_run"
        return answer
    first = found.incidents[0]
    evidence = first.evidence[0]
    plain: dict[str, Any] = {name: _plain(value) for name, value in first.facts}
    answer = {**plain, **answer, "incident": first.cls, "severity": first.severity, "also": list(first.also)}
    answer["evidence_line"] = evidence.line
    answer["evidence"] = str(evidence.source if evidence.source in _SOURCES else evidence.text)
    return answer


_SOURCES = frozenset(map(SafeText, ("stderr", "rc")))


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
