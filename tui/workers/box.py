"""Keeps one box in sight: connects, backs off, probes at its pace, and says honestly how that goes."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

from tui.box.backoff import Backoff
from tui.box.errors import CommandRefused, ConnectFailure
from tui.box.probe.loop import Probe
from tui.box.probe.plan import ProbeRequest
from tui.box.transport import LinkLost, SessionsExhausted, Transport
from tui.fleet.store import Store
from tui.model.event import ForwardChanged, HostKeyAsked, LinkChanged, Notice, TelemetryTaken
from tui.model.failure import Failure
from tui.model.instance import Instance, Link, LinkState
from tui.model.run import RunSpec
from tui.model.telemetry import Telemetry
from tui.model.text import SafeText, safe
from tui.workers.link import BoxLink
from tui.workers.rhythm import Rhythm, presses


class Forward(Protocol):
    """An open port forward."""

    local_port: int

    async def problem(self) -> Failure | None: ...

    async def close(self) -> None: ...


class BoxTransport(Transport, Protocol):
    """A transport that knows its own end."""

    async def wait_closed(self) -> LinkLost | None: ...

    async def alive(self, timeout: float = 3.0) -> bool: ...

    async def close(self) -> None: ...

    async def forward_local(self, port: int, local_port: int = 0) -> Forward: ...


Dial = Callable[[Instance], Awaitable[BoxTransport]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a box is asked. Seconds between ticks, and every how many ticks the dearer sections come.

    The `quiet` ones hold where nothing presses and nobody looks; see `Rhythm`.
    """

    period_s: float = 2.0
    gpus_every: int = 2
    filesystems_every: int = 5
    filesystems_quiet: int = 20
    candidates_every: int = 15
    candidates_quiet: int = 60
    wake_deadline_s: float = 3.0
    beats: int = 2

    def next_at(self, started: float, now: float) -> float:
        """When the box that was asked at `started` is asked again: on the beat that is about a period later.

        Boxes that are asked in one go cost half of what each costs at a time of its own: the program wakes
        once for all, and finds its caches warm. All times are the loop's, so all workers keep one beat.
        """
        beat, soonest = self.period_s / self.beats, now + self.period_s / 4
        due = math.ceil((started + self.period_s) / beat - 0.5) * beat
        return due if due >= soonest else math.ceil(soonest / beat) * beat


