"""A machine is asked for once, and waited for until it runs and tells where.

What became of a request is read from the list, never guessed, and a request is never sent again. Its mark
stays (`sent`) until whoever asked has written down what he got.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.failure import Exit, Failure
from tui.model.text import SafeText, safe
from tui.platforms import sent
from tui.platforms.control import ControlError, CreateRequest, Machine, NoAnswer, Price, Provider, Wish
from tui.platforms.credentials import Missing
from tui.platforms.sent import Sent, Terms

if TYPE_CHECKING:
    from tui.platforms.vendors import Account

UP_S = 900.0
LOOK_S = 10.0
_PROXY_LOOKS = 6
"""So many looks for a way in of its own, where the first one told is a proxy that copies no files."""


@dataclass(frozen=True, slots=True)
class Rented:
    """A machine that runs and tells where.

    Attributes:
        mark: what it was asked for with; it stays until it is dropped.
    """

    machine: Machine
    mark: Sent

    @property
    def name(self) -> str:
        """What it was asked for under."""
        return self.mark.name

    @property
    def asked(self) -> Price:
        """The price of the offer."""
        return Price(self.mark.per_hour, self.mark.currency)

    @property
    def price(self) -> Price:
        """The machine's own where it tells a figure, else the offer's."""
        own = self.machine.price
        return self.asked if own is None or own.per_hour is None else own

    @property
    def login(self) -> str:
        """How SSH gets there, as a line to paste; empty where no endpoint is told."""
        end = self.machine.endpoint
        return f"ssh -p {end.port or 22} {end.user or 'root'}@{end.host}" if end else ""


@dataclass(frozen=True, slots=True)
class Renter:
    """Rents at one account.

    Attributes:
        clock: seconds since the epoch, for the date of the mark.
        patience_s: how long a machine may take until it runs.
        look_s: seconds between two looks.
    """

    plane: Provider
    where: Paths
    tell: Callable[[SafeText], None]
    clock: Callable[[], float]
    patience_s: float = UP_S
    look_s: float = LOOK_S

    async def send(self, request: CreateRequest, wish: Wish, run: str = "") -> Rented:
        """Send a request, once, and wait for its machine.

        Args:
            run: the run that is to go on there.

        Raises:
            Failure: nothing was sent; or it was refused; or it may exist and bill. It says which.
        """
        _refuse_unnamed(request, wish.name)
        mark = Sent(
            platform=self.plane.platform,
            name=wish.name,
            at=time.strftime("%Y-%m-%d %H:%M", time.localtime(self.clock())),
            per_hour=wish.price.per_hour,
            currency=wish.price.currency,
            run=run,
            terms=Terms.of(wish),
        )
        await asyncio.to_thread(sent.mark, self.where, mark)
        others = await self._others(mark)
        self.tell(SafeText("the request is sent"))
        try:
            id_ = (await self.plane.create(request)).id
        except NoAnswer as error:
            self.tell(safe(f"no answer ({error.what}); the list has to tell", 200))
            id_ = None
        except ControlError:  # surely refused
            await asyncio.to_thread(sent.drop, self.where, mark)
            raise
        if id_ is not None and id_ not in others:
            await asyncio.to_thread(sent.keep_id, self.where, mark, id_)
            mark = mark.model_copy(update={"id": id_})
        return await self._arrived(mark)

    async def settle(self, before: Sent) -> Rented:
        """Look what became of a request that is open. Raises Failure: nothing was seen of it."""
        return await self._arrived(before)

    async def _others(self, mark: Sent) -> frozenset[str]:
        """Ids of the machines that were there before. Raises Failure: one has the name; nothing was sent.

        Asked under the mark, which keeps every other rgt from renting: what has the name later is the one.
        """
        clear = False
        try:
            machines = (await self.plane.list_all()).machines
            clear = all(one.name != mark.name for one in machines)
        except ControlError as error:
            raise Failure(error.what, means="Nothing was sent.", do=error.do, exit=error.exit) from None
        finally:
            if not clear:
                await asyncio.to_thread(sent.drop, self.where, mark)
        if not clear:
            raise Failure(
                f"The account has a machine named {safe(mark.name, 80)} already.",
                means="Nothing was sent: two of one name could not be told apart.",
                do="Try again under another name.",
                code="name-taken",
            )
        return frozenset(one.id for one in machines)

    async def _arrived(self, mark: Sent) -> Rented:
        machine = await self._up(mark)
        await asyncio.to_thread(sent.keep_terms, self.where, mark.platform, machine.id, mark.terms)
        rented = Rented(machine, mark)
        bills, asked = price_words(rented.price), price_words(rented.asked)
        if bills != asked:
            self.tell(safe(f"it tells a price of {bills}; what was offered was {asked}", 200))
        return rented

    async def _up(self, mark: Sent) -> Machine:
        """Wait until it runs and tells where. Raises Failure, which says whether it may bill."""
        ends = time.monotonic() + self.patience_s
        id_, last, proxied = mark.id, "nothing was seen of it", 0
        while time.monotonic() < ends:
            try:
                found = await self._look(id_, mark.name)
            except ControlError as error:
                found, last = None, error.what
            if found is not None:
                id_, last = found.id, found.said or found.state
                self.tell(safe(f"{found.id} is {last}", 200))
                if found.state == "gone":
                    raise _gone(found)
                if found.state == "running" and found.endpoint is not None:
                    proxied += 1
                    if not found.endpoint.proxied or proxied > _PROXY_LOOKS:
                        return found
            await asyncio.sleep(self.look_s)
        raise Failure(
            f"{safe(id_ or mark.name, 80)} did not come up in {self.patience_s / 60:.0f} minutes: {last}.",
            means="It may exist and bill.",
            do="Look at the platform's console; `rgt status` shows what the account lists.",
            code="not-up",
        )

    async def _look(self, id_: str | None, name: str) -> Machine | None:
        """Raises ControlError: it is not told which machine it is."""
        if id_ is not None:
            victim = Victim(name=name, platform=self.plane.platform, instance_id=id_)
            found = await self.plane.describe(victim)
            if found.id != id_:
                raise NoAnswer(f"asked for {safe(id_, 80)}, it told of {safe(found.id, 80)}")
            return found
        mine = [one for one in (await self.plane.list_all()).machines if one.name == name]
        if len(mine) > 1:
            raise NoAnswer(f"{len(mine)} machines of that name are listed")
        return next(iter(mine), None)


async def disown(account: Account | Missing, where: Paths, before: Sent) -> None:
    """Take the operator's word that no machine came of a request. Raises Failure: the account lists one.

    Where the account can't be asked, the word is all there is.
    """
    machines: tuple[Machine, ...] = ()
    if not isinstance(account, Missing):
        with contextlib.suppress(ControlError):
            machines = (await account.plane.list_all()).machines
    mine = [one for one in machines if before.name == one.name or before.id == one.id]
    there = next((one for one in mine if one.state != "gone"), None)
    if there is not None:
        raise Failure(
            f"The account lists it: {safe(there.id, 80)}, {there.state}.",
            means="It exists and may bill; nothing was sent, and nothing forgotten.",
            do="Look what became of it, or end it at the console first.",
            code="machine-there",
        )
    await asyncio.to_thread(sent.drop, where, before)


def _refuse_unnamed(request: CreateRequest, name: str) -> None:
    """Raises Failure: a machine of another name would not be found again."""
    if name not in request.body.values():
        raise Failure(
            "The request does not carry the name that the machine is looked for by.",
            means="Nothing was sent.",
            do=f"Give no other one: it is to be {safe(name, 80)}.",
            exit=Exit.USAGE,
            code="other-name",
        )


def _gone(machine: Machine) -> Failure:
    return Failure(
        f"{safe(machine.id, 80)} is gone again: {machine.said or machine.state}.",
        means="It should bill no more, as far as the platform tells.",
        do="Look at the platform's console.",
        code="gone-again",
    )


def price_words(price: Price) -> str:
    """``0.44 USD/h``; a figure that nobody told is ``?``."""
    return f"{'?' if price.per_hour is None else f'{price.per_hour:.2f}'} {price.currency}/h"
