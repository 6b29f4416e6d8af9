"""Starts a run and answers within a minute what came of it: a first step, life without one, or death and why.

Whatever a lost link leaves open is settled by looking again, never by starting again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tui.box.transport import LinkLost, Script, Transport
from tui.model.failure import Exit, Failure
from tui.model.run import Progress
from tui.model.text import LogText, SafeText, log_lines, safe
from tui.runs.cadence import Pace
from tui.runs.detach import How, Started, bring_wrapper, lay_down, start
from tui.runs.plan_files import wrapper_name
from tui.runs.truth import Truth, look
from tui.triage.progress import ProgressReader

ANSWER_S = 60.0
LEAST_S = 15.0
"""What is waited for a sign at least, however long the code was under way."""
PENDING_S = 10.0
"""How long a job may wait before that is the answer: an idle node takes it in a round of the scheduler."""
PATIENCE_S = 5.0
"""How long a started wrapper may take to claim its attempt."""

Kind = Literal["first-step", "alive", "pending", "dead", "finished", "unknown"]
Dial = Callable[[], Awaitable[Transport]]

# $1 the run's folder, $2 log below it, $3 where to begin. The log's size, then at most its last 64 KiB.
_LOG_END = r"""
cd -- "$1" || exit 0
size=$(wc -c <"$2" 2>/dev/null) || size=0
echo $((size))
from=$3
[ $((size - from)) -le 65536 ] || from=$((size - 65536))
[ "$size" -le "$from" ] || tail -c +$((from + 1)) -- "$2"
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a launch came to.

    Attributes:
        why: one sentence.
        last: the newest lines of the log.
        started: None where it was running, or over, before.
        pace: how often it should save, where that can be told.
    """

    kind: Kind
    why: SafeText
    truth: Truth
    progress: Progress | None = None
    last: tuple[LogText, ...] = ()
    started: Started | None = None
    pace: Pace | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """One run to be started.

    Attributes:
        run: its folder on the box, absolute.
        files: its plan.
        log: below `run`.
        session: name of the tmux session.
    """

    run: str
    files: Mapping[str, bytes]
    log: str
    session: str
    how: How = "tmux"


async def launch(
    dial: Dial,
    what: Launch,
    *,
    bring: Callable[[Transport], Awaitable[None]] | None = None,
    told: Callable[[SafeText], None] = lambda _line: None,
    clock: Callable[[], float] = time.monotonic,
    answer_s: float = ANSWER_S,
) -> Answer:
    """Lay a run down, start it where it does not run already, and wait for a first sign.

    Args:
        dial: opens a connection to the box; asked again after each lost link.
        bring: puts code and secrets into the run's folder before it is started; may be asked again.
        told: hears what is being done.
        answer_s: seconds until it answers with what is known by then.

    Raises:
        Failure: the box or an older run of this name refused; nothing was started.
    """
    ends = clock() + answer_s
    watch = _Watch(what, dial, ends, min(LEAST_S, answer_s), clock, told)
    before = await watch.again(lambda box: _ready(box, what))
    if before.state in ("running", "finished", "pending"):
        told(safe(f"It is {before.state} already; nothing was started."))
        return await watch.first_sign(None)
    if bring is not None:
        await watch.again(lambda box: _brought(box, what, bring))
    started = await _start_once(watch, what)
    return await watch.first_sign(started)


async def _ready(box: Transport, what: Launch) -> Truth:
    await lay_down(box, what.run, what.files)
    return await look(box, what.run)


async def _brought(box: Transport, what: Launch, bring: Callable[[Transport], Awaitable[None]]) -> Truth:
    await bring(box)
    return await look(box, what.run)


async def _start_once(watch: _Watch, what: Launch) -> Started | None:
    """Start it. Where the link is lost in between, only what the box says decides whether to ask again."""
    before = await watch.again(lambda box: look(box, what.run))
    while True:
        if before.state in ("running", "pending"):
            return None
        try:
            await watch.skip_old(before.attempt)
            if what.how in ("tmux", "nohup"):
                await bring_wrapper(await watch.box(), what.run)
            return await start(await watch.box(), what.run, wrapper_name(), what.session, what.how)
        except (LinkLost, TimeoutError):
            watch.lost()
        except Failure:  # a session of its name is there: somebody else may have started it this very moment
            await asyncio.sleep(PATIENCE_S)
            now = await watch.again(lambda box: look(box, what.run))
            if now.attempt == before.attempt and now.state not in ("running", "pending"):
                raise
            watch.told(safe("Another launch of this run was quicker; nothing was started here."))
            return None
        await asyncio.sleep(PATIENCE_S)
        if (await watch.again(lambda box: look(box, what.run))).attempt > before.attempt:
            return None
        watch.told(safe("The link was lost, and the box shows that nothing was started; asking again."))


class _Watch:
    """One launch's connection, renewed when it is lost, and its patience."""

    def __init__(
        self,
        what: Launch,
        dial: Dial,
        ends: float,
        least_s: float,
        clock: Callable[[], float],
        told: Callable[[SafeText], None],
    ) -> None:
        self.told = told
        self._least_s = least_s
        self._what = what
        self._dial = dial
        self._ends = ends
        self._clock = clock
        self._box: Transport | None = None
        self._from = 0
        self._after = 0

    async def box(self) -> Transport:
        if self._box is None:
            self._box = await self._dial()
        return self._box

    def lost(self) -> None:
        self._box = None

    async def again(self, ask: Callable[[Transport], Awaitable[Truth]]) -> Truth:
        """Ask until there is an answer or no time. Only for what may be asked twice. Raises Failure."""
        while True:
            try:
                return await ask(await self.box())
            except (LinkLost, TimeoutError) as lost:
                self.lost()
                if self._clock() >= self._ends:
                    raise _no_answer(lost) from None
            await asyncio.sleep(1.0)

    async def first_sign(self, started: Started | None) -> Answer:
        """Look once a second until something can be said."""
        began = self._clock()
        ends = max(self._ends, began + self._least_s)
        truth = Truth("unknown", safe("Nothing was seen yet."))
        while True:
            try:
                truth = await look(await self.box(), self._what.run)
                progress, last = await self._log()
            except (LinkLost, TimeoutError):
                self.lost()
                progress, last = None, ()
            kind = _kind(truth, progress, self._clock() - began, self._after)
            if kind is not None or self._clock() >= ends:
                why = truth.why if kind in (None, "dead", "unknown", "pending") else _WHY[kind]
                if kind == "first-step" and progress is not None:
                    why = first_step(progress)
                if kind == "dead" and started is not None and truth.attempt <= self._after:
                    why = _not_begun(truth)
                return Answer(kind or _late(truth), why, truth, progress, last, started)
            await asyncio.sleep(min(1.0, max(0.0, ends - self._clock())))

    async def skip_old(self, attempt: int) -> None:
        """What an earlier attempt wrote is no sign of this one. Raises LinkLost, TimeoutError."""
        self._after = attempt
        self._from = (await self._log_end(1 << 62))[0]

    async def _log(self) -> tuple[Progress | None, tuple[LogText, ...]]:
        lines = tuple(log_lines((await self._log_end(self._from))[1]))
        return ProgressReader().feed(lines, time.time()), lines[-5:]

    async def _log_end(self, start: int) -> tuple[int, bytes]:
        script = Script(_LOG_END, (self._what.run, self._what.log, str(start)), why="the log's end")
        size, _, text = (await (await self.box()).run(script)).stdout.partition(b"\n")
        return int(size) if size.isdigit() else 0, text


