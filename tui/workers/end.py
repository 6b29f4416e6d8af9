"""The end of one machine, from the stored chain to its outcome: shared by `down`, `stop` and the wizard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tui.custody import hold
from tui.custody.by_hand import Word, attest, begin
from tui.custody.copy_look import look_at_copy
from tui.custody.decisions import reasons, with_reasons
from tui.custody.errand import Errand
from tui.custody.journal import Journal, Standing, journal_path, peek, stand
from tui.custody.machine import known_victim
from tui.custody.order import Newer, Order
from tui.custody.outcome import Ending, Pace
from tui.custody.places import store_for
from tui.custody.proof import Chain, make_proof
from tui.custody.provider import Platform, control_of, money_of, pace_of
from tui.custody.receipts import Ledger
from tui.custody.records import Records
from tui.custody.statement import copy_evidence
from tui.custody.stored import missing, stored_chain, superseded
from tui.custody.stores.place import bag_of
from tui.fleet.paths import Paths
from tui.model.custody import Approval, Outcome, Proof, Refusal
from tui.model.failure import Failure
from tui.platforms.control import NoControlPlane
from tui.workers.box import Dial
from tui.workers.box_look import BoxLook
from tui.workers.steps import boxes_of

_STEPS = {
    "roster": "rgt roster {}",
    "digests": "rgt digest {}",
    "copied": "rgt pull {} --to DEST",
    "readback": "rgt readback {}",
    "load": "rgt verify {}",
    "metrics": "rgt verify {}",
}


CopyLook = Callable[[], Awaitable[tuple[Refusal, ...]]]


def _nothing_newer(_proof: Proof) -> tuple[Refusal, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class End:
    """One act on one machine, to be carried out or gone on with.

    Attributes:
        newer: says whether a step of a proof's chain was made again since.
        copy: looks whether the durable copy is what was read back; None where nothing is lost.
        pace: how patiently the truth is read; by default as befits the platform.
    """

    where: Paths
    platform: Platform
    order: Order
    look: BoxLook
    newer: Newer = _nothing_newer
    copy: CopyLook | None = None
    pace: Pace | None = None
    clock: Callable[[], float] = time.time

    @property
    def by_hand(self) -> NoControlPlane | None:
        """What to do by hand, where no control plane can be asked."""
        control = control_of(self.platform, self.where, self.look.dial)
        return control if isinstance(control, NoControlPlane) else None

    @property
    def standing(self) -> Standing | None:
        """Where it stands, if it was begun and is settled or waits to be: it goes on without a new proof.

        It takes no lock. Raises Failure: the journal is damaged.
        """
        path = journal_path(self.where, self.order.victim)
        if not path.exists():
            return None
        entries = peek(path)
        standing = stand(entries, self.order.verb)
        ended = stand(entries, "destroy").settled is not None
        return standing if ended or standing.sent is not None else None

    @property
    def waits_for_word(self) -> bool:
        """It was begun, nobody can be asked, and the operator has not said yet what the console shows."""
        standing = self.standing
        return self.by_hand is not None and standing is not None and standing.sent is not None

    async def carry_out(self, told: Callable[[str], None] = lambda line: None) -> Outcome:
        """Do it as far as it is safe, or go on where it was left.

        Args:
            told: hears what goes on, one sentence at a time.

        Raises:
            Failure: another rgt is at it, or journal or ledger could not be written.
        """
        control = control_of(self.platform, self.where, self.look.dial)
        ledger = Ledger(self.where.receipts)
        newer = await self._against_proof(told)
        with Journal.open(journal_path(self.where, self.order.victim), self.clock) as journal:
            if not isinstance(control, NoControlPlane):
                ending = Ending(
                    journal, ledger, control, self.look, newer,
                    clock=self.clock, told=told, pace=self.pace or pace_of(control),
                )  # fmt: skip
                return await ending.carry_out(self.order)
            command = self.in_box(control)
            in_box = partial(self.look.in_box, command) if command else None
            return await begin(
                journal, ledger, control, self.order, self.look, newer, clock=self.clock, in_box=in_box
            )

    async def _against_proof(self, told: Callable[[str], None]) -> Newer:
        """What stands against a proof, the durable copy as it is at this moment included."""
        if self.copy is None:
            return self.newer
        told("looking whether the copy is what was read back")
        harmed = await self.copy()
        return lambda proof: (*self.newer(proof), *harmed)

    def in_box(self, control: NoControlPlane) -> str | None:
        """The command on the box itself that ends it, where rgt sends it."""
        return control.in_box if self.order.verb == "stop" else None

    def attest(self, word: Word, ssh: str) -> Outcome:
        """Record what the operator says the console shows, beside what SSH said last. Raises Failure."""
        with Journal.open(journal_path(self.where, self.order.victim), self.clock) as journal:
            return attest(journal, Ledger(self.where.receipts), self.order, word, ssh, clock=self.clock)


def stop_end(where: Paths, platform: Platform, dial: Dial, anyway: str = "") -> End:
    """A stop that loses nothing. Raises Failure: the record of the box's host key is damaged."""
    instance = platform.instance
    order = Order(victim=known_victim(instance, where), verb="stop", loses=False, anyway=anyway)
    return End(where, platform, order, BoxLook(where, instance, dial))


