"""The machine a relaunch rents: one plan with the exact request, one typed word, and never a second machine.

Whatever cuts this off, the same command goes on: with the request that is open, or with the box that came of
it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.text import SafeText, safe

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.platforms.control import CreateRequest, Offer, Provider, Wish
    from tui.platforms.renting import Rented, Renter
    from tui.platforms.sent import Sent, Terms
    from tui.runs.book import Page
    from tui.runs.errand import Errand
    from tui.workers.line import Line

WORD = "rent"
_CONSENT_S = 300.0
_ASK_S = 60.0
_OTHERS = 4
_SSH_S = 600.0
_SSH_EVERY_S = 5.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What would be rented, exactly.

    Attributes:
        others: further offers that fit, for who wants another one.
        owner: whose account it is, in words.
    """

    plane: Provider
    wish: Wish
    request: CreateRequest
    others: tuple[Offer, ...]
    owner: str


def provisional(page: Page) -> Instance:
    """Stands for the machine that is not there yet, so that the job can be worked out before any money."""
    return Instance("the new machine", page.platform, None)


def rented_before(page: Page, where: Paths, *, unbegun: bool) -> Instance | None:
    """The box that was rented for this run by a relaunch that was cut off; None: there is none.

    Args:
        unbegun: the run's page names a box that answers and knows no attempt of it.
    """
    from tui.fleet import settings
    from tui.runs.book import book

    name = book(where).rented(page.run)
    if name is None or (name == page.box and not unbegun):
        return None
    return next((one for one in settings.load(where.fleet_file).instances if one.name == name), None)


async def settled(page: Page, where: Paths, args: argparse.Namespace, say: Say) -> Instance | None:
    """The box of an open request for this run; None: none is. Raises Failure: nobody saw its machine."""
    from tui.platforms import sent

    before = await asyncio.to_thread(sent.find, where, page.platform)
    if before is None or before.run != page.run:
        return None
    if args.not_there:
        await asyncio.to_thread(sent.drop, where, page.platform)
        return None
    say(f"{before.name} was asked for at {before.at}; nothing more is rented before that is known.")
    try:
        rented = await _renter(_plane(page, where), where, say).settle(before)
    except Failure as failure:
        do = "Look at the platform's console; where it is not there, say so with --not-there."
        raise Failure(
            failure.what, means=failure.means, do=do, exit=Exit.UNKNOWN, code=failure.code
        ) from None
    return _entered(rented, page, where, before)


async def order(page: Page, task: Errand, where: Paths, offer: str | None, more: Mapping[str, str]) -> Order:
    """Work out what to rent, on the terms of the old machine where they are known. Rents nothing.

    Args:
        offer: id of an offer; None: the best that the job's constraint allows.
        more: what the request needs besides, such as ``image``.

    Raises:
        Failure: the account can't be asked, nothing fits, or the request lacks something.
    """
    from tui.fleet import settings
    from tui.platforms.sent import Terms, terms_of
    from tui.runs.offers import fitting, machine_name, offer_of, wish_for

    _refuse_while_open(page, where)
    plane = _plane(page, where)
    async with asyncio.timeout(_ASK_S):
        offers = await plane.offers()
        listing = await plane.list_all()
    fit = fitting(offers, task.job)
    if offer is None and not fit:
        raise Failure(
            f"None of {len(offers)} offers at {safe(page.platform, 40)} is there and known to fit the job.",
            means="Nothing was rented.",
            do="Try later, or name one with --offer; or rent elsewhere and give the box with --on.",
            code="no-offer",
        )
    chosen = fit[0] if offer is None else offer_of(offers, offer)
    taken = [one.name for one in settings.load(where.fleet_file).instances]
    name = machine_name(page.run, time.strftime("%Y%m%d"), (*taken, *(one.name for one in listing.machines)))
    terms = _with(terms_of(where, page.platform, page.instance_id) or Terms(), more)
    wish = wish_for(task.job, chosen, name, terms)
    if region := more.get("region"):
        wish = replace(wish, region=region)
    others = tuple(one for one in fit if one.id != chosen.id)[:_OTHERS]
    owner = listing.account or "the platform names nobody"
    return Order(plane, wish, _request(plane, wish), others, owner)


