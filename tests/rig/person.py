"""A programme on a terminal of its own, and somebody at its keyboard."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Person:
    """A child process on its own pseudo-terminal, and somebody at its keyboard.

    Args:
        stdin: of the child; by default its terminal.
        environment: of the child; by default that of this process.
    """

    def __init__(
        self, words: list[str], *, stdin: int | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.master, slave = pty.openpty()
        self._slave = slave  # kept open: a terminal stays while nobody has it open

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.child = subprocess.Popen(
            words,
            stdin=slave if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment,
            preexec_fn=own_terminal,
        )
        self.screen = b""

    def types(self, text: bytes) -> None:
        os.write(self.master, text)

    def sees(self, text: bytes, timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while text not in self.screen:
            left = deadline - time.monotonic()
            assert left > 0, self.screen
            if select.select([self.master], [], [], left)[0]:
                self.screen += os.read(self.master, 4096)

    def ends(self, timeout: float = 60.0) -> tuple[int, str]:
        out = self.child.communicate(timeout=timeout)[0]
        return self.child.returncode, out.decode().strip()

    def close(self) -> None:
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait(10)
        os.close(self.master)
        os.close(self._slave)
