"""The first link of the chain: what of a run must survive, and what else the verb would destroy."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tui.box.transport import Transport
from tui.custody import writers
from tui.custody.box_looks import OpenFiles, count_system, open_files, read_texts, real_folders
from tui.custody.codes import gap, refusal
from tui.custody.kinds import is_secrets, role_of
from tui.custody.layouts.recognise import needed_texts
from tui.custody.layouts.tree import Tree, tree_of
from tui.custody.leftovers import Counted, Decision, Grouped, Stray, group
from tui.custody.listing import Entry, FolderMissing, Listing, look_again, relative, take_listing
from tui.custody.names import odd_names
from tui.custody.selection import Selection, counted, select
from tui.model.custody import Artifact, Gap, Moment, Refusal, Roster, Tier, Verb, Victim, Writer
from tui.model.custody_table import CustodyTable
from tui.model.text import amount

SETTLE_S = 2.0
"""Seconds between the two looks at the run's folder."""

_SYSTEM = ("boot", "etc", "lib", "lib32", "lib64", "libx32", "bin", "sbin", "snap", "usr", "var")
_VIRTUAL = ("proc", "sys", "dev", "run")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which run, where it lies, and what its job file declares.

    Attributes:
        root: folder on the box; artifacts are relative to it.
        table: the ``[custody]`` table, None where there is none.
    """

    run: str
    root: str
    table: CustodyTable | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A tier that the verb destroys, or may destroy, as it was found on the box."""

    tier: Tier
    top: str
    listing: Listing


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that was seen of a box for one roster."""

    first: Listing
    second: Listing
    texts: Mapping[str, bytes]
    places: tuple[Place, ...]
    held: OpenFiles
    system: tuple[Counted, ...] = ()
    system_models: tuple[Stray, ...] = ()
    unlisted: tuple[str, ...] = ()  # tiers that this login may not enter
    root_survives: bool = False


async def take_roster(
    transport: Transport,
    wanted: Wanted,
    victim: Victim,
    verb: Verb,
    tiers: Sequence[Tier],
    decisions: Mapping[str, Decision],
    now: Moment,
    *,
    settle_s: float | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Roster:
    """Look at a box and write down what must survive `verb`. Nothing on the box is changed.

    Args:
        tiers: the platform's storage tiers for this verb; what may not survive is listed.
        decisions: keep or scrap, by the name of a group of leftovers.
        now: when the roster is taken.
        settle_s: seconds between the two looks at the folder; `SETTLE_S` by default.

    Raises:
        FolderMissing: the run's folder is not there.
        Failure: the box can't tell what is there.
        LinkLost, SessionsExhausted, TimeoutError.
    """
    pause = SETTLE_S if settle_s is None else settle_s
    seen = await _look(transport, wanted.root, tiers, pause, sleep)
    # in a thread: sorting out a hundred thousand files takes a second, and screens share this loop
    return await asyncio.to_thread(assemble, seen, wanted, victim, verb, tiers, decisions, now)


async def _look(
    transport: Transport,
    root: str,
    tiers: Sequence[Tier],
    settle_s: float,
    sleep: Callable[[float], Awaitable[None]],
) -> Seen:
    real = await real_folders(transport, [root, *(tier.path for tier in tiers)])
    top = real[root]
    if not top:
        raise FolderMissing(transport.name, root)
    settled = asyncio.ensure_future(sleep(settle_s))
    try:
        first = await take_listing(transport, top)
        texts = await read_texts(transport, top, needed_texts(tree_of(first)))
        tops = [(tier, real[tier.path]) for tier in tiers]
        places = [place async for place in _places(transport, tops, first)]
        system, models = await _system(transport, places)
        await settled
    finally:
        settled.cancel()
    second = await take_listing(transport, top)
    held = await open_files(transport, [top, *(place.top for place in places)])
    return Seen(
        first,
        second,
        texts,
        tuple(places),
        held,
        system,
        models,
        tuple(tier.path for tier, where in tops if where == "" and tier.survives is not True),
        _survives(tops, top),
    )


def _survives(tops: Sequence[tuple[Tier, str | None]], path: str) -> bool:
    """Whether the innermost tier around a path survives for certain."""
    around = [(where, tier.survives) for tier, where in tops if where and relative(path, where) is not None]
    if not around:
        return False
    innermost = max(len(where) for where, _ in around)
    return all(survives is True for where, survives in around if len(where) == innermost)


async def _places(
    transport: Transport, tops: Sequence[tuple[Tier, str | None]], run: Listing
) -> AsyncIterator[Place]:
    listed = {run.top}  # the run's own folder, and what lies in it on the same filesystem, is listed already
    listed |= {
        posixpath.join(run.top, e.path) for e in run.entries if e.kind == "d" and e.device == run.device
    }
    for tier, top in tops:
        if not top or tier.survives is True or top in listed:
            continue
        listed.add(top)
        leave_out = [run.top, *(where for _, where in tops if where and where != top)]
        if top == "/":
            leave_out += [f"/{name}" for name in (*_SYSTEM, *_VIRTUAL)]
        yield Place(tier, top, await take_listing(transport, top, leave_out=leave_out))


async def _system(
    transport: Transport, places: Sequence[Place]
) -> tuple[tuple[Counted, ...], tuple[Stray, ...]]:
    if not any(place.top == "/" for place in places):
        return (), ()
    real = await real_folders(transport, [f"/{name}" for name in _SYSTEM])
    there = sorted({path for path in real.values() if path})
    outermost = [path for path in there if not any(relative(path, other) for other in there)]
    counted, models = await count_system(transport, outermost)
    again = await look_again(transport, "/", [path.removeprefix("/") for path in models])
    return tuple(counted), tuple(Stray(f"/{entry.path}", entry) for entry in again.files())


def assemble(
    seen: Seen,
    wanted: Wanted,
    victim: Victim,
    verb: Verb,
    tiers: Sequence[Tier],
    decisions: Mapping[str, Decision],
    now: Moment,
) -> Roster:
    """Make the roster of what was seen; pure."""
    top = seen.second.top
    tree = tree_of(seen.second, seen.texts)
    chosen = select(tree, top, wanted.table)
    grouped = _leftovers(seen, tree, chosen, decisions)
    refusals = [*_listing_refusals(seen, decisions), *chosen.refusals]
    refusals += _keep(tree, top, chosen, grouped)
    refusals += counted(chosen, wanted.table)
    found = _writers(seen, tree, chosen, grouped)
    refusals += _blocking(grouped, found)
    return Roster(
        run=wanted.run,
        victim=victim,
        verb=verb,
        root=top,
        artifacts=tuple(_artifact(tree.files[path], chosen) for path in sorted(chosen.roles)),
        leftovers=grouped.leftovers,
        tiers=tuple(tiers),
        writers=found,
        declared=tuple(sorted(wanted.table.counts.items())) if wanted.table is not None else (),
        refusals=tuple(refusals),
        gaps=tuple(_gaps(seen, chosen, tiers, decisions)),
        taken_at=now,
    )


def _artifact(entry: Entry, chosen: Selection) -> Artifact:
    return Artifact(
        path=entry.path,
        size=entry.size,
        role=chosen.roles[entry.path],
        modified_ns=entry.modified_ns,
        generation=chosen.generation_of.get(entry.path),
    )


def _leftovers(seen: Seen, tree: Tree, chosen: Selection, decisions: Mapping[str, Decision]) -> Grouped:
    top = seen.second.top
    strays = list(seen.system_models)
    folders: list[str] = []
    if not seen.root_survives:
        strays += [
            Stray(posixpath.join(top, path), entry)
            for path, entry in tree.files.items()
            if path not in chosen.roles
        ]
        folders += [posixpath.join(top, folder) for folder in tree.folders]
    for place in seen.places:
        for entry in place.listing.entries:
            path = posixpath.join(place.top, entry.path)
            if entry.kind == "f":
                strays.append(Stray(path, entry))
            elif entry.kind == "d":
                folders.append(path)
    tops = [top, *(place.top for place in seen.places)]
    return group(strays, folders, tops, decisions, generations=chosen.unkept, root=top, system=seen.system)


def _keep(tree: Tree, top: str, chosen: Selection, grouped: Grouped) -> Iterator[Refusal]:
    """Put what the operator keeps on the roster, where it lies in the run's folder."""
    outside: set[str] = set()
    for path, entry in grouped.of_word("keep"):
        below = relative(path, top)
        if is_secrets(path):
            yield refusal("kept-not-on-roster", "secrets never leave the box; give them up", path)
        elif below:
            chosen.roles[below] = role_of(below, entry.size)
        else:
            outside.add(posixpath.dirname(path))
    for folder in sorted(outside)[:_SHOWN]:
        yield refusal("kept-not-on-roster", f"it lies outside {top}", folder)


