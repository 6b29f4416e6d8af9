"""Machines that lived on and meters nobody watched: each loss that others had, in their own issue's terms.

The names are `test_row_<number>_…`; the docstring names where it happened. What is asserted is what rgt does
in that situation, over the vendors' clients against a provider that behaves as theirs did.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.custody.chains import NOW
from tests.custody.endings import codes
from tests.platforms.rig import IDS, OTHERS, STOPPING, VENDORS, Rig, account, run
from tests.platforms.scene import Scene
from tests.platforms.world import Box
from tui.fleet import judge, money
from tui.fleet.platform_facts import ClockFact, PlatformFacts
from tui.fleet.reducer import reduce
from tui.model.account import AccountSpec, AccountView
from tui.model.event import AccountSeen, FleetChanged, LinkChanged
from tui.model.instance import DangerClock, Endpoint, Instance, Link, LinkState
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.model.text import SafeText
from tui.platforms.accounts import look
from tui.platforms.control import ControlError, NoAnswer, Offer, Price, Wish
from tui.platforms.vendors import Account

DELETE = {"lambda": "terminate", "autodl": "release"}
WRITTEN = Instance("done-01", "runpod", Endpoint("203.0.113.9", 12873, "root"), instance_id=IDS["runpod"])
STARTED = FleetSnapshot(started=True)


def ask(rig: Rig, at: float = NOW, facts: PlatformFacts | None = None) -> AccountView:
    """What the account's look says now."""
    opened = Account(AccountSpec("work", rig.platform), rig.plane(tries=2), "a file")
    return run(look(opened, {rig.platform: facts} if facts else {}, lambda: at))


def screen(rig: Rig, snapshot: FleetSnapshot = STARTED, at: float = NOW) -> FleetSnapshot:
    """The fleet after one more look."""
    return reduce(snapshot, [AccountSeen(ask(rig, at))], at)


def written(platform: str) -> FleetSnapshot:
    """A fleet file that has our machine."""
    ours = replace(WRITTEN, platform=platform, instance_id=IDS[platform])
    return reduce(FleetSnapshot(), [FleetChanged((ours,), ())], NOW)


def box(snapshot: FleetSnapshot, name: str = "done-01") -> BoxView:
    found = snapshot.box(name)
    assert found is not None, [b.name for b in snapshot.boxes]
    return found


def shorts(found: BoxView) -> list[str]:
    return [a.short for a in found.attention]


def wish(rig: Rig) -> Wish:
    offer = Offer("77" if rig.platform == "vastai" else "x@SECURE", "H100", 1, Price(1.0, "USD"), ("r",))
    more = {"cuda_v_from": 118} if rig.platform == "autodl" else {}
    image = None if rig.platform == "lambda" else "i:1"
    return Wish("proj-train-20261130", offer, image=image, ssh_key="k", region="r", more=more)


def test_row_01_a_refresh_of_states_wipes_nothing_that_was_set() -> None:
    """skypilot#5946: INIT to UP, and the autostop setting was gone."""
    leash = DangerClock(SafeText("contract ends"), NOW + 9000)
    file = FleetChanged((WRITTEN,), (), clocks=((WRITTEN.name, leash),))
    with account("runpod", state="starting") as rig:
        snapshot = screen(rig, reduce(FleetSnapshot(), [file], NOW))
        rig.world.put(rig.id, state="running")
        snapshot = screen(rig, snapshot, NOW + 60)
    found = box(snapshot)
    assert found.clock == found.file_clock == leash
    assert (found.written or found.instance) == WRITTEN


@pytest.mark.parametrize("platform", ["vastai", "lambda"])
def test_row_02_a_machine_that_never_gets_up_burns_on_screen(platform: str) -> None:
    """skypilot#9815: held for ever, because it never left its first state."""
    with account(platform, state="starting") as rig:
        snapshot = screen(rig, written(platform))
    assert box(snapshot).rented is not None
    (total,) = money.burn([box(snapshot).instance])
    assert total.amount > 1


