"""Renting from the shell, for `rgt up` and `rgt relaunch --rent`: exact request, typed word, one machine.

Whatever cuts this off, the same command goes on with the request that is open, until its machine is a box of
the fleet. Level 2: it costs, and destroys nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.job import Resources
    from tui.platforms.control import CreateRequest, Offer, Provider, Wish
    from tui.platforms.renting import Rented, Renter
    from tui.platforms.sent import Sent, Terms
    from tui.workers.line import Line

WORD = "rent"
_CONSENT_S = 300.0
_ASK_S = 60.0
_OTHERS = 4
_SSH_S = 600.0
_SSH_EVERY_S = 5.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Want:
    """What is wanted of a platform.

    Attributes:
        stem: the machine's name begins with it.
        run: the run that is to go on there; empty where it is for none.
        account: name of an ``[accounts]`` entry, where the fleet file has several of this platform.
        key: path of the private key that opens the machine; None: ssh's own.
        offer: id of an offer; None: the best that the constraint allows.
    """

    platform: str
    stem: str
    resources: Resources
    terms: Terms
    run: str = ""
    account: str | None = None
    key: str | None = None
    offer: str | None = None
    region: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """What would be rented, exactly.

    Attributes:
        others: further offers that fit, for who wants another one.
        owner: whose account it is, in words.
    """

    plane: Provider
    wish: Wish
    others: tuple[Offer, ...]
    owner: str

    @property
    def request(self) -> CreateRequest:
        """Exactly what would be sent. Raises Failure, which says how to give what is lacking."""
        from tui.platforms.control import ControlError

        try:
            return self.plane.request(self.wish)
        except ControlError:
            raise
        except Failure as lacking:
            raise Failure(
                lacking.what,
                means="Nothing was rented.",
                do=f"Give it with --set, such as --set image=… --set ssh_key=…. {lacking.do}",
                exit=Exit.USAGE,
                code=lacking.code,
            ) from None


def arguments(parser: argparse.ArgumentParser, only: str = "") -> None:
    """Add the words that renting takes.

    Args:
        only: goes before their help, such as ``with --rent: ``.
    """
    parser.add_argument("--offer", metavar="ID", help=f"{only}this one, in place of the best that fits")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE",
        help=f"{only}what its request needs besides, such as image=… ssh_key=… region=… disk_gb=50",
    )  # fmt: skip
    parser.add_argument(
        "--not-there", action="store_true",
        help=f"{only}your word that the console shows no machine of the request that is open",
    )  # fmt: skip


def pairs(words: list[str]) -> dict[str, str]:
    """``KEY=VALUE`` words. Raises Failure."""
    found = {}
    for word in words:
        key, _, value = word.partition("=")
        if not key or not value:
            raise Failure("--set takes KEY=VALUE.", exit=Exit.USAGE)
        found[key] = value
    return found


def with_words(terms: Terms, more: Mapping[str, str]) -> Terms:
    """Terms with the operator's words instead; ``region`` is none of them. Raises Failure: no number."""
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


async def settled(want: Want, where: Paths, say: Say, *, not_there: bool) -> Instance | None:
    """The box of a request for the same that is open; None: none is.

    Args:
        not_there: the operator's word that its machine does not exist.

    Raises:
        Failure: nobody saw its machine; or the account lists it, against that word.
    """
    from tui.platforms import renting, sent
    from tui.verbs.accounting import account_of

    before = await asyncio.to_thread(sent.find, where, want.platform)
    if before is None or before.run != want.run:
        return None
    if not_there:
        await renting.disown(account_of(where, want.platform, want.account), where, before)
        return None
    plane = _plane(want, where)
    say(f"{before.name} was asked for at {before.at}; nothing more is rented before that is known.")
    try:
        rented = await _renter(plane, where, say).settle(before)
    except Failure as failure:
        do = "Look at the platform's console; where it is not there, say so with --not-there."
        raise Failure(
            failure.what, means=failure.means, do=do, exit=Exit.UNKNOWN, code=failure.code
        ) from None
    return _entered(rented, want, where)


async def order(want: Want, where: Paths) -> Order:
    """Work out what to rent. Rents nothing.

    Raises:
        Failure: the account can't be asked, or nothing fits.
    """
    from tui.fleet import fleet_file
    from tui.runs.offers import fitting, machine_name, offer_of, wish_for

    _refuse_while_open(want, where)
    plane = _plane(want, where)
    try:
        async with asyncio.timeout(_ASK_S):
            offers = await plane.offers()
            listing = await plane.list_all()
    except TimeoutError:
        raise Failure(
            f"{safe(want.platform, 40)} did not answer within {_ASK_S:.0f} s.", means="Nothing was rented."
        ) from None
    fit = fitting(offers, want.resources)
    if want.offer is None and not fit:
        raise Failure(
            f"None of {len(offers)} offers at {safe(want.platform, 40)} is there and known to fit.",
            means="Nothing was rented.",
            do="Try later, or name one with --offer; or rent at the console, and rgt add its login.",
            code="no-offer",
        )
    chosen = fit[0] if want.offer is None else offer_of(offers, want.offer)
    taken = fleet_file.names(where.fleet_file).instances  # a file that can't be read is told before any money
    day = time.strftime("%Y%m%d")
    name = machine_name(want.stem, day, (*taken, *(one.name for one in listing.machines)))
    wish = wish_for(want.resources, chosen, name, want.terms, want.region)
    others = tuple(one for one in fit if one.id != chosen.id)[:_OTHERS]
    owner = listing.account or "the platform names nobody"
    return Order(plane, wish, others, owner)