def _writers(seen: Seen, tree: Tree, chosen: Selection, grouped: Grouped) -> tuple[Writer, ...]:
    top = seen.second.top
    scrapped = {below for path, _ in grouped.of_word("scrap") if (below := relative(path, top))}
    models = {
        path
        for one in grouped.leftovers
        if one.checkpoint_like and one.decision != "scrap"
        for path, _ in grouped.members[one.group]
    }
    elsewhere = (
        Writer(path=one.path, evidence=f"open for writing by {one.program or 'a process'}", pid=one.pid)
        for one in seen.held.held
        if relative(one.path, top) is None and one.path in models
    )
    return writers.told(
        [
            *writers.holding(seen.held, top),
            *writers.grown(seen.first, seen.second),
            *writers.unfinished(tree.files, chosen.roles.keys(), scrapped, seen.second.taken_s),
            *elsewhere,
        ]
    )


def _blocking(grouped: Grouped, found: Sequence[Writer]) -> Iterator[Refusal]:
    undecided = grouped.undecided()
    if undecided:
        size = sum(one.size for one in undecided)
        count = sum(one.count for one in undecided)
        detail = f"{len(undecided)} undecided: {count} files, {amount(size)}"
        yield refusal("unclassified", detail, undecided[0].group)
    for writer in found[:_SHOWN]:
        yield refusal("live-writer", writer.evidence, writer.path)
    if len(found) > _SHOWN:
        yield refusal("live-writer", f"and {len(found) - _SHOWN} more files are written to")


