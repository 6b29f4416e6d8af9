"""A list of entries that may be several lines high; some can be selected, the others are only read."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from tui.widgets.glyphs import glyphs_of
from tui.widgets.lines import Line, Lines, edged
from tui.widgets.moves import move_bindings


@dataclass(frozen=True, slots=True)
class Entry:
    """Lines that belong together. `key` names what can be selected; None is only read."""

    lines: tuple[Line, ...]
    key: Hashable | None = None


class Chooser(Lines, can_focus=True):
    """Entries below each other; the cursor goes from one selectable entry to the next."""

    BINDINGS: ClassVar[list[BindingType]] = [*move_bindings()]
    DEFAULT_CSS = "Chooser { height: 1fr; }"

    class Moved(Message):
        """The cursor is on another entry."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._entries: tuple[Entry, ...] = ()
        self._owner: list[int] = []
        self._selected: Hashable | None = None
        self._top = 0
        self.moved = False
        """Whether the operator has moved the cursor."""

    @property
    def selected(self) -> Hashable | None:
        """Key of the entry under the cursor; None where nothing can be selected."""
        return self._selected

    @property
    def keys(self) -> list[Hashable]:
        return [entry.key for entry in self._entries if entry.key is not None]

    def show_entries(self, entries: Sequence[Entry], prefer: Hashable | None = None) -> None:
        """Replace the entries. The cursor stays on its key, or near its place when that is gone.

        Args:
            prefer: where the cursor stands as long as the operator has not moved it.
        """
        before = self._window()
        place = self.keys.index(self._selected) if self._selected in self.keys else 0
        self._entries = tuple(entries)
        self._lines = tuple(line for entry in self._entries for line in entry.lines)
        self._owner = [i for i, entry in enumerate(self._entries) for _ in entry.lines]
        keys = self.keys
        if prefer in keys and not self.moved:
            self._selected = prefer
        elif self._selected not in keys:
            self._selected = keys[min(place, len(keys) - 1)] if keys else None
        self._follow()
        self._repaint_from(before)

    def select(self, key: Hashable) -> bool:
        """Put the cursor on an entry; False when it is not there."""
        if key not in self.keys:
            return False
        before = self._window()
        self._selected = key
        self.moved = True
        self._follow()
        self._repaint_from(before)
        self.post_message(self.Moved())
        return True

    def line_at(self, y: int) -> tuple[Line, bool]:
        place = self._top + y
        if place >= len(self._lines):
            return (), False
        entry = self._entries[self._owner[place]]
        chosen = entry.key is not None and entry.key == self._selected and self.has_focus
        line = self._lines[place]
        return (edged(line, glyphs_of(self).cursor, "edge") if chosen else line), chosen

    def _window(self) -> list[tuple[Line, bool]]:
        return [self.line_at(y) for y in range(self.size.height)]

    def _repaint_from(self, before: list[tuple[Line, bool]]) -> None:
        self.repaint(y for y, shown in enumerate(before) if shown != self.line_at(y))

    def _follow(self) -> None:
        """Scroll so that the selected entry is in sight, its first line at least, and no room is wasted."""
        room = max(1, self.size.height)
        rows = [y for y, i in enumerate(self._owner) if self._entries[i].key == self._selected is not None]
        if not self.moved:
            self._top = 0  # what stands above the first choice is read first
        self._top = max(0, min(self._top, len(self._lines) - room))
        if rows:
            self._top = max(self._top, rows[-1] - room + 1)
            self._top = min(self._top, rows[0])
            if self._selected == self.keys[0] and rows[-1] < room:
                self._top = 0

    def _step(self, count: int) -> None:
        keys = self.keys
        if not keys:
            self._scroll(count)
            return
        place = keys.index(self._selected) if self._selected in keys else 0
        wanted = max(0, min(len(keys) - 1, place + count))
        if keys[wanted] == self._selected:
            self._scroll(count)
        else:
            self.select(keys[wanted])

    def _scroll(self, rows: int) -> None:
        """Move the window where no entry can be selected that way."""
        before = self._window()
        self._top = max(0, min(self._top + rows, len(self._lines) - max(1, self.size.height)))
        self._repaint_from(before)

    def on_resize(self) -> None:
        self._follow()
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        place = self._top + event.y
        if 0 <= place < len(self._owner):
            key = self._entries[self._owner[place]].key
            if key is not None:
                self.select(key)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-3)

    def action_cursor_down(self) -> None:
        self._step(1)

    def action_cursor_up(self) -> None:
        self._step(-1)

    def action_page_down(self) -> None:
        self._step(max(1, self.size.height // 2))

    def action_page_up(self) -> None:
        self._step(-max(1, self.size.height // 2))

    def action_first(self) -> None:
        if self.keys:
            self.select(self.keys[0])
        self._scroll(-len(self._lines))

    def action_last(self) -> None:
        if self.keys:
            self.select(self.keys[-1])
