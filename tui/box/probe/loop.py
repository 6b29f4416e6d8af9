"""Looks at one box again and again through one long-lived shell."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tui.box.probe import darwin
from tui.box.probe.answer import Looked, newly_gone, read_answer, with_nearby
from tui.box.probe.frame import Answer, Batch, Frames, Garbled, batch
from tui.box.probe.memo import Memo
from tui.box.probe.plan import Plan, ProbeRequest, make_plan, nearby_entries
from tui.box.probe.script import configure, script, tick
from tui.box.probe.system import Identity, Moment, linux_identity, worked
from tui.box.transport import Channel, Transport
from tui.model.failure import Exit, Failure
from tui.model.telemetry import Telemetry
from tui.model.text import safe

__all__ = ["Garbled", "Probe", "ProbeEnded", "ProbeLate", "ProbeRequest"]

MOST_STRAYS = 2
_NOISE = 200


class ProbeLate(Failure):
    """The box did not answer in time. The connection may be fine."""

    def __init__(self, what: str, *, do: str = "") -> None:
        super().__init__(
            what,
            means="What is shown stays as it was, with its age.",
            do=do or "The next look asks through a new channel.",
            exit=Exit.UNREACHABLE,
            code="probe-late",
        )


class ProbeEnded(Failure):
    """The probe's shell ended by itself."""

    def __init__(self, what: str) -> None:
        super().__init__(
            what,
            means="Nothing can be read from this box so.",
            do="A probe needs a login that runs commands, and /bin/sh; try `rgt ssh BOX 'echo ok'`.",
            exit=Exit.UNKNOWN,
            code="probe-ended",
        )


@dataclass(slots=True)
class _Line:
    """One probe shell: its channel, and what it has been told."""

    channel: Channel
    nonce: str
    frames: Frames
    identity: Identity
    memo: Memo = field(default_factory=Memo)
    number: int = 0
    plan: Plan | None = None
    made: tuple[object, Plan] = (None, Plan())

    def plan_for(self, request: ProbeRequest) -> Plan:
        """The plan, which is the last one as long as nothing changed that it was made of."""
        of = (request, self.memo.mounts, dict(self.memo.resolved))
        if self.made[0] != of:
            self.made = (of, make_plan(request, self.identity, self.memo))
        return self.made[1]