def plan_of(made: Order) -> Iterator[tuple[str, str]]:
    """What would be rented, as titles and sentences. Raises Failure once the offers are told: see `Order`."""
    from tui.platforms.renting import price_words

    yield "rent", f"{_words(made.wish)} ({made.wish.offer.id}); {price_words(made.wish.price)} from then on"
    for one in made.others:
        other = replace(made.wish, offer=one, gpus=made.wish.gpus if one.multiplied else None)
        yield "or", f"--offer {shlex.quote(one.id)}: {_words(other)}, {price_words(other.price)}"
    yield "account", made.owner
    request = made.request
    yield "request", f"{request.method} {request.path}"
    for line in json.dumps(request.body, indent=1, ensure_ascii=False, sort_keys=True).split("\n"):
        yield "", line
    yield "then", "wait until it runs, add it to the fleet, connect, and keep its host key"


def consents(made: Order) -> bool:
    """Whether the operator typed the word. Raises Failure (exit 4) where there is no terminal."""
    from tui.custody.keyboard import read_line
    from tui.platforms.renting import price_words

    cost = price_words(made.wish.price)
    prompt = f"This costs {cost} from then on. Type {WORD} and Enter to send exactly this: "
    return read_line(safe(prompt, 200), _CONSENT_S).strip() == WORD


async def rent(made: Order, want: Want, where: Paths, say: Say) -> Instance:
    """Send the request, once, wait for the machine, and put it into the fleet. Raises Failure."""
    return _entered(
        await _renter(made.plane, where, say).send(made.request, made.wish, run=want.run), want, where
    )


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


def _refuse_while_open(want: Want, where: Paths) -> None:
    """Raises Failure: a request for something else may have a machine that bills."""
    from tui.platforms import sent

    before = sent.find(where, want.platform)
    if before is not None:
        goes_on = f"rgt relaunch {before.run} --rent" if before.run else f"rgt up {safe(want.platform, 40)}"
        raise Failure(
            f"A request to this platform is open: {safe(before.name, 80)}, asked for at {before.at}.",
            means="It may exist and bill; nothing was rented.",
            do=f"{goes_on} looks what became of it, and so does the step of rgt setup that rents.",
            code="request-open",
        )


def _entered(rented: Rented, want: Want, where: Paths) -> Instance:
    """Put the machine into the fleet, once, and close the request. Raises Failure."""
    from tui.fleet import settings
    from tui.platforms import sent
    from tui.runs.book import book

    name = _known(rented, where) or _added(rented, want, where)
    if want.run:
        book(where).set_rented(want.run, name)
    box = next(one for one in settings.load(where.fleet_file).instances if one.name == name)
    _receipt(where, want, box, rented.mark)
    sent.drop(where, rented.mark)
    return box


def _known(rented: Rented, where: Paths) -> str | None:
    """What the machine is called in the fleet; None: it is not there."""
    from tui.fleet import settings

    it = (rented.mark.platform, rented.machine.id)
    boxes = settings.load(where.fleet_file).instances
    return next((one.name for one in boxes if (one.platform, one.instance_id) == it), None)


def _added(rented: Rented, want: Want, where: Paths) -> str:
    """The name it got in the fleet. Raises Failure: it could not be written, such as beside an old login."""
    from tui.verbs.fleet import Extras, written

    price = rented.price
    extras = Extras(
        platform=want.platform,
        price=price.per_hour,
        currency=price.currency or None,
        instance_id=rented.machine.id,
        account=want.account,
    )
    login = shlex.join((*shlex.split(rented.login), *(("-i", want.key) if want.key else ())))
    try:
        return written(where, login, rented.name, extras)[1]
    except Failure as failure:
        if name := _known(rented, where):  # another rgt looked at the same request, and was faster
            return name
        raise Failure(
            failure.what,
            means=f"{rented.machine.id} is rented and bills, and is not in the fleet yet.",
            do=f"{failure.do} rgt remove forgets a box that is gone. Then the same command goes on.",
            code=failure.code,
        ) from None


def _receipt(where: Paths, want: Want, box: Instance, before: Sent) -> None:
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
            run=want.run or None,
            detail=f"asked for once, at {before.at}; price an hour: {cost}",
        )
    )


def _renter(plane: Provider, where: Paths, say: Say) -> Renter:
    from tui.platforms import renting

    return renting.Renter(
        plane, where, lambda line: say(f"  {line}"), time.time, renting.UP_S, renting.LOOK_S
    )


def _plane(want: Want, where: Paths) -> Provider:
    """The account to rent at. Raises Failure."""
    from tui.platforms.credentials import Missing
    from tui.verbs.accounting import account_of

    found = account_of(where, want.platform, want.account)
    if isinstance(found, Missing):
        raise Failure(
            f"{safe(want.platform, 40)} {found.why}.",
            means="Nothing was sent.",
            do="rgt setup stores a key; or rent at the console, and rgt add its login.",
            code="no-account",
        )
    return found.plane


def _words(wish: Wish) -> str:
    offer, count = wish.offer, wish.gpus if wish.gpus and wish.offer.multiplied else wish.offer.gpus
    memory = f" {offer.gpu_memory_gb:.0f} GB" if offer.gpu_memory_gb else ""
    spot = ", can be taken away" if offer.spot else ""
    stock = ", stock not told" if offer.available is None else ""
    facts = f", {', '.join(offer.facts[:2])}" if offer.facts else ""
    return f"{count} × {offer.gpu}{memory}{spot}{stock}{facts}"
