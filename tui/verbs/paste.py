"""Reading a paste from standard input without showing it: what consoles give often ends with a password."""

from __future__ import annotations

import contextlib
import sys
import termios
from collections.abc import Callable, Iterator
from typing import BinaryIO

MOST_LINES = 200
MOST_BYTES = 16_384
_HOW = "Paste the login, several lines are fine; it is not shown. End with an empty line or ctrl+d."


def read_paste(stdin: BinaryIO, say: Callable[[str], None]) -> str:
    """All lines up to the end of input, or on a terminal up to an empty line after some text.

    Args:
        say: tells the operator what to do; called on a terminal only.
    """
    if not stdin.isatty():
        return stdin.read(MOST_BYTES + 1).decode("utf-8", "replace")
    lines: list[bytes] = []
    with _unseen(stdin):
        say(_HOW)
        while len(lines) < MOST_LINES and (line := stdin.readline(MOST_BYTES)):
            if line.strip():
                lines.append(line)
            elif lines:
                break
    return b"".join(lines).decode("utf-8", "replace")


@contextlib.contextmanager
def _unseen(stdin: BinaryIO) -> Iterator[None]:
    """Turn the terminal's echo off, and drop what was pasted beyond the end: the shell would run it."""
    terminal = stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        print(file=sys.stderr)
