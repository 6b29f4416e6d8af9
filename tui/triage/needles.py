"""The fixed words a pattern cannot do without. Whole logs are searched for these before any pattern runs.

A match of the pattern holds at least one of its words, so a line with none of them need not be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

SHORTEST = 3
"""Letters; a shorter word is in every other line."""

_ZERO_WIDTH = frozenset({sre.AT, sre.ASSERT, sre.ASSERT_NOT})


def required(pattern: str) -> frozenset[str] | None:
    """Words in lower case of which every match holds at least one; None where there are no such words.

    Args:
        pattern: a regular expression that compiles; it is read as matching without regard to case.
    """
    best = _of_sequence(sre_parser.parse(pattern, re.IGNORECASE))
    return best if best and _weight(best) >= SHORTEST else None


def _weight(words: frozenset[str] | None) -> int:
    """How telling the weakest of the words is: its signs that are no digits; Chinese ones count thrice."""
    if not words:
        return 0
    return min(sum(0 if c.isdigit() else 3 if c > "\u2e80" else 1 for c in word) for word in words)


def _better(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """The more telling of two; at the same weight the one with fewer words."""
    if _weight(one) != _weight(other):
        return one if _weight(one) > _weight(other) else other
    return one if one and (other is None or len(one) <= len(other)) else other


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    best: frozenset[str] | None = None
    run = ""
    for op, argument in items:
        letter = _letter(op, argument)
        if letter is not None:
            run += letter
            continue
        if op in _ZERO_WIDTH:
            continue
        best = _better(best, frozenset({run}) if run else None)
        run = ""
        best = _better(best, _of_item(op, argument))
    return _better(best, frozenset({run}) if run else None)


def _letter(op: Any, argument: Any) -> str | None:
    if op is sre.LITERAL:
        return chr(argument).lower()
    if op is sre.IN:
        letters = {chr(value).lower() if kind is sre.LITERAL else "" for kind, value in argument}
        if len(letters) == 1 and "" not in letters:
            return letters.pop()
    return None


def _of_item(op: Any, argument: Any) -> frozenset[str] | None:
    if op is sre.SUBPATTERN:
        return _of_sequence(argument[-1])
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and argument[0] > 0:
        return _of_sequence(argument[2])
    if op is sre.ATOMIC_GROUP:
        return _of_sequence(argument)
    if op is sre.BRANCH:
        branches = [_of_sequence(branch) for branch in argument[1]]
        if all(branches):
            return frozenset(word for words in branches if words for word in words)
    return None


FOLDED = bytes(10 if code == 13 else code + 32 if 65 <= code <= 90 else code for code in range(256))
"""Lower case, and every end of a state of a line ends a line."""

DROPPED = b"0123456789\0"
"""Not looked at: two lines that differ only in figures are the same to the search."""


def folded(word: str) -> set[bytes]:
    """A word as it stands in a folded log, in each encoding it may have there."""
    encodings = ("utf-8",) if word.isascii() else ("utf-8", "gb18030")
    return {word.encode(encoding, "replace").translate(FOLDED, DROPPED) for encoding in encodings}


def finder(words: Iterable[str], fragments: Sequence[bytes] = ()) -> re.Pattern[bytes]:
    """One pattern over folded text for all words, as a tree of their beginnings, and for `fragments`."""
    folded_words = {one for word in words for one in folded(word) if one}
    kept = [w for w in folded_words if not any(o != w and o in w for o in folded_words)]
    tree: dict[int, Any] = {}
    for word in kept:
        node = tree
        for code in word:
            node = node.setdefault(code, {})
        node[-1] = {}
    parts = [*fragments]
    if tree:
        parts.append(_tree_pattern(tree))
    return re.compile(b"|".join(parts) or b"(?!)")


def _tree_pattern(node: dict[int, Any]) -> bytes:
    if -1 in node:
        return b""  # a word ends here; longer ones with the same beginning are found as well
    branches = [re.escape(bytes([code])) + _tree_pattern(below) for code, below in sorted(node.items())]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"
