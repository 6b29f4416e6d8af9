"""One act on one machine, and everything that stands against it. Pure: nothing here asks anybody."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from tui.custody import hold
from tui.custody.approval import approval_stands
from tui.custody.codes import gap, refusal
from tui.custody.identity import identified, surely_same
from tui.custody.proof import proof_stands
from tui.custody.receipts import ChainReport
from tui.custody.statement import Evidence, Receipt, Subject, about
from tui.model.custody import Approval, Gap, Outcome, Proof, Refusal, Roster, Sha256, Verb, Victim, Writer


@dataclass(frozen=True, slots=True)
class Order:
    """What the operator wants done.

    Attributes:
        victim: the machine as it is known now.
        loses: whether the verb destroys data. A destroy always does; a stop does at some platforms.
        roster, proof, approval: needed where it loses data; the roster is the one the proof was made from.
        evidence: pointers to the durable copy, for the receipt.
        anyway: the operator's reason to go on although the box is busy or can't be seen; counts only where
            nothing is lost.
    """

    victim: Victim
    verb: Verb
    loses: bool = True
    roster: Roster | None = None
    proof: Proof | None = None
    approval: Approval | None = None
    evidence: tuple[Evidence, ...] = ()
    anyway: str = ""

    @property
    def needs_proof(self) -> bool:
        return self.verb == "destroy" or self.loses


@dataclass(frozen=True, slots=True)
class Before:
    """One look at the box just before the verb.

    Attributes:
        known: the box answered and could be looked at.
        ssh: what the box, or the way to it, said last.
        busy: what runs or writes.
        changes: how it differs from the roster; empty also where there is none to compare with.
        roster: digest of the roster it was compared with.
        own_computer: the box runs on the operator's computer, which a verb from inside would end.
    """

    known: bool
    ssh: str
    busy: tuple[Writer, ...] = ()
    changes: tuple[Refusal, ...] = ()
    host_key: str | None = None
    roster: Sha256 | None = None
    own_computer: bool = False


Newer = Callable[[Proof], tuple[Refusal, ...]]
"""What stands against a proof because a step of its chain was made again since (`tui.custody.stored`)."""


def gates(
    order: Order, holds: ChainReport, newer: Newer, spent: Container[str], now: float
) -> tuple[Refusal, ...]:
    """What paper stands against an order: holds, proof and approval. Asked again just before the verb."""
    if not order.needs_proof:
        return ()
    against = [*hold.against(holds, order.victim)]
    if order.proof is None or order.roster is None:
        return (*against, refusal("proof-missing", f"{order.verb} {order.victim.name} would destroy data."))
    against += proof_stands(order.proof, order.roster, order.victim, order.verb, now)
    against += newer(order.proof)
    if order.approval is None:
        return (*against, refusal("approval-missing", f"{order.verb} {order.victim.name} is not approved."))
    return (*against, *approval_stands(order.approval, order.proof, now, spent=spent))


def machine_gate(order: Order, account: str | None) -> tuple[Refusal, ...]:
    """What stands against asking a control plane for this machine at all."""
    if not order.victim.instance_id:
        return (refusal("machine-unidentified", f"The platform's id of {order.victim.name} is not known."),)
    if account and order.victim.account and account != order.victim.account:
        return (refusal("other-account", f"The credential belongs to {account}."),)
    return ()


def box_gate(order: Order, before: Before) -> tuple[tuple[Refusal, ...], tuple[Gap, ...]]:
    """What a look at the box says against an order, and what the operator went on over."""
    if order.victim.host_key and before.host_key and order.victim.host_key != before.host_key:
        return (refusal("other-machine", f"{order.victim.name} shows another host key."),), ()
    against = list(before.changes) if order.needs_proof else []
    if not before.known:
        against.append(refusal("box-unknown", before.ssh))
    against += [refusal("box-busy", one.evidence, one.path) for one in before.busy]
    if before.known and order.needs_proof and order.roster and before.roster != order.roster.digest:
        against.append(refusal("changed-since-proof", "The box was not compared with the roster."))
    if against and order.anyway.strip() and not order.needs_proof:
        told = "; ".join(f"{one.code}: {one.detail}" for one in against[:20])
        return (), (gap("went-on-anyway", told, order.anyway),)
    return tuple(against), ()


def identified_gate(order: Order) -> tuple[Refusal, ...]:
    """For a machine that no control plane can be asked about: at least something must tell which it is."""
    if order.needs_proof and not identified(order.victim):
        return (
            refusal(
                "machine-unidentified", f"Nothing but its name tells which machine {order.victim.name} is."
            ),
        )
    if order.roster is not None and not surely_same(order.roster.victim, order.victim):
        return (refusal("other-machine", "The roster is of another machine."),)
    return ()


def outcome_receipt(outcome: Outcome, order: Order) -> Receipt:
    """The one receipt of an end."""
    subjects = [about(outcome, "outcome"), about(outcome.victim, outcome.victim.name)]
    if order.proof is not None:
        links = ("roster", "digests", "copied", "readback", "load", "metrics")
        subjects.append(about(order.proof, "proof"))
        subjects += [Subject(name=link, sha256=getattr(order.proof, link)) for link in links]
    if order.approval is not None:
        subjects.append(about(order.approval, "approval"))
    witnesses = "; ".join(f"{w.who} {w.at}: {w.said} ({w.detail})" for w in outcome.witnesses[-2:])
    return Receipt(
        act=outcome.verb,
        result=outcome.kind,
        at=outcome.finished_at,
        subjects=tuple(subjects),
        victim=outcome.victim,
        run=order.proof.run if order.proof else order.roster.run if order.roster else None,
        detail=" ".join(part for part in (outcome.detail, witnesses, outcome.check_by_hand) if part),
        evidence=order.evidence,
        refusals=outcome.refusals,
        gaps=(*outcome.gaps, *(order.proof.gaps if order.proof else ())),
    )
