"""Bytes that reach the terminal: nothing when nothing changes, little when everything does."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.bench.pane import PYTHON
from tests.bench.place import Bench, environment
from tests.bench.report import Row, limited

COLUMNS, ROWS = 120, 45
BOXES = 40
WARM_S = 4.0


def rows(bench: Bench) -> Iterator[Row]:
    quiet_s, busy_s = (8, 4) if bench.quick else (50, 20)
    with app("quiet") as fd:
        shown = len(set(re.findall(rb"box-\d\d", read(fd, WARM_S))))
        count = len(read(fd, quiet_s))
        os.write(fd, b"j")
        assert read(fd, 1.0), "the app no longer answers, so its silence proves nothing"
    yield limited(
        f"bytes to the terminal in {quiet_s} quiet seconds, {BOXES} boxes", count, "B", most=0, digits=0,
        note=f"{COLUMNS}×{ROWS}, {shown} rows in view; fresh telemetry of equal values every 2 s; it begins "
        "early in a minute, so that the header's clock stands; no meter runs",
    )  # fmt: skip
    with app("busy") as fd:
        read(fd, WARM_S)
        count = len(read(fd, busy_s))
    yield limited(
        f"bytes a second when the figures of {BOXES} rows change at 1 Hz", count / busy_s / 1000, "kB/s",
        most=4,
        note=f"{COLUMNS}×{ROWS}, 256 colours, {shown} rows in view",
    )  # fmt: skip


@contextmanager
def app(mode: str) -> Iterator[int]:
    """The app on a terminal of its own; gives the terminal's other end."""
    with on_terminal((PYTHON, "-m", "tests.bench.fed_app", mode, str(BOXES))) as (fd, _):
        yield fd


@contextmanager
def on_terminal(command: Sequence[str], **more: str) -> Iterator[tuple[int, int]]:
    """A program on a terminal of its own: the terminal's other end, and the program's pid."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(command[0], list(command), environment(TERM="xterm-256color", **more))
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    try:
        yield fd, pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def read(fd: int, seconds: float) -> bytes:
    """Everything that comes within this time."""
    parts, end = [], time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            try:
                parts.append(os.read(fd, 65536))
            except OSError:
                raise RuntimeError("the program has ended") from None
    return b"".join(parts)
