"""Reads what a person types on the terminal itself. No flag, variable, pipe or file can stand in for it.

Standard input is never read: the line comes from ``/dev/tty``, after everything that was typed ahead has been
thrown away, and a paste is told from typing by the marks that terminals put around it.
"""

from __future__ import annotations

import contextlib
import os
import select
import termios
import time
from collections.abc import Iterator

from tui.model.failure import Exit, Failure

_TTY = "/dev/tty"
_SETTLE_S = 0.25
"""How long the keyboard must be silent before the question."""

_AFTER_S = 0.05
_LINE = 4096
_PASTE_MARKS_ON, _PASTE_MARKS_OFF = b"\x1b[?2004h", b"\x1b[?2004l"


def read_line(prompt: str, timeout: float) -> str:
    """Ask once, and return what was typed up to Enter, exactly. It is never an answer typed before.

    A paste comes back with its marks or its further lines in it, and so equals nothing that was asked for.

    Args:
        prompt: safe text.
        timeout: seconds until nobody answered.

    Raises:
        Failure: there is no terminal (exit 4), or nobody answered in time.
    """
    fd = _terminal()
    try:
        with _marked(fd):
            _drain(fd)
            os.write(fd, prompt.encode())
            return _line(fd, time.monotonic() + timeout).decode("utf-8", "surrogateescape")
    except (OSError, termios.error):
        raise no_terminal() from None
    finally:
        os.close(fd)


def require_terminal() -> None:
    """Raises Failure (exit 4) where nobody could be asked, before work is done that needs an answer."""
    os.close(_terminal())


def _terminal() -> int:
    try:
        fd = os.open(_TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise no_terminal() from None
    if not os.isatty(fd):
        os.close(fd)
        raise no_terminal()
    return fd


def no_terminal() -> Failure:
    """The failure where there is no keyboard to read from."""
    return Failure(
        "There is no terminal to type the phrase on.",
        means="Nothing was done; an approval comes from a keyboard and from nowhere else.",
        do="Run this in a terminal.",
        exit=Exit.UNKNOWN,
        code="no-terminal",
    )


@contextlib.contextmanager
def _marked(fd: int) -> Iterator[None]:
    """Whole lines with echo, pastes marked; the terminal is left as it was."""
    before = termios.tcgetattr(fd)
    wanted = termios.tcgetattr(fd)
    wanted[0] |= termios.ICRNL
    wanted[3] |= termios.ICANON | termios.ECHO | termios.ISIG
    termios.tcsetattr(fd, termios.TCSANOW, wanted)
    os.write(fd, _PASTE_MARKS_ON)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):
            os.write(fd, _PASTE_MARKS_OFF)
            termios.tcsetattr(fd, termios.TCSAFLUSH, before)  # the rest of a paste reaches no shell


def _drain(fd: int) -> None:
    """Throw away what was typed ahead, until the keyboard is silent; at most a few rounds."""
    for _ in range(20):
        termios.tcflush(fd, termios.TCIFLUSH)
        if not _waits(fd, _SETTLE_S):
            break
    termios.tcflush(fd, termios.TCIFLUSH)


def _line(fd: int, deadline: float) -> bytes:
    if not _waits(fd, max(0.0, deadline - time.monotonic())):
        raise Failure("Nobody typed the phrase in time.", means="Nothing was done.", code="no-answer")
    raw = os.read(fd, _LINE)
    if _waits(fd, _AFTER_S):  # a second line that comes at once was pasted or sent, not typed
        raw += os.read(fd, _LINE)
        termios.tcflush(fd, termios.TCIFLUSH)
        return raw
    return raw.removesuffix(b"\n")


def _waits(fd: int, timeout: float) -> bool:
    return bool(select.select([fd], [], [], timeout)[0])