def chain_end(task: Errand, platform: Platform, dial: Dial) -> End:
    """An act that loses data, without proof and approval yet; where it was begun, with that time's proof.

    Raises:
        Failure: a record or the journal is damaged.
    """
    order = Order(victim=known_victim(task.instance, task.where), verb=platform.verb)
    newer: Newer = partial(superseded, task.records)
    end = End(task.where, platform, order, BoxLook(task.where, task.instance, dial), newer)
    begun = end.standing
    if begun is None:
        return end
    return replace(end, order=replace(order, proof=_proof_used(begun, task.records)))


def _proof_used(begun: Standing, records: Records) -> Proof | None:
    """The proof that it was begun with, for the receipt of its end."""
    digest = begun.sent.data.get("proof") if begun.sent else None
    return records.find(Proof, digest) if isinstance(digest, str) else None


def whole_chain(task: Errand) -> Chain:
    """The stored chain of a run. Raises Failure, naming the steps that are not done yet."""
    chain = stored_chain(task.records)
    if chain is None:
        names = missing(task.records)
        words = " · ".join(dict.fromkeys(_STEPS[name].format(task.spec.name) for name in names))
        raise Failure(
            f"{task.spec.name} is not proven safe: {', '.join(names)} not done yet.",
            means="Nothing was done.",
            do=f"Next: {words}",
            code="step-missing",
        )
    return chain


def prove(end: End, chain: Chain, folder: Path) -> Proof | tuple[Refusal, ...]:
    """The proof from the stored chain, or everything that stands against it, holds included. It blocks.

    Args:
        folder: of the run's custody, where the operator's reasons lie.
    """
    now = end.clock()
    answer = make_proof(
        chain.roster,
        chain.digests,
        chain.copied,
        chain.readback,
        chain.load,
        chain.metrics,
        end.order.victim,
        money_of(end.platform, now),
        now,
        verb=end.order.verb,
    )
    against = answer if not isinstance(answer, Proof) else ()
    against += hold.against(Ledger(end.where.receipts).report(), end.order.victim)
    if against or not isinstance(answer, Proof):
        return against
    return with_reasons(answer, reasons(folder))


def approved(end: End, task: Errand, chain: Chain, proof: Proof, approval: Approval) -> End:
    """The act with everything it needs; proof and approval are stored. Raises Failure: they could not be."""
    task.records.save(proof)
    task.records.save(approval)
    order = replace(
        end.order,
        roster=chain.roster,
        proof=proof,
        approval=approval,
        evidence=(copy_evidence(chain.digests, chain.copied, chain.readback),),
    )
    look = replace(end.look, errand=task, proven=chain.roster, hashed=chain.digests)
    return replace(end, order=order, look=look, copy=partial(copy_against, end, task, chain))


async def copy_against(end: End, task: Errand, chain: Chain) -> tuple[Refusal, ...]:
    """What stands against the durable copy as it is now. Raises Failure: the fleet file can't be read."""
    boxes = await asyncio.to_thread(boxes_of, task)
    to, name = bag_of(chain.copied.destination)
    return await look_at_copy(
        chain.copied,
        chain.readback,
        lambda: store_for(to, name, end.look.dial, boxes),
        end.clock(),
    )
