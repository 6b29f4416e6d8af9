"""Everything an ending needs, in one place for tests: a journal, a ledger, a clock that only tests move."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.custody.chains import NOW, VICTIM, Maker, good_proof
from tests.custody.fake_plane import FakePlane
from tui.custody.approval import approve, phrase
from tui.custody.journal import Journal, journal_path
from tui.custody.order import Before, Order
from tui.custody.outcome import Ending, Pace
from tui.custody.receipts import Ledger
from tui.fleet.paths import Paths
from tui.model.custody import Approval, Outcome, Proof, Refusal, Roster, Verb

PACE = Pace(rounds=3, every_s=10.0, looks=8, call_s=1.0)


@dataclass
class Scene:
    """One machine, its platform, and the operator's computer."""

    folder: Path
    plane: FakePlane = field(default_factory=FakePlane)
    now: float = NOW
    before: Before = Before(known=True, ssh="the box answered")
    looks: int = 0

    @property
    def where(self) -> Paths:
        return Paths(self.folder / "config", self.folder / "state")

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.where.receipts)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)

    def journal(self) -> Journal:
        return Journal.open(journal_path(self.where, VICTIM), self.clock)

    async def look(self) -> Before:
        self.looks += 1
        return self.before

    def newer(self, proof: Proof) -> tuple[Refusal, ...]:
        """Nobody made a step again, unless a test says so."""
        return ()

    def ending(self, journal: Journal) -> Ending:
        return Ending(
            journal,
            self.ledger,
            self.plane,
            self.look,
            self.newer,
            clock=self.clock,
            sleep=self.sleep,
            pace=PACE,
        )

    def order(self, verb: Verb = "destroy", nonce: str = "n1", **more: object) -> Order:
        """An order with everything it needs; the look at the box then says that nothing changed."""
        chain = Maker(verb=verb, at=self.now).chain()
        proof = good_proof(chain, self.now)
        approval = approve(proof, phrase(proof), self.now, nonce=nonce)
        assert isinstance(approval, Approval)
        self.unchanged(chain.roster)
        values: dict[str, object] = {
            "victim": VICTIM, "verb": verb, "roster": chain.roster, "proof": proof, "approval": approval
        } | more  # fmt: skip
        return Order(**values)  # type: ignore[arg-type]

    def unchanged_for(self, order: Order) -> None:
        """The box is as an order made earlier saw it."""
        assert order.roster is not None
        self.unchanged(order.roster)

    def unchanged(self, roster: Roster) -> None:
        self.before = replace(self.before, roster=roster.digest)

    def carry_out(self, order: Order) -> Outcome:
        """One rgt process from start to end."""
        with self.journal() as journal:
            return asyncio.run(self.ending(journal).carry_out(order))

    def look_again(self, order: Order) -> Outcome:
        with self.journal() as journal:
            return asyncio.run(self.ending(journal).look_again(order))

    def receipts(self, act: str = "destroy") -> list[str]:
        """Results of the receipts of an act, in a ledger that holds."""
        report = self.ledger.report()
        assert report.holds
        return [one.receipt.result for one in report.receipts if one.receipt.act == act]


def codes(outcome: Outcome) -> list[str]:
    """What was refused."""
    return [one.code for one in outcome.refusals]
