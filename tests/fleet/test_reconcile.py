"""Lists of providers beside the fleet file: not listed once is not gone, and a price not told is not 0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tui.fleet import judge, money
from tui.fleet.account_report import account_lines
from tui.fleet.reconcile import balance_clock, burn_of, is_gone, merge, runway_s
from tui.fleet.reducer import reduce
from tui.fleet.report import exit_code, status_json
from tui.model.account import AccountView, Rented
from tui.model.event import AccountSeen, AccountsKnown, FleetChanged, LinkChanged
from tui.model.instance import DangerClock, Endpoint, Instance, Link, LinkState
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.model.text import SafeText

NOW = 1_796_000_000.0
END = Endpoint("203.0.113.9", 22001, "root")
BOX = Instance("a", "runpod", END, instance_id="x1", price_per_hour=9.0, rented_at=NOW - 3600)


def machine(id_: str = "x1", at: float = NOW, **values: Any) -> Rented:
    told = {"name": SafeText("exp"), "state": "running", "said": SafeText("RUNNING"), "per_hour": 1.5}
    return Rented("work", "runpod", id_, seen_at=at, **(told | {"endpoint": END} | values))  # type: ignore[arg-type]


def view(*machines: Rented, at: float = NOW, **values: Any) -> AccountView:
    return AccountView(
        "work", "runpod", machines=machines, **({"asked_at": at, "told_at": at, "complete": True} | values)
    )


def fleet(*events: Any, instances: tuple[Instance, ...] = (BOX,), now: float = NOW) -> FleetSnapshot:
    return reduce(FleetSnapshot(), [FleetChanged(instances, ()), *events], now)


def seen(snapshot: FleetSnapshot, *views: AccountView) -> FleetSnapshot:
    """Lists one after another, each judged when it came in."""
    for one in views:
        snapshot = reduce(snapshot, [AccountSeen(one)], one.asked_at or NOW)
    return snapshot


def shorts(box: BoxView | None) -> list[str]:
    assert box is not None
    return [a.short for a in box.attention]


# --- a machine that no fleet file has -----------------------------------------------------------------------


def test_a_machine_of_an_account_is_a_row_without_being_typed_in() -> None:
    snapshot = fleet(AccountSeen(view(machine(), machine("x2", name=SafeText("orphan")))))
    assert [box.name for box in snapshot.boxes] == ["a", "runpod:orphan"]
    orphan = snapshot.box("runpod:orphan")
    assert orphan is not None
    assert orphan.unwritten
    assert orphan.instance.price_per_hour == 1.5
    assert judge.box_word(orphan, NOW).word == "unlisted RUNNING"
    (told,) = orphan.attention
    assert "which the fleet file does not have" in told.text
    assert "rgt add 'ssh -p 22001 root@203.0.113.9'" in told.text


def test_such_rows_have_names_that_no_entry_can_have_and_none_twice() -> None:
    twins = (machine("x2"), machine("x3"), machine("x4", name=SafeText("")))
    snapshot = fleet(AccountSeen(view(*twins)))
    names = [box.name for box in snapshot.boxes]
    assert len(set(names)) == 4
    assert all(":" in name for name in names[1:])


def test_such_a_row_stays_when_the_fleet_file_is_read_again_and_goes_when_it_is_added() -> None:
    snapshot = fleet(AccountSeen(view(machine("x2"))))
    again = reduce(snapshot, [FleetChanged((BOX,), ())], NOW)
    assert [box.name for box in again.boxes] == ["a", "runpod:exp"]
    added = replace(BOX, name="b", instance_id="x2")
    assert [box.name for box in reduce(again, [FleetChanged((BOX, added), ())], NOW).boxes] == ["a", "b"]


def test_what_an_account_listed_goes_with_the_account() -> None:
    snapshot = fleet(AccountSeen(view(machine("x2"))))
    left = reduce(snapshot, [AccountsKnown(())], NOW)
    assert [box.name for box in left.boxes] == ["a"]
    assert left.accounts == ()


def test_an_entry_without_an_id_is_known_by_the_address_it_answers_at() -> None:
    nameless = replace(BOX, instance_id=None)
    snapshot = fleet(AccountSeen(view(machine())), instances=(nameless,))
    assert len(snapshot.boxes) == 1
    assert snapshot.boxes[0].rented is not None


def test_behind_a_proxy_the_user_tells_which_machine_it_is() -> None:
    proxy = Endpoint("ssh.runpod.io", 22, "x1-abc", proxied=True)
    ours = replace(BOX, instance_id=None, endpoint=replace(proxy, user="x9-zzz"))
    snapshot = fleet(AccountSeen(view(machine(endpoint=proxy))), instances=(ours,))
    assert snapshot.boxes[0].rented is None


# --- gone ---------------------------------------------------------------------------------------------------


def test_one_list_without_it_is_not_its_end() -> None:
    snapshot = seen(fleet(), view(machine()), view(at=NOW + 60))
    box = snapshot.box("a")
    assert box is not None
    assert shorts(box) == ["not listed"]
    assert box.instance.price_per_hour == 1.5  # it still counts


def test_three_complete_lists_over_time_are() -> None:
    lists = [view(at=NOW + 60 * n) for n in (1, 2, 3)]
    snapshot = seen(fleet(), view(machine()), *lists)
    box = snapshot.box("a")
    assert box is not None
    assert shorts(box) == ["gone at runpod"]
    assert judge.box_word(box, NOW + 180).kind == "gone"
    assert money.burn(b.instance for b in snapshot.boxes)[0].amount == 0


def test_lists_in_one_breath_are_not_enough() -> None:
    snapshot = seen(fleet(), view(machine()), *[view(at=NOW + n) for n in (1, 2, 3, 4)])
    assert shorts(snapshot.box("a")) == ["not listed"]


@pytest.mark.parametrize("broken", [{"complete": False}, {"told_at": None, "why": SafeText("500")}])
def test_a_list_that_failed_or_is_incomplete_counts_for_nothing(broken: dict[str, Any]) -> None:
    lists = [replace(view(at=NOW + 60 * n), **broken) for n in range(1, 9)]
    snapshot = seen(fleet(), view(machine()), *lists)
    box = snapshot.box("a")
    assert box is not None
    assert box.rented is not None
    assert not is_gone(box.rented)
    assert shorts(box) == ["list is old"]
    assert box.instance.price_per_hour == 1.5


def test_an_account_that_answers_again_starts_to_count_anew() -> None:
    gap = [
        view(at=NOW + 60),
        replace(view(at=NOW + 120), complete=False),
        view(machine(at=NOW + 180), at=NOW + 180),
    ]
    snapshot = seen(fleet(), view(machine()), *gap, view(at=NOW + 240))
    assert shorts(snapshot.box("a")) == ["not listed"]
    assert snapshot.boxes[0].rented is not None
    assert snapshot.boxes[0].rented.absent == 1


def test_an_id_that_never_was_in_the_list_may_be_of_another_account() -> None:
    lists = [view(at=NOW + 60 * n) for n in range(4)]
    (told,) = seen(fleet(), *lists).boxes[0].attention
    assert told.short == "not in the list"
    assert "or belongs to an account that rgt does not ask" in told.text


def test_an_id_of_a_product_without_api_is_not_missed() -> None:
    """AutoDL's ordinary instances are in no list; that says nothing of them."""
    ordinary = replace(BOX, platform="autodl", instance_id="abc-def")
    lists = [replace(view(at=NOW + 60 * n), platform="autodl", covers=r"pro-\w+") for n in range(5)]
    assert seen(fleet(instances=(ordinary,)), *lists).boxes[0].attention == ()


