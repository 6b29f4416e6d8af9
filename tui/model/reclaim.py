"""What an operator may have removed from a mount: an exact list, consented to, and then observed. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from tui.model.failure import Failure
from tui.model.storage import Ladder, Reclaimable, Resource
from tui.model.text import SafeText, safe

FRESH_S = 600.0
"""A plan of an older survey is not carried out. What was written within this time is never removed, so that
nothing written after the survey can fall between the two."""

State = Literal["waits", "at work", "removed", "skipped", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class ReclaimPlan:
    """The list that one consent is given for.

    Attributes:
        at: when the survey was taken that it comes from, seconds since the epoch.
        entries: what goes, nothing else.
        used, limit: of `resource`, by the survey.
        to_free: of the resource, to come down to `target_pct`; None when the limit is not known.
        expand_by: how much the mount must grow all the same for the rest of the run; None when not known.
        unread: what the survey could not look at.
    """

    box: str
    mount: SafeText
    at: float
    entries: tuple[Reclaimable, ...]
    resource: Resource
    used: int | None
    limit: int | None
    target_pct: float
    to_free: int | None
    expand_by: int | None = None
    unread: tuple[SafeText, ...] = ()

    @property
    def level(self) -> int:
        """Consequence: 2 where everything comes back, 3 where something is gone for ever."""
        return 2 if all(one.returns for one in self.entries) else 3

    @property
    def bytes(self) -> int | None:
        return _total(one.bytes for one in self.entries)

    @property
    def files(self) -> int | None:
        return _total(one.files for one in self.entries)

    @property
    def frees(self) -> int | None:
        """Of the resource that runs out; None when an entry's share is not known."""
        return self.files if self.resource == "inodes" else self.bytes

    @property
    def shortfall(self) -> int | None:
        """What remains to be found after it; 0 when it is enough, None when that is not known."""
        frees = self.frees
        return None if self.to_free is None or frees is None else max(0, self.to_free - frees)

    @property
    def pct_now(self) -> float | None:
        return _pct(self.used, self.limit)

    @property
    def pct_after(self) -> float | None:
        """Where it leaves the mount, computed; what came of it is read afterwards."""
        frees = self.frees
        return None if self.used is None or frees is None else _pct(max(0, self.used - frees), self.limit)

    @property
    def digest(self) -> str:
        """SHA-256 in hex over everything that is consented to."""
        import hashlib  # every picture imports this module, and the first one needs neither
        import json

        rows = [[e.path, e.identity, e.kind, e.bytes, e.files, e.returns] for e in self.entries]
        raw = json.dumps([self.box, self.mount, rows], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(raw.encode()).hexdigest()

    @property
    def phrase(self) -> SafeText:
        """What is typed: it names the act, the box and this list, and says where nothing comes back."""
        for_ever = "for ever " if self.level == 3 else ""
        return safe(f"reclaim {self.box} {for_ever}{self.digest[:8]}")


def plan_of(ladder: Ladder, paths: Collection[str] | None = None) -> ReclaimPlan:
    """The plan that removes these paths of the allow-list; by default all whose content comes back.

    What is gone for ever is in a plan only when it was named.

    Raises:
        Failure: a path is not in the allow-list, or nothing is left to remove.
    """
    allowed = {str(one.path): one for one in ladder.reclaim}
    if paths is None:
        entries = tuple(one for one in ladder.reclaim if one.returns)
    else:
        if strange := [path for path in paths if path not in allowed]:
            raise Failure(
                f"{strange[0]} is not in the allow-list of {ladder.mount} on {ladder.box}.",
                means="Only what the survey proved may go; nothing was done.",
                code="not-reclaimable",
            )
        entries = tuple(one for one in ladder.reclaim if one.path in paths)
    if not entries:
        gone = f"{len(ladder.reclaim)} can go for ever, and only by name." if ladder.reclaim else ""
        raise Failure(
            f"Nothing on {ladder.mount} of {ladder.box} is proven to come back by itself.",
            means=f"{gone} Nothing was done.".strip(),
            code="nothing-to-reclaim",
        )
    return ReclaimPlan(
        ladder.box, ladder.mount, ladder.at, entries, ladder.resource, ladder.used, ladder.limit,
        ladder.target_pct, ladder.to_free, _expand(ladder, entries), ladder.unread,
    )  # fmt: skip


def _total(amounts: Iterable[int | None]) -> int | None:
    """The sum; None where a part of it is not known."""
    known = list(amounts)
    return None if None in known else sum(one for one in known if one is not None)


def _expand(ladder: Ladder, entries: tuple[Reclaimable, ...]) -> int | None:
    """How much the mount must grow where only these go; the ladder tells it for its whole list."""
    left = [one for one in ladder.reclaim if one not in entries]
    if not left or ladder.expand_by is None:
        return ladder.expand_by
    if ladder.expand_by == 0:  # by how much it was enough is not told
        return None
    stays = _total(one.files if ladder.resource == "inodes" else one.bytes for one in left)
    return None if stays is None else ladder.expand_by + round(stays * 100 / ladder.target_pct)


@dataclass(frozen=True, slots=True)
class Removal:
    """What became of one entry.

    Attributes:
        why: why it was skipped or failed, or what else is to be said of it.
    """

    path: SafeText
    state: State
    why: SafeText = SafeText("")


@dataclass(frozen=True, slots=True)
class Room:
    """What a file system says of itself at one moment. None: it does not tell."""

    used_bytes: int | None = None
    size_bytes: int | None = None
    used_inodes: int | None = None
    inodes: int | None = None

    def pct(self, resource: Resource) -> float | None:
        """Use of bytes or inodes; a quota's is not told here."""
        if resource == "quota":
            return None
        of_inodes = resource == "inodes"
        used, limit = (self.used_inodes, self.inodes) if of_inodes else (self.used_bytes, self.size_bytes)
        return _pct(used, limit)


@dataclass(frozen=True, slots=True)
class ReclaimView:
    """One reclaim as it stands.

    Attributes:
        said: the newest sentence about it: why nothing was done, what goes on, what came of it.
        working: it goes on.
        over: it was begun and is over; otherwise `said` tells why it was not begun.
        before, after: what was read on the box; None: not read.
        receipt: its number in the ledger.
    """

    plan: ReclaimPlan
    removals: tuple[Removal, ...]
    said: SafeText = SafeText("")
    working: bool = False
    over: bool = False
    before: Room | None = None
    after: Room | None = None
    receipt: int | None = None

    def count(self, state: State) -> int:
        """How many entries stand so."""
        return sum(one.state == state for one in self.removals)

    @property
    def gained(self) -> tuple[int | None, int | None]:
        """Bytes and inodes that came free, observed: less, or below 0, where others wrote meanwhile."""
        if self.before is None or self.after is None:
            return None, None
        return (
            _less(self.before.used_bytes, self.after.used_bytes),
            _less(self.before.used_inodes, self.after.used_inodes),
        )


def _less(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else before - after


def _pct(used: int | None, limit: int | None) -> float | None:
    return None if used is None or not limit else 100 * used / limit
