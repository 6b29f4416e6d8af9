"""Where the reader is in a log: follow, anchor, cursor, and the screen rows that follow from them.

The place is a line's absolute number and a character in it, never a row count. So it holds while lines
arrive, while old ones leave memory and while the pane is resized, and no index over wrapped rows has to
be kept: a frame costs what it shows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

Breaks: TypeAlias = Callable[[int], Sequence[int]]
"""Where each screen row of a line starts, as character offsets; the first is 0."""

SEPARATOR = -1


class Row(NamedTuple):
    """One screen row: the line's number, its row within the line (`SEPARATOR`: the rule above the line)."""

    number: int
    part: int


class Shown:
    """The numbers of the lines that can be shown, rising.

    Args:
        held: lines that left memory while the reader was looking at them.
        rest: lines in memory that pass the filters, as a range or a list.
        partial: number of the unfinished last line, when it is shown.
        separators: whether what lies hidden between two lines gets a row of its own.
    """

    def __init__(
        self, held: Sequence[int], rest: Sequence[int], partial: int | None = None, separators: bool = False
    ) -> None:
        self.held = held
        self.rest = rest
        self.partial = partial
        self.separators = separators
        self._border = len(held)
        self._full = self._border + len(rest)

    def __len__(self) -> int:
        return self._full + (self.partial is not None)

    def __getitem__(self, index: int) -> int:
        if index < self._border:
            return self.held[index]
        if index < self._full:
            return self.rest[index - self._border]
        if index == self._full and self.partial is not None:
            return self.partial
        raise IndexError(index)

    def at_or_after(self, number: int) -> int:
        """Index of the first line with this number or a higher one; the length where there is none."""
        if self._border and number <= self.held[-1]:
            return bisect_left(self.held, number)
        index = self._border + bisect_left(self.rest, number)
        if index == self._full and self.partial is not None and number > self.partial:
            return index + 1
        return index

    def has(self, number: int) -> bool:
        index = self.at_or_after(number)
        return index < len(self) and self[index] == number

    def skipped_before(self, index: int) -> int:
        """How many lines are left out right before this one, where that is to be said."""
        if index <= 0 or not (self.separators or index == self._border):
            return 0
        return self[index] - self[index - 1] - 1


class Place:
    """The reader's place. `follow` keeps the end in view; otherwise `top` is what stands in the first row."""

    def __init__(self) -> None:
        self.follow = True
        self.top = 0
        self.top_offset = (
            0  # character of line `top` that the first row starts with; SEPARATOR for the rule above
        )
        self.cursor = 0
        self.paused_at = 0  # number of the first line that arrived after the pause

    def layout(self, shown: Shown, breaks: Breaks, height: int, *, settle: bool = True) -> list[Row]:
        """The rows to draw, at most `height`.

        Args:
            settle: take what is drawn as the new anchor. Not while filters are still being applied: the line
                the reader was at may only not have been looked at yet.
        """
        if not len(shown) or height <= 0:
            return []
        if self.follow:
            self.cursor = shown[len(shown) - 1]
            return self._back_from_end(shown, breaks, height)
        rows = self._forward(shown, breaks, *self._start(shown, breaks), height)
        if len(rows) < height:
            rows = self._back_from_end(shown, breaks, height)
        if settle:
            self._anchor(rows[0], breaks)
        return rows

    def pause(self, rows: Sequence[Row], breaks: Breaks, end: int) -> None:
        """Hold what is on the screen; `end` is the number the next new line will get."""
        if not self.follow:
            return
        self.follow = False
        self.paused_at = end
        if rows:
            self._anchor(rows[0], breaks)

    def resume(self) -> None:
        self.follow = True

    def move_top(self, shown: Shown, breaks: Breaks, rows: int) -> None:
        """Scroll by screen rows, down where `rows` is positive."""
        if not len(shown):
            return
        index, part = self._start(shown, breaks)
        while rows > 0 and (step := _next(shown, breaks, index, part)):
            (index, part), rows = step, rows - 1
        while rows < 0 and (back := _previous(shown, breaks, index, part)):
            (index, part), rows = back, rows + 1
        self._anchor(Row(shown[index], part), breaks)

    def show_cursor(self, shown: Shown, breaks: Breaks, height: int) -> None:
        """Scroll no further than needed to have the cursor's line in view."""
        if self.follow or not len(shown) or height <= 0:
            return
        at = min(shown.at_or_after(self.cursor), len(shown) - 1)
        self.cursor = shown[at]
        rows = self._forward(shown, breaks, *self._start(shown, breaks), height)
        first, last = rows[0], rows[-1]
        if self.cursor < first.number or (self.cursor == first.number and first.part > 0):
            self._anchor(Row(self.cursor, _first_part(shown, at)), breaks)
        elif self.cursor > last.number or (self.cursor == last.number and last.part < 0):
            self.top, self.top_offset = self.cursor, 0
            tall = min(len(breaks(self.cursor)), height)
            self.move_top(shown, breaks, tall - height)
        elif self.cursor == last.number:
            missing = len(breaks(self.cursor)) - 1 - last.part
            own = sum(row.number == self.cursor for row in rows)
            self.move_top(shown, breaks, min(missing, height - own))

    def centre(self, shown: Shown, breaks: Breaks, height: int) -> None:
        """Bring the cursor's line to the middle, with what came before and after it in view."""
        at = min(shown.at_or_after(self.cursor), len(shown) - 1)
        self.cursor = shown[at]
        self.top, self.top_offset = self.cursor, 0
        self.move_top(shown, breaks, -(height // 2))

    def _anchor(self, row: Row, breaks: Breaks) -> None:
        self.top = row.number
        self.top_offset = SEPARATOR if row.part == SEPARATOR else breaks(row.number)[row.part]

    def _start(self, shown: Shown, breaks: Breaks) -> tuple[int, int]:
        index = shown.at_or_after(self.top)
        if index >= len(shown):
            index = len(shown) - 1
            return index, _first_part(shown, index)
        if shown[index] != self.top or self.top_offset == SEPARATOR:
            return index, _first_part(shown, index)
        return index, bisect_right(breaks(self.top), self.top_offset) - 1

    def _forward(self, shown: Shown, breaks: Breaks, index: int, part: int, height: int) -> list[Row]:
        rows = [Row(shown[index], part)]
        while len(rows) < height and (step := _next(shown, breaks, index, part)):
            index, part = step
            rows.append(Row(shown[index], part))
        return rows

    def _back_from_end(self, shown: Shown, breaks: Breaks, height: int) -> list[Row]:
        index = len(shown) - 1
        part = len(breaks(shown[index])) - 1
        rows = [Row(shown[index], part)]
        while len(rows) < height and (step := _previous(shown, breaks, index, part)):
            index, part = step
            rows.append(Row(shown[index], part))
        rows.reverse()
        return rows


def _first_part(shown: Shown, index: int) -> int:
    return SEPARATOR if shown.skipped_before(index) > 0 else 0


def _next(shown: Shown, breaks: Breaks, index: int, part: int) -> tuple[int, int] | None:
    if part + 1 < len(breaks(shown[index])):
        return index, part + 1
    if index + 1 < len(shown):
        return index + 1, _first_part(shown, index + 1)
    return None


def _previous(shown: Shown, breaks: Breaks, index: int, part: int) -> tuple[int, int] | None:
    if part > _first_part(shown, index):
        return index, part - 1
    if index > 0:
        return index - 1, len(breaks(shown[index - 1])) - 1
    return None
