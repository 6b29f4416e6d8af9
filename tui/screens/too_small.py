"""What stands in a pane in which nothing useful can be drawn."""

from __future__ import annotations

from typing import Any

from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.screen import ModalScreen

from tui.widgets.lines import Lines

LEAST = (40, 10)
"""Columns and rows below which nothing useful can be drawn."""


def check_room(app: App[Any], size: Size) -> None:
    """Cover a pane that is too small, uncover one that has grown."""
    small = size.width < LEAST[0] or size.height < LEAST[1]
    shown_now = isinstance(app.screen, TooSmallScreen)
    if small and not shown_now:
        app.push_screen(TooSmallScreen())
    elif shown_now and not small:
        app.pop_screen()


class TooSmallScreen(ModalScreen[None]):
    """Says how much room is needed; goes by itself when there is enough."""

    DEFAULT_CSS = "TooSmallScreen { background: $c-background; } TooSmallScreen Lines { height: 100%; }"

    def compose(self) -> ComposeResult:
        yield Lines()

    def on_resize(self) -> None:
        columns, rows = LEAST
        width, height = self.size
        self.query_one(Lines).show(
            ((("rgt needs", ""),), ((f"{columns}x{rows}", ""),), ((f"this is {width}x{height}", "dim"),))
        )
