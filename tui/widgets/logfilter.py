"""Which lines of a log are shown: patterns, filters with context, an index that keeps up with the log."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tui.model.failure import Failure
from tui.model.log import LogGap
from tui.model.text import LogText, SafeText, plain, safe

REACH = 4096
"""A regex looks at this many characters of a line: `.*.*x` over a long one must not hold up the screen."""

_ESCAPED = re.compile(r"\\.")
_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)(?:[+*]|\{\d+,)")


class BadPattern(Failure):
    """A pattern that cannot be used; its sentence says why."""


class Lines(Protocol):
    """What the index needs of a log buffer."""

    @property
    def base(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def lines(self) -> Sequence[LogText]: ...
    @property
    def gaps(self) -> Mapping[int, LogGap]: ...


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text or regex to look for.

    Attributes:
        source: as the operator typed it, for the screen.
        needle: the text to find, lower case where case is ignored; empty for a regex.
    """

    source: SafeText
    compiled: re.Pattern[str]
    ignore_case: bool
    needle: str = ""

    @property
    def is_regex(self) -> bool:
        return not self.needle

    def matches(self, text: str) -> bool:
        """Whether a line without colours matches; a regex within its first `REACH` characters."""
        if self.needle and not self.ignore_case:
            return self.needle in text
        if self.needle and text.isascii() and self.needle.isascii():
            return self.needle in text.lower()
        return self.compiled.search(text if self.needle else text[:REACH]) is not None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it matches, as character ranges; empty matches are left out."""
        return [
            m.span()
            for m in self.compiled.finditer(text if self.needle else text[:REACH])
            if m.end() > m.start()
        ]


def pattern(typed: str) -> Pattern:
    """Read what the operator typed: plain text, or a regex between slashes.

    Case is ignored unless a capital letter is typed.

    Raises:
        BadPattern: it is empty, not a regex, or a regex that can take for ever.
    """
    if len(typed) > 2 and typed.startswith("/") and typed.endswith("/"):
        return _regex(typed, typed[1:-1])
    if not typed:
        raise BadPattern("There is nothing to look for.", do="Type a text, or a regex between slashes.")
    ignore = typed == typed.lower()
    flags = re.IGNORECASE if ignore else 0
    return Pattern(safe(typed), re.compile(re.escape(typed), flags), ignore, typed)


def _regex(typed: str, body: str) -> Pattern:
    if _NESTED_REPEAT.search(body):
        raise BadPattern(
            f"{typed} repeats a repeat, which can take for ever on one line.",
            do="Write it without a + or * right after a group that holds one.",
        )
    letters = _ESCAPED.sub("", body)  # \S and \W are no capitals
    ignore = letters == letters.lower()
    try:
        return Pattern(safe(typed), re.compile(body, re.IGNORECASE if ignore else 0), ignore)
    except re.error as error:
        raise BadPattern(
            f"{typed} is not a regex: {error}.", do="Correct it, or drop the slashes."
        ) from error


@dataclass(frozen=True, slots=True)
class Rule:
    """One filter: lines that match are all that is kept (`keep`), or are hidden."""

    pattern: Pattern
    keep: bool
    on: bool = True


@dataclass(frozen=True, slots=True)
class Filters:
    """All filters of one log.

    A line is kept when any *keep* rule matches it (or there is none) and no *hide* rule does. `context` lines
    around each line that a keep rule matched are shown too, except those that a hide rule names.
    """

    rules: tuple[Rule, ...] = ()
    context: int = 0

    @property
    def active(self) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.on)

    def with_rule(self, rule: Rule) -> Filters:
        """These filters and one more; the same one again turns it on or off instead."""
        for i, old in enumerate(self.rules):
            if old.pattern.source == rule.pattern.source and old.keep == rule.keep:
                return self.toggled(i)
        return replace(self, rules=(*self.rules, rule))

    def toggled(self, index: int) -> Filters:
        """With the rule at `index` turned on or off; unchanged where there is none."""
        return replace(
            self, rules=tuple(replace(r, on=not r.on) if i == index else r for i, r in enumerate(self.rules))
        )

    def hides(self, text: str) -> bool:
        """Whether a hide rule names this line."""
        return any(r.pattern.matches(text) for r in self.rules if r.on and not r.keep)

    def wants(self, text: str) -> bool:
        """Whether the keep rules keep this line; True where there is none."""
        keepers = [r for r in self.rules if r.on and r.keep]
        return not keepers or any(r.pattern.matches(text) for r in keepers)


class FilterIndex:
    """The numbers of the lines that filters keep, brought up to date a slice at a time.

    Args:
        filters: what is kept.
        gaps: keep lines that stand for lost bytes whatever the filters say. A view does, a search does not.

    Attributes:
        kept: line numbers, rising.
        start, stop: the range of line numbers looked at so far.
    """

    def __init__(self, filters: Filters, *, gaps: bool = True) -> None:
        self.filters = filters
        self._gaps = gaps
        self.kept: list[int] = []
        self.start = 0
        self.stop = 0
        self._fresh = True
        self._after = -1  # lines up to here follow a match closely enough to be shown

    @property
    def hidden(self) -> int:
        """How many of the lines looked at are not shown."""
        return self.stop - self.start - len(self.kept)

    def behind(self, buffer: Lines) -> int:
        """How many lines have not been looked at."""
        if self._fresh:
            return buffer.end - buffer.base
        return max(0, buffer.end - max(self.stop, buffer.base)) + max(0, self.start - buffer.base)

    def advance(self, buffer: Lines, most: int) -> bool:
        """Look at up to `most` more lines: new ones first, then older ones that came back from the spool.

        Returns:
            True when nothing is left to look at.
        """
        self._drop_before(buffer.base, buffer.end)
        stop = min(buffer.end, self.stop + most)
        most -= stop - self.stop
        if stop > self.stop:
            found, self._after = self._scan(buffer, self.stop, stop, self._after)
            self._join_forward(found)
            self.stop = stop
        if most > 0 and self.start > buffer.base:
            self._older(buffer, max(buffer.base, self.start - most))
        return self.behind(buffer) == 0

    def _drop_before(self, base: int, end: int) -> None:
        if self._fresh or self.stop < base or self.stop > end:  # nothing in common with the buffer any more
            self._fresh = False
            self.kept.clear()
            self.start = self.stop = base
            self._after = -1
        elif self.start < base:
            del self.kept[: bisect_left(self.kept, base)]
            self.start = base

    def _join_forward(self, found: list[int]) -> None:
        if found and self.kept and found[0] <= self.kept[-1]:  # context before a match, shown already
            cut = bisect_left(self.kept, found[0])
            found = sorted({*self.kept[cut:], *found})
            del self.kept[cut:]
        self.kept += found

    def _older(self, buffer: Lines, start: int) -> None:
        """Look at the lines from `start` to where we began, and at the context across that border."""
        reach = min(self.start + self.filters.context, self.stop)
        found, after = self._scan(buffer, start, reach, -1)
        cut = bisect_left(self.kept, max(reach, after + 1))
        spill = [n for n in range(reach, min(after + 1, self.stop)) if self._context_line(buffer, n)]
        self.kept[:cut] = sorted({*found, *spill, *self.kept[:cut]})
        self.start = start

    def _scan(self, buffer: Lines, start: int, stop: int, after: int) -> tuple[list[int], int]:
        """The kept numbers that lines in [start, stop) lead to, and where the last match's context ends."""
        filters, context = self.filters, self.filters.context
        base, lines = buffer.base, buffer.lines
        gaps = buffer.gaps if self._gaps else {}
        has_context = context > 0 and any(rule.keep for rule in filters.active)
        found: list[int] = []
        for number in range(start, stop):
            text = plain(lines[number - base])
            if number in gaps:
                found.append(number)  # lost bytes are never filtered away
            elif filters.hides(text):
                continue
            elif filters.wants(text):
                if has_context:
                    first = max(base, number - context, found[-1] + 1 if found else 0)
                    found += [n for n in range(first, number) if self._context_line(buffer, n)]
                    after = number + context
                found.append(number)
            elif number <= after:
                found.append(number)
        return found, after

    def _context_line(self, buffer: Lines, number: int) -> bool:
        return not self.filters.hides(plain(buffer.lines[number - buffer.base]))