def test_row_03_a_machine_on_which_nothing_ever_ran_is_on_screen(tmp_path: Path) -> None:
    """skypilot#4170: the copy failed, so what would have ended the machine was never set."""
    with account("vastai") as rig:
        made = run(rig.plane().create(rig.plane().request(wish(rig))))
        snapshot = screen(rig)
    (row,) = [b for b in snapshot.boxes if b.instance.instance_id == made.id]
    assert row.unwritten
    assert "which the fleet file does not have" in row.attention[0].text


@pytest.mark.parametrize("platform", STOPPING)
def test_row_04_a_stop_that_silently_does_nothing_is_unproven(platform: str, tmp_path: Path) -> None:
    """skypilot#1306: autostop said yes and did nothing."""
    with account(platform) as rig:
        rig.world.ignores = {"stop"}
        assert Scene(tmp_path, rig).stop().kind == "unproven"


def test_row_05_the_first_machine_of_a_batch_is_on_screen_before_the_last_is_up() -> None:
    """skypilot#2768: minutes in which nobody looked after the first one."""
    with account("runpod") as rig:
        first = screen(rig)
        rig.world.add(Box("late", name="last", state="starting"))
        second = screen(rig, first, NOW + 60)
    assert len(second.boxes) == len(first.boxes) + 1
    assert all(b.unwritten for b in first.boxes)


@pytest.mark.parametrize("platform", VENDORS)
def test_row_06_a_creation_that_failed_and_happened_shows_and_can_be_ended(
    platform: str, tmp_path: Path
) -> None:
    """skypilot#4392: time-out at the creation, 500 at the deletion, and a machine that bills."""
    with account(platform) as rig:
        world = rig.world
        request = rig.plane().request(wish(rig))
        world.script, world.applies_though = [("", (500, {}, {}))], True
        with pytest.raises(NoAnswer):
            run(rig.plane().create(request))
        assert world.made == 1  # sent once, and carried out
        world.applies_though = False
        made = str(9000 + world.made)
        assert any(b.instance.instance_id == made for b in screen(rig).boxes)
        world.put(made, state="stopped" if platform == "autodl" else "running")
        world.script = [(DELETE.get(platform, "DELETE"), (500, {}, {}))]
        victim = rig.victim.model_copy(update={"instance_id": made})
        for _ in range(2):  # a terminate is not repeated by itself; who orders it again may send it
            try:
                run(rig.plane().destroy(victim))
                break
            except NoAnswer:
                continue
        assert made not in world.boxes


@pytest.mark.parametrize("platform", VENDORS)
def test_row_07_a_failed_deletion_stays_on_screen(platform: str, tmp_path: Path) -> None:
    """skypilot PR 2990: the failure was ignored, and the next region tried."""
    with account(platform) as rig:
        scene = Scene(tmp_path, rig)
        rig.world.script = [(DELETE.get(platform, "DELETE"), (409, {"code": "BadRequest"}, {}))]
        outcome = scene.destroy()
        assert outcome.kind == "refused"
        assert codes(outcome) == ["verb-refused"]
        snapshot = screen(rig, written(platform))
    assert box(snapshot).rented is not None


@pytest.mark.parametrize("platform", VENDORS)
def test_row_08_accepted_is_not_gone_and_one_list_without_it_neither(platform: str, tmp_path: Path) -> None:
    """skypilot PR 4443: the record was removed at the acknowledgement; lists lag for new machines, too."""
    with account(platform) as rig:
        rig.world.lag = 99
        outcome = Scene(tmp_path, rig).destroy()
        assert outcome.kind == "unproven"
    with account(platform) as rig:
        snapshot = screen(rig, written(platform))
        kept = rig.world.boxes.pop(rig.id)
        snapshot = screen(rig, snapshot, NOW + 60)
        assert "not listed" in shorts(box(snapshot))
        rig.world.add(kept)
        snapshot = screen(rig, snapshot, NOW + 120)
    assert "not listed" not in shorts(box(snapshot))


def test_row_09_each_machine_has_a_proof_of_its_own(tmp_path: Path) -> None:
    """skypilot#509: "terminated", and nodes remained."""
    with account("runpod") as rig:
        first = Scene(tmp_path / "a", rig).destroy()
        other = Rig("runpod", rig.world, rig.base, [])
        rig.world.ignores = {"destroy"}
        kept = IDS["runpod"]
        try:
            IDS["runpod"] = OTHERS["runpod"]
            second = Scene(tmp_path / "b", other).destroy()
        finally:
            IDS["runpod"] = kept
    assert (first.kind, second.kind) == ("proven", "unproven")