def _refuse_while_open(page: Page, where: Paths) -> None:
    """Raises Failure: a request for something else may have a machine that bills."""
    from tui.platforms import sent

    before = sent.find(where, page.platform)
    if before is not None:
        raise Failure(
            f"A request to this platform is open: {safe(before.name, 80)}, asked for at {before.at}.",
            means="It may exist and bill; nothing was rented.",
            do="rgt setup, at the step that rents, looks what became of it.",
            code="request-open",
        )


def _request(plane: Provider, wish: Wish) -> CreateRequest:
    """The exact request. Raises Failure, which says how to give what is lacking."""
    from tui.platforms.control import ControlError

    try:
        return plane.request(wish)
    except ControlError:
        raise
    except Failure as lacking:
        raise Failure(
            lacking.what,
            means="How the old machine was rented is not on record; nothing was rented.",
            do=f"Give it with --set, such as --set image=… --set ssh_key=…. {lacking.do}",
            exit=Exit.USAGE,
            code=lacking.code,
        ) from None


def plan_of(made: Order, task: Errand, base: Path) -> Iterator[tuple[str, str]]:
    """The plan, as titles and sentences."""
    from tui.platforms.renting import price_words

    offer, price = made.wish.offer, price_words(made.wish.price)
    yield "rent", f"{_words(offer)} ({offer.id}); {price} from then on"
    for one in made.others:
        yield "or", f"--offer {shlex.quote(one.id)}: {_words(one)}, {price_words(one.price)}"
    yield "account", made.owner
    yield "request", f"{made.request.method} {made.request.path}"
    for line in json.dumps(made.request.body, indent=1, ensure_ascii=False, sort_keys=True).split("\n"):
        yield "", line
    yield "then", "wait until it runs, add it to the fleet, connect, and keep its host key"
    for step in _inputs(task, base):
        yield "then", f"bring {step}"
    yield "then", "look at it as before any launch; what stops there leaves it rented, and starts nothing"
    yield "then", "bring code and checkpoints, prove them by SHA-256, and start the run"


def _inputs(task: Errand, base: Path) -> Iterator[SafeText]:
    """How each input gets there. Raises Failure: one can't, so renting would be for nothing."""
    from tui.runs.stage import steps_on_fresh

    for step in steps_on_fresh(task.job.inputs, task.inputs(), base):
        if step.source == "nowhere" and not any(
            step.path.startswith(one) for tier in task.shared for one in tier.paths
        ):
            raise Failure(
                f"{safe(step.path, 200)} must be there; the job names neither a mirror nor a file here.",
                means="A new machine would not have it; nothing was rented.",
                do="Add mirror or here to that input of the job, or prepare a box and give it with --on.",
                code="input-nowhere",
            )
        yield step.line


def consents(made: Order) -> bool:
    """Whether the operator typed the word. Raises Failure (exit 4) where there is no terminal."""
    from tui.custody.keyboard import read_line
    from tui.platforms.renting import price_words

    cost = price_words(made.wish.price)
    prompt = f"This costs {cost} from then on. Type {WORD} and Enter to send exactly this: "
    return read_line(safe(prompt, 200), _CONSENT_S).strip() == WORD


async def rent(made: Order, page: Page, where: Paths, say: Say) -> Instance:
    """Send the request, once, wait for the machine, and put it into the fleet. Raises Failure."""
    from tui.platforms import sent

    rented = await _renter(made.plane, where, say).send(made.request, made.wish, run=page.run)
    before = await asyncio.to_thread(sent.find, where, page.platform)
    assert before is not None  # the mark stays until the box is in the fleet
    return _entered(rented, page, where, before)


async def reached(line: Line, say: Say) -> None:
    """Wait until its sshd answers. A machine that is up lets nobody in for a while. Raises ConnectFailure."""
    from tui.box.errors import ConnectFailure

    ends = time.monotonic() + _SSH_S
    told = ""
    while True:
        try:
            box = await line()
        except ConnectFailure as failure:
            if not failure.retry or time.monotonic() > ends:
                raise
            if failure.what != told:
                told = failure.what
                say(f"  not yet: {told}")
            await asyncio.sleep(_SSH_EVERY_S)
        else:
            key = getattr(box, "host_key", None) or "none"
            say(f"  its host key is {key}, kept from now on; the console may show the same")
            return


