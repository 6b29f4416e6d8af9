"""The catalog made ready to be used: patterns compiled, and the words that whole logs are searched for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.triage.catalog import Catalog, Entry
from tui.triage.lines import Row
from tui.triage.needles import Finder, finder, required
from tui.triage.predicates import Ask, parse
from tui.triage.readers import READERS, Reader
from tui.triage.schema import Kind, Rule


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern. A line with none of `words` in lower case cannot match; without words it is tried."""

    search: re.Pattern[str]
    words: tuple[str, ...]
    anchored: bool = False

    def find(self, one: Row) -> re.Match[str] | None:
        """The match in the whole line; a pattern that begins at its start may also begin behind prefixes."""
        if self.words and not any(word in one.low for word in self.words):
            return None
        match = self.search.search(one.text)
        return self.search.search(one.head) if match is None and self.anchored else match


@dataclass(frozen=True, slots=True)
class Ready:
    """One rule, ready to be used."""

    entry: Entry
    rule: Rule
    match: tuple[Pattern, ...]
    unless: tuple[Pattern, ...]
    also: tuple[Pattern, ...]
    without: tuple[Pattern, ...]
    tells: tuple[Pattern, ...]
    when: tuple[Ask, ...]
    reader: Reader | None

    @property
    def cls(self) -> str:
        return self.entry.id


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a catalog, and what finds candidates for them in folded bytes."""

    catalog: Catalog
    ready: tuple[Ready, ...]
    finder: Finder

    def reading(self, kind: Kind) -> Iterator[Ready]:
        """Rules that read this kind of text."""
        return (one for one in self.ready if kind in one.rule.reads and (one.match or one.reader))


def compiled(catalog: Catalog) -> Rules:
    """Make a catalog ready. What `catalog.load` gives always compiles."""
    ready = tuple(_ready(entry, rule) for entry in catalog.entries.values() for rule in entry.front.rules)
    words: set[str] = set()
    fragments: list[bytes] = []
    for one in ready:
        words.update(word for pattern in (*one.match, *one.also, *one.without) for word in pattern.words)
        if one.reader:
            words.update(one.reader.words)
            fragments += one.reader.fragments
    return Rules(catalog, ready, finder(words, list(dict.fromkeys(fragments))))


def _ready(entry: Entry, rule: Rule) -> Ready:
    return Ready(
        entry=entry,
        rule=rule,
        match=tuple(map(_pattern, rule.match)),
        unless=tuple(map(_pattern, rule.unless)),
        also=tuple(map(_pattern, rule.also)),
        without=tuple(map(_pattern, rule.without)),
        tells=tuple(map(_pattern, rule.tells)),
        when=tuple(map(parse, rule.when)),
        reader=READERS[rule.reader] if rule.reader else None,
    )


def _pattern(text: str) -> Pattern:
    anchored = "^" in text.replace("[^", "")
    return Pattern(re.compile(text, re.IGNORECASE), tuple(sorted(required(text) or ())), anchored)