_WHY: dict[Kind, SafeText] = {
    "first-step": safe("The first step was seen; it goes on without rgt."),
    "finished": safe("It ran to its end: every artifact is there."),
    "alive": safe("It is alive and has shown no step yet."),
}


def first_step(progress: Progress) -> SafeText:
    """What is said of a first step; a loss that is no number already is not passed over."""
    if progress.loss is not None and not math.isfinite(progress.loss):
        return safe(f"The first step was seen, and its loss is no number ({progress.loss}): rgt triage.")
    return _WHY["first-step"]


def _not_begun(truth: Truth) -> SafeText:
    """What is said of a start that nothing came of: the wrapper found no room, or could not write."""
    before = f" The attempt before: {truth.why}" if truth.attempt else ""
    return safe(f"No attempt was begun: is there room, and a right to write in its folder?{before}", 400)


def _kind(truth: Truth, progress: Progress | None, waited_s: float, after: int = 0) -> Kind | None:
    """What can be said already; None: look again.

    Args:
        after: the attempt before this one, whose end is no end of this one, which may not have begun yet.
    """
    if after and truth.attempt <= after and waited_s <= 2 * PATIENCE_S:
        return None
    if truth.state == "finished":
        return "finished"
    if truth.state in ("failed", "stopped", "lost"):
        return "dead"
    if truth.state == "running" and truth.start and progress is not None and progress.done:
        return "first-step"
    if truth.state == "pending" and waited_s >= PENDING_S:
        return "pending"
    if truth.state == "placed" and waited_s > 2 * PATIENCE_S:
        return "dead"
    return None


def _late(truth: Truth) -> Kind:
    if truth.state == "pending":
        return "pending"
    return "alive" if truth.state == "running" else "unknown"


def _no_answer(lost: Exception) -> Failure:
    return Failure(
        f"The box did not answer in time ({safe(str(lost), 120)}).",
        means="Whether the run was started is unknown; it is never started twice.",
        do="Give the same command again once the box is reachable: it looks first.",
        exit=Exit.UNREACHABLE,
        code="launch-unknown",
    )
