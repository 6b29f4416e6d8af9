"""Readback: the durable copy, not the box, read by somebody who did not make it, every byte hashed again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tui.box.transfer.lots import LOT_BYTES, lots
from tui.box.transfer.meter import Meter, OnProgress
from tui.box.transfer.wanted import SMALL, Wanted
from tui.custody.bag import DATA, layout
from tui.custody.codes import gap, refusal
from tui.custody.consumers import Consumer, Seen
from tui.custody.moments import moment
from tui.custody.stores.base import Listed, Store
from tui.custody.stores.devices import one_device
from tui.model.custody import CopyReport, Gap, HashedFile, ReadbackReport, Refusal, Victim
from tui.model.text import amount

_TICK_S = 0.125
_SPARE = 64 << 20
_EXTRA_INODES = 16


@dataclass(frozen=True, slots=True)
class Need:
    """What the readback needs where it is restored, and what is free; None: nobody can say.

    Attributes:
        in_turns: the whole does not fit; files are restored, looked at and removed one after another.
    """

    bytes: int
    inodes: int
    largest: int
    free_bytes: int | None
    free_inodes: int | None
    in_turns: bool

    @property
    def line(self) -> str:
        """For the operator, before anything is done."""
        free = "?" if self.free_bytes is None else amount(self.free_bytes)
        inodes = "?" if self.free_inodes is None else str(self.free_inodes)
        turns = "; not enough, so one file after another" if self.in_turns else ""
        return f"needs {amount(self.bytes)} and {self.inodes} inodes; {free} and {inodes} are free{turns}"


Inspect = Callable[[Sequence[str]], Awaitable[None]]
"""Looks at restored files, by their path below the consumer's place, before they may be removed again."""


@dataclass(slots=True)
class _Reading:
    report: CopyReport
    store: Store
    consumer: Consumer
    meter: Meter
    inspect: Inspect | None
    in_turns: bool = False
    room: int | None = None
    digests: Mapping[str, str] = field(default_factory=dict)  # of the run's own files
    seen: dict[str, Seen] = field(default_factory=dict)  # by path in the bag; members of the tar by their own
    members: dict[str, Seen] = field(default_factory=dict)


async def read_back(
    report: CopyReport,
    victim: Victim,
    store: Store,
    consumer: Consumer,
    *,
    inspect: Inspect | None = None,
    clock: Callable[[], float] = time.time,
    on_need: Callable[[Need], None] = lambda need: None,
    on_progress: OnProgress = lambda progress: None,
) -> ReadbackReport:
    """Read a finished copy back.

    The restored files stay in the consumer's folder for the steps after this one, unless there is no room for
    all of them at once: then only `inspect` sees them.

    Args:
        victim: the box that made the files, which must not be the one that reads them.
        store: where the copy is.
        consumer: not started yet; its owner closes it.
        on_need: told what is needed before the first byte.

    Raises:
        Failure: the link, the store as a whole, or the consumer's own disk.
    """
    reading = _Reading(report, store, consumer, Meter(0, 0), inspect)
    reading.digests = {one.path: one.sha256 for one in report.files}
    problems = _against(report, victim, consumer)
    gaps: list[Gap] = []
    listed = Listed({})
    if not problems:
        await store.identify()
        await consumer.start()
        problems = _against(report, victim, consumer)  # its host key is known now
    if not problems:
        need = await _need(report, consumer)
        on_need(need)
        problems, gaps = _room(need)
        reading.in_turns, reading.room = need.in_turns, need.free_bytes
    if not problems:
        listed = await consumer.listed(store)
        await _read(reading, listed, on_progress)
        problems, more = _judged(reading, listed)
        gaps += more
    return _report(reading, listed, problems, gaps, moment(clock()))


def _against(report: CopyReport, victim: Victim, consumer: Consumer) -> list[Refusal]:
    found: list[Refusal] = []
    if report.refusals or not report.bag:
        found.append(
            refusal("copy-refused", report.refusals[0].detail if report.refusals else "It was not finished.")
        )
    same_key = victim.host_key is not None and consumer.host_key == victim.host_key
    if consumer.place.box == victim.name or same_key:
        found.append(
            refusal("read-by-producer", f"{consumer.place.box} is {victim.name}, which made the files.")
        )
    return found


async def _need(report: CopyReport, consumer: Consumer) -> Need:
    size = sum(one.size for one in report.bag)
    size += sum(one.size for one in layout(report.files).tarred)  # beside the tar that they come out of
    folders = {one.path.rpartition("/")[0] for one in (*report.bag, *report.files)}
    inodes = len(report.bag) + len(report.files) + len(folders) + _EXTRA_INODES
    space = await consumer.space()
    largest = max(sum(one.size for one in batch) for batch in _batches(report.bag, space.bytes))
    short = space.bytes is not None and size + _SPARE > space.bytes
    few = space.inodes is not None and inodes > space.inodes
    return Need(size, inodes, largest, space.bytes, space.inodes, short or few)


def _room(need: Need) -> tuple[list[Refusal], list[Gap]]:
    if not need.in_turns:
        return [], []
    if need.free_bytes is not None and need.largest > need.free_bytes:
        return [refusal("readback-no-room", f"{need.line}; the largest part has {amount(need.largest)}.")], []
    return [], [gap("restored-in-turns", need.line)]


