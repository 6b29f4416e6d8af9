"""What people of the field call the same thing, in English and Chinese, and words that say nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.triage.words import atoms

FILE = Path(__file__).with_name("glossary.txt")
SAYS_NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Found:
    """A phrase in a row of atoms: `size` atoms from `at`; without concepts it says nothing."""

    at: int
    size: int
    concepts: tuple[str, ...]


class Glossary:
    """Phrases by their first atom, the longest first."""

    def __init__(self, text: str) -> None:
        phrases: dict[tuple[str, ...], set[str]] = {}
        for row in text.splitlines():
            name, _, words = row.partition(":")
            if words and not row.startswith("#"):
                concept = {f"={name}"} - {f"={SAYS_NOTHING}"}
                for word in words.split(","):
                    phrases.setdefault(tuple(atoms(word)), set()).update(concept)
        phrases.pop((), None)
        self.known = frozenset(atom for phrase in phrases for atom in phrase)
        self._by_first: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for phrase in sorted(phrases, key=lambda p: (-len(p), p)):
            self._by_first.setdefault(phrase[0], []).append((phrase, tuple(sorted(phrases[phrase]))))

    def longest(self, row: Sequence[str], at: int) -> Found | None:
        """The longest phrase that begins at one place."""
        return next(self._at(row, at), None)

    def every(self, row: Sequence[str]) -> Iterator[Found]:
        """All phrases at all places, also those inside longer ones."""
        for at in range(len(row)):
            yield from self._at(row, at)

    def _at(self, row: Sequence[str], at: int) -> Iterator[Found]:
        for phrase, concepts in self._by_first.get(row[at], ()):
            if tuple(row[at : at + len(phrase)]) == phrase:
                yield Found(at, len(phrase), concepts)


@functools.cache
def glossary() -> Glossary:
    """The field's glossary, read once."""
    return Glossary(FILE.read_text(encoding="utf-8"))
