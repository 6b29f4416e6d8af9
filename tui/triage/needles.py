"""The fixed words a pattern cannot do without. Whole logs are searched for these before any pattern runs.

A match of the pattern holds at least one of its words, so a line with none of them need not be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as sre_parser  # type: ignore[attr-defined]
from typing import Any

SHORTEST = 3
"""Letters; a shorter word is in every other line."""

_ZERO_WIDTH = frozenset({sre.AT, sre.ASSERT, sre.ASSERT_NOT})
_REPEATS = frozenset({sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT})


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


_MOST = 48
"""Words that may stand for one pattern; more of them cost more than they spare."""


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    """The most telling set of which each match of a sequence holds one.

    Neighbours that can be only a few texts are multiplied out: ``(?:can|could) not`` holds *can not* or
    *could not*, which tells more than *can* or *could* and more than *not*.
    """
    best: frozenset[str] | None = None
    run: frozenset[str] = frozenset({""})
    for op, argument in items:
        if op in _ZERO_WIDTH:
            continue
        texts = _exact(op, argument)
        longer = None if texts is None else frozenset(a + b for a in run for b in texts)
        if longer is not None and len(longer) <= _MOST:
            run = longer
            continue
        best = _better(best, run)
        run = frozenset({""}) if texts is None else texts
        if texts is None:
            best = _better(best, _of_item(op, argument))
    return _better(best, run)


def _exact(op: Any, argument: Any) -> frozenset[str] | None:
    """All texts that an item can match, where they are few."""
    if op is sre.LITERAL:
        return frozenset({chr(argument).lower()})
    if op is sre.IN:
        if any(kind is not sre.LITERAL for kind, _ in argument):
            return None
        letters = frozenset(chr(value).lower() for _, value in argument)
        return letters if len(letters) <= 3 else None
    if op is sre.SUBPATTERN:
        return _exact_sequence(argument[-1])
    if op is sre.BRANCH:
        branches = [_exact_sequence(branch) for branch in argument[1]]
        if any(branch is None for branch in branches):
            return None
        texts = frozenset(text for branch in branches if branch for text in branch)
        return texts if len(texts) <= _MOST else None
    if op in _REPEATS and argument[1] == 1:
        texts_or_none = _exact_sequence(argument[2])
        return texts_or_none | {""} if texts_or_none is not None and argument[0] == 0 else texts_or_none
    return None


def _exact_sequence(items: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    run = frozenset({""})
    for op, argument in items:
        if op in _ZERO_WIDTH:
            continue
        texts = _exact(op, argument)
        if texts is None:
            return None
        run = frozenset(a + b for a in run for b in texts)
        if len(run) > _MOST:
            return None
    return run


def _of_item(op: Any, argument: Any) -> frozenset[str] | None:
    if op is sre.SUBPATTERN:
        return _of_sequence(argument[-1])
    if op in _REPEATS and argument[0] > 0:
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


class Finder:
    """Finds telling words and fragments in folded text."""

    def __init__(self, words: bytes, fragments: Sequence[bytes] = ()) -> None:
        patterns = [_words(words)] if words else []
        if fragments:
            patterns.append(re.compile(b"|".join(fragments)))
        self._patterns = patterns

    def search(self, text: bytes) -> bool:
        """Whether there is any in it."""
        return any(pattern.search(text) for pattern in self._patterns)

    def hits(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Where, and what: the first word of each line, and then the first fragment of each."""
        for pattern in self._patterns:
            at = 0
            while at >= 0 and (match := pattern.search(text, at)) is not None:
                yield match.start(), match[0]
                at = text.find(b"\n", match.start())


_RE2_BYTES = 32 << 20
"""What RE2 may take for its states. With its usual 8 MiB text of many words makes it give up and crawl."""


def _words(pattern: bytes) -> re.Pattern[bytes]:
    """RE2 where it is installed: text that never repeats is searched forty times as fast."""
    try:
        import re2
    except ImportError:
        return re.compile(pattern)
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # of bytes
    options.max_mem = _RE2_BYTES
    options.log_errors = False
    found: re.Pattern[bytes] = re2.compile(pattern, options=options)
    return found


def finder(words: Iterable[str], fragments: Sequence[bytes] = ()) -> Finder:
    """What finds all words in folded text, as a tree of their beginnings, and `fragments`."""
    folded_words = {one for word in words for one in folded(word) if one}
    kept = [word for word in folded_words if not _holds_another(word, folded_words)]
    tree: dict[int, Any] = {}
    for word in kept:
        node = tree
        for code in word:
            node = node.setdefault(code, {})
        node[-1] = {}
    # Each alternative begins with a letter of its own: then `re` skips all others without a try.
    parts = [re.escape(bytes([code])) + _tree_pattern(below) for code, below in sorted(tree.items())]
    return Finder(b"|".join(parts), fragments)


def _holds_another(word: bytes, words: set[bytes]) -> bool:
    """Whether a shorter word stands in it, which then is found in its place."""
    return any(
        word[first:last] in words
        for first in range(len(word))
        for last in range(first + 1, len(word) + 1)
        if last - first < len(word)
    )


def _tree_pattern(node: dict[int, Any]) -> bytes:
    if -1 in node:
        return b""  # a word ends here; longer ones with the same beginning are found as well
    branches = [re.escape(bytes([code])) + _tree_pattern(below) for code, below in sorted(node.items())]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"
