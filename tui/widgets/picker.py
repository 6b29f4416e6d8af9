"""A list with one selected item: moved by keys, scrolled by itself, painted row by row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from tui.widgets.glyphs import glyphs_of
from tui.widgets.lines import Line, Lines, differences, edged
from tui.widgets.moves import move_bindings


@dataclass(frozen=True, slots=True)
class Item:
    """One entry. `key` names it for good: the cursor stays on it when the order changes.

    Without a key it is only read, such as the sentence that stands in for an empty list.
    """

    key: Hashable | None
    line: Line


class Picker(Lines, can_focus=True):
    """Items below an optional head line; the cursor follows its item through every change."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *move_bindings(),
        *(Binding(str(n), f"digit({n})", f"item {n}", show=False) for n in range(1, 10)),
    ]

    class Moved(Message):
        """The cursor is on another item, or the item under it was replaced."""

        def __init__(self, picker: Picker) -> None:
            super().__init__()
            self.picker = picker

        @property
        def control(self) -> Picker:
            return self.picker

    def __init__(
        self, *, id: str | None = None, classes: str | None = None, head: Line | None = None
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._items: tuple[Item, ...] = ()
        self._head = head
        self._cursor = 0
        self._top = 0
        self.moved = False
        """Whether the operator has moved the cursor."""

    @property
    def items(self) -> tuple[Item, ...]:
        return self._items

    @property
    def cursor(self) -> int:
        return self._cursor

    @property
    def selected(self) -> Hashable | None:
        """Key of the item under the cursor; None in an empty list."""
        return self._items[self._cursor].key if self._items else None

    @property
    def text(self) -> str:
        lines = ([self._head] if self._head else []) + [item.line for item in self._items]
        return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)

    @property
    def room(self) -> int:
        """Rows for items."""
        return max(0, self.size.height - (self._head is not None))

    @property
    def last(self) -> int:
        """Number of the last item in sight, counted from 1."""
        return min(len(self._items), self._top + self.room)

    def show_items(self, items: Sequence[Item], head: Line | None = None) -> None:
        """Replace the items. The cursor stays on its key, or near its place when that is gone."""
        before, key = self._window(), self.selected
        self._items, self._head = tuple(items), head if head is not None else self._head
        self._cursor = self.place_for(key)
        self._follow()
        self._repaint_from(before)
        if self.selected != key:
            self.post_message(self.Moved(self))

    def place_for(self, key: Hashable | None) -> int:
        """Where the cursor goes when the items were replaced: to its key, else near where it was."""
        found = (i for i, item in enumerate(self._items) if item.key == key)
        return next(found, min(self._cursor, max(0, len(self._items) - 1)))

    def select(self, key: Hashable) -> bool:
        """Put the cursor on an item; False when it is not in the list."""
        for place, item in enumerate(self._items):
            if item.key == key:
                self.move_to(place)
                return True
        return False

    def place(self, place: int) -> None:
        """Where the cursor begins: it does not count as moved by the operator."""
        self.move_to(place)
        self.moved = False

    def move_to(self, place: int) -> None:
        """Put the cursor on the item at `place`, or the nearest there is."""
        place = max(0, min(place, len(self._items) - 1))
        if place == self._cursor:
            return
        before = self._window()
        self._cursor = place
        self.moved = True
        self._follow()
        self._repaint_from(before)
        self.post_message(self.Moved(self))

    def line_at(self, y: int) -> tuple[Line, bool]:
        if self._head is not None:
            if y == 0:
                return self._head, False
            y -= 1
        place = self._top + y
        if place >= len(self._items):
            return (), False
        item = self._items[place]
        if place != self._cursor or item.key is None:
            return item.line, False
        here = self.has_focus or not self.can_focus  # one that cannot have it is moved from elsewhere
        return edged(item.line, glyphs_of(self).cursor, "edge" if here else "dim"), here

    def _window(self) -> list[tuple[Line, bool]]:
        return [self.line_at(y) for y in range(self.size.height)]

    def _repaint_from(self, before: list[tuple[Line, bool]]) -> None:
        rows: list[tuple[int, list[tuple[int, int]]]] = []
        for y, (line, selected) in enumerate(before):
            now, selected_now = self.line_at(y)
            rows.append((y, differences(line, now) if selected == selected_now else [(0, 0)]))
        self.repaint_parts(rows)

    def _follow(self) -> None:
        """Scroll so that the cursor is in sight and no room is wasted at the end."""
        room = max(1, self.room)
        self._top = max(0, min(self._top, len(self._items) - room))
        self._top = min(self._top, self._cursor)
        self._top = max(self._top, self._cursor - room + 1)

    def on_resize(self) -> None:
        self._follow()
        self.refresh()

    def on_focus(self) -> None:
        self._repaint_cursor()

    def on_blur(self) -> None:
        self._repaint_cursor()

    def _repaint_cursor(self) -> None:
        """The mark beside the selected item says whether the keys go there."""
        self.repaint((self._cursor - self._top + (self._head is not None),))

    def on_click(self, event: events.Click) -> None:
        place = self._top + event.y - (self._head is not None)
        if 0 <= place < len(self._items):
            self.move_to(place)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move_to(self._cursor + 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move_to(self._cursor - 1)

    def action_cursor_down(self) -> None:
        self.move_to(self._cursor + 1)

    def action_cursor_up(self) -> None:
        self.move_to(self._cursor - 1)

    def action_page_down(self) -> None:
        self.move_to(self._cursor + max(1, self.room - 1))

    def action_page_up(self) -> None:
        self.move_to(self._cursor - max(1, self.room - 1))

    def action_first(self) -> None:
        self.move_to(0)

    def action_last(self) -> None:
        self.move_to(len(self._items) - 1)

    def action_digit(self, number: int) -> None:
        """Select the `number`-th item in sight, counted from 1."""
        if self._top + number - 1 < len(self._items):
            self.move_to(self._top + number - 1)
