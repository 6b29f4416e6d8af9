"""Out of memory on a card: whether this job asked for too much, or somebody else holds the card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.model.incident import Fact
from tui.triage.finding import Hit
from tui.triage.view import View

WORDS = ("out of memory", "tried to allocate", "memory error on gpu", "can't allocate", "memory usage")

_SIZE = r"(\d+(?:\.\d+)?) ?([KMGT]i?B|bytes|B)\b"
_UNIT_MIB = {"B": 1 / 2**20, "bytes": 1 / 2**20, "KiB": 1 / 1024, "KB": 1 / 1024, "MiB": 1.0, "MB": 1.0,
             "GiB": 1024.0, "GB": 1024.0, "TiB": 2.0**20, "TB": 2.0**20}  # fmt: skip
_TORCH = re.compile(
    r"\b(?:CUDA|HIP|NPU|XPU|MUSA|MLU|GCU|MACA|HPU|SDAA) out of memory\b|\bMPS backend out of memory\b"
)
_TRIED = re.compile(rf"(?i)tried to allocate (?:about )?{_SIZE}")
_GPU = re.compile(r"\(?\b(?:GPU|NPU|XPU|DCU|MLU) (\d{1,3})\b")
_TOTAL = re.compile(rf"{_SIZE} total capacity|total capac(?:i)?ty of {_SIZE}")
_FREE = re.compile(rf"{_SIZE} free\b|of which {_SIZE} is free")
_RESERVED = re.compile(rf"{_SIZE} (?:reserved in total|cached)|{_SIZE} reserved in total")
_ALLOCATED_OLD = re.compile(rf"{_SIZE} already allocated")
_MINE = re.compile(rf"this process has {_SIZE} memory in use")
_ALLOCATED = re.compile(rf"{_SIZE} is allocated by PyTorch")
_UNALLOCATED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")
_HOLDER = re.compile(rf"Process (\d+) has {_SIZE} memory in use")
_ALLOWED = re.compile(rf"({_SIZE} allowed)")
_PADDLE = re.compile(
    rf"Cannot allocate {_SIZE} memory on GPU (\d+), {_SIZE} memory has been allocated and available memor"
    rf"y is only {_SIZE}"
)


@dataclass(frozen=True, slots=True)
class Refused:
    """One refusal of the allocator, in MiB. None: not told.

    Attributes:
        own: what this process held.
        holders: (pid, MiB) of other processes.
        unallocated: held by the caching allocator and not in use.
        capped: a limit the program set itself, in its own words.
    """

    tried: float | None
    total: float | None
    free: float | None
    own: float | None
    holders: tuple[tuple[int, float], ...]
    unallocated: float | None
    gpu: int | None
    capped: str | None

    @property
    def foreign(self) -> float:
        """What others hold, as far as it is told or follows."""
        told = sum(size for _, size in self.holders)
        if self.total is None or self.free is None or self.own is None or self.capped:
            return told
        return max(told, self.total - self.free - self.own)

    @property
    def held(self) -> bool:
        """Whether others hold more than this process, and their going would have been enough."""
        if self.capped or self.own is None:
            return False
        if self.tried is not None and self.total is not None and self.tried + self.own > self.total:
            return False
        if self.free is not None and self.tried is not None and self.free > 1.5 * self.tried:
            return False  # there was room: a limit or fragments, not a neighbour
        return self.foreign > self.own and (self.total is None or self.foreign > 0.3 * self.total)

    @property
    def fragmented(self) -> bool:
        """Whether the cache held much that no tensor used."""
        if self.unallocated is None or self.tried is None or self.own is None:
            return False
        return self.unallocated >= min(self.tried, 0.25 * self.own) and self.unallocated >= 1024


def _mib(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    if match is None:
        return None
    figures = [group for group in match.groups() if group]
    return _size(figures[-2], figures[-1])


def _size(figure: str, unit: str) -> float:
    return float(figure) * _UNIT_MIB.get(unit, 1.0)


def read_refusal(text: str) -> Refused:
    """The figures of one message of an allocator of PyTorch or Paddle, of any generation."""
    paddle = _PADDLE.search(text)
    if paddle:
        asked, held, left = (_size(paddle[i], paddle[i + 1]) for i in (1, 4, 6))
        return Refused(asked, None, left, held, (), None, int(paddle[3]), None)
    gpu, capped = _GPU.search(text), _ALLOWED.search(text)
    holders = [(int(m[1]), _size(m[2], m[3])) for m in _HOLDER.finditer(text)]
    unallocated, allocated = _mib(_UNALLOCATED, text), _mib(_ALLOCATED, text)
    cached = allocated + unallocated if allocated is not None and unallocated is not None else allocated
    own, total = _mib(_MINE, text), _mib(_TOTAL, text)
    if own is None:
        own = _mib(_RESERVED, text)
    if own is None:
        own = cached if cached is not None else _mib(_ALLOCATED_OLD, text)
        # In a container the process does not know its own pid on the host and lists itself as another.
        holders = [
            one for one in holders
            if own is None
            or not (0.9 * own <= one[1] <= own + 2048 or (total is not None and one[1] + own > 1.02 * total))
        ]  # fmt: skip
    return Refused(
        _mib(_TRIED, text),
        total,
        _mib(_FREE, text),
        own,
        tuple(holders),
        unallocated,
        int(gpu[1]) if gpu else None,
        capped[1] if capped else None,
    )


def _hits(view: View, *, held: bool) -> Iterator[Hit]:
    for index, one in enumerate(view.rows):
        match = _TORCH.search(one.text) or _PADDLE.search(one.text)
        if match is None or view.quoted(index, match.start()):
            continue
        refused = read_refusal(one.text[match.start() :])
        told = refused.tried is not None or refused.total is not None
        if not told or refused.held != held:
            continue
        yield Hit(index, facts=_facts(refused, one.rank), confidence=0.95 if refused.total else 0.85)


def _facts(refused: Refused, rank: int | None) -> dict[str, Fact]:
    big = 0.1 * (refused.total or 0.0)
    holders: tuple[Fact, ...] = tuple(
        {"pid": pid, "gib": round(size / 1024, 2)} for pid, size in refused.holders if size >= big
    )
    facts: dict[str, Fact] = {
        "gpu": refused.gpu,
        "tried_mib": _rounded(refused.tried),
        "total_gib": None if refused.total is None else _rounded(refused.total / 1024),
        "free_mib": _rounded(refused.free),
        "own_mib": _rounded(refused.own),
        "capped": refused.capped,
        "holders": holders or None,
        "fragmented": True if refused.fragmented and not refused.held else None,
        "note": _note(refused),
        "rank": rank,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _note(refused: Refused) -> str | None:
    """Why a smaller batch does not help."""
    if not refused.held or refused.own is None or refused.total is None:
        return None
    return f"own use {refused.own:.0f} MiB of {refused.total / 1024:.4g} GiB"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def own(view: View, cls: str) -> Iterator[Hit]:
    """Refusals where this process itself holds the card."""
    yield from _hits(view, held=False)


def foreign(view: View, cls: str) -> Iterator[Hit]:
    """Refusals where others hold the card."""
    yield from _hits(view, held=True)
