"""Holds: the operator's word that a machine must not be destroyed. They lie in the ledger alone."""

from __future__ import annotations

from dataclasses import dataclass

from tui.custody.codes import refusal
from tui.custody.identity import perhaps_same
from tui.custody.moments import moment
from tui.custody.receipts import ChainReport, Ledger
from tui.custody.statement import Read, Receipt, about
from tui.model.custody import Moment, Refusal, Victim
from tui.model.failure import Exit, Failure

HOLD, UNHOLD = "hold", "unhold"


@dataclass(frozen=True, slots=True)
class Held:
    """One hold in force."""

    victim: Victim
    reason: str
    since: Moment
    receipt: int


def hold(ledger: Ledger, victim: Victim, reason: str, now: float) -> Read:
    """Block everything irreversible for a machine. A newer hold retires an older one. Raises Failure."""
    if not reason.strip():
        raise Failure("A hold needs a reason.", do="Give --reason TEXT.", exit=Exit.USAGE, code="no-reason")
    return ledger.append(_decision(HOLD, victim, reason, now))


def unhold(ledger: Ledger, victim: Victim, reason: str, now: float) -> Read:
    """Let a machine go again. That is no permission to destroy it. Raises Failure where it is not held."""
    report = ledger.report()
    if held(report, victim) is None and unknown(report, victim) is None:
        raise Failure(f"{victim.name} is not held.", means="Nothing was changed.", code="not-held")
    return ledger.append(_decision(UNHOLD, victim, reason, now))


def _decision(act: str, victim: Victim, reason: str, now: float) -> Receipt:
    return Receipt(
        act=act,
        result="recorded",
        at=moment(now),
        subjects=(about(victim, victim.name),),
        victim=victim,
        detail=reason,
    )


def held(report: ChainReport, victim: Victim) -> Held | None:
    """The hold in force for a machine: the newest decision of the operator counts, and no older one."""
    newest = _newest(report, victim)
    if newest is None or newest.receipt.act == UNHOLD or newest.receipt.victim is None:
        return None
    return Held(newest.receipt.victim, newest.receipt.detail, newest.receipt.at, newest.number)


def unknown(report: ChainReport, victim: Victim) -> str | None:
    """Why it can't be told whether a machine is held: a bad receipt may have been a newer decision."""
    if report.first_bad is None:
        return None
    newest = _newest(report, victim)
    readable = {one.number for one in report.receipts}
    last_bad = max(report.first_bad.number, _last_hole(readable))
    if newest is not None and newest.number > last_bad:
        return None
    return f"{report.first_bad.path.name} {report.first_bad.why}"


def _last_hole(numbers: set[int]) -> int:
    return max((n for n in range(1, max(numbers, default=0) + 1) if n not in numbers), default=0)


def _newest(report: ChainReport, victim: Victim) -> Read | None:
    decisions = (
        one
        for one in reversed(report.receipts)
        if one.receipt.act in (HOLD, UNHOLD)
        and one.receipt.victim is not None
        and perhaps_same(one.receipt.victim, victim)
    )
    return next(decisions, None)


def against(report: ChainReport, victim: Victim) -> tuple[Refusal, ...]:
    """What holds say against destroying this machine."""
    found = held(report, victim)
    if found is not None:
        return (refusal("held", f"{victim.name} is held since {found.since}: {found.reason}"),)
    damage = unknown(report, victim)
    return (refusal("holds-unknown", damage),) if damage else ()
