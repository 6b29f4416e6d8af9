"""A whole log in one streaming pass: what a diagnosis needs of it, in bounded memory.

Training logs repeat themselves: most lines differ from others in their figures only. So a block is folded
to lower case without digits, cut into lines, and each *shape* is searched for telling words only once. Lines
whose shape holds such a word are kept with their surroundings; of everything else the beginning, the end and
a sample.
"""

from __future__ import annotations

import bisect
import itertools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from tui.model.text import Charset, safe
from tui.triage.lines import LIMIT, Row, row
from tui.triage.needles import DROPPED, FOLDED, Finder

BLOCK = 1 << 20
"""Bytes that are folded at once; also the longest line that is not cut."""

HEAD = 200
TAIL = 400
PULSE = 6
"""Lines kept of the end of each block, so that it is seen how training went between the troubles."""

PULSES = 1200
PER_WORD = 150
"""Hits of one word that are kept from the beginning; as many are kept from the end."""

PER_BLOCK = 20
"""Of the newest hits, those that are kept of one block."""

BEFORE = 12
AFTER = 24
SHAPES = 100_000
"""Shapes without a telling word that are remembered; at most 16 MiB of them."""

_NO_END = bytes(code for code in range(256) if code not in (10, 13))
_CR = bytes.maketrans(b"\r", b"\n")


@dataclass(frozen=True, slots=True)
class Digest:
    """What was kept of a log.

    Attributes:
        rows: in order: the beginning, the end, a sample, and what may be trouble with its surroundings.
        lines: how many line feeds there were, and one more where the last line has no end.
        size: bytes read.
        whole: nothing was left out.
        cut_at_end: the last line has no line feed.
        encoding: of what was kept, ``utf-8`` or ``gb18030``.
        before: lines of the log that lie before what was read; they are counted in `lines`.
    """

    rows: tuple[Row, ...] = ()
    lines: int = 0
    size: int = 0
    whole: bool = True
    cut_at_end: bool = False
    encoding: str = "utf-8"
    before: int = 0


def scan(blocks: Iterable[bytes], finder: Finder) -> Digest:
    """Read a log.

    Args:
        blocks: its bytes in order, cut anywhere.
        finder: finds telling words in folded text; see `tui.triage.rules.Rules.finder`.
    """
    reader = Scanner(finder)
    for block in blocks:
        reader.feed(block)
    return reader.close()


@dataclass(slots=True)
class _Piece:
    """A state of a line: its place in the whole, the number of its line, and its bytes."""

    at: int
    number: int
    raw: bytes
    under: bool


