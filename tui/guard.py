"""What the app starts runs behind it: a failure is told, a fault of ours is kept and survived."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from tui.model.failure import Failure
from tui.model.text import safe


class Guard:
    """Runs actions and jobs.

    Args:
        report: shows one sentence at a level: ``attention`` or ``danger``.

    Attributes:
        faults: the newest errors of ours, whole, for a bug report.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self._jobs: list[asyncio.Task[None]] = []
        self.faults: deque[str] = deque(maxlen=20)

    async def act(self, name: str, call: Callable[[], Any]) -> None:
        """Do what an operator asked for, and wait for it."""
        try:
            result = call()
            if inspect.isawaitable(result):
                await result
        except Failure as failure:
            self._report(failure.line, "attention")
        except Exception as error:  # noqa: BLE001 - one action must not end the watch
            self.fault(name, error)

    def spawn(self, work: Awaitable[None], name: str) -> None:
        """Do something beside everything else, until `end`."""
        self._jobs = [job for job in self._jobs if not job.done()]
        self._jobs.append(asyncio.create_task(self._job(work, name), name=name))

    async def _job(self, work: Awaitable[None], name: str) -> None:
        try:
            await work
        except Failure as failure:
            self._report(failure.line, "danger")
        except Exception as error:  # noqa: BLE001 - a failed worker must not take the screen with it
            self.fault(name, error)

    def fault(self, where: str, error: Exception) -> None:
        """Tell an error of ours in one line, and keep all of it."""
        self.faults.append("".join(traceback.format_exception(error)))
        what = f"{where} failed: {type(error).__name__}: {safe(str(error), 200)}. rgt runs on."
        self._report(what, "danger")

    async def end(self, seconds: float) -> None:
        """Cancel the jobs; they get so long to end in."""
        for job in self._jobs:
            job.cancel()
        if self._jobs:
            await asyncio.wait(self._jobs, timeout=seconds)
