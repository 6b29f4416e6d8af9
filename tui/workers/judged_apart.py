"""Loading and recomputing in a process of their own: a screen must not share an interpreter with them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import Any

from tui.custody.errand import Errand
from tui.model.failure import Exit, Failure
from tui.workers import judging
from tui.workers.box import Dial
from tui.workers.judged_there import judge_on_box
from tui.workers.judging import Far, Told, far_words

_LINE = 1 << 16


async def judge_apart(task: Errand, dial: Dial, told: Told) -> None:
    """Load the checkpoints and recompute the metrics of the newest readback, where it was restored.

    The reports are stored then. What was started ends with this call.

    Args:
        dial: to the box that read the copy back, where it was not this computer.
        told: hears ``load`` with bytes done and in all, or ``metrics`` with the seconds so far.

    Raises:
        Failure: it could not be judged, the link was lost, or the process broke off.
        TimeoutError: the box did not answer in time.
    """
    _, readback = await asyncio.to_thread(judging.to_judge, task)
    if readback.consumer.kind == "path":
        await _in_child(task, told)
    else:
        await judge_on_box(task, dial, readback, told, _in_child)


async def _in_child(task: Errand, told: Told, far: Far | None = None) -> None:
    where = task.where
    words = [str(where.config), str(where.state), task.spec.name, *([far_words(far)] if far else [])]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tui.workers.judging", *words,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True, limit=_LINE,
    )  # fmt: skip
    try:
        last = await _heard(process, told)
        code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if "failure" in last:
        what, means, do, failed = last["failure"]
        raise Failure(what, means=means, do=do, code=failed)
    if "done" not in last:
        raise Failure(
            f"The process that loads checkpoints and recomputes metrics broke off (exit {code}).",
            means="Nothing is known of what it was looking at; the copy is unharmed.",
            do="Try again; `rgt verify RUN` in a shell says more.",
            exit=Exit.UNKNOWN,
            code="judging-broke-off",
        )


async def _heard(process: asyncio.subprocess.Process, told: Told) -> dict[str, Any]:
    """The last line, after telling how far it is."""
    assert process.stdout is not None
    last: dict[str, Any] = {}
    while line := await process.stdout.readline():
        try:
            last = json.loads(line)
            if "phase" in last:
                told(str(last["phase"]), int(last["at"]), int(last["of"]))
        except (ValueError, KeyError, TypeError):
            last = {}
    return last
