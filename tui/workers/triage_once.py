"""One close look at one run without a standing worker: what `rgt triage NAME` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tui.box.looks import Subjects
from tui.box.looks import take as take_look
from tui.box.transport import LinkLost, Script, Transport
from tui.fleet.reducer import Rules as Judging
from tui.fleet.reducer import reduce
from tui.fleet.thresholds import Thresholds
from tui.model.event import Diagnosed, Event, FleetChanged, LinkChanged, Looked, ProgressRead, TelemetryTaken
from tui.model.failure import Failure
from tui.model.instance import Instance, Link, LinkState
from tui.model.run import RunSpec
from tui.model.snapshot import FleetSnapshot
from tui.model.telemetry import Telemetry
from tui.model.text import log_lines
from tui.triage.progress import ProgressReader
from tui.triage.rules import Rules
from tui.triage.scan import Digest, scan
from tui.workers.box import Dial
from tui.workers.evidence import counted_from, diagnosed
from tui.workers.once import state_of, take

LOG_BYTES = 8 << 20
"""Of a log's end that are read over the link."""
DEADLINE_S = 60.0

# The lines before the end are only counted, on the box: evidence is named by its number in the whole file.
_END = Script(
    r"""
size=$(wc -c <"$1") || exit 1
before=$((size > $2 ? size - $2 : 0))
echo "$((before > 0 ? $(head -c "$before" "$1" | wc -l) : 0))"
tail -c "+$((before + 1))" "$1" | head -c "$2"
""".strip(),
    why="read the end of the log, with the number of its first line",
)


@dataclass(frozen=True, slots=True)
class _Seen:
    events: list[Event]
    digest: Digest | None = None


async def look_closely(
    instance: Instance,
    spec: RunSpec | None,
    others: tuple[RunSpec, ...],
    dial: Dial,
    clock: Callable[[], float],
    rules: Rules,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
) -> Diagnosed:
    """Connect, probe, read the log's end, and diagnose. A box that can't be reached is an outcome.

    Args:
        spec: the run; None for a box without one.
        others: all watched runs of the box, so that what they are is known.
    """
    seen = await _seen(instance, spec, others, dial, clock, rules)
    now = clock()
    events = [FleetChanged((instance,), others), *seen.events]
    picture = reduce(FleetSnapshot(), events, now, Judging(thresholds, period_s=60.0))
    box = picture.box(instance.name)
    assert box is not None, "the picture holds the one box it was made of"
    run = picture.run(spec.name) if spec is not None else None
    return diagnosed(rules, box, run, seen.digest, log_at=now if seen.digest is not None else None, at=now)


async def _seen(
    instance: Instance,
    spec: RunSpec | None,
    others: tuple[RunSpec, ...],
    dial: Dial,
    clock: Callable[[], float],
    rules: Rules,
) -> _Seen:
    try:
        async with asyncio.timeout(DEADLINE_S):
            transport = await dial(instance)
            try:
                return await _look(transport, instance, spec, others, clock, rules)
            finally:
                await transport.close()
    except TimeoutError:
        failure: Failure = Failure(f"{instance.name} did not answer within {DEADLINE_S:.0f} s.")
        state = LinkState.UNREACHABLE
    except Failure as refused:
        failure, state = refused, state_of(refused)
    return _Seen([LinkChanged(instance.name, Link(state, clock(), failure.line))])


async def _look(
    transport: Transport,
    instance: Instance,
    spec: RunSpec | None,
    others: tuple[RunSpec, ...],
    clock: Callable[[], float],
    rules: Rules,
) -> _Seen:
    events: list[Event] = [LinkChanged(instance.name, Link(LinkState.LIVE, clock()))]
    telemetry = await take(transport, instance.mounts, others, clock)
    events.append(TelemetryTaken(instance.name, telemetry))
    digest = None
    if spec is not None and spec.log is not None:
        raw, first = await _log_end(transport, spec.log)
        if raw is not None:
            digest = counted_from(scan([raw], rules.finder), first)
            progress = ProgressReader(spec.progress_regex).feed(
                tuple(log_lines(raw[-(128 << 10) :])), clock()
            )
            if progress is not None:
                events.append(ProgressRead(spec.name, progress))
    for look in _looks_for(telemetry, spec):
        subjects = Subjects(pid=spec.pid if spec is not None else None)
        answer = await take_look(transport, look, subjects, at=clock(), box=instance.name)
        events.append(Looked(answer))
    return _Seen(events, digest)


def _looks_for(telemetry: Telemetry, spec: RunSpec | None) -> tuple[str, ...]:
    """What else is read at once: the kernel's words where a process is gone that should be there."""
    gone = any(
        spec is not None and truth.run == spec.name and truth.alive is False for truth in telemetry.runs
    )
    return ("dmesg",) if gone else ()


async def _log_end(transport: Transport, path: str) -> tuple[bytes | None, int]:
    """The end of a log and how many lines lie before it; None where it can't be read."""
    script = Script(_END.text, (path, str(LOG_BYTES)), _END.why)
    try:
        done = await transport.run(script, timeout=40.0, limit=LOG_BYTES + 64)
    except LinkLost:
        raise
    except (Failure, TimeoutError):
        return None, 0
    head, _, raw = done.stdout.partition(b"\n")
    return (raw, int(head)) if done.exit == 0 and head.strip().isdigit() else (None, 0)
