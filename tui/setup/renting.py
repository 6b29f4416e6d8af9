"""Renting: by hand with the platform's own words, or by its API with the exact request and a typed word.

A request is sent once. What became of it is read from the list, never guessed, and never sent again.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tui.fleet.profile_schema import Facts
from tui.model.failure import Exit, Failure
from tui.model.setup import Asked, Option
from tui.model.text import SafeText, safe
from tui.platforms import sent
from tui.platforms.control import ControlError, CreateRequest, Offer, Provider, Wish
from tui.platforms.credentials import Missing
from tui.platforms.renting import LOOK_S, UP_S, Rented, Renter, disown, price_words
from tui.platforms.sent import Sent
from tui.setup.beginning import profile_of
from tui.setup.state import Did, Shown, State, Tell, Tools, lines

HAVE = "have"
SENT = "sent"
"""Look what became of the request that is open."""
NOT_THERE = "not-there"
"""The operator's word that the console shows no machine of that request."""
WORD = "rent"
_OFFERS = 40
_ASK_S = 45.0
_STOCK_S = 6 * 3600.0
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,40}\Z")


@dataclass(slots=True)
class Rent:
    """Renting, one question after another. What it remembers between them is nothing that was sent."""

    patience_s: float = UP_S
    look_s: float = LOOK_S
    _offers: dict[str, Offer] = field(default_factory=dict)
    _offer: Offer | None = None
    _wish: Wish | None = None
    _request: CreateRequest | None = None

    async def ask(self, state: State, tools: Tools) -> Shown:
        self._offer = self._wish = self._request = None
        facts = profile_of(state, tools).facts
        note = SafeText("I have one already, or rent it at the console now")
        have = Option(HAVE, SafeText("there is a box"), note)
        before = await asyncio.to_thread(sent.find, tools.where, facts.id)
        if before is not None:
            return _open(before, have)
        offers = await self._offered(state, facts, tools)
        self._offers = {offer.id: offer for offer in offers}
        options = (have, *(_option(offer) for offer in offers))
        asked = Asked("choose", SafeText("Rent here, or go on with a box that there is?"), options=options)
        runs = "list what can be rented, cheapest first" if offers else "nothing: you rent at the console"
        about = lines(tuple(_walk(profile_of(state, tools).sections.get("1. LAUNCH", ""), facts)))
        return Shown(safe(runs), SafeText("a machine that runs and can be reached"), asked, about=about)

    async def _offered(self, state: State, facts: Facts, tools: Tools) -> tuple[Offer, ...]:
        if state.told("credentials", "api") != "yes":
            return ()
        try:
            async with asyncio.timeout(_ASK_S):
                return (await _plane(facts, tools).offers())[:_OFFERS]
        except (TimeoutError, ControlError):
            return ()  # then it is rented by hand

    async def take(self, state: State, tools: Tools, answer: str, tell: Tell) -> Did | Shown:
        facts = profile_of(state, tools).facts
        if self._request is not None:
            return await self._sent(facts, tools, answer, tell)
        if self._wish is not None:
            return self._with_more(facts, tools, answer)
        if self._offer is not None:
            return self._named(facts, tools, answer)
        if answer == HAVE:
            return Did(brief="there is a box", data={"by": "hand"})
        before = await asyncio.to_thread(sent.find, tools.where, facts.id)
        if before is not None:
            return await self._of_before(before, state, facts, tools, answer, tell)
        return await self._chosen(facts, tools, answer, tell)

    async def _of_before(
        self, before: Sent, state: State, facts: Facts, tools: Tools, answer: str, tell: Tell
    ) -> Did | Shown:
        """A request is open: look for its machine, or take the operator's word that there is none."""
        if answer == NOT_THERE:
            await disown(tools.account(facts.id), tools.where, before)
            return await self.ask(state, tools)
        if answer != SENT:
            raise Failure("A request to this platform is open.", means="Nothing was sent.")
        return await self._did(facts, tools, await self._renter(facts, tools, tell).settle(before))

    async def _chosen(self, facts: Facts, tools: Tools, answer: str, tell: Tell) -> Shown:
        offer = self._offers.get(answer)
        if offer is None:
            raise Failure("That is none of the offers.", exit=Exit.USAGE)
        if offer.available is False:
            offer = await self._waited_for(facts, tools, offer, tell)
        self._offer = offer
        hint = SafeText("the machine is named that, and the date")
        asked = Asked("text", SafeText("project-purpose"), hint)
        return Shown(SafeText("nothing yet"), SafeText("a name that tells later what it was for"), asked)

    async def _waited_for(self, facts: Facts, tools: Tools, offer: Offer, tell: Tell) -> Offer:
        """Look until it is to be had. Looking is repeated, renting never is."""
        every = max(30.0, (facts.stock.retry_s or 60.0) if facts.stock else 60.0)
        left = _STOCK_S
        while left > 0:
            tell(safe(f"{offer.gpu} is sold out; looking again every {every:.0f} s"))
            await asyncio.sleep(every)
            left -= every
            try:
                now = {one.id: one for one in await _plane(facts, tools).offers()}.get(offer.id)
            except ControlError:
                continue
            if now is not None and now.available is not False:
                return now
        raise Failure(f"{offer.gpu} was not to be had for {_STOCK_S / 3600:.0f} h.", do="Choose another one.")

    def _named(self, facts: Facts, tools: Tools, answer: str) -> Shown:
        words = answer.strip().lower().replace(" ", "-").replace("_", "-")
        if not _NAME.match(words):
            raise Failure("A name of letters, digits and dashes, please.", exit=Exit.USAGE)
        assert self._offer is not None
        name = f"{words}-{tools.today():%Y%m%d}"
        wish = Wish(name=name, offer=self._offer, region=next(iter(self._offer.regions), None))
        return self._request_for(facts, tools, wish)

    def _with_more(self, facts: Facts, tools: Tools, answer: str) -> Shown:
        """What the platform wants besides, as ``key=value`` words."""
        assert self._wish is not None
        wish, more = self._wish, dict(self._wish.more)
        for word in answer.split():
            key, _, value = word.partition("=")
            if not value:
                raise Failure("Write it as KEY=VALUE, with blanks between several.", exit=Exit.USAGE)
            more[key] = value
        return self._request_for(
            facts,
            tools,
            replace(
                wish,
                image=more.pop("image", wish.image),
                ssh_key=more.pop("ssh_key", wish.ssh_key),
                region=more.pop("region", wish.region),
                disk_gb=_whole(more.pop("disk_gb", None), wish.disk_gb),
                gpus=_whole(more.pop("gpus", None), wish.gpus),
                more=more,
            ),
        )

    def _request_for(self, facts: Facts, tools: Tools, wish: Wish) -> Shown:
        self._wish = wish
        try:
            request = _plane(facts, tools).request(wish)
        except ControlError:
            raise
        except Failure as lacking:
            hint = SafeText("KEY=VALUE, such as ssh_key=NAME image=… region=… disk_gb=50")
            asked = Asked("text", safe(lacking.what, 200), hint)
            return Shown(SafeText("nothing yet"), SafeText("everything the request needs"), asked)
        self._request = request
        asked = Asked(
            "text",
            safe(f"This costs {price_words(wish.price)} from now on. Type {WORD} to send exactly this."),
            SafeText("anything else sends nothing"),
            word=SafeText(WORD),
        )
        return Shown(
            safe(f"{request.method} {request.path}", 200),
            SafeText("a machine that runs and can be reached"),
            asked,
            about=lines(tuple(_body(request))),
        )

    async def _sent(self, facts: Facts, tools: Tools, answer: str, tell: Tell) -> Did:
        request, wish = self._request, self._wish
        assert request is not None
        assert wish is not None
        if answer.strip() != WORD:
            self._request = self._wish = self._offer = None
            raise Failure("Nothing was sent, nothing was rented.", do="Choose again.")
        self._request = None  # whatever comes of it: once
        return await self._did(facts, tools, await self._renter(facts, tools, tell).send(request, wish))

    def _renter(self, facts: Facts, tools: Tools, tell: Tell) -> Renter:
        return Renter(_plane(facts, tools), tools.where, tell, tools.clock, self.patience_s, self.look_s)

    async def _did(self, facts: Facts, tools: Tools, rented: Rented) -> Did:
        """What is kept of it. From then on the setup knows it, and the request is no longer open."""
        machine, price = rented.machine, rented.price
        data = {"by": "api", "id": machine.id, "name": rented.name, "login": rented.login}
        if price.per_hour is not None:
            data |= {"price": f"{price.per_hour:g}", "currency": price.currency}
        await asyncio.to_thread(sent.drop, tools.where, rented.mark)
        return Did(
            brief=f"{machine.id} runs, {price_words(rented.asked)}",
            observed=(f"{rented.name}: {machine.said or machine.state}", rented.login or "no endpoint told"),
            data=data,
        )


