"""One look at a box without a standing worker: what `rgt status` and `rgt probe` do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from tui.box.errors import ConnectFailure
from tui.box.probe.loop import Probe
from tui.box.probe.plan import ProbeRequest
from tui.box.transport import LinkLost, Script, Transport
from tui.model.event import Event, LinkChanged, ProgressRead, TelemetryTaken
from tui.model.failure import Failure
from tui.model.instance import Instance, Link, LinkState
from tui.model.run import RunSpec
from tui.model.telemetry import Telemetry
from tui.model.text import LogText, log_lines
from tui.triage.progress import ProgressReader
from tui.workers.box import Dial

TAIL_BYTES = 128 * 1024
DEADLINE_S = 25.0
ALONE_S = 20.0
"""For a look with every section and none after it: a driver that slept takes ten seconds to answer."""

_TAIL = Script('tail -c "$1" < "$2"', why="read the end of the log")


async def look_at(
    instance: Instance, runs: tuple[RunSpec, ...], dial: Dial, clock: Callable[[], float]
) -> list[Event]:
    """Connect, probe everything once, read the end of each log, leave. Failures are events, too."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            return [event async for event in _look(instance, runs, dial, clock)]
    except TimeoutError:
        failure: Failure = Failure(f"{instance.name} did not answer within {DEADLINE_S:.0f} s.")
        state = LinkState.UNREACHABLE
    except Failure as refused:
        failure = refused
        state = state_of(refused)
    return [LinkChanged(instance.name, Link(state, clock(), failure.line))]


def state_of(failure: Failure) -> LinkState:
    """How the way to a box stands after this failure."""
    if isinstance(failure, ConnectFailure):
        return failure.state
    return LinkState.LOST if isinstance(failure, LinkLost) else LinkState.REFUSED


async def _look(
    instance: Instance, runs: tuple[RunSpec, ...], dial: Dial, clock: Callable[[], float]
) -> AsyncIterator[Event]:
    transport = await dial(instance)
    try:
        yield LinkChanged(instance.name, Link(LinkState.LIVE, clock()))
        telemetry = await take(transport, instance.mounts, runs, clock)
        yield TelemetryTaken(instance.name, telemetry)
        for spec in runs:
            lines = await log_end(transport, spec, TAIL_BYTES)
            progress = ProgressReader(spec.progress_regex).feed(tuple(lines), clock())
            if progress is not None:
                yield ProgressRead(spec.name, progress)
    finally:
        await transport.close()


async def take(
    transport: Transport, mounts: tuple[str, ...], runs: tuple[RunSpec, ...], clock: Callable[[], float]
) -> Telemetry:
    """One probe with every section. Raises LinkLost, CommandRefused, SessionsExhausted, ProbeLate."""
    probe = Probe(transport, clock=clock, deadline_s=ALONE_S)
    try:
        return await probe.tick(
            ProbeRequest(runs=runs, mounts=mounts), gpus=True, filesystems=True, candidates=True, xid=True
        )
    finally:
        await probe.close()


async def log_end(transport: Transport, spec: RunSpec, size: int) -> list[LogText]:
    """The last lines of a run's log, at most `size` bytes of it; none where it can't be read."""
    if spec.log is None:
        return []
    script = Script(_TAIL.text, (str(size), spec.log), _TAIL.why)
    done = await transport.run(script, limit=size + 1)
    lines = log_lines(done.stdout)
    return lines[1:] if len(done.stdout) >= size else lines  # the first one is cut
