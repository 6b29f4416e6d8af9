"""Search in what is known, from plain words: entries of the catalog, gotchas of the profiles, own files.

Documents and question become terms: stems, pairs of Chinese characters, and concepts, which are what English
and Chinese words of the field have in common. Documents are ranked by BM25F (Robertson and Zaragoza, 2009),
times the share of the question that they answer.
"""

from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tui.triage.glossary import Glossary, glossary
from tui.triage.words import atoms, is_cjk, near

FIELDS = ("title", "words", "symptom", "body")
_WEIGHT = {"title": 2.0, "words": 3.0, "symptom": 2.0, "body": 1.0}
_LENGTH_PULL = {"title": 0.3, "words": 0.5, "symptom": 0.5, "body": 0.6}
_SATURATION = 3.0

_LITERAL, _CONCEPT, _SLIP = 1.0, 0.9, 0.7
_SECOND = 0.1
"""What a literal match adds to a concept that matches as well."""
_LONE_CHARACTER = 0.3
_NEIGHBOURS = 0.5
"""What two words side by side in question and document add, above each of them alone."""
_NAMED = 1.4
"""How much more the gotchas of a platform count whose name stands in the question."""
_CLASS, _CLASS_IN_BRIEF = 1.1, 1.5
"""How much more a whole class of faults counts than one of its forms; most where a word or two are all."""
_UNWRITTEN = 0.6
"""How much a word counts that stands nowhere, of what the rarest word counts: people tell stories."""
_LEAST_SLIP = 5
"""Letters from which a word may hold a slip of the keyboard."""

_LEAST_SHARE, _LEAST_ALONE = 0.45, 0.6
"""The share of the question that must be answered, by several of its pieces or by a single one."""
_LEAST_OF_BEST = 0.35
_QUESTION_ATOMS = 60


