"""A whole log in one streaming pass: what a diagnosis needs of it, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Line:
    """One kept piece of a log: `number` counts from 1 and only line feeds count."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Digest:
    """What was kept of a log.

    Attributes:
        kept: lines in order: the beginning, the end, and what looks like trouble with its surroundings.
        lines: how many there were.
        size: bytes read.
        whole: nothing was left out.
    """

    kept: tuple[Line, ...] = field(default_factory=tuple)
    lines: int = 0
    size: int = 0
    whole: bool = True


def scan(blocks: Iterable[bytes]) -> Digest:
    """Read a log. `blocks` are its bytes in order, cut anywhere."""
    raise NotImplementedError
