"""The second link of the chain: SHA-256 of every artifact, computed on the box from bytes at rest."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from tui.box.transport import Transport
from tui.custody import manifest
from tui.custody.codes import refusal
from tui.custody.digest_journal import DigestJournal, Known, facts_of
from tui.custody.hashing import Hashed, Hasher, Job, Position, Unreadable, hash_files, race
from tui.custody.listing import Entry, Listing, look_again
from tui.model.custody import Artifact, DigestReport, HashedFile, Moment, Refusal, Roster

_ROUNDS = 4
_TICK_S = 2.0  # two writes within one tick of the box's clock can't be told apart
_RATE_S = 10.0
_TOLD_S = 0.1


@dataclass(frozen=True, slots=True)
class HashProgress:
    """How far the hashing is.

    Attributes:
        bytes, files: hashed, those of an earlier attempt included.
        rate: bytes a second over the last ten seconds; None while it is not known.
        eta_s: seconds that remain at that rate; None while it is not known.
        tool: what hashes.
    """

    bytes: int
    bytes_total: int
    files: int
    files_total: int
    rate: float | None
    eta_s: float | None
    tool: str


OnProgress = Callable[[HashProgress], None]


@dataclass(slots=True)
class _Meter:
    """Counts bytes, those inside a large file included, and tells the caller."""

    total: int
    files_total: int
    tool: str
    tell: OnProgress
    clock: Callable[[], float]
    done: int = 0
    files: int = 0
    inside: dict[str, int] = field(default_factory=dict)
    seen: list[tuple[float, int]] = field(default_factory=list)
    told_at: float = float("-inf")

    def finished(self, path: str, size: int) -> None:
        self.inside.pop(path, None)
        self.done += size
        self.files += 1

    def show(self) -> None:
        at = self.clock()
        if at - self.told_at < _TOLD_S and self.files < self.files_total:
            return
        self.told_at = at
        so_far = self.done + sum(self.inside.values())
        self.seen = [one for one in self.seen if at - one[0] <= _RATE_S] or self.seen[-1:]
        rate = None
        if self.seen and at - self.seen[0][0] >= 0.5:
            rate = max(0, so_far - self.seen[0][1]) / (at - self.seen[0][0])
        self.seen.append((at, so_far))
        eta = (self.total - so_far) / rate if rate else None
        self.tell(HashProgress(so_far, self.total, self.files, self.files_total, rate, eta, self.tool))


@dataclass(slots=True)
class _Work:
    """One run of the hashing.

    Attributes:
        digests: what is proven of each path.
        bad: why a path is not.
        racy: written within the last tick before the newest look: a digest of theirs holds for this run only.
    """

    transport: Transport
    roster: Roster
    hasher: Hasher
    meter: _Meter
    journal: DigestJournal | None
    sleep: Callable[[float], Awaitable[None]]
    digests: dict[str, tuple[Entry, Known]] = field(default_factory=dict)
    bad: dict[str, Refusal] = field(default_factory=dict)
    racy: set[str] = field(default_factory=set)

    async def look(self, paths: Sequence[str]) -> Listing:
        return await look_again(self.transport, self.roster.root, paths)

    async def run(self) -> None:
        before = await self.settled([one.path for one in self.roster.artifacts])
        left = await asyncio.to_thread(self.to_hash, before)
        self.meter.show()
        for _ in range(_ROUNDS):
            if not left:
                return
            found = await self.hash(left)
            after = await self.look([entry.path for entry in left])
            left = await asyncio.to_thread(self.accepted, left, after, before.taken_s, found)
            if left:
                before = await self.settled([entry.path for entry in left])
                now = {entry.path: entry for entry in before.entries}
                left = [now[entry.path] for entry in left if entry.path in now]
        for entry in left:
            detail = "its inode changed during each of several readings"
            self.bad[entry.path] = refusal("changed-while-hashed", detail, entry.path)

    async def settled(self, paths: Sequence[str]) -> Listing:
        """A look at files, if possible when none was written within the last tick of the box's clock."""
        seen = await self.look(paths)
        if any(_fresh(entry, seen.taken_s) for entry in seen.entries):
            await self.sleep(_TICK_S)
            seen = await self.look(paths)
        self.racy = {entry.path for entry in seen.entries if _fresh(entry, seen.taken_s)}
        return seen

    def to_hash(self, before: Listing) -> list[Entry]:
        """The files that are what the roster saw and whose digest is not known from an earlier attempt."""
        there = {entry.path: entry for entry in before.entries}
        for one in self.roster.artifacts:
            self.check(one, there.get(one.path))
        left = [there[one.path] for one in self.roster.artifacts if one.path not in self.bad]
        return [entry for entry in left if not self.resume(entry)]

    def check(self, one: Artifact, entry: Entry | None) -> None:
        """Whether a file still is what the roster saw."""
        if entry is None:
            self.bad[one.path] = refusal(
                "gone-since-roster", "it was there when the roster was taken", one.path
            )
        elif (entry.kind, entry.size, entry.modified_ns) != ("f", one.size, one.modified_ns):
            detail = f"{one.size} bytes then, {entry.size} bytes now"
            if entry.size == one.size:
                detail = "it was written to" if entry.kind == "f" else "it is no plain file any more"
            self.bad[one.path] = refusal("changed-since-roster", detail, one.path)

    def resume(self, entry: Entry) -> bool:
        """Take the digest of an earlier attempt where nothing about the file has changed."""
        known = self.journal.known.get(entry.path) if self.journal is not None else None
        if known is None or known.facts != facts_of(entry):
            return False
        self.digests[entry.path] = entry, known
        self.meter.finished(entry.path, entry.size)
        return True

    async def hash(self, left: Sequence[Entry]) -> dict[str, Known]:
        """Hash these files; notes each digest that may be used again."""
        by_path = {entry.path: entry for entry in left}
        found: dict[str, Known] = {}
        jobs = [Job(entry.path, entry.size) for entry in left]
        async with aclosing(hash_files(self.transport, self.roster.root, jobs, self.hasher)) as several:
            async for events in several:
                sure: list[tuple[str, Known]] = []
                for event in events:
                    entry = by_path[event.path]
                    if isinstance(event, Position):
                        self.meter.inside[event.path] = event.bytes
                    elif isinstance(event, Unreadable):
                        self.bad[event.path] = refusal(
                            "unreadable", event.said or "no reason given", event.path
                        )
                    elif isinstance(event, Hashed):
                        found[event.path] = Known(facts_of(entry), event.sha256, self.hasher.tool)
                        if event.path not in self.racy:
                            sure.append((event.path, found[event.path]))
                        self.meter.finished(event.path, entry.size)
                if self.journal is not None:
                    self.journal.add(sure)
                self.meter.show()
        return found

    def accepted(
        self,
        left: Sequence[Entry],
        after: Listing,
        looked_s: int,
        found: dict[str, Known],
    ) -> list[Entry]:
        """Accept what stood still from before its bytes were read until now; returns what to read again."""
        again = []
        now = {entry.path: entry for entry in after.entries}
        for entry in left:
            path = entry.path
            if path in self.bad or path not in found:
                continue
            seen = now.get(path)
            if seen is None or (seen.kind, seen.size, seen.modified_ns) != (
                "f",
                entry.size,
                entry.modified_ns,
            ):
                detail = f"{entry.size} bytes before, {seen.size if seen else 'gone'} after"
                self.bad[path] = refusal("changed-while-hashed", detail, path)
            elif facts_of(seen) != facts_of(entry) or _fresh(seen, looked_s):
                again.append(entry)
                self.meter.done -= entry.size
                self.meter.files -= 1
            else:
                self.digests[path] = seen, found[path]
        return again