@dataclass(frozen=True, slots=True)
class Document:
    """One thing that can be found.

    Attributes:
        source: where it stands, such as ``catalog/x_example.md``.
        words: what people type when they look for it.
        body: the rest of its text.
        platform: id of the platform that it is about; None: of all.
        known_by_log: it is the name of a fault that a diagnosis may give, and covers all its forms.
    """

    id: str
    title: str
    source: str
    words: str
    symptom: str
    body: str
    platform: str | None = None
    known_by_log: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that answers, and how well: only the order of scores means anything."""

    document: Document
    score: float
    share: float


@dataclass(frozen=True, slots=True)
class _Slot:
    """One piece of the question: terms of which any will do, each with its weight."""

    terms: tuple[tuple[str, float], ...]
    weight: float = 1.0


class Index:
    """Documents, ready to be searched."""

    def __init__(self, documents: Iterable[Document], words: Glossary | None = None) -> None:
        self.documents = tuple(documents)
        self._glossary = words or glossary()
        self._postings: dict[str, dict[int, float]] = {}
        counted = [{field: self._terms(getattr(one, field)) for field in FIELDS} for one in self.documents]
        for field in FIELDS:
            lengths = [row[field].total() for row in counted]
            mean = sum(lengths) / max(1, sum(1 for n in lengths if n)) or 1.0
            for number, row in enumerate(counted):
                pull = 1 - _LENGTH_PULL[field] + _LENGTH_PULL[field] * lengths[number] / mean
                for term, count in row[field].items():
                    held = self._postings.setdefault(term, {})
                    held[number] = held.get(number, 0.0) + _WEIGHT[field] * count / pull

    @classmethod
    def from_plain(cls, documents: Iterable[Document], postings: Mapping[str, Sequence[float]]) -> Index:
        """The index again, from its documents and what `plain` gave."""
        index = cls(())
        index.documents = tuple(documents)
        index._postings = {
            term: dict(zip(map(int, row[::2]), row[1::2], strict=True)) for term, row in postings.items()
        }
        return index

    def plain(self) -> dict[str, list[float]]:
        """Terms with the numbers of their documents and their weight in each, to be kept."""
        return {
            term: [x for number, amount in row.items() for x in (number, round(amount, 3))]
            for term, row in self._postings.items()
        }

    @functools.cached_property
    def _known(self) -> frozenset[str]:
        written = (term for term in self._postings if term.isascii() and term.isalpha())
        return self._glossary.known.union(written)

    def search(self, question: str, *, limit: int = 10, platform: str | None = None) -> list[Hit]:
        """The documents that answer, best first; none where nothing fits.

        Args:
            platform: leave out what is about another platform.
        """
        row = self._corrected(atoms(question)[:_QUESTION_ATOMS])
        named = {one.platform for one in self.documents if one.platform and _stands_in(one.platform, row)}
        slots = list(self._slots(row))
        of_class = _CLASS if len(slots) > 2 else _CLASS_IN_BRIEF
        hits = []
        for number, (score, share, pieces) in self._scored(slots, row).items():
            one = self.documents[number]
            fits = share >= (_LEAST_SHARE if pieces > 1 else _LEAST_ALONE)
            if fits and (platform is None or one.platform in (None, platform)):
                favour = (_NAMED if one.platform in named else 1.0) * (of_class if one.known_by_log else 1.0)
                hits.append(Hit(one, score * share * favour, share))
        hits.sort(key=lambda hit: (-hit.score, hit.document.id))
        return [hit for hit in hits[:limit] if hit.score >= _LEAST_OF_BEST * hits[0].score]

    def _scored(self, slots: Sequence[_Slot], row: Sequence[str]) -> Mapping[int, tuple[float, float, int]]:
        """By document: the BM25F score, the share of the question that it holds, and in how many pieces."""
        rarity = [self._rarity(slot) for slot in slots]
        whole = sum(rarity)
        found: defaultdict[int, tuple[float, float, int]] = defaultdict(lambda: (0.0, 0.0, 0))
        for slot, rare in zip(slots, rarity, strict=True):
            for number, (score, fit) in self._matches(slot).items():
                sums = found[number]
                found[number] = (sums[0] + score, sums[1] + rare * fit / whole, sums[2] + 1)
        for a, b in pairwise(row):
            pair = _Slot(((_pair(a, b), _LITERAL),), _NEIGHBOURS)
            for number, (score, _) in self._matches(pair).items():
                if number in found:
                    sums = found[number]
                    found[number] = (sums[0] + score, *sums[1:])
        return found

    # -- the question --------------------------------------------------------------------------------------

    def _corrected(self, row: Sequence[str]) -> list[str]:
        """Unknown words cut in two where both halves are known: ``batchnorm`` is ``batch norm``."""
        whole: list[str] = []
        for atom in row:
            whole.extend([atom] if atom in self._known or len(atom) < 2 * 3 else self._halves(atom))
        return whole

    def _halves(self, atom: str) -> list[str]:
        for at in range(3, len(atom) - 2):
            if atom[:at] in self._known and atom[at:] in self._known:
                return [atom[:at], atom[at:]]
        return [atom]

    def _slots(self, row: Sequence[str]) -> Iterator[_Slot]:
        run: list[str] = []
        at = 0
        while at < len(row):
            found = self._glossary.longest(row, at)
            if found is None and is_cjk(row[at]):
                run.append(row[at])
                at += 1
                continue
            yield from _of_run(run)
            run = []
            if found is None:
                yield self._of_word(row[at])
                at += 1
            else:
                if found.concepts:
                    yield _of_phrase(row[at : at + found.size], found.concepts)
                at += found.size
        yield from _of_run(run)

    def _of_word(self, atom: str) -> _Slot:
        terms = [(atom, _LITERAL)]
        if atom not in self._known and len(atom) >= _LEAST_SLIP and atom.isalpha():
            for other in near(atom, self._known):
                found = self._glossary.longest([other], 0)
                terms += [(other, _SLIP), *((c, _SLIP) for c in (found.concepts if found else ()))]
        return _Slot(tuple(terms))

    # -- the documents -------------------------------------------------------------------------------------

    def _terms(self, text: str) -> Counter[str]:
        row = atoms(text)
        terms = Counter(row)
        terms.update(_pair(a, b) for a, b in pairwise(row))
        terms.update(concept for found in self._glossary.every(row) for concept in found.concepts)
        return terms

    def _rarity_of(self, term: str) -> float:
        count = len(self._postings[term]) if term in self._postings else 0
        return math.log(1 + (len(self.documents) - count + 0.5) / (count + 0.5))

    def _rarity(self, slot: _Slot) -> float:
        """How much the slot tells: that of its commonest concept, or of a word that nobody wrote."""
        held = [self._rarity_of(term) for term, _ in slot.terms if term in self._postings]
        return slot.weight * (max(held) if held else _UNWRITTEN * self._rarity_of(""))

    def _matches(self, slot: _Slot) -> Mapping[int, tuple[float, float]]:
        found: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
        for term, weight in slot.terms:
            if term in self._postings:
                rare = self._rarity_of(term)
                for number, amount in self._postings[term].items():
                    score = weight * slot.weight * rare * amount / (_SATURATION + amount)
                    found[number].append((score, weight))
        return {number: _together(scores) for number, scores in found.items()}


def _together(scores: list[tuple[float, float]]) -> tuple[float, float]:
    ordered = sorted((score for score, _ in scores), reverse=True)
    return ordered[0] + _SECOND * sum(ordered[1:2]), max(weight for _, weight in scores)


def _stands_in(platform: str, row: Sequence[str]) -> bool:
    name = atoms(platform)
    return any(list(row[at : at + len(name)]) == name for at in range(len(row) - len(name) + 1))


def _pair(a: str, b: str) -> str:
    return a + b if is_cjk(a) and is_cjk(b) else f"{a} {b}"


def _of_phrase(row: Sequence[str], concepts: Sequence[str]) -> _Slot:
    terms = [(concept, _CONCEPT) for concept in concepts]
    if len(row) == 1 or (len(row) == 2 and all(map(is_cjk, row))):
        terms.append(("".join(row), _LITERAL))
    return _Slot(tuple(terms))


def _of_run(run: Sequence[str]) -> Iterator[_Slot]:
    """Chinese characters that no phrase explains: their pairs, or the one character."""
    if len(run) == 1:
        yield _Slot(((run[0], _LITERAL),), _LONE_CHARACTER)
    for a, b in pairwise(run):
        yield _Slot(((_pair(a, b), _LITERAL),), 1 / max(1, len(run) - 1))