@pytest.mark.parametrize("platform", STOPPING)
def test_row_10_a_stopped_machine_is_listed_and_can_be_destroyed(platform: str, tmp_path: Path) -> None:
    """skypilot#240: only running ones were listed, so the stopped one was forgotten."""
    with account(platform, state="stopped") as rig:
        listing = run(rig.plane().list_all())
        found = listing.find(rig.id)
        assert found is not None
        assert found.state == "stopped"
        assert Scene(tmp_path, rig).destroy().kind == "proven"


@pytest.mark.parametrize("platform", ["runpod", "vastai", "paperspace"])
def test_row_11_a_deletion_that_only_stops_is_no_deletion(platform: str, tmp_path: Path) -> None:
    """ray#6207: `down` kept the nodes, stopped, and they billed."""
    with account(platform) as rig:
        rig.world.ignores = {"destroy"}
        rig.world.on_verb = lambda verb: rig.world.put(rig.id, state="stopped")
        outcome = Scene(tmp_path, rig).destroy()
    assert outcome.kind == "unproven"
    assert {w.said for w in outcome.witnesses} == {"stopped"}


@pytest.mark.parametrize("platform", STOPPING)
def test_row_12_a_stop_that_deletes_is_said_loudly(platform: str, tmp_path: Path) -> None:
    """ray#44544: the machine was deleted though it should be kept."""
    with account(platform) as rig:
        rig.world.on_verb = lambda verb: rig.world.boxes.__delitem__(rig.id)
        outcome = Scene(tmp_path, rig).stop()
    assert outcome.kind != "proven"
    assert "gone" in outcome.detail


@pytest.mark.parametrize("platform", VENDORS)
def test_row_13_no_effect_is_claimed_that_was_not_seen(platform: str, tmp_path: Path) -> None:
    """dstack#1551: the network was cut, and the machine was called terminated."""
    with account(platform) as rig:
        world = rig.world

        def cut(verb: str) -> None:
            world.ignores = {verb}
            world.script = [("", (503, {}, {}))] * 500

        world.on_verb = cut
        outcome = Scene(tmp_path, rig).destroy()
    assert outcome.kind == "unproven"
    assert {w.said for w in outcome.witnesses} == {"unknown"}


@pytest.mark.parametrize("platform", VENDORS)
def test_row_14_an_orphan_is_shown_and_never_touched(platform: str) -> None:
    """dstack#3453: a crash between creation and note. Others' machines must not be killed for looking so."""
    with account(platform) as rig:
        snapshot = screen(rig)
        changing = ("DELETE", "PUT", "PATCH", "power_", "release", "terminate", "action", "launch", "create")
        assert not any(rig.world.count(word) for word in changing)
    assert len(snapshot.boxes) == 2
    assert all(b.unwritten and b.attention for b in snapshot.boxes)


@pytest.mark.parametrize(
    ("platform", "reply"),
    [
        ("vastai", {"success": False, "error": "invalid_args", "msg": "no"}),
        ("vastai", {"success": False}),
        ("vastai", {}),
        ("autodl", {"code": "InternalError", "msg": "busy", "data": None}),
        ("lambda", {"data": {"terminated_instances": []}}),
        ("lambda", {"error": {"code": "global/unknown", "message": "?"}}),
        ("paperspace", {"data": None, "event": {"state": "error", "error": "host is gone"}}),
    ],
)
def test_row_15_a_failure_inside_a_200_is_a_failure(platform: str, reply: dict[str, Any]) -> None:
    """dstack PR 4030 and #952: errors of a deletion were swallowed."""
    with account(platform, state="stopped") as rig:
        part = DELETE.get(platform, "DELETE")
        rig.world.script = [(part, (200, reply, {}))] * 5
        with pytest.raises(ControlError):
            run(rig.plane(tries=1).destroy(rig.victim))


