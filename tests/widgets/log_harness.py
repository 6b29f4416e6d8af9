"""An app that holds nothing but a log view, and a log buffer that tests fill by hand."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import App, ComposeResult

from tui.model.command import Command
from tui.model.log import LogGap
from tui.model.text import LogText, SafeText
from tui.widgets.glyphs import UNICODE
from tui.widgets.logview import LogView


class HandBuffer:
    """A ring of lines with the attributes that ``tui.fleet.logbuffer.LogBuffer`` shows its readers."""

    def __init__(self, lines: Iterable[str] = (), cap: int = 20_000, base: int = 0) -> None:
        self.base = base
        self.cap = cap
        self.lines: list[LogText] = [LogText(line) for line in lines]
        self.gaps: dict[int, LogGap] = {}
        self.partial = LogText("")
        self.behind_bytes = 0
        self.file_bytes: int | None = None
        self.forgot = False

    @property
    def end(self) -> int:
        return self.base + len(self.lines)

    def add(self, *lines: str) -> None:
        self.lines += [LogText(line) for line in lines]
        over = len(self.lines) - self.cap
        if over > 0:
            del self.lines[:over]
            self.base += over

    def add_older(self, *lines: str) -> None:
        self.lines[:0] = [LogText(line) for line in lines]
        self.base -= len(lines)

    def forget_older(self) -> None:
        self.forgot = True

    def add_gap(self, text: str) -> None:
        self.gaps[self.end] = LogGap(SafeText(text), 10)
        self.add(text)


class LogApp(App[None]):
    glyphs = UNICODE

    def __init__(self, buffer: HandBuffer | None = None) -> None:
        super().__init__()
        self.buffer = buffer if buffer is not None else HandBuffer()
        self.sent: list[Command] = []
        self.copied: list[tuple[str, str]] = []
        self.saved: list[LogView.Save] = []

    def compose(self) -> ComposeResult:
        yield LogView(self._take, frame_s=0.01)

    def on_mount(self) -> None:
        self.view.open("seed3", self.buffer)
        self.view.focus()

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    def _take(self, command: Command) -> bool:
        self.sent.append(command)
        return True

    def on_log_view_copy(self, message: LogView.Copy) -> None:
        self.copied.append((message.text, message.what))

    def on_log_view_save(self, message: LogView.Save) -> None:
        self.saved.append(message)


def body(view: LogView) -> list[str]:
    """The log's own rows, without gutter, rule, filter line and status."""
    assert view.reader is not None
    top = 1 + bool(view.reader.filters.rules)
    return [row[2:].rstrip() for row in view.screen_rows[top:-1]]
