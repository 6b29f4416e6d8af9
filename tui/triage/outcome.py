"""What is true of a run now. A log proves that something happened once; only the box says what still is."""

from __future__ import annotations

from tui.model.incident import RunOutcome
from tui.model.telemetry import Gpu, RunTruth, Telemetry
from tui.triage.inputs import Known

IDLE_PCT = 5.0
"""Utilisation of the busiest card below which a silent run is not at work."""


def outcome(known: Known, telemetry: Telemetry | None, *, ended_well: bool, has_log: bool) -> RunOutcome:
    """Tell running, finished, dead, stalled, unknown and unreachable apart.

    Args:
        ended_well: the log's end is a regular one.
        has_log: a log was read at all.
    """
    if known.reachable is False:
        return "unreachable"
    truth = _truth(known, telemetry)
    alive = truth.alive if truth and truth.alive is not None else known.alive
    session = truth.session_alive if truth and truth.session_alive is not None else known.session_alive
    ended_well = ended_well if truth is None or truth.end is None else truth.finished
    if _rebooted(known, telemetry):
        return "finished" if ended_well else "dead"
    if alive is None and session is False:
        alive = False
    if alive is False:
        return "finished" if ended_well or known.rc == 0 else "dead"
    if alive and _stopped(truth):
        return "stalled"
    if alive:
        return "stalled" if _silent(known, truth, telemetry) and not ended_well else "running"
    if truth is not None and truth.end is not None:
        return "finished" if truth.finished else "dead"
    if known.rc is not None and known.rc != 0:
        return "dead"
    return "finished" if has_log and ended_well else "unknown"


def _stopped(truth: RunTruth | None) -> bool:
    """Stopped by a signal or a tracer: alive, and it will do nothing until somebody lets it go on."""
    return truth is not None and truth.process is not None and truth.process.state in ("T", "t")


def _truth(known: Known, telemetry: Telemetry | None) -> RunTruth | None:
    if telemetry is None:
        return None
    return next((one for one in telemetry.runs if one.run == known.run), None)


def _rebooted(known: Known, telemetry: Telemetry | None) -> bool:
    host = telemetry.host.value if telemetry else None
    if host is None:
        return False
    if known.boot_id is not None and host.boot_id is not None and host.boot_id != known.boot_id:
        return True
    started = host.container_started_at
    return known.started_at is not None and started is not None and started > known.started_at + 5


def _silent(known: Known, truth: RunTruth | None, telemetry: Telemetry | None) -> bool:
    """No line for long, and no card at work. A busy card with a silent log may be a long validation."""
    age = known.log_age_s
    log = truth.log.value if truth else None
    if age is None and log is not None and telemetry is not None:
        host = telemetry.host.value
        age = telemetry.taken_at + ((host.clock_offset_s if host else None) or 0.0) - log.modified_at
    if age is None or age < known.quiet_s:
        return False
    busy = _busiest((telemetry.gpus.value if telemetry else None) or ())
    return busy is None or busy < IDLE_PCT


def _busiest(gpus: tuple[Gpu, ...]) -> float | None:
    return max((gpu.util_pct for gpu in gpus if gpu.util_pct is not None), default=None)