class Scanner:
    """The pass itself, for those who read a log bit by bit."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._held = bytearray()
        self._harmless: set[bytes] = set()
        self._harmless_size = 0
        self._telling: dict[bytes, str] = {}
        self._kept: dict[int, _Piece] = {}
        self._first: dict[str, int] = {}
        self._last: dict[str, deque[list[_Piece]]] = {}
        self._pulses: list[list[_Piece]] = []
        self._pulse_step = 1
        self._blocks = 0
        self._tail: deque[_Piece] = deque(maxlen=TAIL)
        self._pieces = 0
        self._line = 1
        self._size = 0
        self._wanted_after = 0  # pieces that still belong to a kept hit

    def feed(self, block: bytes) -> None:
        """Take the next bytes."""
        self._size += len(block)
        self._held += block
        while len(self._held) >= BLOCK:
            cut = max(self._held.rfind(b"\n", 0, BLOCK), self._held.rfind(b"\r", 0, BLOCK)) + 1
            self._take(bytes(self._held[: cut or BLOCK]))
            del self._held[: cut or BLOCK]

    def close(self) -> Digest:
        """Take what is left, and give what was kept."""
        cut_at_end = bool(self._held) and not self._held.endswith(b"\n")
        if self._held:
            self._take(bytes(self._held))
            self._held.clear()
        kept = dict(self._kept)
        for lists in (*self._last.values(), self._pulses, [list(self._tail)]):
            kept.update((piece.at, piece) for pieces in lists for piece in pieces)
        charset = Charset()
        rows = tuple(_read(kept[at], charset) for at in sorted(kept))
        whole = len(kept) == self._pieces
        return Digest(rows, self._line - 1 + cut_at_end, self._size, whole, cut_at_end, charset.encoding)

    def _take(self, block: bytes) -> None:
        shapes = block.translate(FOLDED, DROPPED).split(b"\n")
        if not shapes[-1]:
            shapes.pop()  # behind the last line's end
        fresh = set(shapes).difference(self._harmless, self._telling)
        if fresh:
            self._look_at(fresh)
        ends = block.translate(None, _NO_END)
        suspects = not self._telling.keys().isdisjoint(shapes)
        if suspects or self._pieces < HEAD or self._wanted_after:
            self._keep(block, shapes, ends)
        else:
            self._end_of_block(block, ends, len(shapes))
        self._pieces += len(shapes)
        self._line += ends.count(b"\n")
        self._blocks += 1

    def _look_at(self, fresh: set[bytes]) -> None:
        """Sort new shapes into those that hold a telling word and those that do not."""
        shapes = list(fresh)
        joined = b"\n".join(shapes)
        ends = list(itertools.accumulate(len(shape) + 1 for shape in shapes))
        told: dict[bytes, str] = {}
        for at, word in self._finder.hits(joined):
            told.setdefault(shapes[bisect.bisect_right(ends, at)], word.decode("latin-1"))
        if len(self._telling) + len(told) > SHAPES:
            self._telling.clear()
        self._telling.update(told)
        self._harmless_size += len(joined)
        if self._harmless_size > BLOCK * 16 or len(self._harmless) > SHAPES:
            self._harmless.clear()
            self._harmless_size = len(joined)
        self._harmless |= fresh.difference(told)

    def _end_of_block(self, block: bytes, ends: bytes, count: int) -> None:
        """Keep only the last lines: as the log's end, should it be that, and as a sample."""
        at = len(block) - block.endswith((b"\n", b"\r"))
        for _ in range(TAIL):
            at = max(block.rfind(b"\n", 0, at), block.rfind(b"\r", 0, at))
            if at < 0:
                break
        raws = block[at + 1 :].translate(_CR).split(b"\n")
        first = count - (len(raws) - (not raws[-1]))
        raws = [b""] * first + raws
        pieces = self._between(raws, ends, first, count)
        self._tail.extend(pieces)
        self._sample(pieces)

    def _sample(self, pieces: list[_Piece]) -> None:
        if self._blocks % self._pulse_step:
            return
        self._pulses.append([piece for piece in pieces[-4 * PULSE :] if piece.raw.strip()][-PULSE:])
        if len(self._pulses) > PULSES:
            self._pulses = self._pulses[::2]
            self._pulse_step *= 2

    def _keep(self, block: bytes, shapes: list[bytes], ends: bytes) -> None:
        """Keep hits with their surroundings: the first of each word, and the newest."""
        raws = block.translate(_CR).split(b"\n")
        count = len(shapes)

        def pieces(first: int, last: int) -> list[_Piece]:
            return self._between(raws, ends, max(0, first), min(last, count))

        wanted = max(HEAD - self._pieces, self._wanted_after)
        self._kept.update((piece.at, piece) for piece in pieces(0, wanted))
        self._wanted_after = max(0, self._wanted_after - count)
        hits: dict[str, list[int]] = {}
        for index, shape in enumerate(shapes):
            if (word := self._telling.get(shape)) is not None:
                hits.setdefault(word, []).append(index)
        earlier = list(self._tail)[-BEFORE:]
        for word, places in hits.items():
            room = max(0, PER_WORD - self._first.get(word, 0))
            self._first[word] = self._first.get(word, 0) + len(places)
            for index in places[:room]:
                around = pieces(index - BEFORE, index + 1 + AFTER)
                if index < BEFORE:
                    around = earlier[index:] + around
                self._kept.update((piece.at, piece) for piece in around)
                self._wanted_after = max(self._wanted_after, index + 1 + AFTER - count)
            newest = self._last.setdefault(word, deque(maxlen=PER_WORD))
            newest.extend(pieces(index - BEFORE, index + 1 + AFTER) for index in places[room:][-PER_BLOCK:])
        last = pieces(count - TAIL, count)
        self._tail.extend(last)
        self._sample(last)

    def _between(self, raws: list[bytes], ends: bytes, first: int, last: int) -> list[_Piece]:
        """The states from the `first`-th to before the `last`-th of a block."""
        number = self._line + ends.count(b"\n", 0, first)
        found = []
        for at in range(first, last):
            end = ends[at : at + 1]
            under = end == b"\r" and ends[at + 1 : at + 2] != b"\n"
            found.append(_Piece(self._pieces + at, number, raws[at][: 4 * LIMIT], under))
            number += end == b"\n"
        return found


def _read(piece: _Piece, charset: Charset) -> Row:
    raw = piece.raw.replace(b"\0", b"")
    return row(piece.number, safe(charset.decode(raw), LIMIT), under=piece.under)
