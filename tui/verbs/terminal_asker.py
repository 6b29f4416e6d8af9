"""Asks for passwords on the terminal itself, never on standard input, and never echoes them."""

from __future__ import annotations

import asyncio
import getpass
import os

from tui.model.text import safe


class TerminalAsker:
    """For verbs a person runs by hand. Where there is no terminal, nobody answers."""

    async def ask(self, box: str, prompt: str) -> str | None:
        return await asyncio.get_running_loop().run_in_executor(None, _ask, f"{safe(box)}: {safe(prompt)} ")


def _ask(prompt: str) -> str | None:
    try:
        os.close(os.open(os.ctermid(), os.O_RDWR | os.O_NOCTTY))  # getpass would fall back to echoing stdin
    except OSError:
        return None
    try:
        return getpass.getpass(prompt)
    except (EOFError, OSError):
        return None
