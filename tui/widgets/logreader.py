"""What one reader sees of one log: filters, search, marks and place, over the lines in memory."""

from __future__ import annotations

import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from tui.model.text import LogText, SafeText, plain
from tui.widgets.logfilter import FilterIndex, Filters, Lines, Pattern, Rule
from tui.widgets.logplace import Place, Row, Shown
from tui.widgets.logrows import Decoded, breaks, decode

BUDGET_S = 0.006
"""Time for looking at lines in one go, so that a cold regex never holds up a key."""

CHUNK = 200
"""Lines looked at between two looks at the clock."""

_CACHED = 1024

ERROR_LIKE = Pattern(
    SafeText("error-like"),
    re.compile(
        r"\b[A-Z]\w*(?:Error|Exception|Interrupt)\b|\b(?:ERROR|FATAL|CRITICAL|PANIC)\b|Traceback \(most"
        r"|^\s*(?i:error|fatal|panic|exception)\b\s*[:!]|\b(?i:fatal error|error):"
        r"|(?i:out of memory|segmentation fault|core dumped|bus error|illegal instruction)"
        r"|(?i:no space left on device|disk quota exceeded|read-only file system|stale file handle)"
        r"|(?i:cuda error|nccl (?:warn|error)|watchdog caught|device-side assert|\bXid\b)"
        r"|\b(?:[Kk]illed|SIG(?:KILL|TERM|SEGV|ABRT|BUS))\b|\boom[-_ ]?kill"
        r"|(?i:loss\b\W{0,4}(?:=|is\s+)?\s*[-+]?(?:nan|inf)\b)"
    ),
    ignore_case=False,
)
"""What people look for at 3 a.m.: Python and CUDA errors, kills, full disks, a loss that is no number."""


class Buffer(Lines, Protocol):
    """What the reader needs of a log buffer; see ``tui.fleet.logbuffer``."""

    @property
    def partial(self) -> LogText: ...
    @property
    def behind_bytes(self) -> int: ...
    @property
    def file_bytes(self) -> int | None: ...
    def forget_older(self) -> None: ...


