"""A request that is sent once, against accounts that lie, lose, and tell of the wrong machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tui.fleet.paths import Paths
from tui.model.account import AccountSpec
from tui.model.custody import Victim
from tui.model.failure import Failure
from tui.model.instance import Endpoint
from tui.platforms import vendors
from tui.platforms.control import (
    Created,
    CreateRequest,
    Listing,
    Machine,
    NoAnswer,
    NotAllowed,
    Offer,
    Price,
    VerbRefused,
    Wish,
)
from tui.platforms.credentials import Missing
from tui.platforms.renting import Renter, disown
from tui.platforms.sent import Sent, Terms, drop, find, keep_id, mark

UP = Machine("m1", "a-1", "running", endpoint=Endpoint("203.0.113.9", 2222))
OTHER = replace(UP, id="prod", name="prod")
WISH = Wish("a-1", Offer("o", "L4", 1, Price(0.5, "USD")))
REQUEST = CreateRequest("p", "POST", "/", {"name": "a-1"})
MARK = Sent(platform="p", name="a-1", at="2026-11-30 10:00")


@dataclass
class Account:
    """Tells what it is given: one list after another, the last one for ever."""

    lists: list[tuple[Machine, ...] | NoAnswer | NotAllowed]
    created: Created | NoAnswer | VerbRefused = field(default_factory=lambda: Created("m1", "201"))
    told: Machine = UP
    platform: str = "p"
    asked: int = 0
    described: list[str | None] = field(default_factory=list)

    async def list_all(self) -> Listing:
        now = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        if isinstance(now, Failure):
            raise now
        return Listing(now, complete=True)

    async def create(self, request: CreateRequest) -> Created:
        self.asked += 1
        if isinstance(self.created, Failure):
            raise self.created
        return self.created

    async def describe(self, victim: Victim) -> Machine:
        self.described.append(victim.instance_id)
        return self.told


@pytest.fixture
def where(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "config", tmp_path / "state")


def renter(account: Account, where: Paths) -> Renter:
    return Renter(account, where, lambda _line: None, lambda: 0.0, 0.05, 0.001)  # type: ignore[arg-type]


def keyed(account: Account) -> vendors.Account:
    return vendors.Account(AccountSpec("p", "p"), account, "the environment")  # type: ignore[arg-type]


async def test_the_machine_of_the_answer_is_remembered_until_the_request_is_closed(where: Paths) -> None:
    account = Account([()], told=replace(UP, state="starting"))
    with pytest.raises(Failure, match="did not come up"):
        await renter(account, where).send(REQUEST, WISH)
    before = find(where, "p")
    assert before is not None
    assert before.id == "m1"
    account.told = replace(UP, name="renamed by the platform")
    rented = await renter(account, where).settle(before)
    assert (rented.machine.id, rented.name, account.asked) == ("m1", "a-1", 1)
    drop(where, rented.mark)
    assert find(where, "p") is None


async def test_a_name_that_is_taken_sends_nothing(where: Paths) -> None:
    account = Account([(UP,)])
    with pytest.raises(Failure, match="named a-1 already"):
        await renter(account, where).send(REQUEST, WISH)
    assert (account.asked, find(where, "p")) == (0, None)


async def test_an_account_that_lists_nothing_sends_nothing(where: Paths) -> None:
    for error in (NoAnswer("502"), NotAllowed("401")):
        account = Account([error])
        with pytest.raises(Failure) as failed:
            await renter(account, where).send(REQUEST, WISH)
        assert failed.value.means == "Nothing was sent."
        assert (account.asked, find(where, "p")) == (0, None)


async def test_a_request_of_another_name_would_be_lost_sight_of(where: Paths) -> None:
    account = Account([()])
    with pytest.raises(Failure, match="does not carry the name"):
        await renter(account, where).send(replace(REQUEST, body={"name": "mine"}), WISH)
    assert (account.asked, find(where, "p")) == (0, None)


async def test_an_answer_that_names_a_machine_from_before_is_not_believed(where: Paths) -> None:
    account = Account([(OTHER,), (OTHER, UP)], created=Created("prod", "201"), told=OTHER)
    rented = await renter(account, where).send(REQUEST, WISH)
    assert (rented.machine.id, account.described) == ("m1", ["m1"] * len(account.described))


@pytest.mark.parametrize(
    ("own", "told", "price"),
    [
        (Price(2.0, "USD"), ["it tells a price of 2.00 USD/h; what was offered was 0.50 USD/h"], 2.0),
        (Price(0.5, "USD"), [], 0.5),
        (Price(None, "USD"), [], 0.5),
        (None, [], 0.5),
    ],
)
async def test_another_price_than_the_offers_is_told(
    where: Paths, own: Price | None, told: list[str], price: float
) -> None:
    heard: list[str] = []
    account = Account([()], told=replace(UP, price=own))
    rented = await replace(renter(account, where), tell=heard.append).send(REQUEST, WISH)
    assert [line for line in heard if "price" in line] == told
    assert rented.price.per_hour == price


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (OTHER, "asked for m1, it told of prod"),
        (replace(UP, state="gone"), "m1 is gone again"),
        (replace(UP, endpoint=None), "did not come up"),
    ],
)
async def test_what_is_told_of_the_wrong_machine_or_of_none_is_no_machine(
    where: Paths, told: Machine, says: str
) -> None:
    with pytest.raises(Failure, match=says):
        await renter(Account([()], told=told), where).send(REQUEST, WISH)
    assert find(where, "p") is not None


async def test_two_of_one_name_are_told_as_two(where: Paths) -> None:
    twins = (UP, replace(UP, id="m2"))
    with pytest.raises(Failure, match="2 machines of that name") as failed:
        await renter(Account([(), twins], created=NoAnswer("502")), where).send(REQUEST, WISH)
    assert failed.value.means == "It may exist and bill."


async def test_what_was_refused_is_closed(where: Paths) -> None:
    with pytest.raises(VerbRefused):
        await renter(Account([()], created=VerbRefused("no credit")), where).send(REQUEST, WISH)
    assert find(where, "p") is None


async def test_the_operators_word_does_not_hide_a_machine_that_is_listed(where: Paths) -> None:
    mark(where, MARK)
    with pytest.raises(Failure, match="The account lists it: m1"):
        await disown(keyed(Account([(UP,)])), where, MARK)
    assert find(where, "p") == MARK
    for account in (keyed(Account([NoAnswer("502")])), Missing("p", "has no key")):
        await disown(account, where, MARK)
        assert find(where, "p") is None
        mark(where, MARK)


def test_a_request_of_another_rgt_is_not_closed(where: Paths) -> None:
    mark(where, MARK)
    drop(where, MARK.model_copy(update={"name": "a-2"}))
    keep_id(where, MARK.model_copy(update={"at": "2026-11-30 09:00"}), "m9")
    assert find(where, "p") == MARK


def test_words_that_may_hold_secrets_are_not_written_down() -> None:
    private = dict.fromkeys(
        ("env", "onstart", "image_login", "user_data", "dockerStartCmd", "args_str", "token"), "s3cret"
    )
    assert Terms.of(replace(WISH, more={**private, "templateId": "t"})).more == {"templateId": "t"}
