"""Carries an order out: looks, sends the verb once, and believes only two witnesses, repeatedly.

Unknown never becomes gone, and never leads to a verb that loses data. Before a verb that may already have
been sent could be sent again, the truth is read anew. Every step is in the journal before it happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar

from tui.custody import witnesses as w
from tui.custody.codes import refusal
from tui.custody.journal import Journal
from tui.custody.moments import moment, seconds
from tui.custody.order import Before, Newer, Order, box_gate, gates, machine_gate, outcome_receipt
from tui.custody.proof import LASTS_S
from tui.custody.receipts import Ledger
from tui.model.custody import Gap, Outcome, Refusal, Witness
from tui.model.failure import Failure
from tui.platforms.control import ControlError, ControlPlane, Listing, NoAnswer, NotAllowed, VerbRefused

T = TypeVar("T")
Kind = Literal["proven", "unproven", "attested", "already-gone", "already-stopped", "refused"]
Look = Callable[[], Awaitable[Before]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How patiently the truth is read.

    Attributes:
        rounds: looks in a row that must agree.
        every_s: seconds between two looks.
        looks: after the verb, at most so many. Counted, not timed: clocks jump.
        call_s: seconds one question may take.
    """

    rounds: int = 3
    every_s: float = 10.0
    looks: int = 60
    call_s: float = 30.0


