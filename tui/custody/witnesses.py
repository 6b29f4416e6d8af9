"""Two witnesses and what they are worth together. Pure: looks go in, a verdict comes out.

The rules, each learnt from a machine that went on billing: an acknowledged call is no proof; an answer that
the machine is not there counts only beside a complete list that the same credential gets; an empty list says
nothing by itself; one look is no look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tui.custody.moments import moment
from tui.model.custody import Verb, Victim, Witness
from tui.platforms.control import ControlError, Listing, Machine, NoSuchMachine

GET_ONE = "get-one"
LIST = "list"

Said = Literal["gone", "stopped", "there", "unknown"]
Verdict = Literal["gone", "stopped", "there", "unknown"]


@dataclass(frozen=True, slots=True)
class Look:
    """One round of questions. What failed is kept as the error it was."""

    described: Machine | ControlError
    listing: Listing | ControlError
    at: float


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a machine and its account from when both were seen.

    Attributes:
        account: of the credential that saw it.
        others: ids that were listed beside it; one seen again shows that the credential still serves.
        created_at: tells this machine from a later one of the same id.
    """

    account: str | None = None
    others: tuple[str, ...] = ()
    created_at: str | None = None
    volumes: tuple[str, ...] = ()


def knowledge(look: Look, victim: Victim, before: Known) -> Known:
    """What a look adds to what was known. Nothing that was known is replaced."""
    listing = look.listing
    if isinstance(listing, ControlError) or not victim.instance_id:
        return before
    here = listing.find(victim.instance_id)
    if here is None or here.state == "gone":
        return before
    others = tuple(sorted({one.id for one in listing.machines} - {here.id}))[:50]
    return Known(
        account=before.account or listing.account,
        others=before.others or others,
        created_at=before.created_at or here.created_at,
        volumes=before.volumes or here.volumes,
    )


def testify(look: Look, victim: Victim, known: Known) -> tuple[Witness, Witness]:
    """What the two answers of one look say of the machine."""
    trusted, why_not = _credential(look.listing, victim, known)
    one, one_detail = _described(look.described, victim, known, trusted, why_not)
    all_, all_detail = _listed(look.listing, victim, known, trusted, why_not)
    at = moment(look.at)
    return (
        Witness(who=GET_ONE, said=one, detail=one_detail, at=at),
        Witness(who=LIST, said=all_, detail=all_detail, at=at),
    )


def _described(
    answer: Machine | ControlError, victim: Victim, known: Known, trusted: bool, why_not: str
) -> tuple[Said, str]:
    if isinstance(answer, NoSuchMachine):
        if trusted:
            return "gone", "says that there is no such machine, and the same credential gets a complete list"
        return "unknown", f"says that there is no such machine, but {why_not}"
    if isinstance(answer, ControlError):
        return "unknown", answer.what
    if answer.id != victim.instance_id:
        return "unknown", "answers for another machine"
    return _state(answer, known)


def _listed(
    answer: Listing | ControlError, victim: Victim, known: Known, trusted: bool, why_not: str
) -> tuple[Said, str]:
    if isinstance(answer, ControlError):
        return "unknown", answer.what
    here = answer.find(victim.instance_id or "")
    if here is not None:
        return _state(here, known)
    count = len(answer.machines)
    if not trusted:
        return "unknown", f"is not among {count}, but {why_not}"
    return "gone", f"is not among {count} in a complete list of {answer.account or 'the same credential'}"


def _state(machine: Machine, known: Known) -> tuple[Said, str]:
    word = machine.said or machine.state
    if known.created_at and machine.created_at and known.created_at != machine.created_at:
        return "unknown", f"the id belongs to another machine now, made {machine.created_at}"
    if machine.state == "gone":
        return "gone", word
    if machine.state == "stopped":
        return "stopped", word
    return ("unknown" if machine.state == "unknown" else "there"), word


def _credential(listing: Listing | ControlError, victim: Victim, known: Known) -> tuple[bool, str]:
    """Whether absence from this list means absence: it is complete, and of the machine's account."""
    if isinstance(listing, ControlError):
        return False, f"the list can't be had: {listing.what}"
    if not listing.complete:
        return False, "the list is not complete"
    accounts = {one for one in (victim.account, known.account) if one}
    others_seen = bool({one.id for one in listing.machines} & set(known.others))
    if listing.account is not None and accounts:
        if accounts != {listing.account}:
            return False, f"the credential belongs to {listing.account}"
        if listing.account_told or others_seen or not known.others:
            return True, ""
        return False, "none of the machines that were beside it is listed any more"
    if others_seen:
        return True, ""
    return False, "nothing shows that this credential sees the machine's account"


def verdict(rounds: Sequence[tuple[Witness, Witness]], needed: int) -> Verdict:
    """What the last `needed` rounds agree on, both witnesses in each; ``unknown`` where they do not."""
    last = rounds[-needed:]
    said = {witness.said for pair in last for witness in pair}
    if len(last) < needed or len(said) != 1:
        return "unknown"
    return said.pop()


def done_word(verb: Verb) -> Verdict:
    """What the witnesses say when a verb is done."""
    return "gone" if verb == "destroy" else "stopped"
