"""The steps of a teardown up to its proof: each is done, or found to hold still from an earlier time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tui.custody.decisions import decided, reasons
from tui.custody.errand import Errand
from tui.custody.machine import known_victim
from tui.custody.readback import Need
from tui.custody.records import write_file
from tui.custody.standing import Stands, same_digests, same_roster, stands, untouched
from tui.custody.statement import public_uri
from tui.custody.stores.place import destination
from tui.durable import read_regular
from tui.model.custody import DigestReport, LoadReport, MetricReport, Place, ReadbackReport, Roster, Verb
from tui.model.failure import Failure
from tui.model.teardown import LeftoverView, StepId, StepProgress, StepView
from tui.model.text import SafeText, safe
from tui.workers import teardown_words as words
from tui.workers.box import Dial
from tui.workers.judged_apart import judge_apart
from tui.workers.reader_choice import chosen_reader, read_by, reader_of
from tui.workers.steps import (
    JOURNAL,
    boxes_of,
    copy_run,
    hash_on_box,
    keep_roster,
    look_for_roster,
    read_run_back,
)
from tui.workers.teardown_ahead import waiting

DESTINATION = "destination"
"""In the custody folder of a run where its copy goes; beside those folders, with a dot, the newest of all."""

STEPS: tuple[StepId, ...] = ("roster", "digest", "copy", "readback", "load", "metrics")

Told = Callable[[StepId, StepProgress], None]


@dataclass(slots=True)
class Walk:
    """One run on its way to a proof.

    Attributes:
        told: hears how far long work is.
        forced: steps that are made again although earlier evidence may hold.
    """

    task: Errand
    dial: Dial
    verb: Verb
    told: Told
    forced: set[StepId] = field(default_factory=set)

    async def stands(self) -> Stands:
        """What holds on disk now. Raises Failure: a record is damaged."""
        victim = known_victim(self.task.instance, self.task.where)
        return await asyncio.to_thread(stands, self.task.records, victim, self.verb)

    def said(self) -> dict[str, str]:
        """The operator's reasons for going on over gaps. Raises Failure."""
        return reasons(self.task.folder)

    async def take(self, step: StepId) -> tuple[StepView, ...]:
        """Do a step, or find that it holds. Loading and metrics are one piece of work.

        Raises:
            Failure: it could not be done. What it refuses is in the view instead.
            TimeoutError: the box did not answer in time.
        """
        work: dict[StepId, Callable[[], Awaitable[tuple[StepView, ...]]]] = {
            "roster": self._roster,
            "digest": self._digest,
            "copy": self._copy,
            "readback": self._readback,
            "load": self._judge,
            "metrics": self._judge,
        }
        made = await work[step]()
        self.forced -= {one.id for one in made}
        return made

    async def _roster(self) -> tuple[StepView, ...]:
        task, records = self.task, self.task.records
        newest = await asyncio.to_thread(records.newest, Roster)
        now = await look_for_roster(task, self.dial, self.verb, decided(task.folder, newest))
        stored = None if "roster" in self.forced else (await self.stands()).roster
        if stored is not None and await asyncio.to_thread(same_roster, stored, now):
            return await _told(words.roster_step, stored, self.said(), reused=True)
        await keep_roster(task, now)
        return await _told(words.roster_step, now, self.said(), reused=False)

    async def leftovers(self) -> tuple[LeftoverView, ...]:
        """The groups of the newest roster, with what was decided since. Raises Failure."""
        return await asyncio.to_thread(self._leftovers)

    def _leftovers(self) -> tuple[LeftoverView, ...]:
        roster = self.task.records.newest(Roster)
        if roster is None:
            return ()
        known = decided(self.task.folder, roster)
        return (*words.unlisted(roster, known), *words.leftovers(roster, known))

    async def _digest(self) -> tuple[StepView, ...]:
        held = await self.stands()
        roster, stored = held.roster, held.digests
        assert roster is not None
        if "digest" in self.forced:
            with contextlib.suppress(FileNotFoundError):
                (self.task.folder / JOURNAL).unlink()
        elif stored is not None:
            now = await self._hashed(store=False)
            if await asyncio.to_thread(same_digests, stored, now):
                return await _told(words.digest_step, roster, stored, reused=True)
        return await _told(words.digest_step, roster, await self._hashed(store=True), reused=False)

    async def _hashed(self, *, store: bool) -> DigestReport:
        return await hash_on_box(
            self.task, self.dial, lambda at: self.told("digest", words.hashing(at)), store=store
        )

    async def _copy(self) -> tuple[StepView, ...]:
        held = await self.stands()
        assert held.roster is not None
        if held.copied is not None and "copy" not in self.forced:
            return await _told(words.copy_step, held.roster, held.copied, reused=True)
        to = chosen(self.task)
        if to is None:
            return (
                replace(
                    waiting("copy"),
                    state="needs-you",
                    brief=SafeText("where to? a folder here, BOX:FOLDER, or rclone:REMOTE:FOLDER"),
                ),
            )
        report = await copy_run(self.task, self.dial, to, lambda at: self.told("copy", words.moving(at)))
        return await _told(words.copy_step, held.roster, report, reused=False)

    async def _readback(self) -> tuple[StepView, ...]:
        held = await self.stands()
        assert held.copied is not None
        stored = None if "readback" in self.forced else held.readback
        chosen_one = chosen_reader(self.task)
        if stored is not None and chosen_one is not None and read_by(stored) != chosen_one:
            stored = None
        if stored is not None and await asyncio.to_thread(untouched, held.copied):
            return await _told(words.readback_step, held.copied, stored, self.said(), reused=True)
        report = await self._read_back()
        return await _told(words.readback_step, held.copied, report, self.said(), reused=False)

    async def _read_back(self) -> ReadbackReport:
        def need(what: Need) -> None:
            self.told("readback", StepProgress(0, what.bytes, note=safe(what.line, 200)))

        return await read_run_back(
            self.task,
            self.dial,
            reader_of(self.task),
            need,
            lambda at: self.told("readback", words.moving(at)),
        )

    async def _judge(self) -> tuple[StepView, ...]:
        held = await self.stands()
        reused = bool(held.load and held.metrics) and not self.forced & {"load", "metrics"}
        if not reused:
            await self._judged()
        loaded = await asyncio.to_thread(self.task.records.need, LoadReport, "")
        measured = await asyncio.to_thread(self.task.records.need, MetricReport, "")
        said = self.said()
        return (
            words.load_step(loaded, said, reused=reused),
            words.metrics_step(measured, said, reused=reused),
        )

    async def _judged(self) -> None:
        began = time.monotonic()

        def told(phase: str, done: int, total: int) -> None:
            if phase == "metrics":
                self.told("metrics", StepProgress(0, 0, note=safe(f"recomputing, {done} s so far")))
                return
            passed = time.monotonic() - began
            rate = done / passed if done and passed > 0.5 else None
            self.told(
                "load", StepProgress(done, total, rate=rate, eta_s=(total - done) / rate if rate else None)
            )

        try:
            await judge_apart(self.task, self.dial, told)
        except Failure as failure:
            if failure.code != "readback-gone":
                raise
            await self._read_back()  # what was restored was swept away
            await judge_apart(self.task, self.dial, told)


