"""A program in a tmux pane, timed from the moment it is let go by the bytes that come out."""

from __future__ import annotations

import os
import select
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.rig.tmux import Tmux

DEADLINE_S = 30.0
PYTHON = sys.executable
RGT = (PYTHON, "-m", "tui.cli")


class Pane:
    """A pane whose program waits until `go`, and whose output can be watched as it comes."""

    def __init__(self, tmux: Tmux, output: int) -> None:
        self._tmux = tmux
        self._output = output
        self._began = 0.0
        self._seen = b""

    def go(self) -> None:
        """Let the program start."""
        self._began = time.perf_counter()
        self._tmux.call("wait-for", "-S", "go")

    def seconds_until(self, mark: bytes) -> float:
        """Seconds from `go` until `mark` came out."""
        while mark not in self._seen:
            left = DEADLINE_S - (time.perf_counter() - self._began)
            if left <= 0 or not select.select([self._output], [], [], left)[0]:
                raise RuntimeError(f"{mark!r} never came up; the screen was:\n{self._tmux.screen()}")
            self._seen += os.read(self._output, 65536)
        return time.perf_counter() - self._began

    def keys(self, *keys: str) -> None:
        self._tmux.keys(*keys)

    def screen(self) -> str:
        return self._tmux.screen()

    def flag(self, name: str) -> str:
        """One of tmux's formats, such as ``alternate_on``."""
        return self._tmux.call("display-message", "-p", "-t", "t", f"#{{{name}}}").strip()

    def program(self) -> psutil.Process:
        """The program itself, once it runs."""
        shell = psutil.Process(self._tmux.pane_pid())
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            for child in shell.children():
                if "python" in child.name():
                    return child
            time.sleep(0.02)
        raise RuntimeError("the program never started")


@contextmanager
def pane(
    folder: Path, command: Sequence[str], environment: Mapping[str, str], columns: int = 120, rows: int = 40
) -> Iterator[Pane]:
    """A program in a pane of a default tmux with 256 colours; it waits for `Pane.go`."""
    tmux = Tmux(columns, rows)
    pipe = folder / "output"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    output = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    waiting = f"{tmux.program} -L {tmux.socket} wait-for go; exec {shlex.join(command)}"
    try:
        tmux.start(("/bin/sh", "-c", waiting), environment)
        tmux.call("pipe-pane", "-t", "t", "-O", f"exec cat > {shlex.quote(str(pipe))}")
        time.sleep(0.1)
        yield Pane(tmux, output)
    finally:
        tmux.stop()
        os.close(output)
        pipe.unlink()
