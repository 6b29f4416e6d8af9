"""The connection of one verb to one box, which asks at the terminal what it has to ask."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from tui.verbs.terminal_asker import TerminalAsker
from tui.verbs.wiring import dialer
from tui.workers.line import Line, line_of

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance

__all__ = ["Line", "line_to"]


def line_to(instance: Instance, where: Paths) -> AbstractAsyncContextManager[Line]:
    """A line that is closed with the block."""
    return line_of(instance, dialer(where, asker=TerminalAsker()))
