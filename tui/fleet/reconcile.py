"""What providers list, laid beside what the fleet file says. Pure.

A machine that is not in a list is not gone for that: only several complete lists in a row over some time say
so, and only of a machine that such a list had before. What a list says of price and state goes before what
the operator once wrote; what neither says stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tui.fleet.age import long, short
from tui.fleet.money import SIGNS
from tui.model.account import AccountView, Rented
from tui.model.instance import DangerClock, Endpoint, Instance, LinkState
from tui.model.snapshot import Attention, BoxView, FleetSnapshot
from tui.model.text import SafeText, safe

ABSENT_LISTS = 3
ABSENT_S = 90.0
"""A machine is called gone after so many complete lists in a row without it, over so many seconds."""
FORGOTTEN_S = 3600.0
"""How long a machine that the fleet file does not have is shown after it has gone."""
FRESH_S = 240.0
"""A list older than this says nothing of the present."""
LOW_S = 24 * 3600.0
"""A balance that lasts less than this is a danger, less than three times this a warning."""
_UP = ("running", "starting")
_WELL = ("running", "active", "ready", "serviceready", "restarting", "rebooting", "upgrading")
"""Words of providers for a machine that is as it should be; every other one that still bills is told."""


# --- learning -----------------------------------------------------------------------------------------------


def learned(snapshot: FleetSnapshot, view: AccountView) -> FleetSnapshot:
    """The snapshot with what an account answered."""
    old = next((one for one in snapshot.accounts if one.name == view.name), None)
    merged = merge(old, view)
    others = [one for one in snapshot.accounts if one.name != view.name]
    accounts = tuple(sorted((*others, merged), key=lambda one: one.name))
    return reconciled(replace(snapshot, accounts=accounts))


def known(snapshot: FleetSnapshot, names: Iterable[str]) -> FleetSnapshot:
    """The snapshot without accounts that are not asked any more."""
    kept = tuple(one for one in snapshot.accounts if one.name in set(names))
    return snapshot if kept == snapshot.accounts else reconciled(replace(snapshot, accounts=kept))


def merge(old: AccountView | None, new: AccountView) -> AccountView:
    """An answer laid over the one before: absences are counted; who did not answer keeps its old list."""
    if old is None:
        old = AccountView(new.name, new.platform)
    if new.balance is None and new.why:
        new = replace(
            new,
            balance=old.balance,
            currency=old.currency,
            per_hour=old.per_hour,
            balance_why=old.balance_why,
        )
    if new.told_at is None:  # it did not answer
        return replace(new, machines=old.machines, told_at=old.told_at, complete=False, lists=0)
    seen = {one.id for one in new.machines}
    missing = [one for one in old.machines if one.id not in seen]
    if not new.complete:  # what is not in an incomplete list may be there
        return replace(new, machines=(*new.machines, *missing), lists=0)
    absent = [_absent(one, new.told_at) for one in missing]
    kept = [one for one in absent if one.absent_s < FORGOTTEN_S]
    return replace(
        new,
        machines=(*new.machines, *kept),
        lists=old.lists + 1,
        lists_since=old.lists_since if old.lists else new.told_at,
    )


def _absent(one: Rented, at: float) -> Rented:
    since = at if one.absent_since is None else one.absent_since
    return replace(one, absent=one.absent + 1, absent_since=since, absent_s=max(0.0, at - since))


def is_gone(rented: Rented) -> bool:
    """Whether the provider says so, or enough complete lists over enough time were without it."""
    if rented.absent == 0:
        return rented.state == "gone"
    return rented.absent >= ABSENT_LISTS and rented.absent_s >= ABSENT_S


# --- reconciling --------------------------------------------------------------------------------------------


def reconciled(snapshot: FleetSnapshot) -> FleetSnapshot:
    """The boxes of the fleet file with what providers say of them, then the machines that only those know."""
    rented = [one for view in snapshot.accounts for one in view.machines]
    views = {view.name: view for view in snapshot.accounts}
    boxes: list[BoxView] = []
    taken: set[tuple[str, str]] = set()
    for box in snapshot.boxes:
        if not box.unwritten:
            found = match(box.written or box.instance, rented)
            if found is not None:
                taken.add((found.account, found.id))
            boxes.append(_told(box, found, views))
    before = {box.name: box for box in snapshot.boxes if box.unwritten}
    names = {box.name for box in boxes}
    for one in rented:
        if (one.account, one.id) not in taken:
            name = _name(one, names)
            names.add(name)
            boxes.append(_row(name, one, before.get(name), views))
    same = len(boxes) == len(snapshot.boxes) and all(
        a is b for a, b in zip(boxes, snapshot.boxes, strict=True)
    )
    return snapshot if same else replace(snapshot, boxes=tuple(boxes))


def match(instance: Instance, rented: Sequence[Rented]) -> Rented | None:
    """The machine that an entry of the fleet file means: by its id, else by the address it answers at now."""
    here = [one for one in rented if one.platform == instance.platform]
    if instance.instance_id is not None:
        found = [one for one in here if one.id == instance.instance_id]
        return next((one for one in found if one.account == instance.asked_as), next(iter(found), None))
    return next((one for one in here if one.endpoint and _same_end(instance.endpoint, one.endpoint)), None)


def _same_end(ours: Endpoint | None, theirs: Endpoint) -> bool:
    if ours is None or ours.host != theirs.host or (ours.port or 22) != (theirs.port or 22):
        return False
    return not theirs.proxied or ours.user == theirs.user  # behind a proxy the user names the machine


def _told(box: BoxView, rented: Rented | None, views: dict[str, AccountView]) -> BoxView:
    written = box.written or box.instance
    instance = written if rented is None else _priced(written, rented)
    clock = _earliest(box.file_clock, rented, views)
    if rented == box.rented and instance == box.instance and clock == box.clock:
        return box
    return replace(
        box,
        instance=instance,
        written=None if instance == written else written,
        rented=rented,
        clock=clock,
    )


def _priced(written: Instance, rented: Rented) -> Instance:
    """An entry with the provider's own figures. A rate that a stop changed says nothing of what was spent."""
    if is_gone(rented):
        return replace(written, price_per_hour=0.0, rented_at=None)
    up = rented.state in _UP
    price = rented.per_hour
    if price is None and up and (written.currency == rented.currency):
        price = written.price_per_hour
    return replace(
        written,
        price_per_hour=price,
        currency=rented.currency if rented.per_hour is not None else written.currency,
        rented_at=(written.rented_at or rented.since) if up else None,
        ends_at=written.ends_at or rented.ends_at,
    )