class Probe:
    """Takes telemetry of one box.

    Args:
        transport: the way into the box.
        clock: the operator's clock, seconds since the epoch.
        deadline_s: seconds one look may take, from asking to the end of the answer.
    """

    def __init__(
        self, transport: Transport, *, clock: Callable[[], float] = time.time, deadline_s: float = 8.0
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._deadline = deadline_s
        self._line: _Line | None = None
        self._last: Telemetry | None = None
        self._strays: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._one = asyncio.Lock()

    async def tick(
        self,
        request: ProbeRequest,
        *,
        gpus: bool = True,
        filesystems: bool = True,
        candidates: bool = False,
        xid: bool = False,
        processes: bool | None = None,
    ) -> Telemetry:
        """Look at the box once.

        Args:
            request: the runs and mounts to look at.
            gpus: ask the GPU tools; they take the box tens of milliseconds and more.
            filesystems: ask all that is slow or changes seldom: mounts, the runs' files, sessions, processes,
                the clock. What is not asked stays as it was read, with its own time.
            candidates: look for runs to adopt.
            xid: read the kernel's lines about GPUs.
            processes: list the heaviest processes, the dearest of the slow parts (half of their cost on the
                box); None: with the others.

        Raises:
            ProbeLate: no whole answer in time.
            ProbeEnded: the shell on the box ended.
            Garbled: what came is no answer.
            LinkLost, SessionsExhausted: as the transport says.
        """
        async with self._one:
            listed = filesystems if processes is None else processes
            wanted = _flags(
                gpus=gpus, filesystems=filesystems, candidates=candidates, xid=xid, processes=listed
            )
            line = self._line or await self._opened()
            try:
                looked = await self._look(line, request, wanted)
                if candidates and looked.nearby:
                    looked = await self._look_nearby(line, looked)
                if not filesystems and newly_gone(self._last, looked.telemetry):
                    self._last = looked.telemetry
                    looked = await self._look(line, request, "r")  # its end is told with its files, not later
            except Failure:
                self._let_go(line)
                raise
            except TimeoutError:
                self._stray(line, line.number)
                raise ProbeLate(f"The box did not answer a look within {self._deadline:.0f} s.") from None
            except asyncio.CancelledError:
                self._let_go(line)
                raise
            self._last = looked.telemetry
            return looked.telemetry

    async def close(self) -> None:
        """End the shells on the box. Never raises."""
        line, self._line = self._line, None
        for task in self._strays:
            task.cancel()
        waiting = [*self._strays, *self._closing]
        if line is not None:
            waiting.append(asyncio.ensure_future(line.channel.close()))
        await asyncio.gather(*waiting, return_exceptions=True)
        self._strays.clear()

    async def _opened(self) -> _Line:
        if len(self._strays) >= MOST_STRAYS:
            raise ProbeLate(
                f"{MOST_STRAYS} earlier looks still hang on this box.",
                do="No further one is started until one of them ends, or the box is connected anew.",
            )
        nonce = secrets.token_hex(8)
        try:
            channel = await self._transport.open(script(nonce), timeout=self._deadline)
        except TimeoutError:
            raise ProbeLate(f"The box opened no channel within {self._deadline:.0f} s.") from None
        line = _Line(channel, nonce, Frames(nonce), Identity(safe("unknown")))
        try:
            async with asyncio.timeout(self._deadline):
                hello = await self._answer(line, 0)
        except TimeoutError:
            self._stray(line, 0)
            raise ProbeLate(f"The probe's shell did not start within {self._deadline:.0f} s.") from None
        except BaseException:
            self._let_go(line)
            raise
        line.identity = _identity(hello)
        line.memo.hello = hello.sections
        if self._last is not None and self._last.host.value is not None:
            before = self._last.host.value.boot_id
            if before != line.identity.boot_id:
                self._last = None  # what was read before the reboot is no longer true
        self._line = line
        return line

    async def _look(self, line: _Line, asked: ProbeRequest, wanted: str) -> Looked:
        plan = line.plan_for(asked)
        flags = wanted + ("" if plan is line.plan else plan.flags_for_new(line.plan))
        sent_at, began = self._clock(), time.monotonic()
        async with asyncio.timeout(self._deadline):
            line.number += 1
            request = tick(line.number, flags)
            if line.plan is None or (plan is not line.plan and plan.entries != line.plan.entries):
                line.plan = None  # until all of it was written
                request = configure(plan.entries) + request
            await line.channel.write(request)
            line.plan = plan
            answer = await self._answer(line, line.number)
        moment = Moment(
            sent_at,
            self._clock(),
            worked(answer.sections.get("up", b"").decode("ascii", "replace")),
            answer.sections,
            time.monotonic() - began,
            line.number,
        )
        told = batch(answer.sections["batch"], line.nonce) if "batch" in answer.sections else Batch({})
        return read_answer(plan, flags, line.identity, line.memo, moment, told, self._last)

    async def _look_nearby(self, line: _Line, looked: Looked) -> Looked:
        """A second request: the checkpoints around the candidates that the first one found."""
        entries = nearby_entries(looked.nearby)
        async with asyncio.timeout(self._deadline):
            line.plan = None
            await line.channel.write(configure(entries))
            line.number += 1
            await line.channel.write(tick(line.number, "k"))
            answer = await self._answer(line, line.number)
        return with_nearby(looked, batch(answer.sections.get("batch", b""), line.nonce), self._clock())

    async def _answer(self, line: _Line, number: int) -> Answer:
        """The answer with this number; older ones, which came too late for their asker, are dropped."""
        noise = b""
        while True:
            data = await line.channel.read()
            if not data:
                raise ProbeEnded(_ended(line.channel.exit, noise))
            if number == 0 and len(noise) < _NOISE:
                noise += data[:_NOISE]
            for answer in line.frames.feed(data):
                if answer.tick == number:
                    if "failed" in answer.sections:
                        raise Garbled(f"The probe failed: {safe(answer.sections['failed'])}.")
                    return answer

    def _let_go(self, line: _Line) -> None:
        """Close a channel in the background; its answers are of no use any more."""
        if self._line is line:
            self._line = None
        _spawn(self._closing, line.channel.close())

    def _stray(self, line: _Line, number: int) -> None:
        """Keep a channel that is late until it answers after all, and close it then."""
        if self._line is line:
            self._line = None
        _spawn(self._strays, self._drained(line, number))

    async def _drained(self, line: _Line, number: int) -> None:
        try:
            await self._answer(line, number)
        except Failure:
            pass
        finally:
            await line.channel.close()


def _spawn(tasks: set[asyncio.Task[None]], work: object) -> None:
    task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _flags(*, gpus: bool, filesystems: bool, candidates: bool, xid: bool, processes: bool) -> str:
    return (
        ("hmrs" if filesystems else "")
        + ("p" if processes else "")
        + ("g" if gpus else "")
        + ("cs" if candidates else "")
        + ("x" if xid else "")
    )


def _identity(hello: Answer) -> Identity:
    if hello.sections.get("os", b"").strip() == b"Darwin":
        return darwin.identity(hello.sections)
    return linux_identity(hello.sections)


def _ended(exit: int | None, noise: bytes) -> str:
    said = safe(noise.strip()[:_NOISE])
    how = f"with status {exit}" if exit is not None else "without a status"
    return f"The probe's shell on the box ended {how}" + (f", after it had printed: {said}" if said else ".")
