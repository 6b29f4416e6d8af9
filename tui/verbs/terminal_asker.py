"""Asks for passwords on the terminal itself, never on standard input, and never echoes them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios
from collections.abc import Iterator

from tui.model.text import safe

_LONGEST = 4096


class TerminalAsker:
    """For verbs a person runs by hand. Where there is no terminal, nobody answers.

    The answer is awaited in the loop and not in a thread: a thread that reads would hold up ctrl+c.
    """

    async def ask(self, box: str, prompt: str) -> str | None:
        try:
            terminal = os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY)
        except OSError:
            return None
        try:
            with _unseen(terminal):
                os.write(terminal, f"{safe(box)}: {safe(prompt)} ".encode())
                return await _line(terminal)
        except (OSError, termios.error):
            return None
        finally:
            os.close(terminal)


async def _line(terminal: int) -> str | None:
    """The next line; None at the end of input."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(terminal, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(terminal)
    given = os.read(terminal, _LONGEST)  # one line: the terminal gives it whole, at enter
    return given.decode("utf-8", "surrogateescape").removesuffix("\n") if given else None


@contextlib.contextmanager
def _unseen(terminal: int) -> Iterator[None]:
    """Turn the echo off, and drop what was typed ahead: it was not meant as an answer."""
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSAFLUSH, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
        os.write(terminal, b"\n")