def _row(name: str, one: Rented, before: BoxView | None, views: dict[str, AccountView]) -> BoxView:
    """A machine that stands in no fleet file, as a row of its own."""
    plain = Instance(
        name=name,
        platform=one.platform,
        endpoint=one.endpoint or Endpoint("address not told"),
        instance_id=one.id,
        asked_as=one.account,
        currency=one.currency,
    )
    clock = _earliest(None, one, views)
    instance = _priced(plain, one)
    if before is not None and (before.rented, before.instance, before.clock) == (one, instance, clock):
        return before
    return BoxView(instance, rented=one, unwritten=True, clock=clock)


def _name(one: Rented, taken: set[str]) -> str:
    """A name that no entry of a fleet file can have: those hold no colon."""
    name = f"{one.platform}:{safe(one.name, 40) or safe(one.id, 40)}"
    return f"{name}:{safe(one.id, 60)}" if name in taken else name


def _earliest(
    file_clock: DangerClock | None, rented: Rented | None, views: dict[str, AccountView]
) -> DangerClock | None:
    clocks = [file_clock]
    if rented is not None:
        clocks.append(rented.clock)
        view = views.get(rented.account)
        if view is not None and not is_gone(rented):
            clocks.append(balance_clock(view))
    dated = [clock for clock in clocks if clock is not None]
    return min(dated, key=lambda clock: float("inf") if clock.at is None else clock.at, default=None)


# --- money --------------------------------------------------------------------------------------------------


def burn_of(view: AccountView) -> float | None:
    """What everything in an account costs an hour; None as soon as one machine's price is not known."""
    rates = [one.per_hour for one in view.machines if not is_gone(one)]
    known = [rate for rate in rates if rate is not None]
    listed = sum(known) if len(known) == len(rates) else None
    if view.per_hour is not None:
        return max(view.per_hour, listed or 0.0)
    return listed


def runway_s(view: AccountView) -> float | None:
    """Seconds that the balance lasts at the present rate; None where it can't be said, or nothing burns."""
    burn = burn_of(view)
    if view.balance is None or burn is None or burn <= 0:
        return None
    return max(0.0, view.balance) / burn * 3600


def balance_clock(view: AccountView) -> DangerClock | None:
    """When the balance is used up, to the minute, so that it does not move with every look."""
    runway = runway_s(view)
    if runway is None or view.told_at is None:
        return None
    at = (view.told_at + runway) // 60 * 60
    return DangerClock(SafeText("balance used up"), at, view.balance_takes)


# --- attention ----------------------------------------------------------------------------------------------


def attention(box: BoxView, accounts: Sequence[AccountView], now: float) -> tuple[Attention, ...]:
    """What the provider's list says of a box that wants the operator."""
    one = box.rented
    if one is None:
        return tuple(_never_listed(box, accounts))
    view = next((v for v in accounts if v.name == one.account), None)
    warned = view is not None and not box.unwritten and not is_gone(one)
    return (*_about(box, one, now), *(_runway(view, now) if view and warned else ()))