def test_row_16_an_interruption_at_the_wrong_moment_leaves_nothing_stuck(tmp_path: Path) -> None:
    """dstack#2068: Ctrl-C, and the instance was busy for ever."""
    with account("runpod") as rig:
        scene = Scene(tmp_path, rig)
        plane = rig.plane()

        class Interrupted:
            platform = "runpod"
            describe, list_all, stop = plane.describe, plane.list_all, plane.stop

            async def destroy(self, victim: Any) -> str:
                await plane.destroy(victim)
                raise KeyboardInterrupt

        order = scene.order()
        with pytest.raises(KeyboardInterrupt):
            scene.carry_out(order, Interrupted())
        again = scene.carry_out(order)
        assert again.kind == "proven"
        assert scene.sent == 1


def test_row_17_after_a_night_asleep_an_old_list_is_called_old() -> None:
    """dstack#1047: the laptop slept, the box idled, and nobody knew."""
    with account("runpod") as rig:
        snapshot = screen(rig, written("runpod"))
    later = reduce(snapshot, [], NOW + 8 * 3600)
    assert "list is old" in shorts(box(later))
    assert judge.box_word(box(later), NOW + 8 * 3600).kind == "unknown"
    assert money.burn([box(later).instance])[0].amount == 1.5  # it counts until somebody says otherwise


def test_row_18_a_deadline_is_a_date_and_not_a_setting() -> None:
    """dstack#3125: "off" meant "at once"."""
    fact = ClockFact(SafeText("released"), "stopped", 15 * 86400.0, SafeText("everything"))
    with account("autodl", state="stopped") as rig:
        view = ask(rig, facts=PlatformFacts("autodl", clocks=(fact,)))
    ours = next(one for one in view.machines if one.id == IDS["autodl"])
    assert ours.clock is not None
    assert ours.clock.at == pytest.approx(1_793_520_000 + 15 * 86400, abs=86400 * 2)  # of November 2026


@pytest.mark.parametrize("platform", ["runpod", "vastai", "lambda", "paperspace"])
def test_row_19_volumes_are_in_the_inventory_without_any_machine(platform: str) -> None:
    """dstack#2497: dozens of them, forgotten."""
    with account(platform) as rig:
        rig.world.boxes.clear()
        rig.world.volumes = {"v1", "v2"}
        listing = run(rig.plane().list_all())
    assert listing.volumes is not None
    assert len(listing.volumes) == 2


@pytest.mark.parametrize("platform", STOPPING)
def test_row_20_what_a_stopped_machine_still_costs_is_shown(platform: str) -> None:
    """laurenceday/Dreambooth-Ion-Cannon PR 5: stopped was not destroyed, and the storage billed."""
    with account(platform, state="stopped") as rig:
        snapshot = screen(rig, written(platform))
    found = box(snapshot)
    assert "stopped, bills" in shorts(found)
    rate = found.instance.price_per_hour
    assert rate is None or 0 < rate < 1.5


def test_row_21_destroyed_is_not_said_of_a_session_that_ran_out(tmp_path: Path) -> None:
    """LibreYOLO PR 505: "not found" came from the same rejected session as everything else."""
    with account("vastai") as rig:
        world = rig.world

        def expired(verb: str) -> None:
            world.ignores, world.auth = {verb}, "404"

        world.on_verb = expired
        outcome = Scene(tmp_path, rig).destroy()
    assert outcome.kind == "unproven"
    assert "key that it rejects" in outcome.witnesses[-1].detail or outcome.witnesses[-1].said == "unknown"


@pytest.mark.parametrize("platform", VENDORS)
def test_row_22_a_rejected_key_is_the_first_thing_that_is_said(platform: str, tmp_path: Path) -> None:
    """skypilot#4605: "terminated", the replicas lived, and the error stood in a log elsewhere."""
    with account(platform) as rig:
        rig.world.key = "a-new-key-after-rotation"
        outcome = Scene(tmp_path, rig).destroy()
        view = ask(rig)
    assert outcome.kind == "refused"
    assert "401" in outcome.refusals[0].detail
    assert "401" in view.why
    assert view.told_at is None


def test_row_23_a_lost_link_shows_that_money_goes_on_burning() -> None:
    """ultralytics/hub#1058: 16 hours were charged after a disconnect."""
    with account("runpod") as rig:
        lost = LinkChanged("done-01", Link(LinkState.LOST, NOW))
        snapshot = reduce(screen(rig, written("runpod")), [lost], NOW)
    assert "bills, no link" in shorts(box(snapshot))
    assert any("1.50 $/h" in a.text for a in box(snapshot).attention)