class LogReader:
    """One reader's state.

    Args:
        buffer: the lines in memory; it changes under the reader, which keeps its place by line number.

    Attributes:
        wrap: whether long lines are folded; `skip` cells are scrolled away on the left where they are not.
        marks: numbers of marked lines, with their text, so that they outlive the memory.
        note: the answer to the last jump, in words.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.place = Place()
        self.wrap = False
        self.skip = 0
        self.width = 80
        self.height = 10
        self.marks: dict[int, LogText] = {}
        self.note = ""
        self.search: Pattern | None = None
        self._filter = FilterIndex(Filters())
        self._matches: FilterIndex | None = None
        self._errors: FilterIndex | None = None
        self._jump: tuple[FilterIndex, str, int] | None = None
        self._page: dict[int, LogText] = {}
        self._decoded: dict[int, Decoded] = {}
        self._breaks: dict[int, Sequence[int]] = {}

    # --- what there is -------------------------------------------------------------------------------

    @property
    def filters(self) -> Filters:
        return self._filter.filters

    @property
    def filtered(self) -> bool:
        return bool(self.filters.active)

    @property
    def hidden(self) -> int:
        return self._filter.hidden if self.filtered else 0

    @property
    def matches(self) -> FilterIndex | None:
        """Lines that the search matches; None without a search."""
        return self._matches

    def text(self, number: int) -> LogText:
        """The line with this number, also when it left memory while it was on the screen."""
        buffer = self.buffer
        if buffer.base <= number < buffer.end:
            return buffer.lines[number - buffer.base]
        if number == buffer.end:
            return buffer.partial
        return self._page.get(number) or self.marks.get(number, LogText(""))

    def decoded(self, number: int) -> Decoded:
        """A line's text and colours, kept for the lines in view."""
        if number == self.buffer.end:
            return decode(self.buffer.partial)  # it changes under its number
        found = self._decoded.get(number)
        if found is None:
            if len(self._decoded) > _CACHED:
                self._decoded.clear()
            found = self._decoded[number] = decode(self.text(number))
        return found

    def breaks(self, number: int) -> Sequence[int]:
        """Where the rows of a line start."""
        if not self.wrap:
            return (0,)
        if number == self.buffer.end:
            return breaks(self.decoded(number).text, self.width)
        found = self._breaks.get(number)
        if found is None:
            if len(self._breaks) > _CACHED:
                self._breaks.clear()
            found = self._breaks[number] = breaks(self.decoded(number).text, self.width)
        return found

    def shown(self) -> Shown:
        """The lines that can be on the screen now."""
        buffer = self.buffer
        held = sorted(n for n in self._page if n < buffer.base)
        partial = buffer.end if buffer.partial else None
        if not self.filtered:
            return Shown(held, range(buffer.base, buffer.end), partial)
        self._filter.advance(buffer, 0)
        if partial is not None:
            text = plain(buffer.partial)
            if self.filters.hides(text) or not self.filters.wants(text):
                partial = None
        return Shown(held, self._filter.kept, partial, separators=self.filters.context > 0)

    @property
    def waiting(self) -> int:
        """Lines that arrived since the pause and would be shown."""
        if self.place.follow:
            return 0
        if not self.filtered:
            return max(0, self.buffer.end - self.place.paused_at)
        kept = self._filter.kept
        return len(kept) - bisect_left(kept, self.place.paused_at)

    def layout(self) -> list[Row]:
        """The rows on the screen now."""
        settled = not self.filtered or not self._filter.behind(self.buffer)
        rows = self.place.layout(self.shown(), self.breaks, self.height, settle=settled)
        self._page = {} if self.place.follow else {row.number: self.text(row.number) for row in rows}
        return rows

    def resize(self, width: int, height: int) -> None:
        """Text columns and rows of the pane. The line under the cursor stays in view."""
        if (width, height) == (self.width, self.height):
            return
        if width != self.width:
            self._breaks.clear()
        self.width, self.height = width, height
        if not (self.filtered and self._filter.behind(self.buffer)):
            self.place.show_cursor(self.shown(), self.breaks, height)

    # --- bringing indexes up to date ---------------------------------------------------------------

    def work(self, budget_s: float = BUDGET_S) -> bool:
        """Look at lines for the indexes that are wanted, for as long as the budget lasts.

        Returns:
            True when all are up to date.
        """
        until = time.perf_counter() + budget_s
        wanted = [self._filter] if self.filtered else []
        wanted += [self._matches] if self._matches is not None else []
        wanted += [self._jump[0]] if self._jump is not None and self._jump[0] is not self._matches else []
        done = all(self._catch_up(index, until) for index in wanted)
        if self._jump is not None and done:
            index, what, direction = self._jump
            self._jump = None
            self._land(index, what, direction)
        return done

    def _catch_up(self, index: FilterIndex, until: float) -> bool:
        while not index.advance(self.buffer, CHUNK if time.perf_counter() < until else 0):
            if time.perf_counter() >= until:
                return False
        return True

    # --- filters and search --------------------------------------------------------------------------

    def set_filters(self, filters: Filters) -> None:
        self._filter = FilterIndex(filters)
        self.note = ""

    def add_filter(self, rule: Rule) -> None:
        self.set_filters(self.filters.with_rule(rule))

    def set_context(self, lines: int) -> None:
        self.set_filters(replace(self.filters, context=max(0, lines)))

    def set_search(self, pattern: Pattern | None) -> None:
        """Look for a pattern: at or below the cursor first, else above it."""
        self.search = pattern
        self._matches = None
        self.note = ""
        if pattern is not None:
            self._matches = FilterIndex(Filters((Rule(pattern, keep=True),)), gaps=False)
            self._jump = (self._matches, "match", 0)

    def seek_match(self, direction: int) -> None:
        """Go to the next (1) or previous (-1) line that the search matches."""
        if self._matches is None:
            self.note = "no search yet: / starts one"
            return
        self._jump = (self._matches, "match", direction)

    def seek_error(self, direction: int) -> None:
        """Go to the next (1) or previous (-1) error-like line."""
        if self._errors is None:
            self._errors = FilterIndex(Filters((Rule(ERROR_LIKE, keep=True),)), gaps=False)
        self._jump = (self._errors, "error-like line", direction)

    def _land(self, index: FilterIndex, what: str, direction: int) -> None:
        """Put the cursor on the nearest shown line of `index` in this direction."""
        shown, kept = self.shown(), index.kept
        found = None
        if direction >= 0:
            start = (
                bisect_left(kept, self.place.cursor)
                if direction == 0
                else bisect_right(kept, self.place.cursor)
            )
            found = next((n for n in kept[start:] if shown.has(n)), None)
        if found is None and direction <= 0:
            stop = bisect_left(kept, self.place.cursor)
            found = next((n for n in reversed(kept[:stop]) if shown.has(n)), None)
        if found is None:
            where = {0: "in memory; B asks the box", 1: "below", -1: "above in memory"}[direction]
            self.note = f"no {what} {where}"
            return
        count = bisect_left(kept, found) + 1
        self.note = f"{what} {count:,} of {len(kept):,}"
        self.go(found)

    # --- moving ----------------------------------------------------------------------------------------

    def _hold(self) -> None:
        """Stop following, with what is on the screen as the reader's place."""
        if not self.place.follow:
            return
        rows = self.layout()
        self.place.pause(rows, self.breaks, self.buffer.end)
        self._page = {row.number: self.text(row.number) for row in rows}

    def pause(self) -> None:
        self._hold()

    def resume(self) -> None:
        self.place.resume()
        self.buffer.forget_older()
        self._page = {}
        self.note = ""

    def move(self, lines: int) -> bool:
        """Move the cursor; False when it stands at the first line already and cannot go up.

        Going below the last line follows again.
        """
        shown = self.shown()
        if not len(shown):
            return lines > 0
        if self.place.follow and lines > 0:
            return True
        self._hold()
        at = min(shown.at_or_after(self.place.cursor), len(shown) - 1)
        if lines > 0 and at + lines > len(shown) - 1 and at == len(shown) - 1:
            self.resume()
            return True
        self.place.cursor = shown[max(0, min(at + lines, len(shown) - 1))]
        self.place.show_cursor(shown, self.breaks, self.height)
        return at + lines >= 0

    def page(self, pages: int) -> bool:
        """Scroll by pages less one row; False when there is nothing further up."""
        shown = self.shown()
        if not len(shown) or (self.place.follow and pages > 0):
            return pages > 0
        self._hold()
        before = (self.place.top, self.place.top_offset)
        self.scroll(pages * max(1, self.height - 1))
        seen = [row.number for row in self.layout()]
        self.place.cursor = seen[0] if pages < 0 else seen[-1]
        if (self.place.top, self.place.top_offset) == before and pages > 0:
            self.resume()
            return True
        return (self.place.top, self.place.top_offset) != before

    def scroll(self, rows: int) -> None:
        """Scroll by rows; the cursor stays in view."""
        shown = self.shown()
        if not len(shown):
            return
        self._hold()
        self.place.move_top(shown, self.breaks, rows)
        seen = [row.number for row in self.layout()]
        self.place.cursor = min(max(self.place.cursor, seen[0]), seen[-1])

    def first(self) -> None:
        shown = self.shown()
        if len(shown):
            self._hold()
            self.place.cursor = shown[0]
            self.place.show_cursor(shown, self.breaks, self.height)

    def go(self, number: int) -> bool:
        """Put the cursor on a line, in the middle when it was out of view; False when it is not shown."""
        shown = self.shown()
        if not shown.has(number):
            return False
        self._hold()
        self.place.cursor = number
        if all(row.number != number for row in self.layout()):
            self.place.centre(shown, self.breaks, self.height)
        return True

    @property
    def at_top(self) -> bool:
        """Whether the first line in memory is in view, so that older ones would have to be fetched."""
        shown = self.shown()
        return not len(shown) or (not self.place.follow and self.place.top <= shown[0])

    # --- marks and text ----------------------------------------------------------------------------------

    def toggle_mark(self) -> None:
        """Mark the cursor's line or take its mark away, and go one down."""
        number = self.place.cursor
        if number == self.buffer.end or not self.text(number):
            return  # an unfinished line has no number of its own yet
        if self.marks.pop(number, None) is None:
            self.marks[number] = self.text(number)
        if not self.place.follow:
            shown = self.shown()
            if shown.at_or_after(number) < len(shown) - 1:
                self.move(1)

    def chosen(self) -> tuple[str, str]:
        """What a copy takes, and what to call it: the marked lines, or the cursor's line."""
        if self.marks:
            lines = [plain(text) for _, text in sorted(self.marks.items())]
            return "\n".join(lines), f"{len(lines):,} marked line{'s' if len(lines) > 1 else ''}"
        return plain(self.text(self.place.cursor)), "the line"

    def page_text(self) -> tuple[str, str]:
        """The lines in view, whole."""
        numbers = dict.fromkeys(row.number for row in self.layout())
        return "\n".join(plain(self.text(n)) for n in numbers), f"{len(numbers):,} lines in view"

    def all_text(self) -> list[SafeText]:
        """Every line that the filters keep, for a file."""
        while self.filtered and not self._filter.advance(self.buffer, CHUNK):
            pass
        shown = self.shown()
        return [plain(self.text(shown[i])) for i in range(len(shown))]
