"""How the app ends: by itself, by a signal, by a fault, and whatever still hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from textual.app import App

from tui.model.failure import Exit

LEAVE_S = 0.3
"""What tasks get to end in when the operator leaves."""
TELL_S = 2.0
"""What saying why may take when it leaves for a fault or a signal."""


def heed_signals(heed: Callable[[int], None]) -> None:
    """SIGTERM, SIGHUP and SIGINT leave like a person does, with the terminal put back in order."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, heed, number)


def run(app: App[Any], *, mouse: bool = False) -> int:
    """Run the app on this terminal and give the exit code.

    Whatever still hangs `LEAVE_S` after the screen is gone is left behind: a dead box must not hold up the
    operator's prompt, and a terminal that was closed must not leave a reader behind that spins on its end.
    """
    try:
        with asyncio.Runner() as runner:
            runner.run(app.run_async(mouse=mouse))
            code = app.return_code or 0
            sys.stdout.flush()
            deadline = _leave_anyway(code, LEAVE_S)
    except BaseException:
        _leave_anyway(int(Exit.INTERRUPTED), TELL_S)
        raise
    deadline.cancel()
    return code


def _leave_anyway(code: int, seconds: float) -> threading.Timer:
    """End the process in some seconds, whatever threads are left by then."""
    deadline = threading.Timer(seconds, os._exit, (code,))
    deadline.daemon = True
    deadline.start()
    return deadline
