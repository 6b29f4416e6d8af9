"""Which parts of a box are asked at which tick: often where a disk fills or the operator looks, else seldom.

Mounts, a run's files and sessions cost a box some twenty times of what a plain tick does, and processes
twice that again; on a disk that is half empty nothing changes in half a minute that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.model.snapshot import BoxView
from tui.model.telemetry import Cadence

if TYPE_CHECKING:
    from tui.workers.box import Pace

NEAR_PCT = 75.0
"""Used bytes or inodes from which on a mount is near its limit."""
SOON_S = 12 * 3600.0
"""A mount that will be full sooner than this fills fast."""
LEARNING = 6
"""Frequent looks at first: how fast a disk grows is known from several only."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What one tick asks for beside the plain parts, by the names of `Probe.tick`."""

    gpus: bool
    filesystems: bool
    candidates: bool
    xid: bool
    processes: bool


class Rhythm:
    """Counts ticks. What was asked more than its interval ago is due, so a shorter interval acts at once."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._looks = 0
        self.hurry()

    def hurry(self) -> None:
        """Everything is due at the next tick."""
        self._gpus = self._slow = self._seldom = 10**9  # ticks since each was asked

    def next(self, *, urgent: bool, viewed: bool, cards: bool) -> tuple[Parts, Cadence]:
        """The parts of the next tick, and how often each is asked as things stand.

        Args:
            urgent: something presses on this box; see `presses`.
            viewed: the operator looks at it.
            cards: it showed a card when it was last asked.
        """
        pace = self._pace
        often = urgent or viewed or self._looks < LEARNING
        slow = pace.filesystems_every if often else pace.filesystems_quiet
        seldom = pace.candidates_every if urgent or viewed else pace.candidates_quiet
        gpus = slow if not cards else 1 if viewed else pace.gpus_every
        self._gpus, self._slow, self._seldom = self._gpus + 1, self._slow + 1, self._seldom + 1
        at = Parts(
            gpus=self._gpus >= gpus,
            filesystems=self._slow >= slow,
            candidates=self._seldom >= seldom,
            xid=self._seldom >= seldom,
            processes=self._seldom >= seldom or (viewed and self._slow >= slow),
        )
        self._gpus = 0 if at.gpus else self._gpus
        self._seldom = 0 if at.candidates else self._seldom
        if at.filesystems:
            self._slow = 0
            self._looks += 1
        lists = slow if viewed else seldom
        return at, Cadence(*(pace.period_s * ticks for ticks in (gpus, slow, lists, seldom)))


def presses(box: BoxView | None) -> bool:
    """Whether something on a box is near its limit, fills fast, or wants the operator already."""
    if box is None or box.attention:
        return box is not None
    mounts = (box.telemetry.filesystems.value if box.telemetry else None) or ()
    near = any(max(f.use_pct or 0.0, f.inode_use_pct or 0.0) >= NEAR_PCT for f in mounts if not f.read_only)
    left = [s for _, g in box.growth for s in (g.bytes_full_in_s, g.inodes_full_in_s) if s is not None]
    return near or min(left, default=SOON_S) < SOON_S
