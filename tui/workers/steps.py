"""The steps of the chain, from what is stored to what is stored next. Verbs and wizard drive these alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from tui.box.transfer.meter import OnProgress
from tui.box.transport import Transport
from tui.custody.bag import bag_name
from tui.custody.copy import copy_out
from tui.custody.digest import HashProgress, digest_on_box
from tui.custody.digest_journal import DigestJournal, binding
from tui.custody.errand import Errand, folder_of
from tui.custody.host_keys import trust_store
from tui.custody.leftovers import Decision
from tui.custody.link_receipts import copy_receipt, digest_receipt, readback_receipt, roster_receipt
from tui.custody.machine import same_machine, victim_of
from tui.custody.manifest import MANIFEST
from tui.custody.moments import moment
from tui.custody.places import consumer_for, dial_to, direct_route, store_for
from tui.custody.readback import Need, read_back
from tui.custody.receipts import Ledger
from tui.custody.records import write_file
from tui.custody.roster import Wanted, take_roster
from tui.custody.statement import Receipt
from tui.custody.stores.place import bag_of, destination
from tui.custody.tiers import mounts_of, tiers_of
from tui.custody.ways import Source
from tui.fleet import profiles, settings
from tui.fleet.paths import shipped
from tui.fleet.profile_schema import Facts
from tui.model.custody import CopyReport, DigestReport, ReadbackReport, Record, Roster, Verb
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.workers.box import Dial

R = TypeVar("R", bound=Record)

JOURNAL = "digest-journal.jsonl"
"""In the custody folder of a run: what was hashed already."""


async def keep(task: Errand, record: R) -> R:
    """Store a record. In a thread: a hundred thousand files are megabytes of JSON. Raises Failure."""
    await asyncio.to_thread(task.records.save, record)
    return record


async def keep_roster(task: Errand, roster: Roster) -> None:
    """Store a roster, and what was decided in it as a receipt. Raises Failure."""
    await keep(task, roster)
    await receipted(task, roster_receipt(roster))


async def receipted(task: Errand, receipt: Receipt) -> None:
    """Add a receipt to the ledger. In a thread: it may wait for another rgt. Raises Failure."""
    await asyncio.to_thread(Ledger(task.where.receipts).append, receipt)


# --- roster -----------------------------------------------------------------------------------------------


async def look_for_roster(
    task: Errand, dial: Dial, verb: Verb, decisions: Mapping[str, Decision], *, root: str | None = None
) -> Roster:
    """Look at the box and make the roster; it is not stored yet.

    Raises:
        Failure: the box was not reached, or can't tell what is there.
    """
    facts = await asyncio.to_thread(_facts, task)
    transport = await dial(task.instance)
    try:
        tiers = tiers_of(facts, verb, task.instance, await mounts_of(transport))
        return await take_roster(
            transport,
            Wanted(task.spec.name, await folder_of(transport, task, root), task.table),
            await victim_of(task.instance, transport),
            verb,
            tiers,
            decisions,
            moment(time.time()),
        )
    finally:
        await transport.close()


def _facts(task: Errand) -> Facts | None:
    profile = profiles.load(shipped("profiles"), task.where.profiles).by_id.get(task.instance.platform)
    return profile.facts if profile else None


# --- digests ----------------------------------------------------------------------------------------------


async def hash_on_box(
    task: Errand, dial: Dial, on_progress: Callable[[HashProgress], None], *, store: bool = True
) -> DigestReport:
    """Hash every artifact of the newest roster on its box; what is untouched since it was hashed is not read.

    Args:
        store: False only looks whether everything is as it was hashed.

    Raises:
        Failure: no roster, another machine, or the link or this computer's disk failed.
    """
    roster = task.records.need(Roster, f"Take it first: rgt roster {task.spec.name}.")
    transport = await dial(task.instance)
    try:
        same_machine(roster.victim, await victim_of(task.instance, transport))
        report, manifest = await digests_now(task, transport, roster, on_progress)
    finally:
        await transport.close()
    if store:
        await asyncio.to_thread(write_file, task.folder / MANIFEST, manifest)
        await keep(task, report)
        await receipted(task, digest_receipt(roster, report, task.folder / MANIFEST))
    return report


async def digests_now(
    task: Errand, transport: Transport, roster: Roster, on_progress: Callable[[HashProgress], None]
) -> tuple[DigestReport, bytes]:
    """The digests of a roster's files as they are, and their manifest; what is untouched is not read again.

    Raises:
        Failure: the link or this computer's disk failed.
    """
    journal = DigestJournal(task.folder / JOURNAL, binding(roster))
    await asyncio.to_thread(journal.open)
    try:
        return await digest_on_box(
            transport, roster, on_progress, lambda: moment(time.time()), journal=journal
        )
    finally:
        journal.close()


def hashed_links(task: Errand) -> tuple[Roster, DigestReport]:
    """The links before the copy, which belong together. Raises Failure."""
    digests = task.records.need(DigestReport, f"Hash the run first: rgt digest {task.spec.name}.")
    roster = task.records.find(Roster, digests.roster)
    newest = task.records.need(Roster, f"Take it first: rgt roster {task.spec.name}.")
    if roster is None or roster.digest != newest.digest:
        raise Failure(
            f"{task.spec.name} was hashed for another roster than the newest.",
            do=f"Hash it again: rgt digest {task.spec.name}.",
            code="chain-broken",
        )
    return roster, digests


# --- copy -------------------------------------------------------------------------------------------------


async def copy_run(
    task: Errand,
    dial: Dial,
    to: str,
    on_progress: OnProgress,
    *,
    cap: int | None = None,
    direct: bool = True,
) -> CopyReport:
    """Make the durable copy of what was hashed last.

    Args:
        to: a folder, ``BOX:FOLDER`` or ``rclone:REMOTE:FOLDER``.
        cap: bytes per second at most.
        direct: the box itself may send, where it reaches the store.

    Raises:
        Failure: no such place, a step before is missing, or the link, the store or the disk failed for good.
    """
    boxes = boxes_of(task)
    place = destination(to, boxes, Path.cwd())
    roster, digests = await asyncio.to_thread(hashed_links, task)
    store = store_for(place, bag_name(roster.run, digests), dial, boxes, cap)
    try:
        source = await _source(task, roster, dial, boxes.get(place.box), direct=direct)
        report = await copy_out(
            roster, digests, source, store, task.folder / "staging", cap=cap, on_progress=on_progress
        )
    finally:
        await store.close()
    await keep(task, report)
    await receipted(task, copy_receipt(roster, digests, report))
    return report


def boxes_of(task: Errand) -> dict[str, Instance]:
    """The fleet, by name."""
    return {one.name: one for one in settings.load(task.where.fleet_file).instances}


async def _source(
    task: Errand, roster: Roster, dial: Dial, target: Instance | None, *, direct: bool
) -> Source:
    """The box of the run, which must be the one that the roster was taken of."""
    transport = await dial(task.instance)
    try:
        same_machine(roster.victim, await victim_of(task.instance, transport))
    finally:
        await transport.close()
    route = None
    if direct and target is not None:
        await _met(dial, target)
        route = await direct_route(task.instance, target, trust_store(task.where))
    return Source(task.instance.name, dial_to(dial, task.instance), route, own_rclone=direct)


async def _met(dial: Dial, target: Instance) -> None:
    """Connect once, so that the target's key is on record before another box is told of it."""
    transport = await dial(target)
    await transport.close()