def _whole(text: str | None, otherwise: int | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else otherwise


def _plane(facts: Facts, tools: Tools) -> Provider:
    found = tools.account(facts.id)
    if isinstance(found, Missing):
        raise Failure(f"{facts.title} {found.why}.", do="Go back to the credentials.")
    return found.plane


_STOCK = {True: "to be had", False: "sold out: looked for until it is", None: "stock not told"}


def _option(offer: Offer) -> Option:
    stock = _STOCK[offer.available]
    memory = f" {offer.gpu_memory_gb:.0f} GB" if offer.gpu_memory_gb else ""
    spot = ", can be taken away" if offer.spot else ""
    facts = f", {', '.join(offer.facts[:2])}" if offer.facts else ""
    return Option(
        offer.id,
        safe(f"{offer.gpus} × {offer.gpu}{memory}", 60),
        safe(f"{price_words(offer.price)}, {stock}{spot}{facts}", 160),
    )


def _open(before: Sent, have: Option) -> Shown:
    """What can be done while a request is open: nothing that rents."""
    options = (
        Option(
            SENT, SafeText("look what became of it"), safe(f"{before.name}, asked for at {before.at}", 160)
        ),
        Option(NOT_THERE, SafeText("it is not there"), SafeText("I looked at the console: no such machine")),
        have,
    )
    told = safe(f"{before.name} was asked for at {before.at}, and nobody saw it come up.", 200)
    asked = Asked("choose", SafeText("What became of it?"), options=options)
    about = (told, SafeText("It may exist and bill; nothing is sent before that is known."))
    return Shown(
        SafeText("ask the account's list for it"), SafeText("its machine, or your word"), asked, about=about
    )


def _body(request: CreateRequest) -> Iterator[str]:
    yield f"{request.method} {request.path}"
    yield from json.dumps(request.body, indent=1, ensure_ascii=False, sort_keys=True).split("\n")


def _walk(section: str, facts: Facts) -> Iterator[str]:
    """How to rent by hand, and what costs less while nothing is trained."""
    for mode in facts.cheap_modes:
        yield f"Cheaper: {mode.text}"
    if facts.stock:
        yield f"Sold out? {facts.stock.text}"
    for line in section.split("\n"):
        plain = re.sub(r"\*\*|`", "", line).strip()
        if plain and not plain.startswith("#"):
            yield plain
