"""A machine is asked for once, and waited for until it runs and tells where.

What became of a request is read from the list, never guessed, and a request is never sent again. Its mark
stays (`sent`) until whoever asked has written down what he got.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.model.text import SafeText, safe
from tui.platforms import sent
from tui.platforms.control import ControlError, CreateRequest, Machine, NoAnswer, Price, Provider, Wish
from tui.platforms.sent import Sent, Terms

UP_S = 900.0
LOOK_S = 10.0
_PROXY_LOOKS = 6
"""So many looks for a way in of its own, where the first one told is a proxy that copies no files."""


@dataclass(frozen=True, slots=True)
class Rented:
    """A machine that runs and tells where.

    Attributes:
        name: what it was asked for under.
        asked: the price of the offer.
    """

    machine: Machine
    name: str
    asked: Price

    @property
    def price(self) -> Price:
        """The machine's own, else the offer's."""
        return self.machine.price or self.asked

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
        price = wish.price
        mark = Sent(
            platform=self.plane.platform,
            name=wish.name,
            at=time.strftime("%Y-%m-%d %H:%M", time.localtime(self.clock())),
            per_hour=price.per_hour,
            currency=price.currency,
            run=run,
            terms=Terms.of(wish),
        )
        await asyncio.to_thread(sent.mark, self.where, mark)
        self.tell(SafeText("the request is sent"))
        try:
            id_ = (await self.plane.create(request)).id
        except NoAnswer as error:
            self.tell(safe(f"no answer ({error.what}); the list has to tell", 200))
            id_ = None
        except ControlError:  # surely refused
            await asyncio.to_thread(sent.drop, self.where, mark.platform)
            raise
        return await self._arrived(mark, id_)

    async def settle(self, before: Sent) -> Rented:
        """Look what became of a request that is open. Raises Failure: nothing was seen of it."""
        return await self._arrived(before, None)

    async def _arrived(self, mark: Sent, id_: str | None) -> Rented:
        machine = await self._up(id_, mark.name)
        await asyncio.to_thread(sent.keep_terms, self.where, mark.platform, machine.id, mark.terms)
        return Rented(machine, mark.name, Price(mark.per_hour, mark.currency))

    async def _up(self, id_: str | None, name: str) -> Machine:
        """Wait until it runs and tells where. Raises Failure, which says that it may bill."""
        ends = time.monotonic() + self.patience_s
        last, proxied = "nothing was seen of it", 0
        while time.monotonic() < ends:
            try:
                found = await self._look(id_, name)
            except ControlError as error:
                found, last = None, error.what
            if found is not None:
                id_, last = found.id, found.said or found.state
                self.tell(safe(f"{found.id} is {last}", 200))
                if found.state == "running" and found.endpoint is not None:
                    proxied += 1
                    if not found.endpoint.proxied or proxied > _PROXY_LOOKS:
                        return found
            await asyncio.sleep(self.look_s)
        raise Failure(
            f"{id_ or name} did not come up in {self.patience_s / 60:.0f} minutes: {last}.",
            means="It may exist and bill.",
            do="Look at the platform's console; `rgt status` shows what the account lists.",
            code="not-up",
        )

    async def _look(self, id_: str | None, name: str) -> Machine | None:
        if id_ is not None:
            victim = Victim(name=name, platform=self.plane.platform, instance_id=id_)
            return await self.plane.describe(victim)
        listing = await self.plane.list_all()
        mine = [one for one in listing.machines if one.name == name]
        return mine[0] if len(mine) == 1 else None


def price_words(price: Price) -> str:
    """``0.44 USD/h``; a figure that nobody told is ``?``."""
    return f"{'?' if price.per_hour is None else f'{price.per_hour:.2f}'} {price.currency}/h"