async def _told(make: Callable[..., StepView], *made: object, reused: bool) -> tuple[StepView, ...]:
    """What is said of a record, made in a thread: it may name a hundred thousand files."""
    return (await asyncio.to_thread(make, *made, reused=reused),)


def chosen(task: Errand) -> str | None:
    """Where the operator said that this run's copy goes."""
    return _read(task.folder / DESTINATION)


def proposed(task: Errand) -> str:
    """Where it may go: as chosen for this run, else where the last copy of any run went."""
    return chosen(task) or _read(task.folder.parent / f".{DESTINATION}") or ""


def in_public(text: str) -> SafeText:
    """A place as it is shown: an rclone connection string may hold secrets."""
    rclone = text.startswith("rclone:")
    place = Place(kind="rclone" if rclone else "path", path=text.removeprefix("rclone:"))
    return safe(public_uri(place), 400)


def choose(task: Errand, text: str) -> str:
    """Remember where copies go; a path as it means the same wherever rgt is started next time.

    Raises:
        Failure: it is no such place, or can't be written down.
    """
    place = destination(text, boxes_of(task), Path.cwd())
    meant = place.path if place.kind == "path" else text
    for path in (task.folder / DESTINATION, task.folder.parent / f".{DESTINATION}"):
        write_file(path, meant.encode("utf-8", "surrogateescape"))
    return meant


def _read(path: Path) -> str | None:
    try:
        return read_regular(path, 4096).decode("utf-8", "surrogateescape") or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(f"{path} can't be read ({error.strerror}).", do="Give the place again.") from None
