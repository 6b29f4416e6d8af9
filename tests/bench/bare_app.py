"""The peer of the first frame: a plain Textual app with a table, a log and a footer, nothing behind."""

from __future__ import annotations

import sys

from textual.app import App, ComposeResult
from textual.widgets import DataTable, Footer, Header, Log


class BareApp(App[None]):
    """Rows of names, as many as asked for."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def compose(self) -> ComposeResult:
        yield Header()
        yield DataTable[str]()
        yield Log()
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("box", "platform", "state", "gpu", "disk", "age")
        for number in range(self._count):
            table.add_row(f"bench-{number:02d}", "ssh", "not probed", "?", "?", "?")


if __name__ == "__main__":
    BareApp(int(sys.argv[1])).run()