class Ending:
    """The end of one machine, by its platform's control plane.

    Args:
        journal: of this machine; open.
        before: takes the one look at the box.
        newer: says whether a step of a proof's chain was made again since.
        told: hears what goes on, one sentence at a time; safe to show.
    """

    def __init__(
        self,
        journal: Journal,
        ledger: Ledger,
        control: ControlPlane,
        before: Look,
        newer: Newer,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Coroutine[Any, Any, None]] = asyncio.sleep,
        pace: Pace = Pace(),
        told: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._journal = journal
        self._ledger = ledger
        self._control = control
        self._before = before
        self._newer = newer
        self._clock = clock
        self._sleep = sleep
        self._pace = pace
        self._told = told
        self._rounds: list[tuple[Witness, Witness]] = []
        self._last: w.Look | None = None

    async def carry_out(self, order: Order) -> Outcome:
        """Do what is ordered, as far as it is safe, and say what became of it.

        Raises:
            Failure: journal or ledger could not be written; what may have been sent is in the journal.
        """
        settled = complete(self._journal, self._ledger, order)
        if settled is not None:
            return settled
        blocked = machine_gate(order, None)
        if blocked:
            return self._refused(order, blocked)
        if self._journal.standing(order.verb).sent is not None:
            self._told(f"{order.verb} may have been sent before; looking what became of it")
            outcome = await self._watched(order, "It was asked for before.")
            still_there = self._verdict() in ("there", "stopped")
            if outcome.kind != "unproven" or not still_there or self._against(order):
                return self._settle(order, outcome)
        return await self._afresh(order)

    async def look_again(self, order: Order) -> Outcome:
        """Read the truth about a verb that was sent, without sending anything. Raises Failure."""
        settled = complete(self._journal, self._ledger, order)
        if settled is not None:
            return settled
        return self._settle(order, await self._watched(order, "It was asked for before."))

    async def _afresh(self, order: Order) -> Outcome:
        truth = await self._truth(order)
        account = self._listing.account if self._listing else None
        blocked = machine_gate(order, account)
        if blocked:
            return self._refused(order, blocked)
        if truth == "gone":
            return self._settle(
                order, self._outcome(order, "already-gone", "It was gone before anything was sent.")
            )
        if truth == "stopped" and order.verb == "stop":
            return self._settle(order, self._outcome(order, "already-stopped", "It was stopped already."))
        if truth == "unknown" and not self._one_sees_it(order):
            return self._refused(order, (refusal("truth-unknown", self._in_words()),))
        blocked = self._against(order)
        if blocked:
            return self._refused(order, blocked)
        against, gaps = await self._box(order, stopped=truth == "stopped")
        if against:
            return self._refused(order, against)
        return await self._act(order, gaps)

    def _one_sees_it(self, order: Order) -> bool:
        """A stop that loses nothing may rest on one witness: not stopping costs money, too."""
        return not order.needs_proof and self._rounds[-1][0].said == "there"

    async def _act(self, order: Order, gaps: tuple[Gap, ...]) -> Outcome:
        blocked = self._against(order)  # minutes may have gone by: an approval ends, a hold is placed
        if blocked:
            return self._refused(order, blocked)
        self._sending(order)
        verb = self._control.destroy if order.verb == "destroy" else self._control.stop
        self._told(f"{order.verb} {order.victim.name}: sent, once")
        answer = await self._ask(verb(order.victim))
        refused = isinstance(answer, VerbRefused | NotAllowed)
        words = answer.what if isinstance(answer, ControlError) else answer
        self._journal.add("answered", {"verb": order.verb, "refused": refused, "answer": str(words)[:400]})
        if refused and await self._truth(order) in ("there", "stopped"):
            found = (refusal("verb-refused", str(words)),)
            return self._settle(order, self._outcome(order, "refused", "", refusals=found, gaps=gaps))
        return self._settle(order, await self._watched(order, f"The platform answered: {words}", gaps))

    def _sending(self, order: Order) -> None:
        self._journal.add(
            "sending",
            {
                "verb": order.verb,
                "victim": order.victim.model_dump(mode="python"),
                "proof": order.proof.digest if order.proof else None,
                "nonce": order.approval.nonce if order.approval else None,
            },
        )

    async def _box(self, order: Order, *, stopped: bool) -> tuple[tuple[Refusal, ...], tuple[Gap, ...]]:
        """The one look for idleness, writers and changes."""
        if stopped and self._quiet_since(order):
            return (), ()
        self._told(f"looking whether {order.victim.name} is idle and as it should be")
        before = await self._before()
        against, gaps = box_gate(order, before)
        self._journal.add(
            "preflight",
            {
                "verb": order.verb,
                "passed": before.known and not (before.busy or before.changes or against),
                "roster": before.roster,
                "ssh": before.ssh[:400],
            },
        )
        return against, gaps

    def _quiet_since(self, order: Order) -> bool:
        """A stopped box cannot be looked at. It needs no look where rgt itself stopped it, after a look that
        found it idle and exactly as the roster of a proof that still stands."""
        stop = self._journal.standing("stop").settled
        look = next((e for e in reversed(self._journal.entries) if e.step == "preflight"), None)
        if (
            stop is None
            or stop.kind != "proven"
            or look is None
            or order.roster is None
            or order.proof is None
        ):
            return False
        same = look.data.get("passed") is True and look.data.get("roster") == order.roster.digest
        return same and 0 <= self._clock() - seconds(look.at) < LASTS_S

    # --- the truth ----------------------------------------------------------------------------------------

    async def _truth(self, order: Order) -> w.Verdict:
        """What the machine is doing now. One look shows that it is there; that it ended takes several."""
        self._rounds.clear()
        for number in range(self._pace.rounds):
            if number:
                await self._sleep(self._pace.every_s)
            await self._look(order)
            if w.verdict(self._rounds, 1) == "there":
                return "there"
        return self._verdict()

    async def _watched(self, order: Order, answer: str, gaps: tuple[Gap, ...] = ()) -> Outcome:
        """Look until both witnesses say, in enough rounds, that it is done; or until patience ends."""
        self._rounds.clear()
        wanted = w.done_word(order.verb)
        for number in range(self._pace.looks):
            if number:
                await self._sleep(self._pace.every_s)
            await self._look(order)
            self._told(f"look {number + 1} of at most {self._pace.looks}: {self._in_words()}")
            if self._verdict() == wanted:
                return self._outcome(order, "proven", f"It is {wanted}. {self._volumes()}".strip(), gaps=gaps)
        gone = " It is gone, which a stop does not do!" if self._verdict() == "gone" else ""
        return self._outcome(
            order,
            "unproven",
            f"{answer}{gone}",
            by_hand=f"Look at the console of {order.victim.platform} for {order.victim.instance_id}: "
            f"is it {wanted}, and has billing ended? {self._volumes()}".strip(),
            gaps=gaps,
        )

    async def _look(self, order: Order) -> None:
        described = await self._ask(self._control.describe(order.victim))
        listing = await self._ask(self._control.list_all())
        look = w.Look(described, listing, self._clock())
        known = self._known()
        more = w.knowledge(look, order.victim, known)
        if more != known:
            self._journal.add("known", asdict(more))
        self._rounds.append(w.testify(look, order.victim, more))
        self._last = look

    def _known(self) -> w.Known:
        entry = self._journal.newest("known")
        if entry is None:
            return w.Known()
        data = entry.data
        return w.Known(data["account"], tuple(data["others"]), data["created_at"], tuple(data["volumes"]))

    async def _ask(self, question: Coroutine[Any, Any, T]) -> T | ControlError:
        try:
            async with asyncio.timeout(self._pace.call_s):
                return await question
        except ControlError as error:
            return error
        except TimeoutError:
            return NoAnswer(f"No answer within {self._pace.call_s:g} s.")

    @property
    def _listing(self) -> Listing | None:
        return self._last.listing if self._last and isinstance(self._last.listing, Listing) else None

    def _verdict(self) -> w.Verdict:
        return w.verdict(self._rounds, self._pace.rounds)

    def _in_words(self) -> str:
        return "; ".join(f"{one.who}: {one.said} ({one.detail})" for one in self._rounds[-1])

    def _volumes(self) -> str:
        """Disks of the machine that outlive it, as far as anybody tells."""
        mine = self._known().volumes
        there = self._listing.volumes if self._listing else None
        if not mine:
            return ""
        if there is None:
            return f"Nobody told whether its disks {', '.join(mine)} still exist and bill."
        left = [one for one in mine if one in there]
        return f"Disks that are left and go on billing: {', '.join(left)}." if left else ""

    # --- what is said and kept ----------------------------------------------------------------------------

    def _against(self, order: Order) -> tuple[Refusal, ...]:
        spent = self._journal.standing(order.verb).spent
        return gates(order, self._ledger.report(), self._newer, spent, self._clock())

    def _refused(self, order: Order, refusals: tuple[Refusal, ...]) -> Outcome:
        """Nothing was sent; there is nothing to settle, and an approval is not used up."""
        return self._outcome(order, "refused", "Nothing was sent.", refusals=refusals)

    def _settle(self, order: Order, outcome: Outcome) -> Outcome:
        return settle(self._journal, self._ledger, order, outcome)

    def _outcome(
        self,
        order: Order,
        kind: Kind,
        detail: str,
        *,
        by_hand: str = "",
        refusals: tuple[Refusal, ...] = (),
        gaps: tuple[Gap, ...] = (),
    ) -> Outcome:
        rounds = self._rounds[-self._pace.rounds :]
        return Outcome(
            approval=order.approval.digest if order.approval else None,
            victim=order.victim,
            verb=order.verb,
            kind=kind,
            witnesses=tuple(one for pair in rounds for one in pair),
            detail=detail,
            check_by_hand=by_hand,
            refusals=refusals,
            gaps=gaps,
            finished_at=moment(self._clock()),
        )