class BoxWorker:
    """The worker of one box.

    Args:
        dial: opens a transport or raises ConnectFailure.
        runs: the runs to ask about, asked anew at each tick.
        backoff: delays between failed attempts.

    Attributes:
        viewed: the operator looks at this box, so its GPUs are read at every tick.
    """

    def __init__(
        self,
        instance: Instance,
        dial: Dial,
        store: Store,
        *,
        runs: Callable[[], tuple[RunSpec, ...]],
        pace: Pace,
        backoff: Backoff,
    ) -> None:
        self.instance = instance
        self.link = BoxLink()
        self._dial = dial
        self._store = store
        self._runs = runs
        self._pace = pace
        self._backoff = backoff
        self._rhythm = Rhythm(pace)
        self._probe_now = asyncio.Event()
        self._retry_now = asyncio.Event()
        self._asleep = False
        self._missed = False
        self._cards = True  # the box showed a card when it was last asked
        self._started: dict[str, tuple[int | None, SafeText | None]] = {}
        self._transport: BoxTransport | None = None
        self.viewed = False
        self._forwards: dict[int, Forward] = {}
        self._trials: set[asyncio.Task[None]] = set()

    def probe_now(self) -> None:
        """Do not wait for the next tick, and ask for everything in it."""
        self._rhythm.hurry()
        self._probe_now.set()

    def retry_now(self) -> None:
        """Connect at once, also where waiting for the operator."""
        self._backoff.reset()
        self._retry_now.set()

    def woke_up(self) -> None:
        """This computer slept: the link may be dead without knowing it, so one quick probe decides."""
        self._asleep = True
        self._probe_now.set()
        self._retry_now.set()

    async def run(self) -> None:
        """Watch the box until cancelled."""
        while True:
            transport = await self._connect()
            self._transport = transport
            self.link.up(transport)
            try:
                await self._watch(transport)
            except LinkLost as lost:
                ended: tuple[LinkState, Failure] = (LinkState.LOST, lost)
            except CommandRefused as refused:
                ended = (LinkState.REFUSED, refused)
            finally:
                self._transport = None
                self.link.down()
                await self._drop(transport)
            await self._wait_after(*ended)

    async def _connect(self) -> BoxTransport:
        """The next transport that holds; waits between attempts, or for the operator where that is right."""
        while True:
            await self._say(LinkState.CONNECTING, SafeText(""))
            self._retry_now.clear()
            try:
                transport = await self._dial(self.instance)
            except Failure as failure:
                await self._refused(failure)
                continue
            self._backoff.connected()
            await self._say(LinkState.LIVE, SafeText(""))
            return transport

    async def _refused(self, failure: Failure) -> None:
        state = failure.state if isinstance(failure, ConnectFailure) else LinkState.REFUSED
        if isinstance(failure, ConnectFailure) and failure.offered:
            await self._store.put(HostKeyAsked(self.instance.name, failure.offered, failure.pinned))
        await self._wait_after(state, failure)

    async def _wait_after(self, state: LinkState, failure: Failure) -> None:
        """Say what happened and wait for the next attempt's time, or for the operator where only he helps."""
        final = state is LinkState.REFUSED
        delay = None if final else self._backoff.failed(failure)
        await self._say(state, failure.line, None if delay is None else self._store.clock() + delay)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):  # Python 3.11's wait_for can lose a cancellation here
                await self._retry_now.wait()

    async def _say(self, state: LinkState, detail: SafeText, retry_at: float | None = None) -> None:
        link = Link(state, self._store.clock(), detail, retry_at, self._backoff.attempts)
        await self._store.put(LinkChanged(self.instance.name, link))

    async def _watch(self, transport: BoxTransport) -> None:
        """Probe until the link is lost."""
        probe, loop = Probe(transport, clock=self._store.clock), asyncio.get_running_loop()
        self._rhythm = Rhythm(self._pace)
        try:
            while True:
                if self._asleep and not await transport.alive(self._pace.wake_deadline_s):
                    raise LinkLost("No answer after this computer slept; the link is taken as dead.")
                self._asleep = False
                started = loop.time()
                await self._tick(probe)
                await self._pause(self._pace.next_at(started, loop.time()))
        finally:
            await probe.close()

    async def _tick(self, probe: Probe) -> None:
        """One probe. A late answer is said and does not end the link by itself."""
        urgent = presses(self._store.snapshot.box(self.instance.name))
        parts, cadence = self._rhythm.next(urgent=urgent, viewed=self.viewed, cards=self._cards)
        runs = tuple(self._identified(spec) for spec in self._runs())
        request = ProbeRequest(runs=runs, mounts=self.instance.mounts)
        try:
            telemetry = await probe.tick(
                request,
                gpus=parts.gpus,
                filesystems=parts.filesystems,
                candidates=parts.candidates,
                xid=parts.xid,
                processes=parts.processes,
            )
        except (LinkLost, CommandRefused):
            raise
        except (Failure, TimeoutError) as missed:  # late, garbled, no session free: said, and asked again
            self._missed = True
            if isinstance(missed, SessionsExhausted) and self.link.desk is not None:
                await self.link.desk.spare()  # the logs can share what they have; the probe comes first
            why = missed.line if isinstance(missed, Failure) else SafeText("The probe did not start in time.")
            await self._say(LinkState.LIVE, why)
        else:
            if self._missed:
                self._missed = False
                await self._say(LinkState.LIVE, SafeText(""))
            self._remember(telemetry)
            self._cards = bool(telemetry.gpus.value)
            await self._store.put(TelemetryTaken(self.instance.name, replace(telemetry, cadence=cadence)))

    def _remember(self, telemetry: Telemetry) -> None:
        """A run named by its pid alone gets the start time and boot it was first seen with."""
        host = telemetry.host.value
        for truth in telemetry.runs:
            if truth.process is not None and truth.process.start_ticks is not None:
                seen = (truth.process.start_ticks, host.boot_id if host else None)
                self._started.setdefault(truth.run, seen)

    def _identified(self, spec: RunSpec) -> RunSpec:
        """The run with what tells its process from a later one of the same number."""
        seen = self._started.get(spec.name)
        if spec.pid is None or spec.pid_start is not None or seen is None:
            return spec
        return replace(spec, pid_start=seen[0], boot_id=spec.boot_id or seen[1])

    async def _pause(self, until: float) -> None:
        self._probe_now.clear()
        alarm = asyncio.get_running_loop().call_at(until, self._probe_now.set)
        try:
            await self._probe_now.wait()
        finally:
            alarm.cancel()

    async def _drop(self, transport: BoxTransport) -> None:
        for trial in self._trials:
            trial.cancel()
        for port in tuple(self._forwards):
            await self.close_forward(port, SafeText("the link was lost"))
        await transport.close()

    async def open_forward(self, port: int, local_port: int = 0) -> None:
        """Forward a port of the box to this computer; failure is an event, not an exception."""
        transport = self._transport
        name = self.instance.name
        if transport is None:
            await self._no_forward(port, SafeText("the box is not connected"))
            return
        try:
            forward = await transport.forward_local(port, local_port)
        except (Failure, TimeoutError) as failure:
            note = failure.line if isinstance(failure, Failure) else SafeText("no answer in time")
            await self._no_forward(port, note)
            return
        if (before := self._forwards.pop(port, None)) is not None:
            await before.close()
        self._forwards[port] = forward
        await self._store.put(ForwardChanged(name, port, forward.local_port))
        trial = asyncio.create_task(self._try(port, forward))
        self._trials.add(trial)
        trial.add_done_callback(self._trials.discard)

    async def _try(self, port: int, forward: Forward) -> None:
        """Connect once through a new forward: a listener here says nothing about the other end."""
        problem = await forward.problem()
        if problem is None or self._forwards.get(port) is not forward:
            return
        if problem.code == "forwarding-forbidden":
            await self.close_forward(port, problem.line)
            await self._no_forward(port, problem.line)
        else:
            await self._store.put(ForwardChanged(self.instance.name, port, forward.local_port, problem.line))

    async def _no_forward(self, port: int, note: SafeText) -> None:
        name = self.instance.name
        await self._store.put(
            Notice(safe(f"Port {port} of {name} is not forwarded: {note}"), "attention", name)
        )

    async def close_forward(self, port: int, note: SafeText = SafeText("closed")) -> None:  # noqa: B008
        """Close a forward and say so."""
        forward = self._forwards.pop(port, None)
        if forward is not None:
            await forward.close()
        await self._store.put(ForwardChanged(self.instance.name, port, None, note))
