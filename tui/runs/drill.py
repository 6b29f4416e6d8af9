"""The kill-and-resume drill: a run is killed on purpose, started again, and shows whether it goes on.

Whether a run survives is known only once it was killed. Steps, learning rate and loss are read from its own
log before and after.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tui.box.transport import Script, Transport
from tui.model.failure import Failure
from tui.model.run import Progress
from tui.model.text import LogText, SafeText, log_lines, plain, safe
from tui.runs.book import Page
from tui.runs.launch import Answer, Dial
from tui.runs.resume import resume
from tui.runs.truth import Truth, look
from tui.triage.progress import ProgressReader

Verdict = Literal["goes on", "began again", "unknown"]

GONE_S = 30.0
SLACK = 0.5
"""How far loss may jump, as a share of the last one; a training that began again jumps further."""

_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_RATE = re.compile(rf"(?i)(?<![a-z])(?:lr|learning[_ ]rate)[\"']?\s*[:=]?\s*{_NUMBER}")

# $1 pid, $2 its start in ticks. Kills exactly that process and the group it leads.
_KILL = r"""
s=$(cat "/proc/$1/stat" 2>/dev/null) || exit 3
pid=$1 ticks=$2
set -- ${s##*) }
[ "${20}" = "$ticks" ] || exit 4
kill -KILL "-$pid" 2>/dev/null || kill -KILL "$pid"
"""

# $1 the log, $2 where to begin, or ``end`` for its last 256 KiB: its size, then at most 256 KiB.
_READ = r"""
size=$(wc -c <"$1") && echo $((size)) || exit 3
case $2 in end) tail -c 262144 -- "$1" ;; *) tail -c +$(($2 + 1)) -- "$1" | head -c 262144 ;; esac
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a run says it is. `rate` is the learning rate, where its log tells one."""

    step: int | None
    unit: str
    loss: float | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class Drilled:
    """What the drill showed."""

    verdict: Verdict
    why: SafeText
    before: Reading
    after: Reading
    lost_steps: int | None
    answer: Answer


async def where_it_is(box: Transport, page: Page) -> tuple[Truth, Reading]:
    """The run's truth and the newest step of its log. Raises Failure where it does not run or tells none."""
    truth = await look(box, page.folder)
    if truth.state != "running" or truth.child is None:
        raise Failure(f"{page.run} is {truth.state}; only a run that runs can be killed.", code="not-running")
    reading = newest((await _log(box, page))[1])
    if reading.step is None:
        raise Failure(
            f"{page.run} has shown no step yet.",
            means="Nothing was killed: it could not be told whether it goes on.",
            do="Wait for a first step.",
            code="no-step-yet",
        )
    return truth, reading


async def drill(
    dial: Dial,
    page: Page,
    truth: Truth,
    before: Reading,
    *,
    told: Callable[[SafeText], None] = lambda _line: None,
    answer_s: float = 60.0,
) -> Drilled:
    """Kill a run's first process with its group, start it again and compare. The operator has consented.

    Raises:
        Failure: it could not be killed, or not be started again.
    """
    box = await dial()
    assert truth.child is not None
    pid, ticks, stage = truth.child
    done = await box.run(Script(_KILL, (str(pid), ticks), why="the drill kills the run"))
    if done.exit != 0:
        raise Failure(f"Process {pid} is not the one it was; nothing was killed.", code="drill-missed")
    told(safe(f"killed {pid} in stage {stage} at {before.unit or 'step'} {before.step}"))
    await _until_over(box, page)
    # Only now: what it wrote between the question and the kill would be taken for a sign of the new attempt.
    size, lines = await _log(box, page)
    before = _later(newest(lines), before)
    answer = await resume(dial, page, told=told, answer_s=answer_s)
    after = first((await _log(await dial(), page, size))[1])
    return judged(before, after, answer)


def judged(before: Reading, after: Reading, answer: Answer) -> Drilled:
    """Whether it went on. At step 1, or with the loss of a beginner, it did not."""
    if after.step is None or before.step is None:
        return Drilled(
            "unknown", safe(f"No step was seen after the start. {answer.why}"), before, after, None, answer
        )
    lost = before.step - after.step + 1
    if after.step <= max(1, before.step // 10):
        why = f"It began again at {after.unit or 'step'} {after.step}; it was at {before.step}."
        return Drilled("began again", safe(why), before, after, lost, answer)
    if before.loss is not None and after.loss is not None and _jumps(before.loss, after.loss):
        why = f"The step goes on, and the loss jumped from {before.loss:.4g} to {after.loss:.4g}."
        return Drilled("began again", safe(f"{why} Are the weights loaded?"), before, after, lost, answer)
    if before.rate and after.rate and not 0.2 < after.rate / before.rate < 5:
        why = f"Step and loss go on; the learning rate does not: {before.rate:.3g}, then {after.rate:.3g}."
        return Drilled("began again", safe(f"{why} Is the scheduler saved?"), before, after, lost, answer)
    why = f"It goes on at {after.unit or 'step'} {after.step}; {max(0, lost)} were done again."
    return Drilled("goes on", safe(why), before, after, lost, answer)


def newest(lines: Sequence[LogText]) -> Reading:
    """The last step that some lines tell, with its loss and learning rate."""
    return _reading(ProgressReader().feed(lines, time.time()), lines)


def first(lines: Sequence[LogText]) -> Reading:
    """The first step that some lines tell: a run that began again soon catches up, and looks well by then."""
    reader = ProgressReader()
    for count, line in enumerate(lines, start=1):
        found = reader.feed((line,), time.time())
        if found is not None and found.done is not None:
            return _reading(found, lines[:count])
    return Reading(None, "", None, None)


def _reading(found: Progress | None, lines: Sequence[LogText]) -> Reading:
    rates = [match[1] for line in lines for match in [_RATE.search(plain(line))] if match]
    return Reading(
        found.done if found else None,
        found.unit if found else "",
        found.loss if found else None,
        float(rates[-1]) if rates else None,
    )


def _later(last: Reading, before: Reading) -> Reading:
    """The newer of two; the one before the kill where the other one's line was cut by it."""
    whole = last.loss is not None or before.loss is None
    return last if whole and (last.step or 0) >= (before.step or 0) else before


def _jumps(before: float, after: float) -> bool:
    return after > before * (1 + SLACK) + 1e-6 or after != after


async def _until_over(box: Transport, page: Page) -> None:
    """Wait for the wrapper to write the end."""
    ends = time.monotonic() + GONE_S
    while (truth := await look(box, page.folder)).state == "running":
        if time.monotonic() > ends:
            raise Failure(f"The wrapper of {page.run} did not end after its job was killed: {truth.why}")
        await asyncio.sleep(0.3)


async def _log(box: Transport, page: Page, start: int | None = None) -> tuple[int, list[LogText]]:
    """The log's size, and its lines from `start` on or, without it, its last ones."""
    where = "end" if start is None else str(start)
    script = Script(_READ, (f"{page.folder}/{page.job.log}", where), why="where the run is")
    size, _, text = (await box.run(script, limit=1 << 19)).stdout.partition(b"\n")
    return int(size) if size.isdigit() else 0, log_lines(text)
