"""The end of a machine, over a vendor's client against the fake provider, on a clock that tests move."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from tests.custody.chains import NOW, Maker, good_proof
from tests.platforms.rig import Rig
from tui.custody.approval import approve, phrase
from tui.custody.journal import Journal, journal_path
from tui.custody.order import Before, Order
from tui.custody.outcome import Ending, Pace
from tui.custody.receipts import Ledger
from tui.fleet.paths import Paths
from tui.model.custody import Approval, Outcome, Verb, Victim
from tui.platforms.control import ControlPlane

PACE = Pace(rounds=3, every_s=10.0, looks=8, call_s=20.0)


@dataclass
class Scene:
    """One machine at a vendor, and the operator's computer."""

    folder: Path
    rig: Rig
    now: float = NOW
    told: list[str] = field(default_factory=list)

    @property
    def victim(self) -> Victim:
        return self.rig.victim

    @property
    def ledger(self) -> Ledger:
        return Ledger(Paths(self.folder / "config", self.folder / "state").receipts)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    def order(self, verb: Verb = "destroy", **more: object) -> Order:
        """An order with proof and approval. Every one has an approval of its own."""
        chain = Maker(verb=verb, victim=self.victim, at=self.now).chain()
        proof = good_proof(chain, self.now, self.victim)
        approval = approve(proof, phrase(proof), self.now, nonce=f"n{self.now}")
        assert isinstance(approval, Approval)
        values: dict[str, object] = {
            "victim": self.victim, "verb": verb, "roster": chain.roster, "proof": proof, "approval": approval
        } | more  # fmt: skip
        return Order(**values)  # type: ignore[arg-type]

    def carry_out(self, order: Order, plane: ControlPlane | None = None) -> Outcome:
        """One rgt process from start to end."""
        where = Paths(self.folder / "config", self.folder / "state")

        async def look() -> Before:
            digest = order.roster.digest if order.roster else None
            return Before(known=True, ssh="the box answered", roster=digest)

        with Journal.open(journal_path(where, self.victim), lambda: self.now) as journal:
            ending = Ending(
                journal,
                self.ledger,
                plane or self.rig.plane(tries=2),
                look,
                lambda proof: (),
                clock=lambda: self.now,
                sleep=self.sleep,
                pace=PACE,
                told=self.told.append,
            )
            return asyncio.run(ending.carry_out(order))

    def stop(self) -> Outcome:
        """A stop that loses nothing."""
        return self.carry_out(self.order("stop", loses=False, roster=None, proof=None, approval=None))

    def destroy(self) -> Outcome:
        """A destroy with everything in order; what must be shut down first is shut down."""
        if self.rig.platform == "autodl" and self.rig.world.boxes[self.rig.id].state == "running":
            self.rig.world.put(self.rig.id, state="stopped")
        return self.carry_out(self.order())

    @property
    def sent(self) -> int:
        """Deletions that reached the provider."""
        parts = {"lambda": "terminate", "autodl": "release"}
        return self.rig.world.count(parts.get(self.rig.platform, "DELETE"))