# --- readback ---------------------------------------------------------------------------------------------


async def read_run_back(
    task: Errand,
    dial: Dial,
    on: str,
    on_need: Callable[[Need], None],
    on_progress: OnProgress,
) -> ReadbackReport:
    """Read the newest copy back on a box, or on this computer (``here``); the files stay for the next step.

    Raises:
        Failure: no copy of what was hashed last, or the link, the store or the consumer's disk failed.
    """
    roster, digests = await asyncio.to_thread(hashed_links, task)
    copied = task.records.need(CopyReport, f"Make the copy first: rgt pull {task.spec.name} --to DEST.")
    if copied.digests != digests.digest:
        raise Failure(
            f"The copy of {task.spec.name} is of other SHA-256 sums than the newest.",
            means="It was not read.",
            do=f"Copy what was hashed last: rgt pull {task.spec.name} --to DEST.",
            code="chain-broken",
        )
    boxes = boxes_of(task)
    to, name = bag_of(copied.destination)
    store = store_for(to, name, dial, boxes)
    consumer = consumer_for(on, dial, boxes, task.folder)
    kept = False
    try:
        report = await read_back(
            copied, roster.victim, store, consumer, on_need=on_need, on_progress=on_progress
        )
        kept = not report.refusals and not any(one.code == "restored-in-turns" for one in report.gaps)
    finally:
        await consumer.close(keep=kept)
        await store.close()
    await keep(task, report)
    await receipted(task, readback_receipt(roster, digests, copied, report))
    return report
