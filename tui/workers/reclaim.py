"""A reclaim carried out: consent compared, each removal journaled, the mount looked at again, one receipt.

A hold does not stand against what comes back by itself: it guards what cannot be had again, and a disk that
runs full would end the very run that is held. What is gone for ever needs the box not to be held.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from tui.box.local import on_this_computer
from tui.box.reclaim import remove, still_there
from tui.box.survey import room_of, room_on, survey
from tui.box.transport import LinkLost, SessionsExhausted, Transport
from tui.custody import hold
from tui.custody.approval import difference
from tui.custody.identity import identity
from tui.custody.journal import Entry, Journal
from tui.custody.machine import known_victim
from tui.custody.moments import moment
from tui.custody.receipts import Ledger
from tui.custody.statement import Receipt, Result, Subject, about
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import ReclaimStorage
from tui.model.custody import Victim
from tui.model.event import LadderMade, ReclaimChanged
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.reclaim import FRESH_S, ReclaimPlan, ReclaimView, Removal, Room, State, plan_of
from tui.model.storage import Reclaimable
from tui.model.text import SafeText, safe
from tui.triage.ladder import Kept, Survey, inside, needed
from tui.workers.box import Dial
from tui.workers.line import line_of
from tui.workers.triage import kept_of, worked_out

GRACE_S = 1.0
CUT_OFF = "it was cut off before it was over; what became of the rest was not looked at"

Line = Callable[[], Awaitable[Transport]]
Show = Callable[[ReclaimView], Awaitable[None]]
Surveyed = Callable[[Survey], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Patience:
    """How a box whose link was cut is reached again: so many times, with so many seconds in between."""

    tries: int = 6
    pause_s: float = 5.0


class Reclaiming:
    """One plan on one box.

    Args:
        line: gives a connection, a new one where the last is dead; raises ConnectFailure.
        kept: what the watched runs need now; the plan may be older.
        show: hears how it stands after every step.
        surveyed: gets the survey that is taken afterwards.
    """

    def __init__(
        self,
        plan: ReclaimPlan,
        instance: Instance,
        where: Paths,
        line: Line,
        *,
        kept: Kept,
        show: Show,
        surveyed: Surveyed,
        clock: Callable[[], float] = time.time,
        patience: Patience = Patience(),
    ) -> None:
        self._plan, self._instance, self._line = plan, instance, line
        self._kept, self._show, self._surveyed = kept, show, surveyed
        self._clock, self._patience = clock, patience
        self._ledger = Ledger(where.receipts)
        self._victim = known_victim(instance, where)
        self._path = journal_path(where, self._victim)
        self.view = ReclaimView(plan, tuple(Removal(one.path, "waits") for one in plan.entries))

    async def carry_out(self, typed: str) -> ReclaimView:
        """Remove what the plan lists, if `typed` is its phrase.

        Raises:
            Failure: the box cannot be reached, another rgt is at it, or journal or ledger cannot be written.
        """
        if why := self._refused(typed):
            await self._now(said=safe(f"Nothing was done: {why}"))
            return self.view
        with Journal.open(self._path, self._clock, "reclaims room on this machine") as journal:
            self._close_last(journal)
            transport = await self._line()
            await self._only_what_is_the_boxs(transport)
            await self._now(working=True, before=await room_on(transport, self._plan.mount))
            await self._act(journal)
        return self.view

    def _refused(self, typed: str) -> str:
        """Why nothing may be done; empty where everything allows it."""
        plan = self._plan
        if not hmac.compare_digest(typed.encode("utf-8", "surrogatepass"), plan.phrase.encode()):
            return f"what was typed is not the phrase. {difference(typed, plan.phrase)}"
        if not 0 <= self._clock() - plan.at <= FRESH_S:
            old = f"the survey is older than {FRESH_S / 60:.0f} minutes"
            return f"{old}. Survey again and look at the new plan."
        if plan.level == 3:
            against = hold.against(self._ledger.report(), self._victim)
            return " ".join(f"{one.detail} What comes back by itself may go." for one in against)
        return ""

    async def _only_what_is_the_boxs(self, transport: Transport) -> None:
        """A box that is really this computer owns its mounts here, and nothing else of it."""
        box = self._instance
        if (box.endpoint is None and box.via is None) or not await on_this_computer(transport):
            return
        for one in self._plan.entries:
            if not any(inside(one.path, mount) for mount in box.mounts):
                raise Failure(
                    f"{box.name} runs on this computer, and {one.path} lies outside its mounts.",
                    means="Nothing was done.",
                    do=f"Name them: rgt edit {box.name} mounts=PATH; or reclaim here: rgt reclaim local.",
                    code="not-the-boxs",
                )

    # -- the act -------------------------------------------------------------------------------------------

    async def _act(self, journal: Journal) -> None:
        plan = self._plan
        listed = [[str(one.path), one.identity] for one in plan.entries]
        journal.add("approval", {"plan": plan.digest, "phrase": str(plan.phrase), "entries": listed})
        settled = False
        try:
            for place, one in enumerate(plan.entries):
                removal = await self._one(journal, place, one)
                if removal.state == "unknown":
                    why = SafeText("not begun: it was not known any more how the one before ended")
                    for later in range(place + 1, len(plan.entries)):
                        self._set(later, "skipped", why)
                    break
            await self._look_again(journal)
            settled = True
        finally:
            if not settled:
                self._set_open("unknown", SafeText(CUT_OFF))
            self._settle(journal, None if settled else CUT_OFF)
        await self._now()

    async def _one(self, journal: Journal, place: int, one: Reclaimable) -> Removal:
        """Remove one entry, or say why not. Both its beginning and its end are durable."""
        if why := needed(one.path, self._kept):
            return self._set(place, "skipped", safe(why))
        journal.add("sending", {"path": str(one.path), "identity": one.identity})
        self._set(place, "at work")
        await self._now(said=safe(f"removing {place + 1} of {len(self._plan.entries)}"))
        try:
            answer = await remove(await self._line(), one.path, one.identity)
            removal = answer.removal
            if answer.unread and removal.state == "removed":
                note = "what some processes have open could not be read"
                removal = replace(removal, why=safe(note))
        except SessionsExhausted as full:
            removal = Removal(one.path, "skipped", full.line)
        except LinkLost as lost:
            removal = Removal(one.path, "unknown", safe(f"the link was cut: {lost.what}"))
        except TimeoutError:
            removal = Removal(one.path, "unknown", SafeText("it was not through in time, and was ended"))
        journal.add("answered", {"path": str(one.path), "state": removal.state, "why": str(removal.why)})
        return self._set(place, removal.state, removal.why)

    async def _look_again(self, journal: Journal) -> None:
        """A fresh survey says what came of it; the box may have to be reached anew for that."""
        unknown = tuple(str(one.path) for one in self.view.removals if one.state == "unknown")
        why = ""
        for attempt in range(self._patience.tries):
            if attempt:
                await asyncio.sleep(self._patience.pause_s)
            await self._now(said=SafeText("looking again what is there"))
            try:
                transport = await self._line()
                there = await still_there(transport, unknown) if unknown else {}
                found = await survey(transport, self._plan.mount)
            except (Failure, TimeoutError) as failure:
                why = str(failure.line) if isinstance(failure, Failure) else "no answer in time"
                continue
            for place, one in enumerate(self.view.removals):
                if one.state == "unknown" and one.path in there:
                    self._set(place, *_seen_again(there[one.path], one.why))
            self.view = replace(self.view, after=room_of(found))
            journal.add("looked", {"at": moment(self._clock()), **_figures(self.view)})
            await self._surveyed(found)
            return
        journal.add("looked", {"at": moment(self._clock()), "failed": str(safe(why, 300))})

    def _settle(self, journal: Journal, broken: str | None) -> None:
        """Outcome and receipt. Nothing here waits, so that it happens also on the way out.

        Args:
            broken: why it did not come to its end.
        """
        view = self.view
        rows = [[str(one.path), one.state, str(one.why)] for one in view.removals]
        journal.add("outcome", {"plan": view.plan.digest, "entries": rows, **_figures(view)})
        number = self._receipt(journal, view.plan.digest, _result(view), broken or _words(view))
        said = safe(broken or _counts(view))
        self.view = replace(view, working=False, over=True, receipt=number, said=said)

    def _close_last(self, journal: Journal) -> None:
        """What a crash left open gets its outcome and its receipt now: nobody knows how it ended."""
        begun = left_open(journal.entries)
        if begun is None:
            return
        digest = str(begun.data.get("plan", ""))
        journal.add("outcome", {"plan": digest, "detail": CUT_OFF})
        self._receipt(journal, digest, "unproven", CUT_OFF)

    def _receipt(self, journal: Journal, plan: str, result: Result, words: str) -> int:
        read = self._ledger.append(receipt(self._victim, plan, result, words, self._clock()))
        journal.add("receipt", {"number": read.number, "digest": read.digest})
        return read.number

    # -- the picture ---------------------------------------------------------------------------------------

    def _set(self, place: int, state: State, why: SafeText = SafeText("")) -> Removal:  # noqa: B008 - text
        removal = Removal(self._plan.entries[place].path, state, why)
        rows = self.view.removals
        self.view = replace(self.view, removals=(*rows[:place], removal, *rows[place + 1 :]))
        return removal

    def _set_open(self, state: State, why: SafeText) -> None:
        for place, one in enumerate(self.view.removals):
            if one.state == "at work":
                self._set(place, state, why)
            elif one.state == "waits":
                self._set(place, "skipped", SafeText("not begun"))

    async def _now(
        self, *, said: SafeText | None = None, working: bool | None = None, before: Room | None = None
    ) -> None:
        view = self.view
        self.view = replace(
            view,
            said=view.said if said is None else said,
            working=view.working if working is None else working,
            before=view.before if before is None else before,
        )
        await self._show(self.view)


def journal_path(where: Paths, victim: Victim) -> Path:
    """The journal of what was reclaimed on this machine, and not on the next one of its name."""
    return where.state / "reclaim" / f"{victim.name}-{identity(victim)}.jsonl"


def left_open(entries: Iterable[Entry]) -> Entry | None:
    """The approval that was begun to be acted on and has no outcome; None where all is settled. Pure."""
    begun: Entry | None = None
    for entry in entries:
        if entry.step == "approval":
            begun = entry
        elif entry.step == "outcome":
            begun = None
    return begun


def receipt(victim: Victim, plan: str, result: Result, detail: str, at: float) -> Receipt:
    """The one receipt of a reclaim; `plan` is the digest of its list, in hex."""
    subjects = (about(victim, victim.name), Subject(name="list", sha256=f"sha256:{plan}"))
    return Receipt(
        act="reclaim", result=result, at=moment(at), subjects=subjects, victim=victim, detail=detail
    )


def _seen_again(there: bool, why: SafeText) -> tuple[State, SafeText]:
    if there:
        still = f"{why}; looked again: it is still there, perhaps not whole, and the box may still be at it"
        return "failed", safe(still, 400)
    return "removed", safe(f"{why}; looked again: it is gone", 400)


def _result(view: ReclaimView) -> Result:
    if view.count("unknown") or view.after is None:
        return "unproven"
    return "passed" if view.count("removed") == len(view.removals) else "recorded"


def _figures(view: ReclaimView) -> dict[str, int | None]:
    before, after = view.before or Room(), view.after or Room()
    return {
        "bytes_before": before.used_bytes,
        "bytes_after": after.used_bytes,
        "inodes_before": before.used_inodes,
        "inodes_after": after.used_inodes,
    }


def _counts(view: ReclaimView) -> str:
    states: tuple[State, ...] = ("removed", "skipped", "failed", "unknown")
    counts = ", ".join(f"{n} {state}" for state in states if (n := view.count(state)))
    return f"{counts} of {len(view.removals)} on {view.plan.mount}"


def _words(view: ReclaimView) -> str:
    """What came of it: each count, what was observed, and the first reasons."""
    size, inodes = view.gained
    if view.after is None:
        seen = "the box could not be looked at again, so what came free is not known"
    else:
        free = [f"{size:,} bytes"] if size is not None else []
        free += [f"{inodes:,} inodes"] if inodes is not None else []
        seen = f"observed: {' and '.join(free)} came free" if free else "the file system tells no figures"
    bad = [one for one in view.removals if one.state in ("failed", "unknown")]
    whys = [f"{one.path}: {one.why}" for one in bad if one.why]
    return "; ".join([_counts(view), seen, *whys[:3]])


# -- for the screens ---------------------------------------------------------------------------------------


class Reclaims:
    """Carries out what the screens ask for; at most one a box at a time.

    Args:
        dial: opens a connection of a reclaim's own; the one that watches may be old.
    """

    def __init__(self, store: Store, dial: Dial, where: Paths, patience: Patience = Patience()) -> None:
        self._store, self._dial, self._where, self._patience = store, dial, where, patience
        self._open: dict[str, asyncio.Task[None]] = {}

    async def handle(self, command: ReclaimStorage) -> None:
        """Begin it. Raises Failure: one is at work there."""
        if command.box in self._open:
            raise Failure(f"A reclaim on {command.box} is at work.", means="Nothing further was begun.")
        task = asyncio.create_task(self._errand(command))
        self._open[command.box] = task
        task.add_done_callback(lambda _: self._open.pop(command.box, None))

    async def _errand(self, command: ReclaimStorage) -> None:
        plan = command.plan
        view = ReclaimView(plan, tuple(Removal(one.path, "waits") for one in plan.entries))
        try:
            await self._carry_out(command)
            return
        except Failure as failure:
            said = failure.line
        except TimeoutError:
            said = SafeText("The box gave no answer in time.")
        except Exception as fault:  # noqa: BLE001 - a task of its own: nobody else would ever hear of it
            said = safe(f"It failed ({type(fault).__name__}: {fault}).", 300)
        box = self._store.snapshot.box(plan.box)
        if box is not None and box.reclaim is not None and box.reclaim.plan == plan and box.reclaim.working:
            view = box.reclaim
        await self._store.put(ReclaimChanged(replace(view, working=False, said=said)))

    async def _carry_out(self, command: ReclaimStorage) -> None:
        plan = command.plan
        box = self._store.snapshot.box(plan.box)
        if box is None or box.ladder is None:
            raise Failure(f"{plan.box} was not surveyed.", means="Nothing was done.")
        if plan_of(box.ladder, {str(one.path) for one in plan.entries}).digest != plan.digest:
            raise Failure(
                "A new survey came in between.", means="Nothing was done.", do="Look at the new plan."
            )

        async def show(view: ReclaimView) -> None:
            await self._store.put(ReclaimChanged(view))

        async def surveyed(found: Survey) -> None:
            snapshot = self._store.snapshot
            seen, runs = snapshot.box(plan.box) or box, snapshot.runs_on(plan.box)
            made = worked_out(found, seen, runs, plan.mount, self._store.clock())
            await self._store.put(LadderMade(made))

        async with line_of(box.instance, self._dial) as line:
            act = Reclaiming(
                plan, box.instance, self._where, line,
                kept=kept_of(self._store.snapshot.runs_on(plan.box)), show=show, surveyed=surveyed,
                clock=self._store.clock, patience=self._patience,
            )  # fmt: skip
            await act.carry_out(command.typed)

    async def close(self) -> None:
        """End what goes on; each writes down how far it came."""
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_S)
