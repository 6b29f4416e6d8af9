"""Pasted login text made plain, and the one way to refuse it. A refusal never repeats what was pasted."""

from __future__ import annotations

import unicodedata
from typing import NoReturn

from tui.model.failure import Exit, Failure

LONGEST = 8192  # characters; a console gives a few hundred


class Secret:
    """A password met in a paste. It stays in memory only and has no printable form."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The password itself, for handing to a login and nothing else."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere")


def refuse(what: str, do: str = "Paste the login line alone, such as: ssh -p 34567 root@host") -> Failure:
    """A refusal that names what is wrong in our own words: the paste may hold a password."""
    return Failure(what, means="Nothing was added.", do=do, exit=Exit.USAGE, code="address")


_DROPPED = dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f")
)  # zero-width, soft hyphen
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣"), "-")
_QUOTES = {ord(c): "'" for c in "‘’‚‛"} | {ord(c): '"' for c in "“”„‟«»"}
_FULL_WIDTH = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)} | {ord("。"): ".", ord("、"): ","}
_PLAIN = _DROPPED | _DASHES | _QUOTES | _FULL_WIDTH
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str) -> str:
    """What the operator meant to type: spaces, dashes, quotes and full-width forms of web pages and input
    methods become ASCII, zero-width characters go. Letters that merely look like ASCII stay as they are, so
    that a host name written with them is refused later.

    Raises:
        Failure: control or bidirectional characters, or too much text.
    """
    if len(text) > LONGEST:
        raise refuse("The pasted text is too long for a login.")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ").translate(_PLAIN)
    if any(c in _BIDI for c in text):
        raise refuse(
            "The text holds characters that change the writing direction and can disguise a host name."
        )
    text = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    if any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} and c != "\n" for c in text):
        raise refuse("The text holds control characters.")
    return text
