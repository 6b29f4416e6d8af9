"""What the `/` line means in a list: text, ``!text`` (inverse), ``/regex/``, ``-f text`` (fuzzy)."""

from __future__ import annotations

import re
from collections.abc import Callable

from tui.model.failure import Exit, Failure

REACH = 400
"""Characters of a row that a pattern looks at."""


def matcher(query: str) -> Callable[[str], bool]:
    """A test for rows.

    Raises:
        Failure: the regular expression can't be read.
    """
    query = query.strip()
    if query.startswith("!"):
        inner = matcher(query[1:])
        return (lambda text: not inner(text)) if query[1:].strip() else _everything
    if query == "-f" or query.startswith("-f "):
        letters = query[2:].replace(" ", "").casefold()
        return lambda text: _subsequence(letters, text[:REACH].casefold())
    if len(query) > 1 and query.startswith("/"):
        pattern = _compiled(query[1:].removesuffix("/"))
        return lambda text: pattern.search(text[:REACH]) is not None
    words = query.casefold().split()
    return lambda text: all(word in text[:REACH].casefold() for word in words)


def fuzzy_rank(query: str, text: str) -> int | None:
    """How well `query` fits `text`, lower is better; None when it does not.

    A word's beginning beats the middle of a word, and that beats letters that only follow one another. Of
    those the ones that stand closest together, or at the beginnings of words, come first.
    """
    query, text = query.strip().casefold(), text.casefold()
    if not query:
        return 0
    place = text.find(query)
    if place == 0:
        return 0
    if place > 0:
        return 10 + (0 if text[place - 1] in " -_.:/" else 10) + min(place, 9)
    return _looseness(query.replace(" ", ""), text[:REACH])


def _everything(_text: str) -> bool:
    return True


def _subsequence(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)


def _looseness(letters: str, text: str) -> int | None:
    """From 100 on: how far apart the letters stand in `text`; None where they are not all there in order."""
    best: int | None = None
    for start in (i for i, char in enumerate(text) if char == letters[0]):
        gaps, at = 0 if start == 0 or not text[start - 1].isalnum() else 1, start
        for letter in letters[1:]:
            found = text.find(letter, at + 1)
            if found < 0:
                return None if best is None else 100 + best  # nor from any later start
            begins_word = not text[found - 1].isalnum()
            gaps += 0 if found == at + 1 else 1 if begins_word else found - at
            at = found
        best = gaps if best is None else min(best, gaps)
    return None if best is None else 100 + best


def _compiled(source: str) -> re.Pattern[str]:
    try:
        return re.compile(source, re.IGNORECASE)
    except re.error as error:
        raise Failure(f"/{source}/ is no regular expression: {error}.", exit=Exit.USAGE) from None
