"""Plain words cut into atoms: stems of Latin words, single Chinese characters, numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

CJK = r"\u3400-\u4dbf\u4e00-\u9fff"

_ATOM = re.compile(rf"[{CJK}]|[a-z]+|[0-9]+(?:\.[0-9]+)?")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[A-Z]{2})(?=[A-Z][a-z])")
_IS_CJK = re.compile(rf"[{CJK}]\Z")
_VOWEL = re.compile(r"[aeiouy]")
_BRITISH = re.compile(r"(?<=[a-z]{3})is(?=(?:e[drs]?|ers?|ing|able|ations?|es)\Z)")
_SAME_SPELLING = frozenset(
    {"noise", "noises", "promise", "precise", "raise", "raised", "raises", "raising", "advise"}
)
_ENDINGS = (
    ("izations", "iz"), ("ization", "iz"), ("izing", "iz"), ("ized", "iz"), ("izer", "iz"), ("izes", "iz"),
    ("ations", "at"), ("ation", "at"), ("ingly", ""), ("edly", ""), ("ing", ""), ("ies", "y"),
    ("ied", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ed", ""), ("ly", ""),
    ("s", ""),
)  # fmt: skip
_KEPT_S = ("ss", "us", "is", "as")
_SHORTEST = 3


def is_cjk(atom: str) -> bool:
    return _IS_CJK.match(atom) is not None


def atoms(text: str) -> list[str]:
    """The atoms of a text, in order. CamelCase and snake_case are taken apart."""
    plain = _HUMP.sub(" ", unicodedata.normalize("NFKC", text)).casefold()
    return [stem(word) for word in _ATOM.findall(plain)]


def stem(word: str) -> str:
    """A word without its commonest English endings; British and American spellings meet."""
    if len(word) <= _SHORTEST or not word.isascii():
        return word
    if word not in _SAME_SPELLING:
        word = _BRITISH.sub("iz", word)
    for ending, instead in _ENDINGS:
        root = word[: len(word) - len(ending)]
        if word.endswith(ending) and len(root) + len(instead) >= _SHORTEST and _VOWEL.search(root):
            if ending == "s" and word.endswith(_KEPT_S):
                break
            word = _undoubled(root) if ending in ("ing", "ed") else root + instead
            break
    return word[:-1] if word.endswith("e") and len(word) > _SHORTEST else word


def _undoubled(root: str) -> str:
    doubled = len(root) > _SHORTEST and root[-1] == root[-2] and root[-1] not in "aeiouylsz"
    return root[:-1] if doubled else root


def near(word: str, known: Collection[str]) -> Iterator[str]:
    """Known words that are one slip of the keyboard away: a letter more, fewer, another, or two swapped."""
    for other in known:
        if abs(len(other) - len(word)) <= 1 and other != word and other.isascii() and _one_slip(word, other):
            yield other


def _one_slip(a: str, b: str) -> bool:
    if len(a) > len(b):
        a, b = b, a
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    if len(a) < len(b):
        return a[at:] == b[at + 1 :]
    return a[at + 1 :] == b[at + 1 :] or (
        a[at : at + 2] == b[at : at + 2][::-1] and a[at + 2 :] == b[at + 2 :]
    )