def test_of_two_accounts_both_must_be_without_it() -> None:
    lists = [view(at=NOW + 60 * n) for n in range(4)]
    other = replace(view(told_at=None, why=SafeText("401")), name="other")
    assert seen(fleet(), *lists, other).boxes[0].attention == ()


# --- money --------------------------------------------------------------------------------------------------


def test_the_providers_price_goes_before_the_typed_one() -> None:
    assert fleet(AccountSeen(view(machine()))).boxes[0].instance.price_per_hour == 1.5


def test_a_price_that_is_not_told_is_the_typed_one_while_it_runs_and_unknown_when_stopped() -> None:
    running = fleet(AccountSeen(view(machine(per_hour=None)))).boxes[0]
    assert running.instance.price_per_hour == 9.0
    stopped = fleet(AccountSeen(view(machine(per_hour=None, state="stopped", said=SafeText("EXITED")))))
    assert stopped.boxes[0].instance.price_per_hour is None
    assert money.burn(b.instance for b in stopped.boxes) == ()
    assert shorts(stopped.boxes[0]) == ["stopped, bills"]
    assert "? $/h" in stopped.boxes[0].attention[0].text


def test_what_a_stopped_box_has_cost_is_unknown_and_not_reckoned_at_its_new_rate() -> None:
    stopped = fleet(AccountSeen(view(machine(per_hour=0.02, state="stopped")))).boxes[0]
    assert money.spent(stopped.instance, NOW) is None


def test_an_orphan_counts_in_the_burn() -> None:
    snapshot = fleet(
        AccountSeen(view(machine("x2", per_hour=0.5))), instances=(replace(BOX, price_per_hour=1.0),)
    )
    (total,) = money.burn(b.instance for b in snapshot.boxes)
    assert total.amount == 1.5
    unknown = fleet(AccountSeen(view(machine("x2", per_hour=None))))
    (total,) = money.burn(b.instance for b in unknown.boxes)
    assert (total.amount, total.unknown) == (9.0, 1)


