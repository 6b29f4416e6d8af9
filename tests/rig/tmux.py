"""A real tmux with a server of its own: type into it, read its screen."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.real import need

DEADLINE_S = 60.0


class Tmux:
    """One pane of a given size. The server has its default options (``-f /dev/null``)."""

    def __init__(self, columns: int, rows: int) -> None:
        self.program = need("tmux")["tmux"]
        self.socket = f"rgt-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.columns, self.rows = columns, rows

    def call(self, *words: str) -> str:
        """Run one tmux command and give what it prints."""
        done = subprocess.run(
            [self.program, "-L", self.socket, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            env=dict(os.environ),  # not the C environment: pytest's readline leaves COLUMNS=80 there
            check=False,
        )
        return done.stdout

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a program; when it ends, also by ctrl+c, the pane stays and shows its exit code."""
        pairs = " ".join(f"{k}={shlex.quote(v)}" for k, v in environment.items())
        line = f"trap : INT; env {pairs} {shlex.join(command)}; printf '\\nEXIT=%s\\n' $?; exec sleep 1000"
        size = ("-x", str(self.columns), "-y", str(self.rows))
        self.call("new-session", "-d", "-s", "t", *size, "/bin/sh", "-c", line)

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self.call("send-keys", "-t", "t", *keys)

    def type(self, text: str) -> None:
        """Type text literally."""
        self.call("send-keys", "-t", "t", "-l", text)

    def screen(self, *, escapes: bool = False) -> str:
        """What the pane shows now."""
        return self.call("capture-pane", "-p", "-t", "t", *(("-e",) if escapes else ()))

    def resize(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.call("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))

    def wait_for(self, pattern: str, deadline_s: float = DEADLINE_S) -> str:
        """The screen once it matches `pattern`; an AssertionError with the last screen when it never does."""
        end = time.monotonic() + deadline_s
        while True:
            screen = self.screen()
            if re.search(pattern, screen):
                return screen
            if time.monotonic() > end:
                raise AssertionError(f"{pattern!r} never came up; the screen was:\n{screen}")
            time.sleep(0.05)

    def pane_pid(self) -> int:
        """Process id of the pane's shell."""
        return int(self.call("list-panes", "-t", "t", "-F", "#{pane_pid}").strip())

    def stop(self) -> None:
        self.call("kill-server")


@contextmanager
def tmux(columns: int, rows: int) -> Iterator[Tmux]:
    """A pane for the length of a ``with`` block."""
    pane = Tmux(columns, rows)
    try:
        yield pane
    finally:
        pane.stop()