def _about(box: BoxView, one: Rented, now: float) -> Iterator[Attention]:
    where = one.platform
    if is_gone(one):
        how = f"{where} says that it is {one.said}" if one.absent == 0 else (
            f"it is not in {one.absent} complete lists of {where} in a row"
        )  # fmt: skip
        yield _warn(f"gone at {where}", f"{box.name}: {how}. What outlives it may still bill.")
        return
    if one.absent:
        yield _warn("not listed", f"{box.name} is missing from {where}'s last list; rgt looks again.")
        return
    if now - one.seen_at > FRESH_S:
        yield _warn("list is old", f"{where} was last heard of {long(now - one.seen_at)} ago.")
        return
    if box.unwritten:
        yield _warn(
            f"unlisted {one.said}"[:20],
            f"{where} lists {one.name or one.id} ({one.said}, {price_words(one)}), which the fleet file does "
            f"not have. {_how_to_add(one)}",
        )
    elif box.instance.endpoint and one.endpoint and _moved(box, one.endpoint):
        yield _warn(
            "address moved", f"{box.name} answers at {_address(one.endpoint)} now. {_how_to_edit(box)}"
        )
    if one.state == "stopped" and one.per_hour != 0 and not box.unwritten:
        yield _warn("stopped, bills", f"{box.name} is {one.said} and goes on billing: {price_words(one)}.")
    if one.state == "running" and one.said.lower() not in _WELL and not box.unwritten:
        yield _warn(one.said.lower(), f"{where} says that {box.name} is {one.said}. {' '.join(one.notes)}")
    if one.state == "running" and box.link.state in (LinkState.LOST, LinkState.UNREACHABLE):
        yield _warn(
            "bills, no link",
            f"{where} says that {box.name} is {one.said}, at {price_words(one)}, but it can't be reached.",
        )


def _moved(box: BoxView, theirs: Endpoint) -> bool:
    """Whether the fleet file has another address than the provider; aliases and jumps aren't compared."""
    ours = (box.written or box.instance).endpoint
    if ours is None or ours.jump or ours.proxy_command or theirs.proxied != ours.proxied:
        return False
    looks_like_one = bool(re.fullmatch(r"[0-9.]+|[0-9a-fA-F:]+", ours.host)) or "." in ours.host
    return looks_like_one and (ours.host, ours.port or 22) != (theirs.host, theirs.port or 22)


def _never_listed(box: BoxView, accounts: Sequence[AccountView]) -> Iterator[Attention]:
    """Not in its platform's lists: gone before rgt looked, or of an account that is not asked."""
    instance = box.written or box.instance
    asked = [view for view in accounts if view.platform == instance.platform]
    if instance.asked_as in {view.name for view in asked}:
        asked = [view for view in asked if view.name == instance.asked_as]
    if not instance.instance_id or not asked:
        return
    covered = all(re.fullmatch(view.covers, instance.instance_id) for view in asked)
    if covered and all(view.lists >= ABSENT_LISTS for view in asked):
        names = ", ".join(view.name for view in asked)
        yield _warn(
            "not in the list",
            f"{instance.platform}'s complete list of {names} has no {instance.instance_id}: it is gone, or "
            "belongs to an account that rgt does not ask.",
        )


def _runway(view: AccountView, now: float) -> Iterator[Attention]:
    clock = balance_clock(view)
    if clock is None or clock.at is None or clock.at - now > 3 * LOW_S:
        return
    left = max(0.0, clock.at - now)
    kills = f" Then: {view.balance_kills}" if view.balance_kills else ""
    yield Attention(
        "danger" if left < LOW_S else "attention",
        SafeText(f"balance {short(left)}"),
        safe(
            f"The balance of {view.name}, {view.balance:.2f} {SIGNS.get(view.currency, view.currency)}, "
            f"lasts {long(left)} at the present rate.{kills}",
            400,
        ),
    )


def price_words(one: Rented) -> str:
    """``0.35 $/h``; ``? $/h`` where nobody tells."""
    figure = (
        "?"
        if one.per_hour is None
        else f"{one.per_hour:.2f}"
        if one.per_hour >= 0.1
        else f"{one.per_hour:.3f}"
    )
    return f"{figure} {SIGNS.get(one.currency, one.currency)}/h"


def _address(end: Endpoint) -> str:
    user = f"{end.user}@" if end.user else ""
    return f"{user}{end.host}" + (f" port {end.port}" if end.port else "")


def _how_to_add(one: Rented) -> str:
    if one.endpoint is None:
        return "It has no address yet."
    port = f"-p {one.endpoint.port} " if one.endpoint.port else ""
    user = f"{one.endpoint.user}@" if one.endpoint.user else ""
    return f"rgt add 'ssh {port}{user}{one.endpoint.host}' --platform {one.platform}"


def _how_to_edit(box: BoxView) -> str:
    end = box.rented.endpoint if box.rented else None
    return f"rgt edit {box.name} host={end.host} port={end.port or 22}" if end else ""


def _warn(short_text: str, text: str) -> Attention:
    return Attention("attention", safe(short_text, 24), safe(text, 400))