def settle(journal: Journal, ledger: Ledger, order: Order, outcome: Outcome) -> Outcome:
    """Write an outcome into the journal, then its receipt. Raises Failure."""
    journal.add("outcome", {"verb": order.verb, "outcome": outcome.model_dump(mode="python")})
    _receipted(journal, ledger, order, outcome)
    return outcome


def complete(journal: Journal, ledger: Ledger, order: Order) -> Outcome | None:
    """Write the receipt that a crash left out, and return the outcome of a machine that is settled for good.

    A stop is never settled for good: who orders it again may have started the machine in between.
    """
    standing = journal.standing(order.verb)
    if standing.outcome is not None and not standing.receipted:
        _receipted(journal, ledger, order, standing.outcome)
    destroyed = journal.standing("destroy").settled
    if destroyed is not None and order.verb == "stop":
        raise Failure(f"{order.victim.name} has ended: {destroyed.kind}.", code="already-ended")
    return destroyed


def _receipted(journal: Journal, ledger: Ledger, order: Order, outcome: Outcome) -> None:
    """Exactly one receipt of an outcome, also where a crash came between the two writings."""
    there = next(
        (
            one.number
            for one in reversed(ledger.report().receipts)
            if any(s.name == "outcome" and s.sha256 == outcome.digest for s in one.receipt.subjects)
        ),
        None,
    )
    number = there or ledger.append(outcome_receipt(outcome, order)).number
    journal.add("receipt", {"verb": outcome.verb, "number": number})
