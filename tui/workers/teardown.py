"""The teardown of one box: walks the chain until the operator is needed, and takes what he says.

It has no state of its own that matters: records, decisions and journal on disk are where it goes on,
in this process or the next. What it shows is made from them. Work goes on when nobody looks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from tui.custody.approval import approve, new_nonce, phrase
from tui.custody.by_hand import Word
from tui.custody.decisions import record, record_reason
from tui.custody.errand import Errand, errand
from tui.custody.journal import ENDS
from tui.custody.leftovers import Decision
from tui.custody.moments import moment, seconds
from tui.custody.proof import Chain
from tui.custody.provider import Platform, platform_of
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.custody import Approval, CopyReport, Proof, Verb
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.teardown import PhraseAsked, StepId, StepView, TeardownView
from tui.model.text import SafeText, safe
from tui.workers import teardown_end_words as end_words
from tui.workers import teardown_words as words
from tui.workers.box import Dial
from tui.workers.end import End, approved, chain_end, copy_against, prove, stop_end
from tui.workers.lock import WatchLock, alone
from tui.workers.patience import Patience
from tui.workers.reader_choice import choose_reader, reader_of, reader_words, readers
from tui.workers.teardown_ahead import dates, waiting
from tui.workers.teardown_board import Board
from tui.workers.teardown_closing import Closing
from tui.workers.teardown_facts import facts
from tui.workers.teardown_walk import STEPS, Walk, choose, chosen, in_public, proposed
from tui.workers.teardown_work import Work


class Teardown:
    """One box and one verb.

    Args:
        run: whose files must survive; None where the box has none.
        clock: seconds since the epoch.
        changed: called when something was begun or settled.
    """

    def __init__(
        self,
        store: Store,
        dial: Dial,
        where: Paths,
        instance: Instance,
        run: str | None,
        verb: Verb,
        *,
        clock: Callable[[], float] = time.time,
        patience: Patience = Patience(),  # noqa: B008 - frozen
        changed: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._store, self._dial, self._where = store, dial, where
        self._instance, self._run = instance, run
        self._verb: Verb = verb
        self._clock, self._patience = clock, patience
        self._sure: set[StepId] = set()  # done, or found to hold, in this process
        self._end: End | None = None
        self._walker: Walk | None = None
        self._chain: Chain | None = None
        self._proof: Proof | None = None
        self._nonce = ""
        self._lock: WatchLock | None = None
        self._board = Board(store, TeardownView(instance.name, run, verb))
        self._work = Work(self._board, store)
        self._closing = Closing(self._board, store, self._patience, changed)

    # --- the operator -------------------------------------------------------------------------------------

    @property
    def verb(self) -> Verb:
        return self._verb

    @property
    def view(self) -> TeardownView:
        """What is shown of it."""
        return self._board.view

    @property
    def busy(self) -> bool:
        """Whether something runs now."""
        return self._work.busy

    @property
    def watched(self) -> bool:
        """Whether somebody looks on; else a notice says where it stands when it rests."""
        return self._work.watched

    @watched.setter
    def watched(self, looks_on: bool) -> None:
        self._work.watched = looks_on

    async def open(self) -> None:
        """Look at everything anew and go on; where it is at work already, only look on."""
        self.watched = True
        if not self.busy:
            self._sure.clear()
            self._end = None
            self._work.start(self._walk)

    async def halt(self) -> None:
        """End what runs now. What it has done is kept."""
        if await self._work.cancel():
            self._board.step(
                self.view.current, state="failed", progress=None, brief=SafeText("halted by you")
            )
            await self._board.show(working=False)

    async def close(self) -> None:
        """End everything and give the run free."""
        await self._work.cancel()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def decide(self, groups: Sequence[str], decision: Decision) -> None:
        """Record decisions about leftovers; when none is open any more the roster is made with them."""
        task = await self._free()
        if decision.word == "keep" and any(group.startswith("unlisted:") for group in groups):
            raise Failure("What nobody could list can't be kept; make it readable, or give it up.")
        record(task.folder, dict.fromkeys(groups, decision), moment(self._clock()))
        self._from("digest")
        self._sure.discard("roster")
        assert self._walker is not None
        leftovers = await self._walker.leftovers()
        open_ = sum(not one.decision for one in leftovers)
        self._board.step("roster", brief=safe(f"{open_} of {len(leftovers)} groups to decide"))
        await self._board.show(leftovers=leftovers, current="roster", question="leftovers")
        if not open_:
            self._work.start(self._walk)

    async def choose(self, text: str) -> None:
        """Copy to this place, and remember it; an empty text means the one that was proposed."""
        task = await self._free()
        assert self._walker is not None
        before = chosen(task)
        meant = await asyncio.to_thread(choose, task, text or proposed(task))
        if meant != before:
            self._walker.forced.add("copy")
        self._from("copy")
        await self._board.show(destination=in_public(meant), question=None)
        self._work.start(self._walk)

    async def choose_reader(self, text: str) -> None:
        """Read the copy back there, and remember it; what was read elsewhere before is not proof of it."""
        task = await self._free()
        await asyncio.to_thread(choose_reader, task, text)
        self._from("readback")
        await self._show_reader(task)
        self._work.start(self._walk)

    async def _show_reader(self, task: Errand) -> None:
        on = await asyncio.to_thread(reader_of, task)
        may = await asyncio.to_thread(readers, task)
        copied = await asyncio.to_thread(task.records.newest, CopyReport)
        runs, expected = reader_words(on, copied)
        step = self.view.step("readback")
        if step is not None and step.state == "waiting":
            self._board.step("readback", runs=runs, expected=expected)
        await self._board.show(reader=safe(on, 60), readers=may)

    async def go_on_over(self, step: str, reason: str) -> None:
        """Record why the operator goes on over what a step warns of; for a stop, over a box that is busy."""
        shown = next((one for one in self.view.steps if one.id == step), None)
        if not reason.strip() or shown is None:
            raise Failure("A reason is needed.", means="Nothing was changed.")
        if self.view.question == "anyway" and self._end is not None and not self.busy:
            self._end = replace(self._end, order=replace(self._end.order, anyway=reason))
            self._work.start(self._carry_out)
            return
        task = await self._free()
        codes = [one.code for one in shown.gaps]
        if not codes:
            raise Failure(
                "That step warns of nothing.",
                means="What it refuses has to be cleared; a reason does not do.",
            )
        record_reason(task.folder, codes, reason, moment(self._clock()))
        self._board.step(shown.id, gaps=tuple(replace(one, reason=safe(reason, 300)) for one in shown.gaps))
        if self._proof is not None:  # it tells the reasons, too, so it is another one now
            self._from("approval")
            self._work.start(self._walk)
        await self._board.show()

    async def redo(self, step: str) -> None:
        """Make a step again, and so those after it. What refused at the end begins at the roster."""
        if self.view.ended in ENDS:
            raise Failure(f"{self._instance.name}: that is settled.", means="Nothing is left to do.")
        if self._end is None or self._end.standing is not None or self._walker is None:
            await self.open()
            return
        await self._free()
        chosen = next((one for one in STEPS if one == step), None)
        if chosen is not None:
            self._walker.forced.add(chosen)
        self._from(chosen or "roster")
        self._work.start(self._walk)

    async def approve(self, typed: str, proof: str) -> None:
        """Take what was typed for the phrase; it must be for the proof that was on the screen."""
        asked, end = self.view.phrase, self._end
        if asked is None or end is None or self.busy:
            raise Failure("No phrase is asked for now.", means="Nothing was done.")
        if asked.proof != proof:
            await self._board.show(answer=SafeText("That was for an earlier proof. Nothing was done."))
        elif self._proof is None:
            if typed == asked.text:
                self._work.start(self._carry_out)
            else:
                await self._board.show(answer=SafeText("That is not what is asked for. Nothing was done."))
        else:
            await self._approve(end, self._proof, typed)

    async def _approve(self, end: End, proof: Proof, typed: str) -> None:
        task = await self._free()
        given = approve(proof, typed, self._clock(), nonce=self._nonce)
        if isinstance(given, Approval):
            assert self._chain is not None
            self._end = await asyncio.to_thread(approved, end, task, self._chain, proof, given)
            self._work.start(self._carry_out)
            return
        await self._board.show(answer=safe(f"{given.detail} Nothing was done. {given.clears}"))
        if given.code == "proof-expired":
            self._from("approval")
            self._work.start(self._walk)

    async def say(self, word: Word) -> None:
        """Record what the operator says the console shows."""
        end = self._end
        if end is None or self.busy or self.view.question != "word":
            raise Failure("Your word is not asked for now.", means="Nothing was recorded.")
        self._work.start(lambda: self._closing.attest(end, word))

    async def _free(self) -> Errand:
        """The errand, where nothing runs that would be disturbed."""
        if (self.view.working and self.busy) or not await self._work.rest():
            raise Failure(
                f"{self._instance.name} is at work.",
                means="Nothing was changed.",
                do="Wait, or halt it first.",
            )
        if self._walker is None:
            raise Failure("That does not belong to a stop which loses nothing.", means="Nothing was changed.")
        return self._walker.task

    # --- the walk -----------------------------------------------------------------------------------------

    async def _walk(self) -> None:
        """From where it stands to the proof, or to what needs the operator."""
        end, walker = await self._opened()
        if end.standing is not None:
            await self._carry_out()
            return
        if walker is None:
            await self._ask_stop(end)
            return
        for step in STEPS:
            if step not in self._sure and not await self._take(walker, step):
                return
        await self._prove(end, walker)

    async def _opened(self) -> tuple[End, Walk | None]:
        if self._end is None:
            self._claim()
            platform = await asyncio.to_thread(platform_of, self._instance, self._verb, self._where)
            task = await asyncio.to_thread(self._errand, platform)
            await self._board.show(**await asyncio.to_thread(facts, platform, self._where, self._clock()))
            if task is None:
                self._walker = None
                self._end = await asyncio.to_thread(stop_end, self._where, platform, self._dial)
            else:
                self._walker = Walk(task, self._dial, self._verb, self._board.progressed)
                self._end = await asyncio.to_thread(chain_end, task, platform, self._dial)
                await self._board.show(destination=in_public(proposed(task)))
            self._end = replace(self._end, pace=self._patience.pace, clock=self._clock)
            await self._board.show(steps=await self._ahead())
            if task is not None:
                await self._show_reader(task)
        return self._end, self._walker

    def _claim(self) -> None:
        """Only one rgt of this computer walks a box's chain. Raises Failure."""
        if self._lock is None:
            name = self._instance.name
            self._lock = alone(
                self._where.locks / f"teardown-{name}.lock",
                lambda holder: f"{holder} is at the end of {name}.",
                about=f"another rgt is at the end of {name}",
                means="Nothing was done here.",
                do="Go on there, or close it.",
                code="end-held",
            )

    def _errand(self, platform: Platform) -> Errand | None:
        """The run whose files must survive. Raises Failure where one is needed and there is none."""
        if not platform.loses:
            return None
        return errand(self._run or self._instance.name, self._where)

    async def _ahead(self) -> tuple[StepView, ...]:
        """The steps as they stand before anything was looked at."""
        if self._walker is None:
            return (waiting("approval"), waiting("outcome"))
        held = await self._walker.stands()
        dated = dates(held)
        steps: tuple[StepId, ...] = (*STEPS, "approval", "outcome")
        return tuple(waiting(step, dated.get(step, "")) for step in steps)

    async def _take(self, walker: Walk, step: StepId) -> bool:
        """One step; whether it passes and the next may follow."""
        await self._board.show(current=step)
        self._board.step(step, state="running", brief=SafeText(""), refusals=(), observed=())
        made = await self._patience.over(lambda: walker.take(step), self._lost)
        for one in made:
            self._board.step_is(one)
        if step == "roster":
            await self._board.show(leftovers=await walker.leftovers())
        if all(one.state == "done" for one in made):
            self._sure |= {one.id for one in made}
            await self._board.show()
            return True
        first = next(one for one in made if one.state != "done")
        question = {"roster": "leftovers", "copy": "destination"}.get(first.id)
        asks = first.state == "needs-you" or (first.id == "roster" and not _decided(self.view))
        await self._board.show(current=first.id, question=question if asks else None)
        return False

    async def _lost(self, why: SafeText) -> None:
        self._board.step(self.view.current, progress=None, brief=why)
        await self._board.show()

    async def _prove(self, end: End, walker: Walk) -> None:
        """Make the proof and ask for its phrase."""
        await self._board.show(current="approval")
        chain = (await walker.stands()).chain
        if chain is None:
            raise Failure("The chain on disk changed meanwhile.", do="Begin again at the roster.")
        answer = await asyncio.to_thread(prove, end, chain, walker.task.folder)
        if isinstance(answer, Proof):
            answer = await copy_against(end, walker.task, chain) or answer
        if not isinstance(answer, Proof):
            found = words.refusals(answer)
            brief = safe(f"{found[0].code}: {found[0].detail}", 300)
            self._board.step("approval", state="refused", brief=brief, refusals=found)
            return
        self._chain, self._proof, self._nonce = chain, answer, new_nonce()
        self._board.step_is(end_words.approval_step(answer, walker.said()))
        await self._board.show(
            question="phrase",
            summary=end_words.summary_rows(answer, chain.copied),
            phrase=PhraseAsked(safe(phrase(answer)), answer.digest, seconds(answer.expires_at)),
        )

    async def _ask_stop(self, end: End) -> None:
        """A stop that loses nothing asks for one line, and for no proof."""
        self._proof = None
        self._board.step(
            "approval",
            state="needs-you",
            brief=SafeText("type the line below"),
            expected=SafeText("the line, typed"),
        )
        await self._board.show(
            current="approval",
            question="phrase",
            summary=end_words.stop_rows(end.order.victim, end.platform, self._clock()),
            phrase=PhraseAsked(safe(f"stop {self._instance.name}"), ""),
        )

    async def _carry_out(self) -> None:
        assert self._end is not None
        await self._closing.carry_out(self._end)

    def _from(self, step: StepId) -> None:
        """Nothing from this step on is sure any more."""
        order: tuple[StepId, ...] = (*STEPS, "approval", "outcome")
        later = order[order.index(step) :]
        self._sure.difference_update(later)
        self._proof = None
        self._board.again_from(later)


def _decided(view: TeardownView) -> bool:
    return all(one.decision for one in view.leftovers)
