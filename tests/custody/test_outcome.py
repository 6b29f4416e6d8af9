"""A verb is sent once, only with everything in order, and its end is believed of two witnesses alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.custody.chains import NOW, VICTIM, Maker, good_proof
from tests.custody.endings import Scene, codes
from tests.custody.fake_plane import OTHER, OURS, FakePlane, refuses
from tui.custody import hold
from tui.custody.codes import refusal
from tui.custody.order import Before, Order
from tui.model.custody import Victim, Writer
from tui.model.failure import Failure
from tui.platforms.control import NoAnswer, NotAllowed


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_destroy_with_everything_in_order_is_sent_once_and_proven_by_two_witnesses(scene: Scene) -> None:
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "proven"
    assert scene.plane.sent == ["destroy"]
    assert [(one.who, one.said) for one in outcome.witnesses] == [("get-one", "gone"), ("list", "gone")] * 3
    assert len({one.at for one in outcome.witnesses}) == 3  # repeated over time, not in one breath
    assert scene.looks == 1
    assert scene.receipts() == ["proven"]


def test_its_receipt_points_at_the_whole_chain(scene: Scene) -> None:
    order = scene.order()
    outcome = scene.carry_out(order)
    (receipt,) = scene.ledger.report().receipts
    named = {one.name: one.sha256 for one in receipt.receipt.subjects}
    assert order.proof is not None
    assert order.approval is not None
    assert named["outcome"] == outcome.digest
    assert named["proof"] == order.proof.digest
    assert named["approval"] == order.approval.digest
    assert named["roster"] == order.proof.roster
    assert receipt.receipt.run == "r1"


# --- what stands against it ---------------------------------------------------------------------------------


def no_proof(scene: Scene) -> dict[str, object]:
    return {"proof": None, "approval": None}


def other_roster(scene: Scene) -> dict[str, object]:
    return {"roster": Maker(at=scene.now + 1).chain().roster}


def for_a_stop(scene: Scene) -> dict[str, object]:
    chain = Maker(verb="stop").chain()
    return {"proof": good_proof(chain), "roster": chain.roster}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (no_proof, "proof-missing"),
        (lambda s: {"approval": None}, "approval-missing"),
        (other_roster, "proof-other"),
        (for_a_stop, "proof-other"),
        (lambda s: {"victim": VICTIM.model_copy(update={"host_key": "SHA256:" + "Z" * 43})}, "other-machine"),
        (lambda s: {"victim": VICTIM.model_copy(update={"instance_id": None})}, "machine-unidentified"),
        (lambda s: {"victim": VICTIM.model_copy(update={"account": "acct-2"})}, "other-account"),
    ],
)
def test_without_its_own_proof_nothing_is_sent(scene: Scene, change: object, code: str) -> None:
    order = scene.order()
    order = replace(order, **change(scene))  # type: ignore[operator]
    outcome = scene.carry_out(order)
    assert outcome.kind == "refused"
    assert code in codes(outcome)
    assert scene.plane.sent == []


@pytest.mark.parametrize("late", [301.0, 3601.0, 1e7, -7200.0])
def test_appr_expired_on_the_way_to_the_verb(scene: Scene, late: float) -> None:
    order = scene.order()
    scene.now += late
    outcome = scene.carry_out(order)
    assert outcome.kind == "refused"
    assert set(codes(outcome)) & {"approval-expired", "proof-expired", "clock-went-back"}
    assert scene.plane.sent == []


def test_an_approval_that_expires_during_the_look_at_the_box_is_void(scene: Scene) -> None:
    order = scene.order()

    async def slow_look() -> Before:
        scene.now += 400
        return scene.before

    scene.look = slow_look  # type: ignore[method-assign]
    assert codes(scene.carry_out(order)) == ["approval-expired"]
    assert scene.plane.sent == []


def test_a_hold_placed_while_the_box_is_looked_at_still_blocks(scene: Scene) -> None:
    order = scene.order()

    async def look() -> Before:
        hold.hold(scene.ledger, VICTIM, "wait for the referee", scene.now)
        return scene.before

    scene.look = look  # type: ignore[method-assign]
    assert codes(scene.carry_out(order)) == ["held"]
    assert scene.plane.sent == []


def test_appr_replay_an_approval_is_used_once(scene: Scene) -> None:
    scene.plane.ignores = {"destroy"}
    order = scene.order()
    assert scene.carry_out(order).kind == "unproven"
    scene.plane.ignores = set()
    scene.now -= 60  # within the approval's life
    again = scene.carry_out(order)
    assert again.kind == "unproven"
    assert scene.plane.sent == ["destroy"]
    fresh = scene.carry_out(scene.order(nonce="n2"))
    assert fresh.kind == "proven"
    assert scene.plane.sent == ["destroy", "destroy"]


@pytest.mark.parametrize(
    ("before", "code"),
    [
        (Before(known=False, ssh="connection refused"), "box-unknown"),
        (Before(known=True, ssh="", busy=(Writer(path="a.pt", evidence="open"),)), "box-busy"),
        (Before(known=True, ssh="", changes=(refusal("changed-since-proof", "x"),)), "changed-since-proof"),
        (Before(known=True, ssh="", host_key="SHA256:" + "Z" * 43), "other-machine"),
    ],
)
def test_a_box_that_is_not_idle_or_not_as_proven_is_not_destroyed(
    scene: Scene, before: Before, code: str
) -> None:
    order = scene.order(anyway="I know better")  # counts only where nothing is lost
    scene.before = replace(before, roster=scene.before.roster)
    assert code in codes(scene.carry_out(order))
    assert scene.plane.sent == []


def test_a_look_that_compared_with_no_roster_or_another_is_no_look(scene: Scene) -> None:
    order = scene.order()
    for digest in (None, Maker(at=NOW + 5).chain().roster.digest):
        scene.before = Before(known=True, ssh="", roster=digest)
        assert codes(scene.carry_out(order)) == ["changed-since-proof"]
    assert scene.plane.sent == []


# --- what platforms do --------------------------------------------------------------------------------------


def test_prov_lag_a_slow_end_is_waited_for(scene: Scene) -> None:
    scene.plane.lag = 4
    assert scene.carry_out(scene.order()).kind == "proven"
    assert scene.plane.sent == ["destroy"]


@pytest.mark.parametrize("lag", [{"one_lag": 50}, {"list_lag": 50}])
def test_prov_lag_one_witness_is_not_enough(scene: Scene, lag: dict[str, int]) -> None:
    scene.plane = FakePlane(**lag)  # type: ignore[arg-type]
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "unproven"
    assert "console" in outcome.check_by_hand


def test_prov_lie_an_acknowledged_verb_that_does_nothing_is_unproven_and_never_gone(scene: Scene) -> None:
    scene.plane.ignores = {"destroy"}
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "unproven"
    assert "202" in outcome.detail
    assert {one.said for one in outcome.witnesses} == {"there"}
    assert scene.receipts() == ["unproven"]


def test_prov_lie_gone_for_a_moment_is_not_gone(scene: Scene) -> None:
    """A list that flickers: absent twice, there again, and so on."""
    plane = scene.plane
    hidden = plane.machines[OURS.id]
    looks = 0

    async def flicker(victim: Victim) -> object:
        nonlocal looks
        looks += 1
        if plane.sent:
            if looks % 3:
                plane.machines.pop(OURS.id, None)
            else:
                plane.machines[OURS.id] = hidden
        return await FakePlane.describe(plane, victim)

    plane.describe = flicker  # type: ignore[method-assign,assignment]
    plane.ignores = {"destroy"}
    assert scene.carry_out(scene.order()).kind == "unproven"


def test_prov_500_that_works_all_the_same_is_proven_and_sent_once(scene: Scene) -> None:
    scene.plane.answers = {"destroy": [NoAnswer("500")]}
    scene.plane.applies_though = True
    assert scene.carry_out(scene.order()).kind == "proven"
    assert scene.plane.sent == ["destroy"]


def test_prov_500_that_did_nothing_is_unproven_and_a_new_approval_sends_anew(scene: Scene) -> None:
    scene.plane.answers = {"destroy": [NoAnswer("500")]}
    assert scene.carry_out(scene.order()).kind == "unproven"
    assert scene.plane.sent == ["destroy"]
    assert scene.carry_out(scene.order(nonce="n2")).kind == "proven"
    assert scene.plane.sent == ["destroy", "destroy"]
    assert scene.receipts() == ["unproven", "proven"]


def test_prov_silence_is_no_answer(scene: Scene) -> None:
    async def never(victim: Victim) -> str:
        scene.plane.calls.append("destroy")
        await asyncio.sleep(60)
        return ""

    scene.plane.destroy = never  # type: ignore[method-assign]
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "unproven"
    assert "No answer" in outcome.detail


def test_prov_auth404_a_rejected_credential_never_means_gone(scene: Scene) -> None:
    order = scene.order()
    for plane in (FakePlane(bad_key=True), FakePlane(bad_key_empty=True)):
        scene.plane = plane
        outcome = scene.carry_out(order)
        assert (outcome.kind, codes(outcome)) == ("refused", ["truth-unknown"])
        assert plane.sent == []


def test_prov_auth404_after_the_verb_is_unproven(scene: Scene) -> None:
    def revoke(verb: str) -> None:
        scene.plane.bad_key = True

    scene.plane.on_verb = revoke
    assert scene.carry_out(scene.order()).kind == "unproven"


def test_prov_auth404_a_refused_verb_sent_nothing_and_frees_the_way(scene: Scene) -> None:
    scene.plane.answers = {"destroy": [NotAllowed("403")]}
    outcome = scene.carry_out(scene.order())
    assert (outcome.kind, codes(outcome)) == ("refused", ["verb-refused"])
    assert scene.carry_out(scene.order(nonce="n2")).kind == "proven"


def test_another_account_with_machines_of_its_own_does_not_prove_absence(scene: Scene) -> None:
    order = scene.order()
    scene.plane = FakePlane(machines={OTHER.id: OTHER}, account="acct-2")
    outcome = scene.carry_out(order)
    assert codes(outcome) == ["other-account"]


def test_an_account_nobody_names_is_known_by_what_was_seen_beside_the_machine(scene: Scene) -> None:
    scene.plane.account = None
    assert scene.carry_out(scene.order()).kind == "proven"


def test_an_empty_list_of_an_account_nobody_names_is_not_gone(scene: Scene) -> None:
    scene.plane = FakePlane(machines={OURS.id: OURS}, account=None)
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "unproven"
    assert {one.said for one in outcome.witnesses} == {"unknown"}


def test_an_incomplete_list_is_not_gone(scene: Scene) -> None:
    def cut(verb: str) -> None:
        scene.plane.incomplete = True

    scene.plane.on_verb = cut
    assert scene.carry_out(scene.order()).kind == "unproven"


@pytest.mark.parametrize("fault", [{"one_fails": True}, {"list_fails": True}])
def test_unknown_never_leads_to_destroy(scene: Scene, fault: dict[str, bool]) -> None:
    order = scene.order()
    scene.plane = FakePlane(**fault)  # type: ignore[arg-type]
    assert codes(scene.carry_out(order)) == ["truth-unknown"]
    scene.plane = FakePlane()
    scene.plane.becomes("unknown")
    assert codes(scene.carry_out(order)) == ["truth-unknown"]


def test_prov_idreuse_a_new_machine_under_the_id_is_neither_destroyed_nor_taken_for_gone(
    scene: Scene,
) -> None:
    scene.plane.ignores = {"destroy"}
    scene.carry_out(scene.order())
    reborn = replace(OURS, created_at="2026-12-24")
    scene.plane = FakePlane(machines={OURS.id: reborn, OTHER.id: OTHER})
    outcome = scene.carry_out(scene.order(nonce="n2"))
    assert outcome.kind == "unproven"
    assert "another machine" in outcome.witnesses[0].detail
    assert scene.plane.sent == []


def test_prov_balance0_already_gone_is_its_own_outcome(scene: Scene) -> None:
    order = scene.order()
    scene.plane.vanishes()
    outcome = scene.carry_out(order)
    assert outcome.kind == "already-gone"
    assert len(outcome.witnesses) == 6
    assert scene.plane.sent == []
    assert scene.receipts() == ["already-gone"]


def test_prov_contract_end_between_the_look_and_the_verb_is_told_as_it_was(scene: Scene) -> None:
    """The contract ends while the box is looked at: the platform refuses the verb, and the box is gone."""
    order = scene.order()
    scene.plane.on_verb = lambda verb: scene.plane.vanishes()
    scene.plane.answers["destroy"] = [refuses("410: the contract has ended")]
    outcome = scene.carry_out(order)
    assert outcome.kind == "proven"
    assert outcome.detail == "It is gone."
    assert scene.plane.sent == ["destroy"]
    again = scene.carry_out(scene.order(nonce="n2"))
    assert again == outcome
    assert scene.receipts() == ["proven"]


def test_already_gone_needs_no_proof(scene: Scene) -> None:
    order = replace(scene.order(), proof=None, approval=None, roster=None)
    scene.plane.vanishes()
    assert scene.carry_out(order).kind == "already-gone"


def test_gone_by_the_balance_after_the_look_ends_as_proven(scene: Scene) -> None:
    scene.plane.on_verb = lambda verb: scene.plane.vanishes()
    assert scene.carry_out(scene.order()).kind == "proven"


def test_prov_volume_left_is_told(scene: Scene) -> None:
    scene.plane.machines[OURS.id] = replace(OURS, volumes=("vol-1", "vol-2"))
    scene.plane.volumes = ("vol-2", "vol-9")
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "proven"
    assert "vol-2" in outcome.detail
    assert "vol-1" not in outcome.detail


def test_prov_volume_left_nobody_told_is_told_too(scene: Scene) -> None:
    scene.plane.machines[OURS.id] = replace(OURS, volumes=("vol-1",))
    assert "Nobody told" in scene.carry_out(scene.order()).detail


# --- facts that stay ----------------------------------------------------------------------------------------


def test_a_destroyed_machine_stays_destroyed(scene: Scene) -> None:
    first = scene.carry_out(scene.order())
    scene.plane = FakePlane()  # the platform suddenly lists it again
    assert scene.carry_out(scene.order(nonce="n2")) == first
    assert scene.look_again(scene.order(nonce="n3")) == first
    assert scene.plane.calls == []
    with pytest.raises(Failure, match="has ended"):
        scene.carry_out(scene.order("stop", nonce="n4"))
    assert scene.receipts() == ["proven"]


def test_unproven_may_become_proven_by_looking_again(scene: Scene) -> None:
    scene.plane.lag = 10
    order = scene.order()
    assert scene.carry_out(order).kind == "unproven"
    assert scene.look_again(order).kind == "proven"
    assert scene.plane.sent == ["destroy"]


def test_app_two_instances_the_second_is_kept_out(scene: Scene) -> None:
    with scene.journal(), pytest.raises(Failure, match="Another rgt"):
        scene.carry_out(scene.order())
    assert scene.plane.sent == []


# --- stop ---------------------------------------------------------------------------------------------------


def stop(scene: Scene) -> Order:
    return replace(scene.order("stop"), proof=None, approval=None, roster=None, loses=False)


def test_a_stop_that_loses_nothing_needs_no_proof_and_is_proven_by_two_witnesses(scene: Scene) -> None:
    outcome = scene.carry_out(stop(scene))
    assert outcome.kind == "proven"
    assert {one.said for one in outcome.witnesses} == {"stopped"}
    assert scene.plane.sent == ["stop"]
    assert scene.receipts("stop") == ["proven"]


def test_a_stop_that_loses_data_needs_the_chain(scene: Scene) -> None:
    assert codes(scene.carry_out(replace(stop(scene), loses=True))) == ["proof-missing"]
    assert scene.plane.sent == []
    assert scene.carry_out(scene.order("stop")).kind == "proven"


def test_prov_lie_a_stop_that_is_ignored_is_never_stopped(scene: Scene) -> None:
    scene.plane.ignores = {"stop"}
    outcome = scene.carry_out(stop(scene))
    assert outcome.kind == "unproven"
    assert "stopped" in outcome.check_by_hand


def test_a_stop_may_be_ordered_again_after_the_truth_was_read_anew(scene: Scene) -> None:
    scene.plane.ignores = {"stop"}
    scene.carry_out(stop(scene))
    scene.plane.ignores = set()
    scene.plane.calls.clear()
    assert scene.carry_out(stop(scene)).kind == "proven"
    assert scene.plane.calls.index("stop") > scene.plane.calls.index("describe")


def test_a_stopped_machine_is_not_stopped_again(scene: Scene) -> None:
    scene.plane.becomes("stopped")
    assert scene.carry_out(stop(scene)).kind == "already-stopped"
    assert scene.plane.sent == []


def test_a_machine_that_was_started_again_can_be_stopped_again(scene: Scene) -> None:
    scene.carry_out(stop(scene))
    scene.plane.becomes("running")
    assert scene.carry_out(stop(scene)).kind == "proven"
    assert scene.plane.sent == ["stop", "stop"]


def test_a_stop_that_destroyed_says_so(scene: Scene) -> None:
    scene.plane.on_verb = lambda verb: scene.plane.vanishes()
    outcome = scene.carry_out(stop(scene))
    assert outcome.kind == "unproven"
    assert "gone" in outcome.detail


def test_a_busy_box_is_stopped_only_with_a_reason_that_is_kept(scene: Scene) -> None:
    order = stop(scene)
    scene.before = Before(known=True, ssh="", busy=(Writer(path="r1", evidence="run r1 is running"),))
    assert codes(scene.carry_out(order)) == ["box-busy"]
    outcome = scene.carry_out(replace(order, anyway="it hangs since noon"))
    assert outcome.kind == "proven"
    assert [(one.code, one.reason) for one in outcome.gaps] == [("went-on-anyway", "it hangs since noon")]
    (receipt,) = scene.ledger.report().receipts
    assert receipt.receipt.gaps[0].reason == "it hangs since noon"


def test_a_hold_blocks_what_is_irreversible_and_nothing_else(scene: Scene) -> None:
    hold.hold(scene.ledger, VICTIM, "the referee", scene.now)
    assert codes(scene.carry_out(scene.order())) == ["held"]
    assert scene.carry_out(stop(scene)).kind == "proven"


def test_a_box_that_rgt_stopped_after_a_good_look_can_be_destroyed_while_stopped(scene: Scene) -> None:
    """As platforms want it that delete only what is stopped."""
    order = scene.order()
    stopping = replace(order, verb="stop", loses=False, proof=None, approval=None)
    assert scene.carry_out(stopping).kind == "proven"
    scene.before = Before(known=False, ssh="connection refused")
    assert scene.carry_out(order).kind == "proven"
    assert scene.plane.sent == ["stop", "destroy"]


def test_a_box_that_somebody_else_stopped_is_not_destroyed_unseen(scene: Scene) -> None:
    order = scene.order()
    scene.plane.becomes("stopped")
    scene.before = Before(known=False, ssh="connection refused", roster=scene.before.roster)
    assert codes(scene.carry_out(order)) == ["box-unknown"]
    changed = replace(order, verb="stop", loses=False, proof=None, approval=None)
    scene.plane.becomes("running")
    scene.before = Before(
        known=True, ssh="", roster=scene.before.roster, changes=(refusal("changed-since-proof", "x"),)
    )
    assert scene.carry_out(changed).kind == "proven"
    scene.before = Before(known=False, ssh="connection refused", roster=scene.before.roster)
    assert codes(scene.carry_out(order)) == ["box-unknown"]


def test_refused_by_the_platform_in_words(scene: Scene) -> None:
    scene.plane.answers = {"destroy": [refuses()]}
    outcome = scene.carry_out(scene.order())
    assert outcome.kind == "refused"
    assert "locked" in outcome.refusals[0].detail
