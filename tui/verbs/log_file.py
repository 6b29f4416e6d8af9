"""What is read as a saved log: a file, or a pipe such as the shell makes of ``<(…)``. Never a device."""

from __future__ import annotations

import io
import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NoReturn

from tui.model.failure import Exit, Failure
from tui.model.text import safe

QUIET_S = 60.0
"""How long a pipe may give nothing, and have no end either."""
MOST = 16 << 30
"""Bytes that are taken from a pipe: a file ends by itself."""


class _Pipe(io.RawIOBase):
    """A pipe that is waited for, but not for ever."""

    def __init__(self, fd: int, name: str, quiet_s: float, most: int) -> None:
        self._fd, self._name, self._quiet_s, self._left = fd, name, quiet_s, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._left <= 0:
            _refuse(f"{safe(self._name)} goes on without an end", "Save what is to be read into a file.")
        waiting = select.poll()  # unlike select, it takes any number of a file
        waiting.register(self._fd, select.POLLIN)
        if not waiting.poll(self._quiet_s * 1000):
            _refuse(
                f"{safe(self._name)} is a pipe, and nothing came out of it for {self._quiet_s:g} s",
                "Start what writes into it, or save its output into a file.",
            )
        got = os.readv(self._fd, [buffer])
        self._left -= got
        return got


@contextmanager
def opened(name: str, quiet_s: float = QUIET_S, most: int = MOST) -> Iterator[IO[bytes]]:
    """A file or a pipe.

    Raises:
        Failure: it is a device, or a pipe without an end.
        OSError, ValueError: it can't be opened.
    """
    # Without blocking, else a pipe that nobody writes into is waited for in here.
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            _refuse(f"{safe(name)} is a device, so it is no log", "Give a file; - reads standard input.")
        os.set_blocking(fd, True)
        if stat.S_ISFIFO(mode):
            yield io.BufferedReader(_Pipe(fd, name, quiet_s, most), 1 << 16)
        else:
            with os.fdopen(fd, "rb", closefd=False) as file:
                yield file
    finally:
        os.close(fd)


def _refuse(what: str, do: str) -> NoReturn:
    raise Failure(f"{what}.", means="Nothing was judged.", do=do, exit=Exit.USAGE, code="no-log")
