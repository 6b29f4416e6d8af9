"""The log view: a followed, searchable, filterable window on a log that may be of any length.

It draws what is in view and nothing else: lines that arrive cost it nothing until the next frame, and a frame
repaints only rows that differ. What is shown follows from `LogReader`; here are keys, frames and cells.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from tui.model.command import Command, LoadOlder
from tui.model.text import SafeText
from tui.widgets.glyphs import glyphs_of
from tui.widgets.lines import Line, Lines, Span
from tui.widgets.logfilter import Filters, Rule, pattern
from tui.widgets.logpaint import GUTTER, Look, body, filled
from tui.widgets.logreader import Buffer, LogReader
from tui.widgets.logrows import changed
from tui.widgets.logstatus import filter_line, status_parts, title_line, words
from tui.widgets.moves import move_bindings

FRAME_S = 0.1
REMOTE_FRAME_S = 0.25
"""Each followed frame repaints the whole pane, about 15 kB; over SSH that is the operator's bandwidth."""

OLDER = 2000
OLDER_WAIT_S = 5.0
SIDEWAYS = 16


class LogView(Lines, can_focus=True):
    """Shows one run's log.

    Args:
        send: hands a command to the workers; False when they are swamped.
        frame_s: shortest time between frames; by default a quarter second over SSH and a tenth otherwise.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *move_bindings(),
        Binding("right", "sideways(1)", "right", show=False),
        Binding("left", "sideways(-1)", "left", show=False),
        Binding("Y", "copy_page", "copy the lines in view", show=False),
        *(Binding(str(n), f"toggle_filter({n})", f"filter {n} on or off", show=False) for n in range(1, 10)),
    ]
    DEFAULT_CSS = "LogView { height: 1fr; }"

    class Copy(Message):
        """The operator wants this text in the clipboard; `what` names it in a sentence."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what

    class Save(Message):
        """The operator wants these lines in a file; `path` is empty when no name was given."""

        def __init__(self, run: str, lines: Sequence[SafeText], path: str) -> None:
            super().__init__()
            self.run = run
            self.lines = lines
            self.path = path

    def __init__(
        self,
        send: Callable[[Command], bool] | None = None,
        *,
        frame_s: float | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        remote = bool(os.environ.get("SSH_CONNECTION"))
        self.frame_s = frame_s if frame_s is not None else REMOTE_FRAME_S if remote else FRAME_S
        self.run: str | None = None
        self.reader: LogReader | None = None
        self._send = send or (lambda command: False)
        self._title: tuple[Span, ...] = (("log", "title"),)
        self._word: Span = ("", "")
        self._empty: tuple[Line, ...] = ()
        self._live = True
        self._note = ""
        self._strips: list[Strip] = []
        self._due: Timer | None = None
        self._painted_at = 0.0
        self._asked_at: float | None = None
        self._asked_before = -1

    # --- what to show -----------------------------------------------------------------------------------

    def open(self, run: str | None, buffer: Buffer | None) -> None:
        """Show another run's log from its end; None shows why there is none."""
        self.run = run
        self.reader = LogReader(buffer) if buffer is not None else None
        self._fit_reader()
        self.paint()

    def label(
        self,
        title: Sequence[Span],
        word: Span,
        empty: Sequence[Line] = (),
        *,
        live: bool = True,
        note: str = "",
    ) -> None:
        """Set the words in the rule, and the lines that stand in for a log that has none.

        Args:
            live: whether the box can be heard now.
            note: what is wrong with the following, such as lines that can't be kept.
        """
        new = (tuple(title), word, tuple(empty), live, note)
        if new != (self._title, self._word, self._empty, self._live, self._note):
            self._title, self._word, self._empty, self._live, self._note = new
            self.changed()

    def changed(self) -> None:
        """Lines arrived, or something about them changed: draw it with the next frame."""
        if self._due is None and self.is_attached:
            wait = self._painted_at + self.frame_s - time.monotonic()
            self._due = self.set_timer(max(0.001, wait), self._frame)

    def _frame(self) -> None:
        self._due = None
        if self.reader is not None and not self.reader.work():
            late = time.monotonic() - self._painted_at > 3 * self.frame_s
            self._due = self.set_timer(0.001, self._frame)  # the next slice; keys come in between
            if not late:
                return
        self.paint()

    def paint(self) -> None:
        """Bring the screen up to date, row by row where it differs."""
        if not self.size.width or not self.is_attached:
            return
        self._painted_at = time.monotonic()
        old, self._strips = self._strips, self._draw()
        width = self.size.width
        regions = [Region(0, y, width, 1) for y in range(len(old), len(self._strips))]
        for y, (before, after) in enumerate(zip(old, self._strips, strict=False)):
            start, cells = changed(before, after)
            if cells:
                regions.append(Region(start, y, cells, 1))
        if regions:
            self.refresh(*regions)

    def _touched(self) -> None:
        """A key changed the view: look at a slice at once, and draw."""
        if self.reader is not None and not self.reader.work():
            self.changed()
        self.paint()

    def on_resize(self) -> None:
        self._fit_reader()
        self._strips = []
        self.paint()
        self.refresh()

    def on_focus(self) -> None:
        self.paint()

    def on_blur(self) -> None:
        self.paint()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips = []
        self.changed()

    def _fit_reader(self) -> None:
        if self.reader is not None:
            chrome = 2 + bool(self.reader.filters.rules)
            self.reader.resize(max(2, self.size.width - GUTTER), max(1, self.size.height - chrome))

    # --- cells ------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        self.painted += 1
        width = self.size.width
        strip = self._strips[y] if y < len(self._strips) else Strip.blank(width, self.rich_style)
        return strip if strip.cell_length == width else strip.adjust_cell_length(width, self.rich_style)

    @property
    def screen_rows(self) -> list[str]:
        """What stands on the screen, row by row."""
        return [strip.text for strip in self._strips]

    @property
    def text(self) -> str:
        return "\n".join(row.rstrip() for row in self.screen_rows)

    def _draw(self) -> list[Strip]:
        width, height = self.size
        look = Look(width, height, glyphs_of(self), self.rich_style, self.span_style, self.has_focus)
        top = [title_line(self._title, self._word, width, look.glyphs)]
        if self.reader is None:
            return filled([*top, *self._empty], height, look)
        self._fit_reader()
        if self.reader.filters.rules:
            top.append(filter_line(self.reader, width, look.glyphs))
        parts = status_parts(self.reader, self._asked(), live=self._live, note=self._note)
        status = words(parts, width, look.glyphs)
        return [*body(self.reader, look, top, self._empty), look.strip(status)]

    # --- the reader's place -------------------------------------------------------------------------------

    def action_cursor_down(self) -> None:
        self._move(lambda reader: reader.move(1))

    def action_cursor_up(self) -> None:
        self._move(lambda reader: reader.move(-1))

    def action_page_down(self) -> None:
        self._move(lambda reader: reader.page(1))

    def action_page_up(self) -> None:
        self._move(lambda reader: reader.page(-1))

    def action_first(self) -> None:
        self._move(lambda reader: reader.first())
        self._ask_older()

    def action_last(self) -> None:
        self._move(lambda reader: reader.resume())

    def action_sideways(self, direction: int) -> None:
        def move(reader: LogReader) -> None:
            if not reader.wrap:
                reader.skip = max(0, reader.skip + direction * SIDEWAYS)

        self._move(move)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._move(lambda reader: None if reader.place.follow else reader.scroll(3))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._move(lambda reader: reader.scroll(-3))

    def _move(self, move: Callable[[LogReader], bool | None]) -> None:
        if self.reader is None:
            return
        self.reader.note = ""
        if move(self.reader) is False:
            self._ask_older()
        self._touched()

    def _ask_older(self) -> None:
        """Ask the spool for what came before the first line in memory, once for each such line."""
        reader = self.reader
        if reader is None or self.run is None or reader.buffer.base <= 0 or not reader.at_top:
            return
        now = time.monotonic()
        again = self._asked_at is None or now - self._asked_at > OLDER_WAIT_S
        if (reader.buffer.base != self._asked_before or again) and self._send(
            LoadOlder(self.run, before=reader.buffer.base, count=OLDER)
        ):
            self._asked_at, self._asked_before = now, reader.buffer.base
            self.set_timer(OLDER_WAIT_S + 0.1, self.changed)

    def _asked(self) -> str:
        if self._asked_at is None or self.reader is None or self.reader.buffer.base != self._asked_before:
            return ""
        if time.monotonic() - self._asked_at < OLDER_WAIT_S:
            return "asking the spool for older lines"
        return "no older lines came from the spool" if self.reader.at_top else ""

    # --- actions ------------------------------------------------------------------------------------------

    def action_follow(self) -> None:
        """Follow the log's end, or hold it."""
        self._move(lambda reader: reader.pause() if reader.place.follow else reader.resume())

    def action_wrap(self) -> None:
        def turn(reader: LogReader) -> None:
            reader.wrap = not reader.wrap
            reader.skip = 0

        self._move(turn)

    def action_next_match(self) -> None:
        self._move(lambda reader: reader.seek_match(1))

    def action_prev_match(self) -> None:
        self._move(lambda reader: reader.seek_match(-1))

    def action_next_error(self) -> None:
        self._move(lambda reader: reader.seek_error(1))

    def action_prev_error(self) -> None:
        self._move(lambda reader: reader.seek_error(-1))

    def action_clear_filters(self) -> None:
        self._move(lambda reader: reader.set_filters(Filters()))

    def action_toggle_filter(self, number: int) -> None:
        """Turn the `number`-th filter on or off, counted from 1."""
        self._move(lambda reader: reader.set_filters(reader.filters.toggled(number - 1)))

    def action_mark(self) -> None:
        self._move(lambda reader: reader.toggle_mark())

    def action_copy(self) -> None:
        if self.reader is not None:
            self.post_message(self.Copy(*self.reader.chosen()))

    def action_copy_page(self) -> None:
        if self.reader is not None:
            self.post_message(self.Copy(*self.reader.page_text()))

    def save(self, path: str = "") -> None:
        """Ask for a file with every line that the filters keep."""
        if self.reader is not None and self.run is not None:
            self.post_message(self.Save(self.run, tuple(self.reader.all_text()), path))

    def find(self, typed: str) -> None:
        """Search for text or a /regex/; an empty one ends the search.

        Raises:
            BadPattern: it cannot be searched for.
        """
        looked_for = pattern(typed) if typed else None
        self._move(lambda reader: reader.set_search(looked_for))

    def add_filter(self, typed: str, *, keep: bool) -> None:
        """Show only, or hide, lines that match; the same text again turns the filter off or on.

        Raises:
            BadPattern: it cannot be searched for.
        """
        rule = Rule(pattern(typed), keep)
        self._move(lambda reader: reader.add_filter(rule))

    def go(self, number: int) -> bool:
        """Put the cursor on a line; False when it is not shown."""
        went = self.reader is not None and self.reader.go(number)
        self._touched()
        return went

    def set_context(self, lines: int) -> None:
        """Show this many lines around each line that a filter keeps."""
        self._move(lambda reader: reader.set_context(lines))
