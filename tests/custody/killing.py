"""kill -9 before every step that reaches the disk: a child process does the work and kills itself there."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_STEPS = 400
STEPS: tuple[tuple[Any, str], ...] = (
    (os, "fsync"),
    (os, "write"),
    (os, "ftruncate"),
    (os, "link"),
    (os, "close"),
    (Path, "replace"),
    (Path, "unlink"),
)
"""What is counted. Killing before each of them covers after each of them, too: nothing else has effects."""


def until_unharmed(work: Callable[[], object], after: Callable[[], object]) -> int:
    """Run `work` in a child that is killed before its 1st, 2nd, 3rd … step, and `after` here each time.

    Returns:
        how many times it was killed, until a child got through.
    """
    for step in range(1, MOST_STEPS):
        killed = run_until(work, step)
        after()
        if not killed:
            return step - 1
    raise AssertionError("the work never ended")


def run_until(work: Callable[[], object], step: int) -> bool:
    """Run `work` in a child and kill it before its `step`-th step; whether that happened."""
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            _arm(step)
            work()
            status = 0
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(status)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.waitstatus_to_exitcode(status) == 0, "the child failed; see its traceback above"
    return False


def _arm(step: int) -> None:
    left = step

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))