async def digest_on_box(
    transport: Transport,
    roster: Roster,
    progress: OnProgress,
    now: Callable[[], Moment],
    *,
    journal: DigestJournal | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> tuple[DigestReport, bytes]:
    """Hash every artifact of a roster on the box.

    Args:
        progress: called as results come, at most with every piece of the answer.
        now: the time, for the report.
        journal: opened; what it knows of unchanged files is not hashed again.

    Returns:
        The report, and the manifest whose digest it carries.

    Raises:
        Failure: the box can't hash, or stopped; what was hashed is in the journal.
        LinkLost, SessionsExhausted, TimeoutError: the same.
    """
    hasher = await race(transport)
    total = sum(one.size for one in roster.artifacts)
    meter = _Meter(total, len(roster.artifacts), hasher.tool, progress, clock)
    work = _Work(transport, roster, hasher, meter, journal, sleep)
    await work.run()
    files, text = await asyncio.to_thread(_written, work.digests, roster.artifacts)
    report = DigestReport(
        roster=roster.digest,
        files=files,
        manifest="sha256:" + hashlib.sha256(text).hexdigest(),
        refusals=tuple(work.bad[path] for path in sorted(work.bad)),
        taken_at=now(),
    )
    return report, text


def _written(
    digests: Mapping[str, tuple[Entry, Known]], artifacts: Iterable[Artifact]
) -> tuple[tuple[HashedFile, ...], bytes]:
    """The proven files in the roster's order, and their manifest."""
    files = tuple(
        HashedFile(
            path=one.path,
            size=entry.size,
            sha256=f"sha256:{known.sha256}",
            modified_ns=entry.modified_ns,
            tool=known.tool,
        )
        for one in artifacts
        if one.path in digests
        for entry, known in [digests[one.path]]
    )
    lines = (manifest.Line(one.path, one.sha256.removeprefix("sha256:")) for one in files)
    return files, manifest.render(lines)


def _fresh(entry: Entry, looked_s: int) -> bool:
    """Whether a file was written so shortly before a look that a later write may have left the same times."""
    return looked_s - 1 <= entry.changed_ns // 10**9 <= looked_s + 1
