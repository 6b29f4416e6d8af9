"""Pull: from the box to a durable copy, every file hashed on its way and sealed only when all agree."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from tui.box.transfer.line import Patience
from tui.box.transfer.meter import Meter, OnProgress
from tui.custody.bag import DATA, layout
from tui.custody.codes import refusal
from tui.custody.moments import moment
from tui.custody.stores.base import Store
from tui.custody.stores.prove import prove
from tui.custody.ways import Copying, Source, fill
from tui.model.custody import CopyReport, DigestReport, HashedFile, Place, Refusal, Roster, Tier


async def copy_out(
    roster: Roster,
    digests: DigestReport,
    source: Source,
    store: Store,
    staging: Path,
    *,
    cap: int | None = None,
    patience: Patience | None = None,
    clock: Callable[[], float] = time.time,
    on_progress: OnProgress = lambda progress: None,
) -> CopyReport:
    """Make the durable copy of what was hashed. Called again after any failure, it goes on where it stopped.

    Args:
        store: one bag in one place; its name has to belong to this content (`bag_name`).
        staging: folder of this computer for files on their way to another place; emptied as they leave.
        cap: bytes per second at most, through this computer.

    Returns:
        The report; with refusals the copy is not finished, and what is there stays for the next attempt.

    Raises:
        Failure: the link, the store or this computer's disk for good.
    """
    against = _against(roster, digests, store.place)
    parts = layout(() if against else digests.files)
    wanted = parts.plain + parts.tarred
    meter = Meter(sum(one.size for one in wanted), len(wanted))
    work = Copying(source, roster.root, roster.run, parts, store, staging, meter, cap, patience, on_progress)
    work.problems += against
    bag: tuple[HashedFile, ...] = ()
    if not against:
        await store.identify()
        bag = await (_again(work) if await store.sealed() else fill(work, clock))
    files = tuple(one for one in digests.files if _arrived(work, one))
    return CopyReport(
        digests=digests.digest,
        destination=store.place,
        route=work.route,
        files=files,
        size=sum(one.size for one in files),
        resumed=work.resumed,
        bag=tuple(sorted(bag, key=lambda one: one.path)),
        admissions=tuple(work.admissions),
        refusals=tuple(work.problems),
        gaps=tuple(work.gaps),
        finished_at=moment(clock()),
    )


def _against(roster: Roster, digests: DigestReport, place: Place) -> list[Refusal]:
    found: list[Refusal] = []
    if digests.roster != roster.digest:
        found.append(refusal("chain-broken", "The SHA-256 sums are of another roster."))
    if digests.refusals:
        found.append(refusal("digests-refused", digests.refusals[0].detail, digests.refusals[0].path))
    if not digests.files:
        found.append(refusal("roster-empty", "No file was hashed."))
    if place.box == roster.victim.name and not survives(place, roster.tiers):
        found.append(refusal("copy-on-victim", f"{place.uri} goes with {roster.victim.name}."))
    return found


def survives(place: Place, tiers: Sequence[Tier]) -> bool:
    """Whether a place on the box itself is on a tier that surely outlives it, such as a shared filesystem."""
    path = PurePosixPath(place.path)
    holding = [tier for tier in tiers if path.is_relative_to(tier.path)]
    deepest = max(holding, key=lambda tier: len(PurePosixPath(tier.path).parts), default=None)
    return ".." not in path.parts and deepest is not None and deepest.survives is True


def _arrived(work: Copying, one: HashedFile) -> bool:
    if one in work.layout.tarred:
        return work.layout.tar in work.done
    return f"{DATA}/{one.path}" in work.done


async def _again(work: Copying) -> tuple[HashedFile, ...]:
    """A sealed bag of this content: as good as a new copy if every byte of it agrees, and never touched."""
    work.meter.note = "reading the finished copy"
    found = await prove(work.store, work.layout, work.staging)
    if found is None:
        work.problems.append(refusal("sealed-differs", f"{work.store.title} was not touched."))
        return ()
    work.done = {one.path: one for one in found}
    work.resumed = sum(one.size for one in work.layout.plain + work.layout.tarred)
    return found