def test_the_balance_lasts_as_long_as_everything_that_burns() -> None:
    one = view(machine(per_hour=2.0), machine("x2", per_hour=1.0), balance=6.0)
    assert burn_of(one) == 3.0
    assert runway_s(one) == 7200
    clock = balance_clock(one)
    assert clock is not None
    assert clock.at == pytest.approx(NOW + 7200, abs=60)
    assert runway_s(replace(one, machines=(machine(per_hour=None),))) is None  # never "for ever"
    assert runway_s(replace(one, per_hour=6.0)) == 3600  # storage and all, by the provider's own figure
    assert runway_s(replace(one, balance=None)) is None


@pytest.mark.parametrize(("balance", "level"), [(9.0, "danger"), (60.0, "attention"), (200.0, None)])
def test_a_balance_that_ends_soon_is_told_with_what_it_takes(balance: float, level: str | None) -> None:
    told = view(machine(), balance=balance, balance_kills=SafeText("pods are terminated"))
    found = [a for a in fleet(AccountSeen(told)).boxes[0].attention if a.short.startswith("balance")]
    assert [a.level for a in found] == ([level] if level else [])
    assert all("pods are terminated" in a.text for a in found)


def test_the_next_clock_is_the_earliest_of_file_provider_and_balance() -> None:
    file = DangerClock(SafeText("contract ends"), NOW + 9000)
    theirs = DangerClock(SafeText("released"), NOW + 5000)
    snapshot = reduce(FleetSnapshot(), [FleetChanged((BOX,), (), clocks=(("a", file),))], NOW)
    assert seen(snapshot, view(machine(clock=theirs))).boxes[0].clock == theirs
    dry = seen(snapshot, view(machine(clock=theirs), balance=1.5)).boxes[0].clock
    assert dry is not None
    assert dry.text == "balance used up"
    assert seen(snapshot, view(machine()), view(at=NOW + 60)).boxes[0].clock == file


def test_an_account_that_fails_keeps_its_old_balance() -> None:
    old = merge(None, view(machine(), balance=5.0))
    new = merge(old, AccountView("work", "runpod", asked_at=NOW + 60, why=SafeText("500")))
    assert (new.balance, new.machines, new.told_at) == (5.0, old.machines, NOW)


# --- what else it says --------------------------------------------------------------------------------------


def test_an_address_that_moved_is_told_with_the_command() -> None:
    moved = machine(endpoint=replace(END, port=23002))
    (told,) = fleet(AccountSeen(view(moved))).boxes[0].attention
    assert told.short == "address moved"
    assert "rgt edit a host=203.0.113.9 port=23002" in told.text


@pytest.mark.parametrize("ours", [replace(END, host="myalias"), replace(END, jump=("j",))])
def test_an_alias_or_a_jump_is_not_called_moved(ours: Endpoint) -> None:
    box = replace(BOX, endpoint=ours)
    assert fleet(AccountSeen(view(machine())), instances=(box,)).boxes[0].attention == ()


def test_a_box_that_bills_and_cannot_be_reached_says_so() -> None:
    lost = LinkChanged("a", Link(LinkState.LOST, NOW))
    assert shorts(fleet(AccountSeen(view(machine())), lost).boxes[0]) == ["bills, no link"]


def test_running_by_the_provider_is_no_running_box() -> None:
    box = fleet(AccountSeen(view(machine())), LinkChanged("a", Link(LinkState.UNREACHABLE, NOW))).boxes[0]
    assert judge.box_word(box, NOW).word == "unreachable"


def test_stopped_by_the_provider_is_a_stopped_box_only_while_that_is_fresh() -> None:
    box = fleet(AccountSeen(view(machine(state="stopped", said=SafeText("EXITED"))))).boxes[0]
    assert judge.box_word(box, NOW).word == "exited"
    assert judge.box_word(box, NOW + 3600).word == "not probed"


def test_status_says_all_of_it_with_its_age() -> None:
    snapshot = fleet(
        AccountSeen(view(machine(), machine("x2"), balance=None, balance_why=SafeText("not told")))
    )
    told: dict[str, Any] = status_json(snapshot, NOW + 7)
    first, second = told["boxes"]
    assert first["provider"]["age_s"] == 7
    assert first["in_fleet_file"]
    assert not second["in_fleet_file"]
    (account,) = told["accounts"]
    assert account["balance"] is None
    assert account["age_s"] == 7
    (line,) = account_lines(snapshot, NOW + 7)
    assert "2 machines listed" in line
    assert "balance ? (not told)" in line
    assert "asked 7 s ago" in line


def test_an_unlisted_machine_wants_attention_and_is_not_called_unreachable() -> None:
    assert exit_code(fleet(AccountSeen(view(machine("x2"))), instances=())) == 1


def test_the_same_list_again_changes_nothing_but_its_age() -> None:
    snapshot = fleet(AccountSeen(view(machine())))
    again = reduce(snapshot, [AccountSeen(snapshot.accounts[0])], NOW)
    assert again.boxes[0] is snapshot.boxes[0]