def _batches(files: Sequence[HashedFile], room: int | None) -> list[list[HashedFile]]:
    """Large files one by one, small ones together, in lots that fit into `room` with ease."""
    by_path = {one.path: one for one in files}
    small = [Wanted(one.path, one.size, one.sha256) for one in files if one.size < SMALL]
    lot_bytes = LOT_BYTES if room is None else max(SMALL, min(LOT_BYTES, room // 4))
    made = [[by_path[wanted.path] for wanted in lot] for lot in lots(small, lot_bytes)]
    return made + [[one] for one in files if one.size >= SMALL]


async def _read(reading: _Reading, listed: Listed, on_progress: OnProgress) -> None:
    there = [one for one in reading.report.bag if one.path in listed.files]
    meter = reading.meter = Meter(sum(one.size for one in there), len(there))
    ticking = asyncio.ensure_future(_tick(meter, on_progress))
    try:
        for batch in _batches(there, reading.room):
            reading.seen |= await reading.consumer.take(reading.store, batch, meter.arrived)
            meter.files += len(batch)
            await _looked_at(reading, batch)
    finally:
        ticking.cancel()
        on_progress(meter.snapshot())


async def _tick(meter: Meter, on_progress: OnProgress) -> None:
    while True:
        on_progress(meter.snapshot())
        await asyncio.sleep(_TICK_S)


async def _looked_at(reading: _Reading, batch: Sequence[HashedFile]) -> None:
    """Unpack, inspect, and make room again where it is short."""
    parts = layout(reading.report.files)
    restored = [one.path for one in batch]
    for one in batch:
        if one.path == parts.tar and reading.seen[one.path].sha256 == one.sha256:
            reading.members = await reading.consumer.unpack(one, parts.tarred)
            restored += [f"{DATA}/{member.path}" for member in parts.tarred]
    if reading.inspect is not None:
        await reading.inspect([path for path in map(_own, restored) if _agrees(reading, path)])
    if reading.in_turns:
        await reading.consumer.drop(restored)


def _own(path: str) -> str:
    return path.removeprefix(f"{DATA}/")


def _agrees(reading: _Reading, path: str) -> bool:
    """Whether a file of the run was restored as it was hashed on the box."""
    seen = reading.members.get(path) or reading.seen.get(f"{DATA}/{path}")
    return seen is not None and seen.sha256 is not None and seen.sha256 == reading.digests.get(path)


def _judged(reading: _Reading, listed: Listed) -> tuple[list[Refusal], list[Gap]]:
    problems: list[Refusal] = []
    expected = {one.path: one for one in reading.report.bag}
    missing = [path for path in expected if path not in listed.files]
    problems += [refusal("readback-inexact", "It is missing in the copy.", path) for path in missing]
    extra = [path for path in (*listed.files, *listed.others) if path not in expected]
    problems += [refusal("readback-inexact", "Nobody put it into the copy.", path) for path in extra]
    members = {one.path: one for one in layout(reading.report.files).tarred}
    for wanted, seen in ((expected, reading.seen), (members, reading.members)):
        problems += _wrong(wanted, seen)
    gaps: list[Gap] = []
    if not _cold(reading):
        gaps.append(gap("cache-not-proven-cold", f"{reading.store.title} may have been read from memory."))
    if one_device(reading.store.place, reading.consumer.place):
        gaps.append(gap("same-device", f"{reading.store.title} and {reading.consumer.place.uri}."))
    return problems, gaps


def _wrong(wanted: Mapping[str, HashedFile], seen: Mapping[str, Seen]) -> list[Refusal]:
    found: list[Refusal] = []
    for path, what in seen.items():
        one = wanted.get(path)
        if one is None:
            found.append(refusal("readback-inexact", "Nobody put it into the tar of the copy.", path))
        elif what.sha256 is None and not _differs(what):
            found.append(refusal("readback-unreadable", what.reason, path))
        elif what.sha256 != one.sha256 or what.size != one.size:
            detail = (
                f"{what.size} bytes instead of {one.size}"
                if what.sha256 and what.size != one.size
                else "other bytes"
            )
            found.append(refusal("readback-inexact", f"It has {detail}.", path))
    return found


def _differs(what: Seen) -> bool:
    """Whether the transfer refused a file because it is not what it must be, rather than unreadable."""
    return what.reason in ("hash-differs", "source-changed")


def _cold(reading: _Reading) -> bool:
    return bool(reading.seen) and all(seen.cold for seen in reading.seen.values())


def _report(
    reading: _Reading, listed: Listed, problems: list[Refusal], gaps: list[Gap], at: str
) -> ReadbackReport:
    report = reading.report
    by_path = {one.path: one for one in report.files}
    seen = {
        path.removeprefix(f"{DATA}/"): what
        for path, what in reading.seen.items()
        if path.startswith(f"{DATA}/")
    }
    seen = {path: what for path, what in {**seen, **reading.members}.items() if path in by_path}
    different = [path for path, what in seen.items() if what.sha256 != by_path[path].sha256]
    expected = {one.path for one in report.bag}
    was_read = bool(reading.seen)
    shared = one_device(reading.store.place, reading.consumer.place)
    return ReadbackReport(
        copy_report=report.digest,
        consumer=reading.consumer.place,
        independence="same-device" if shared else "independent",
        cold=_cold(reading),
        files=tuple(
            HashedFile(path=path, size=what.size, sha256=what.sha256, tool="reader")
            for path in by_path
            if (what := seen.get(path)) is not None and what.sha256 is not None
        ),
        missing=tuple(path for path in by_path if path not in seen) if was_read else (),
        extra=tuple(path for path in (*listed.files, *listed.others) if path not in expected),
        different=tuple(different),
        refusals=tuple(problems),
        gaps=tuple(gaps),
        finished_at=at,
    )
