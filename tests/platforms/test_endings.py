"""A machine's end at every vendor: proven by two witnesses over time, or honestly not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.custody.endings import codes
from tests.platforms.rig import OTHERS, STOPPING, VENDORS, account
from tests.platforms.scene import PACE, Scene

DELETES = {"runpod": "DELETE", "vastai": "DELETE", "lambda": "terminate", "paperspace": "DELETE",
           "autodl": "release"}  # fmt: skip


@pytest.fixture(params=VENDORS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with account(request.param) as rig:
        yield Scene(tmp_path, rig)


@pytest.fixture(params=STOPPING)
def stopping(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with account(request.param) as rig:
        yield Scene(tmp_path, rig)


def test_a_destroy_is_sent_once_and_proven_by_both_witnesses_in_three_rounds(scene: Scene) -> None:
    outcome = scene.destroy()
    assert outcome.kind == "proven", outcome
    assert [(w.who, w.said) for w in outcome.witnesses] == [("get-one", "gone"), ("list", "gone")] * 3
    assert len({w.at for w in outcome.witnesses}) == 3
    assert scene.sent == 1


def test_a_lagging_provider_is_waited_for(scene: Scene) -> None:
    scene.rig.world.lag = 3
    assert scene.destroy().kind == "proven"
    assert scene.sent == 1


def test_a_provider_that_still_lists_what_it_ended_is_believed(scene: Scene) -> None:
    if scene.rig.platform == "vastai":
        pytest.skip("vast.ai lists no ended contracts: what it lists, it bills")
    scene.rig.world.lingers = 2
    assert scene.destroy().kind == "proven"


def test_an_acknowledged_deletion_that_does_not_happen_is_unproven(scene: Scene) -> None:
    scene.rig.world.ignores = {"destroy"}
    outcome = scene.destroy()
    assert outcome.kind == "unproven"
    assert scene.sent == 1
    assert outcome.check_by_hand
    assert len(scene.told) >= PACE.looks


def test_a_key_that_is_rejected_after_the_verb_proves_nothing(scene: Scene) -> None:
    world = scene.rig.world

    def revoked(verb: str) -> None:
        world.ignores = {verb}
        world.auth = "401"

    world.on_verb = revoked
    assert scene.destroy().kind == "unproven"


def test_a_404_and_an_empty_list_prove_nothing_of_an_account_that_had_other_machines(scene: Scene) -> None:
    """PROV-AUTH404. Both witnesses would say gone; the list is of another account, or has lost its others."""
    world = scene.rig.world

    def swapped(verb: str) -> None:
        world.ignores = {verb}
        world.auth, world.account = "empty", 9999

    world.on_verb = swapped
    outcome = scene.destroy()
    assert outcome.kind == "unproven"
    assert "belongs to" in outcome.witnesses[-1].detail or "beside it" in outcome.witnesses[-1].detail


def test_the_only_machine_of_an_account_can_be_proven_gone(scene: Scene) -> None:
    del scene.rig.world.boxes[OTHERS[scene.rig.platform]]
    assert scene.destroy().kind == "proven"


def test_a_retired_api_never_proves_an_end(scene: Scene) -> None:
    scene.rig.world.on_verb = lambda verb: setattr(scene.rig.world, "dead", True)
    assert scene.destroy().kind == "unproven"


def test_a_retired_api_before_the_verb_sends_nothing(scene: Scene) -> None:
    scene.rig.world.dead = True
    outcome = scene.destroy()
    assert outcome.kind == "refused"
    assert codes(outcome) == ["truth-unknown"]


def test_an_incomplete_list_never_proves_an_end(scene: Scene) -> None:
    if scene.rig.platform == "lambda":
        pytest.skip("Lambda's list has no pages")
    scene.rig.world.on_verb = lambda verb: setattr(scene.rig.world, "short_page", True)
    outcome = scene.destroy()
    assert outcome.kind == "unproven"
    assert "not complete" in outcome.witnesses[-1].detail


def test_a_500_that_was_carried_out_all_the_same_is_proven_and_not_sent_again(scene: Scene) -> None:
    """A deletion may be repeated; what must not be is a second one after the truth is known."""
    world = scene.rig.world
    world.applies_though = True
    world.script = [(DELETES[scene.rig.platform], (500, {}, {}))] * 2
    outcome = scene.destroy()
    assert outcome.kind == "proven"
    assert scene.sent <= 2


def test_a_deletion_without_an_answer_is_settled_by_what_is_seen(scene: Scene) -> None:
    world = scene.rig.world
    part = DELETES[scene.rig.platform]
    world.script = [(part, (503, {}, {}))] * (2 if part == "DELETE" else 1)  # only DELETE is repeated
    outcome = scene.destroy()
    assert outcome.kind == "unproven"
    again = scene.carry_out(scene.order())  # the operator orders it anew: it is looked at first, then sent
    assert again.kind == "proven"


def test_somebody_elses_machine_stays(scene: Scene) -> None:
    scene.destroy()
    assert OTHERS[scene.rig.platform] in scene.rig.world.boxes


def test_a_stop_is_proven_by_both_witnesses(stopping: Scene) -> None:
    outcome = stopping.stop()
    assert outcome.kind == "proven"
    assert {w.said for w in outcome.witnesses} == {"stopped"}


def test_a_stop_that_is_ignored_while_it_starts_is_never_called_stopped(stopping: Scene) -> None:
    """AutoDL takes a power_off while it starts, and goes on to run and bill."""
    world = stopping.rig.world
    world.put(stopping.rig.id, state="starting")
    world.ignores = {"stop"}
    outcome = stopping.stop()
    assert outcome.kind in ("unproven", "refused")
    if stopping.rig.platform == "autodl":
        assert outcome.kind == "refused"
        assert world.count("power_off") == 0


def test_lambda_refuses_a_stop_and_nothing_is_sent(tmp_path: Path) -> None:
    with account("lambda") as rig:
        scene = Scene(tmp_path, rig)
        outcome = scene.stop()
        assert outcome.kind == "refused"
        assert codes(outcome) == ["verb-refused"]
        assert scene.sent == 0
        assert rig.world.boxes[rig.id].state == "running"


def test_autodl_releases_nothing_that_runs(tmp_path: Path) -> None:
    with account("autodl") as rig:
        scene = Scene(tmp_path, rig)
        outcome = scene.carry_out(scene.order())
        assert outcome.kind == "refused"
        assert rig.world.count("release") == 0
        assert rig.world.boxes[rig.id].state == "running"


@pytest.mark.parametrize("platform", ["runpod", "lambda", "paperspace"])
def test_what_outlives_the_machine_and_bills_is_named(platform: str, tmp_path: Path) -> None:
    """PROV-VOLUME-LEFT."""
    with account(platform, volume="203.0.113.9" if platform == "paperspace" else "vol-keep") as rig:
        outcome = Scene(tmp_path, rig).destroy()
        assert outcome.kind == "proven"
        assert "go on billing" in outcome.detail


def test_a_later_machine_of_the_same_id_is_not_ours(tmp_path: Path) -> None:
    """PROV-IDREUSE."""
    with account("runpod") as rig:
        scene = Scene(tmp_path, rig)
        rig.world.on_verb = lambda verb: rig.world.put(rig.id, created="2026-11-30T00:00:00Z")
        rig.world.ignores = {"destroy"}
        assert scene.destroy().kind == "unproven"
