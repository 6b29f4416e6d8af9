"""One look at an account: what it lists, what that costs and what is left, in the screens' words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace

from tui.fleet.platform_facts import ClockFact, PlatformFacts, next_clock
from tui.model.account import AccountView, Rented
from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.model.instance import DangerClock, Instance
from tui.model.text import SafeText, safe
from tui.platforms import autodl
from tui.platforms.control import Balance, ControlError, Machine
from tui.platforms.vendors import Account

CALL_S = 50.0
"""One look at one account, with everything in it."""
MOST_MACHINES = 500
MOST_ASKED = 30
"""Machines asked about one by one, where the list does not tell prices."""

Facts = Mapping[str, PlatformFacts]


async def look(
    account: Account, facts: Facts, clock: Callable[[], float], *, call_s: float = CALL_S
) -> AccountView:
    """Ask an account. What fails is in the answer; nothing is raised but a cancellation."""
    spec = account.spec
    view = AccountView(
        spec.name,
        spec.platform,
        source=safe(account.source, 120),
        asked_at=clock(),
        covers=autodl.PRO_ID if spec.platform == "autodl" else ".*",
        balance_kills=_at_zero(facts.get(spec.platform), lambda clock: clock.text),
        balance_takes=_at_zero(facts.get(spec.platform), lambda clock: clock.destroys),
    )
    try:
        async with asyncio.timeout(call_s):
            return await _looked(account, view, facts, clock)
    except TimeoutError:
        return replace(view, why=safe(f"{spec.name} did not answer within {call_s:g} s."))
    except Failure as failure:
        return replace(view, why=failure.line)


async def _looked(
    account: Account, view: AccountView, facts: Facts, clock: Callable[[], float]
) -> AccountView:
    listing, balance = await asyncio.gather(account.plane.list_all(), _balance(account))
    machines = [m for m in listing.machines if m.id not in account.spec.ignore][:MOST_MACHINES]
    if not account.plane.lists_all:
        machines = await _described(account, machines)
    now = clock()
    told = tuple(_rented(machine, account, facts, now) for machine in machines)
    short = "" if listing.complete else f"The list of {view.name} is not complete."
    return replace(
        view,
        told_at=now,
        machines=told,
        complete=listing.complete and len(listing.machines) <= MOST_MACHINES,
        why=safe(short),
        balance=balance.amount,
        currency=balance.currency,
        balance_why=safe(balance.why, 200),
        per_hour=balance.per_hour,
    )


async def _balance(account: Account) -> Balance:
    try:
        return await account.plane.balance()
    except ControlError as error:
        return Balance(None, "USD", why=error.what)


async def _described(account: Account, machines: list[Machine]) -> list[Machine]:
    """The machines with what only a question about each one tells, as many as are asked about."""
    told = []
    for number, machine in enumerate(machines):
        if number >= MOST_ASKED:
            told += machines[number:]
            break
        victim = Victim(
            name=machine.name or machine.id, platform=account.spec.platform, instance_id=machine.id
        )
        try:
            more = await account.plane.describe(victim)
        except ControlError:  # what the list said stands
            told.append(machine)
            continue
        told.append(
            replace(
                machine,
                state=more.state,
                said=more.said,
                endpoint=more.endpoint,
                price=more.price,
                gpu=more.gpu or machine.gpu,
            )
        )
    return told


def _rented(machine: Machine, account: Account, facts: Facts, now: float) -> Rented:
    spec, price = account.spec, machine.price
    of_platform = facts.get(spec.platform)
    return Rented(
        account=spec.name,
        platform=spec.platform,
        id=machine.id,
        name=safe(machine.name, 60),
        state=machine.state,
        said=safe(machine.said or machine.state, 40),
        seen_at=now,
        endpoint=machine.endpoint,
        per_hour=price.per_hour if price else None,
        currency=price.currency if price else "USD",
        price_source=safe(price.source if price else "not told", 120),
        gpu=safe(machine.gpu, 60),
        since=machine.since,
        ends_at=machine.ends_at,
        clock=_clock(machine, spec.platform, of_platform),
        notes=tuple(safe(note, 200) for note in machine.notes[:5]),
    )


def _clock(machine: Machine, platform: str, facts: PlatformFacts | None) -> DangerClock | None:
    """The platform's next act on it. A stop of unknown date starts no clock that could be told."""
    as_ours = Instance(
        machine.id,
        platform,
        None,
        instance_id=machine.id,
        rented_at=machine.since,
        ends_at=machine.ends_at,
    )
    return next_clock(facts, as_ours, stopped_at=machine.stopped_at)


def _at_zero(facts: PlatformFacts | None, word: Callable[[ClockFact], str]) -> SafeText:
    """What the platform does, or what is lost, when the balance is used up."""
    found = [word(clock) for clock in (facts.clocks if facts else ()) if clock.trigger == "balance"]
    return safe("; ".join(dict.fromkeys(filter(None, found))), 300)
