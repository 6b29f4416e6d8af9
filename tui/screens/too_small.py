"""What stands in a pane in which nothing useful can be drawn."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.screen import ModalScreen

from tui.widgets.lines import Lines


class TooSmallScreen(ModalScreen[None]):
    """Says how much room is needed; goes by itself when there is enough.

    Args:
        least: columns and rows.
    """

    DEFAULT_CSS = "TooSmallScreen { background: $c-background; } TooSmallScreen Lines { height: 100%; }"

    def __init__(self, least: tuple[int, int]) -> None:
        super().__init__()
        self._least = least

    def compose(self) -> ComposeResult:
        yield Lines()

    def on_resize(self) -> None:
        columns, rows = self._least
        width, height = self.size
        self.query_one(Lines).show(
            ((("rgt needs", ""),), ((f"{columns}x{rows}", ""),), ((f"this is {width}x{height}", "dim"),))
        )