def _entered(rented: Rented, page: Page, where: Paths, before: Sent) -> Instance:
    """Put the machine into the fleet, once, and close the request. Raises Failure."""
    from tui.fleet import settings
    from tui.platforms import sent
    from tui.runs.book import book

    machine = rented.machine
    boxes = settings.load(where.fleet_file).instances
    known = next(
        (one for one in boxes if (one.platform, one.instance_id) == (page.platform, machine.id)), None
    )
    name = known.name if known else _added(rented, page, where, _old(page, where))
    book(where).set_rented(page.run, name)
    box = next(one for one in settings.load(where.fleet_file).instances if one.name == name)
    _receipt(where, page, box, before)
    sent.drop(where, page.platform)
    return box


def _added(rented: Rented, page: Page, where: Paths, old: Instance | None) -> str:
    from tui.fleet import fleet_file
    from tui.verbs.fleet import Extras, written

    end = old.endpoint if old else None
    key = ("-i", end.key) if end is not None and end.key else ()
    price = rented.price
    extras = Extras(
        platform=page.platform,
        price=price.per_hour,
        currency=price.currency or None,
        instance_id=rented.machine.id,
    )
    login = shlex.join((*shlex.split(rented.login), *key))
    name = written(where, login, rented.name, extras)[1]
    if old is not None and old.asked_as is not None:
        fleet_file.edit_instance(where.fleet_file, name, {"account": old.asked_as})
    return name


def _receipt(where: Paths, page: Page, box: Instance, before: Sent) -> None:
    from tui.custody.machine import known_victim
    from tui.custody.moments import moment
    from tui.custody.receipts import Ledger
    from tui.custody.statement import Receipt, about

    victim = known_victim(box, where)
    cost = "unknown" if box.price_per_hour is None else f"{box.price_per_hour:g} {box.currency}"
    Ledger(where.receipts).append(
        Receipt(
            act="rent",
            result="recorded",
            at=moment(time.time()),
            subjects=(about(victim, victim.name),),
            victim=victim,
            run=page.run,
            detail=f"asked for once, at {before.at}; price an hour: {cost}",
        )
    )


def _renter(plane: Provider, where: Paths, say: Say) -> Renter:
    from tui.platforms import renting

    return renting.Renter(
        plane, where, lambda line: say(f"  {line}"), time.time, renting.UP_S, renting.LOOK_S
    )


def _plane(page: Page, where: Paths) -> Provider:
    """The account the old machine was rented at. Raises Failure."""
    from tui.platforms.credentials import Missing
    from tui.verbs.accounting import account_of

    old = _old(page, where)
    found = account_of(where, page.platform, old.asked_as if old else None)
    if isinstance(found, Missing):
        raise Failure(
            f"{safe(page.platform, 40)} {found.why}.",
            means="Nothing was rented.",
            do="rgt setup stores a key; or rent at the console and give the box with --on.",
            code="no-account",
        )
    return found.plane


def _old(page: Page, where: Paths) -> Instance | None:
    from tui.fleet import settings

    return next((one for one in settings.load(where.fleet_file).instances if one.name == page.box), None)


def _with(terms: Terms, more: Mapping[str, str]) -> Terms:
    """The terms with the operator's words instead. Raises Failure: a number is none."""
    own = {key: value for key, value in more.items() if key in ("image", "ssh_key")}
    numbers = {}
    for key in ("gpus", "disk_gb"):
        if key in more:
            if not more[key].isdecimal():
                raise Failure(f"--set {key}= takes a whole number.", exit=Exit.USAGE)
            numbers[key] = int(more[key])
    known = {"image", "ssh_key", "gpus", "disk_gb", "region"}
    rest = {key: value for key, value in more.items() if key not in known}
    return terms.model_copy(update={**own, **numbers, "more": {**terms.more, **rest}})


def _words(offer: Offer) -> str:
    memory = f" {offer.gpu_memory_gb:.0f} GB" if offer.gpu_memory_gb else ""
    spot = ", can be taken away" if offer.spot else ""
    stock = ", stock not told" if offer.available is None else ""
    facts = f", {', '.join(offer.facts[:2])}" if offer.facts else ""
    return f"{offer.gpus} × {offer.gpu}{memory}{spot}{stock}{facts}"
