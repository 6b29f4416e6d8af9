"""One close look at one run without a standing worker: what `rgt triage NAME` does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from tui.box.looks import Subjects
from tui.box.looks import take as take_look
from tui.box.transport import Channel, LinkLost, Script, Transport
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
from tui.triage.scan import Digest, Scanner, scan
from tui.workers.box import Dial
from tui.workers.evidence import counted_from, diagnosed
from tui.workers.once import state_of, take

LOG_BYTES = 8 << 20
"""Of a log's end that are read over the link."""
DEADLINE_S = 60.0
WHOLE_S = 4 * 3600.0
"""What all of a log may take: 100 GB at 7 MB/s."""
SILENCE_S = 60.0
"""No byte of it for this long, and it is given up."""
STEP = 64 << 20
"""It is told how far it came after so many bytes."""
_FIGURE = 64  # bytes of a line that only tells how many more come
_PROGRESS = 128 << 10
"""Of the end, which tells how far the run is."""

Told = Callable[[str], None]

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


# All that was there when it began: a log that grows as fast as it is read would never end.
_ALL = Script(
    r"""
size=$(wc -c <"$1") || exit 1
echo "$((size))"
head -c "$size" "$1"
""".strip(),
    why="read the whole log",
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is looked at, and how.

    Attributes:
        others: all watched runs of the box.
        whole: read all of the log, not only its end.
        told: hears how that goes on, one sentence at a time.
    """

    instance: Instance
    spec: RunSpec | None
    others: tuple[RunSpec, ...]
    rules: Rules
    clock: Callable[[], float]
    whole: bool
    told: Told


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
    *,
    whole: bool = False,
    told: Told = lambda _: None,
) -> Diagnosed:
    """Connect, probe, read the log's end, and diagnose. A box that can't be reached is an outcome.

    Args:
        spec: the run; None for a box without one.
        others: all watched runs of the box, so that what they are is known.
        whole: read all of the log, in one pass with bounded memory.
        told: hears how that goes on, and what was not read.
    """
    seen = await _seen(_Asked(instance, spec, others, rules, clock, whole, told), dial)
    now = clock()
    events = [FleetChanged((instance,), others), *seen.events]
    picture = reduce(FleetSnapshot(), events, now, Judging(thresholds, period_s=60.0))
    box = picture.box(instance.name)
    assert box is not None, "the picture holds the one box it was made of"
    run = picture.run(spec.name) if spec is not None else None
    return diagnosed(rules, box, run, seen.digest, log_at=now if seen.digest is not None else None, at=now)


async def _seen(asked: _Asked, dial: Dial) -> _Seen:
    name, deadline = asked.instance.name, WHOLE_S if asked.whole else DEADLINE_S
    try:
        async with asyncio.timeout(deadline):
            async with asyncio.timeout(DEADLINE_S):
                transport = await dial(asked.instance)
            try:
                return await _look(transport, asked)
            finally:
                await transport.close()
    except TimeoutError:
        failure: Failure = Failure(f"{name} did not answer within {deadline:.0f} s.")
        state = LinkState.UNREACHABLE
    except Failure as refused:
        failure, state = refused, state_of(refused)
    return _Seen([LinkChanged(name, Link(state, asked.clock(), failure.line))])


async def _look(transport: Transport, asked: _Asked) -> _Seen:
    spec, clock = asked.spec, asked.clock
    events: list[Event] = [LinkChanged(asked.instance.name, Link(LinkState.LIVE, clock()))]
    telemetry = await take(transport, asked.instance.mounts, asked.others, clock)
    events.append(TelemetryTaken(asked.instance.name, telemetry))
    digest = None
    if spec is not None and spec.log is not None:
        read = _log_whole if asked.whole else _log_end
        digest, end = await read(transport, spec.log, asked.rules, asked.told)
        progress = ProgressReader(spec.progress_regex).feed(tuple(log_lines(end)), clock()) if end else None
        if progress is not None:
            events.append(ProgressRead(spec.name, progress))
    for look in _looks_for(telemetry, spec):
        subjects = Subjects(pid=spec.pid if spec is not None else None)
        answer = await take_look(transport, look, subjects, at=clock(), box=asked.instance.name)
        events.append(Looked(answer))
    return _Seen(events, digest)


def _looks_for(telemetry: Telemetry, spec: RunSpec | None) -> tuple[str, ...]:
    """What else is read at once: the kernel's words where a process is gone that should be there."""
    gone = any(
        spec is not None and truth.run == spec.name and truth.alive is False for truth in telemetry.runs
    )
    return ("dmesg",) if gone else ()


async def _log_end(transport: Transport, path: str, rules: Rules, told: Told) -> tuple[Digest | None, bytes]:
    """The digest of a log's end, and its last bytes; None where it can't be read."""
    script = Script(_END.text, (path, str(LOG_BYTES)), _END.why)
    try:
        done = await transport.run(script, timeout=40.0, limit=LOG_BYTES + 64)
    except LinkLost:
        raise
    except (Failure, TimeoutError):
        return None, b""
    head, _, raw = done.stdout.partition(b"\n")
    if done.exit != 0 or not head.strip().isdigit():
        return None, b""
    before = int(head)
    if before:
        mib = LOG_BYTES >> 20
        told(f"read the last {mib} MiB of the log, from line {before + 1:,} on; --whole reads all of it")
    return counted_from(scan([raw], rules.finder), before), raw[-_PROGRESS:]


async def _log_whole(
    transport: Transport, path: str, rules: Rules, told: Told
) -> tuple[Digest | None, bytes]:
    """The digest of all of a log, read in one pass, and its last bytes; None where it can't be read whole.

    Raises:
        LinkLost, SessionsExhausted.
    """
    channel = await transport.open(Script(_ALL.text, (path,), _ALL.why))
    reader, end, got, head = Scanner(rules.finder), b"", 0, b""
    size: int | None = None
    try:
        while block := await _next(channel):
            if size is None:
                head, newline, block = (head + block).partition(b"\n")
                if not newline and len(head) < _FIGURE:
                    continue
                if not head.strip().isdigit():
                    return None, b""
                size = int(head)
            reader.feed(block)
            end = (end + block)[-_PROGRESS:]
            before, got = got, got + len(block)
            if got // STEP > before // STEP:
                told(f"read {got:,} of {size:,} bytes of the log")
    except TimeoutError:
        of = "" if size is None else f" of {size:,}"
        told(f"the log stopped coming after {got:,}{of} bytes; nothing of it is used")
        return None, b""
    finally:
        await channel.close()
    if size is None:
        return None, b""
    shrunk = f"; it became shorter meanwhile, from {size:,}" if got < size else ""
    told(f"read the whole log: {got:,} bytes{shrunk}")
    return reader.close(), end


async def _next(channel: Channel) -> bytes:
    async with asyncio.timeout(SILENCE_S):
        return await channel.read(1 << 20)