def test_row_24_large_disks_cost_what_they_cost_when_stopped() -> None:
    """thinking-machines-lab/tinker-feedback#91: 800 GB of checkpoints, and nobody had the figure."""
    with account("runpod", state="stopped", disk_gb=8000) as rig:
        machine = run(rig.plane().describe(rig.victim))
    assert machine.price is not None
    assert machine.price.per_hour is not None
    assert machine.price.per_hour * 24 == pytest.approx(8000 * 0.20 / 730 * 24)
    assert machine.price.per_hour * 24 > 50


@pytest.mark.parametrize("platform", ["runpod", "vastai", "paperspace", "autodl"])
def test_row_25_a_price_of_zero_is_a_price_that_nobody_told(platform: str) -> None:
    """skypilot#4914, #3615, #2312, #1644: an H100 for nothing, out of a catalogue."""
    with account(platform, price=0.0) as rig:
        machine = run(rig.plane().describe(rig.victim))
    assert machine.state == "running"
    assert machine.price is not None
    assert machine.price.per_hour is None
    assert machine.price.source


def test_row_26_a_balance_that_ends_is_a_clock_and_then_an_end() -> None:
    """runpod/docs PR 657: at a balance of 0 machines without a network volume are terminated."""
    with account("runpod") as rig:
        rig.world.balance = 5.0
        rig.world.volumes = {"v1"}
        snapshot = screen(rig, written("runpod"))
        clock = box(snapshot).clock
        assert clock is not None
        assert clock.text == "balance used up"
        assert [a.level for a in box(snapshot).attention] == ["danger"]
        rig.world.run_dry()
        for minute in (1, 2, 3):
            snapshot = screen(rig, snapshot, NOW + 60 * minute)
        assert "gone at runpod" in shorts(box(snapshot))
        assert run(rig.plane().list_all()).volumes == ("v1",)  # what is left, and bills on


def test_row_27_the_end_of_the_contract_is_the_next_clock() -> None:
    """vast.ai: the contract ends, the box stops, and may be deleted two days later."""
    with account("vastai") as rig:
        view = ask(rig)
    ours = next(one for one in view.machines if one.id == IDS["vastai"])
    assert ours.clock is not None
    assert (ours.clock.text, ours.clock.at) == ("contract ends", 1_800_000_000.0)


def test_row_28_a_stop_is_labelled_with_what_still_bills() -> None:
    """runpod-plugins-official PR 37: the guard stopped the machine and not the bill."""
    with account("runpod", state="stopped") as rig:
        machine = run(rig.plane().describe(rig.victim))
    assert machine.price is not None
    assert "volume disk of a stopped pod" in machine.price.source


def test_row_29_that_a_stopped_machine_may_not_come_back_is_said() -> None:
    """runpod-python#168: the GPUs of its host were taken."""
    with account("runpod", state="stopped") as rig:
        machine = run(rig.plane().describe(rig.victim))
    assert any("taken by somebody else" in note for note in machine.notes)


def test_row_30_a_machine_that_was_taken_away_is_not_running_by_an_old_word() -> None:
    """skypilot#7117: the preemption was not seen for hours."""
    with account("lambda") as rig:
        rows = {"data": [{"id": rig.id, "status": "preempted"}]}
        rig.world.script = [("GET /api/v1/instances", (200, rows, {}))]
        snapshot = screen(rig, written("lambda"))
    assert "preempted" in shorts(box(snapshot))
    assert judge.box_word(box(snapshot), NOW).kind != "running"


def test_row_31_what_waiting_has_cost_is_on_screen() -> None:
    """runpodctl#38: a day of rent went by behind a stuck upload."""
    with account("vastai") as rig:
        snapshot = screen(rig, written("vastai"))
    spent = money.spent(box(snapshot).instance, 1790000000.5 + 86400)
    assert spent == pytest.approx(24 * 1.5)


def test_every_row_of_the_table_has_its_test() -> None:
    rows = {int(name.split("_")[2]) for name in globals() if name.startswith("test_row_")}
    assert rows == set(range(1, 32))