def _listing_refusals(seen: Seen, decisions: Mapping[str, Decision]) -> Iterator[Refusal]:
    for complaint in seen.second.complaints[:_SHOWN]:
        yield refusal("root-unreadable", complaint, seen.second.top)
    for path, complaint in _unlisted(seen):
        if not _scrapped(path, decisions):
            yield refusal("tier-unlisted", f"{complaint}; decide by scrapping unlisted:{path}", path)


def _unlisted(seen: Seen) -> Iterator[tuple[str, str]]:
    for path in seen.unlisted:
        yield path, "this login may not enter it"
    for place in seen.places:
        if place.listing.complaints:
            yield place.top, f"{len(place.listing.complaints)} folders, such as {place.listing.complaints[0]}"


def _scrapped(path: str, decisions: Mapping[str, Decision]) -> bool:
    decision = decisions.get(f"unlisted:{path}")
    return decision is not None and decision.word == "scrap"


def _unclosed(listing: Listing) -> bool:
    """Whether the folder is one in which a run of ours is at work, or died: a sealed export is none."""
    folder = posixpath.basename(posixpath.dirname(listing.top))
    return folder == "active" and any(entry.path == ".rgt/plan/id" for entry in listing.entries)


def _gaps(
    seen: Seen, chosen: Selection, tiers: Sequence[Tier], decisions: Mapping[str, Decision]
) -> Iterator[Gap]:
    yield from chosen.gaps[: 10 * _SHOWN]
    if _unclosed(seen.second):
        yield gap("not-closed", seen.second.top)
    for tier in tiers:
        if tier.survives is None:
            yield gap("survival-unknown", f"{tier.path} ({tier.told_by})")
    for path, complaint in _unlisted(seen):
        if _scrapped(path, decisions):
            yield gap("tier-partly-listed", f"{path}: {complaint}", decisions[f"unlisted:{path}"].reason)
    if seen.held.hidden is None:
        yield gap("writers-not-seen", "the box has no /proc that could be read")
    elif seen.held.hidden:
        yield gap("writers-not-seen", f"{seen.held.hidden} processes of other users")
    odd = odd_names(chosen.roles)
    if odd:
        shown = ", ".join(f"{path!a} {reason}" for path, reason in sorted(odd.items())[:_SHOWN])
        yield gap("travels-in-tar", f"{len(odd)} files: {shown}")
    if seen.second.coarse:
        yield gap("coarse-times", "its stat tells no fractions of a second")
    if seen.system:
        yield gap("system-not-listed", ", ".join(one.path for one in seen.system))
    inside = [e.path for e in seen.second.entries if e.kind == "d" and e.device != seen.second.device]
    for path in inside[:_SHOWN]:
        yield gap("mount-inside", path)
