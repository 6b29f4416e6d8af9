"""Which characters have one cell width everywhere, and what stands in for those that do not.

A row is only as wide as we think when Rich, tmux and the outer terminal agree about every character in it.
They agree on characters that Unicode 12.1 (2019, in glibc since 2.31) knew and that were never given another
width. That was measured over all code points against tmux 3.3a with glibc 2.36 and against every width table
Rich ships since that version; tests/model/test_text_cells.py measures it again. Everything else becomes a
stand-in of known width, and what has no width of its own is dropped: each character kept is one or two cells
wide, and a text can be cut at any index.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right

BOX = "□"
"""Stands for a character whose width is not agreed on."""

BROKEN = "�"
"""Stands for bytes that are no text."""

# In the basic plane: assigned after 12.1, or given different widths by different tables
# (yijing signs, circled numbers on black squares, conjoining jamo without a syllable, fillers).
_UNSTABLE = (
    (0x061D, 0x061D), (0x0870, 0x08B5), (0x08BE, 0x08D2), (0x0C5D, 0x0C5D), (0x0CDD, 0x0CDD),
    (0x0D04, 0x0D04), (0x115F, 0x11FF), (0x170D, 0x170D), (0x171F, 0x171F), (0x1B4C, 0x1B4F),
    (0x1B7D, 0x1B7F), (0x1C89, 0x1C8F), (0x20C0, 0x20CF), (0x2427, 0x243F), (0x2630, 0x2637),
    (0x268A, 0x268F), (0x2B96, 0x2B97), (0x2C2F, 0x2C2F), (0x2C5F, 0x2C5F), (0x2E50, 0x2E5D),
    (0x2FFC, 0x2FFF), (0x3164, 0x3164), (0x31BB, 0x31BF), (0x31E4, 0x31EF), (0x3248, 0x324F),
    (0x4DB6, 0x4DFF), (0x9FF0, 0x9FFF), (0xA7C0, 0xA7C1), (0xA7C7, 0xA7F6), (0xAB68, 0xAB6F),
    (0xD7B0, 0xD7FF), (0xFBC2, 0xFBD2), (0xFD40, 0xFD4F), (0xFDC8, 0xFDCF), (0xFDFE, 0xFDFF),
    (0xFFA0, 0xFFA0),
)  # fmt: skip

# Beyond it: mathematical letters, tiles and cards, enclosed letters, emoji up to 12.1, ideographs.
_STABLE_BEYOND = (
    (0x1D400, 0x1D7FF), (0x1F000, 0x1F10C), (0x1F110, 0x1F16C), (0x1F170, 0x1F1AC), (0x1F200, 0x1F3FA),
    (0x1F400, 0x1F6D5), (0x1F6E0, 0x1F6FA), (0x1F700, 0x1F773), (0x1F780, 0x1F7D8), (0x1F7E0, 0x1F7EB),
    (0x1F800, 0x1F8AD), (0x1F900, 0x1F90B), (0x1F90D, 0x1F93A), (0x1F93C, 0x1F945), (0x1F947, 0x1F971),
    (0x1F973, 0x1F976), (0x1F97A, 0x1F9A2), (0x1F9A5, 0x1F9AA), (0x1F9AE, 0x1F9CA), (0x1F9CD, 0x1FA53),
    (0x1FA60, 0x1FA6D), (0x1FA70, 0x1FA73), (0x1FA78, 0x1FA7A), (0x1FA80, 0x1FA82), (0x1FA90, 0x1FA95),
    (0x20000, 0x2A6D6), (0x2A700, 0x2B734), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1), (0x2CEB0, 0x2EBE0),
)  # fmt: skip

_UNSTABLE_STARTS = [low for low, _ in _UNSTABLE]
_BEYOND_STARTS = [low for low, _ in _STABLE_BEYOND]

# What almost every line is made of; a text of these alone needs no look at single characters.
_COMMON = (
    r"\x1b\n\t -~\xa1-\xac\xae-\u02ff\u0391-\u03a1\u03a3-\u03ce\u0400-\u0481\u2010-\u2027\u2030-\u205e"
    r"\u2190-\u2426\u2440-\u244a\u2460-\u262f\u2638-\u2689\u2690-\u2b73\u3001-\u3029\u3041-\u3096"
    r"\u30a1-\u30fe\u3400-\u4db5\u4e00-\u9fef\uac00-\ud7a3\uff01-\uff5e\ufffd"
)
_ALL_COMMON = re.compile(rf"[{_COMMON}]*\Z")
_WIDE = re.compile(
    r"[\u1100-\u115e\u231a-\u2b55\u2e80-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\uffe6"
    r"\U0001f000-\U0003fffd]"
)


def _within(code: int, starts: list[int], ranges: tuple[tuple[int, int], ...]) -> bool:
    at = bisect_right(starts, code) - 1
    return at >= 0 and code <= ranges[at][1]


def _stable(code: int) -> bool:
    if code < 0x10000:
        return not _within(code, _UNSTABLE_STARTS, _UNSTABLE)
    return _within(code, _BEYOND_STARTS, _STABLE_BEYOND)


def _standin(code: int) -> str:
    """What is shown for one character: itself, its stand-in, or nothing."""
    if code in (0x09, 0x0A, 0x1B):  # tabs, line ends and colour: the log gate lets them pass on purpose
        return chr(code)
    if 0x1F1E6 <= code <= 0x1F1FF:  # flags are pairs of these; two letters say which
        return chr(ord("A") + code - 0x1F1E6)
    if 0x1F3FB <= code <= 0x1F3FF:  # skin tones colour the emoji before them
        return ""
    category = unicodedata.category(chr(code))
    if category[0] == "Z":
        return "  " if code == 0x3000 else " "
    if category == "Cs":
        return BROKEN
    if category == "Cc":
        return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else BROKEN
    if category == "Cf" or category[0] == "M":  # joiners, bidi marks, variation selectors, accents
        return ""
    return chr(code) if category[0] in "LNPS" and _stable(code) else BOX


class _Standins(dict[int, str]):
    """Translation table filled as characters turn up."""

    def __missing__(self, code: int) -> str:
        self[code] = standin = _standin(code)
        return standin


_standins = _Standins()
_COLOUR = re.compile(r"(\x1b[^m]*m)")
_INVISIBLE = re.compile(r"[\xad\u034f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]+")


def _composed(text: str) -> str:
    if unicodedata.is_normalized("NFC", text):
        return text
    # Apart from the colours: an accent after one must not become part of its final letter.
    return "".join(unicodedata.normalize("NFC", part) for part in _COLOUR.split(text))


def fold(text: str) -> str:
    """Give every character of `text` a cell width on which all programs agree.

    Accents are composed with their letter where Unicode has the pair, otherwise dropped. ESC, tab and
    line feed pass; other controls become their control picture.
    """
    if text.isascii() and text.isprintable():
        return text
    if _ALL_COMMON.match(text):
        return text
    if not text.isascii():
        text = _composed(_INVISIBLE.sub("", text))
    return text.translate(_standins)


def width(text: str) -> int:
    """Cells that a folded text without colour sequences takes."""
    if text.isascii():
        return len(text)
    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in _WIDE.findall(text))
