"""Without a control plane the end is the operator's word, shown as that, and asked for until it is given."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from tests.custody.chains import VICTIM
from tests.custody.endings import Scene, codes
from tui.box.local import LocalTransport, on_this_computer
from tui.box.transport import Completed, LinkLost, Script, Transport
from tui.custody import by_hand, hold
from tui.custody.by_hand import IN_BOX, Word, attest, begin, reminders, run_in_box
from tui.custody.order import Before, Order
from tui.fleet import profiles
from tui.fleet.paths import shipped
from tui.model.custody import Outcome, Verb, Writer
from tui.platforms.control import NoControlPlane

PLANE = NoControlPlane("autodl", "Ordinary instances have no API", "容器实例 → 更多 → 释放.", "shutdown")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def start(scene: Scene, order: Order, in_box: list[str] | None = None) -> Outcome:
    async def run() -> str:
        assert in_box is not None
        in_box.append("shutdown")
        return "the link ended with shutdown"

    async def main() -> Outcome:
        with scene.journal() as journal:
            return await begin(
                journal, scene.ledger, PLANE, order, scene.look, scene.newer, clock=scene.clock,
                in_box=None if in_box is None else run,
            )  # fmt: skip

    return asyncio.run(main())


def word(scene: Scene, order: Order, said: Word) -> Outcome:
    with scene.journal() as journal:
        return attest(journal, scene.ledger, order, said, "connection refused", clock=scene.clock)


def stop(scene: Scene) -> Order:
    return replace(scene.order("stop"), loses=False, proof=None, approval=None)


def test_a_stop_from_inside_is_unproven_until_the_operator_gives_his_word(scene: Scene) -> None:
    order, ran = stop(scene), list[str]()
    begun = start(scene, order, ran)
    assert (begun.kind, ran) == ("unproven", ["shutdown"])
    (reminder,) = reminders(scene.where)
    assert (reminder.victim, reminder.verb, reminder.by_hand) == (VICTIM, "stop", True)
    outcome = word(scene, order, "stopped")
    assert outcome.kind == "attested"
    assert "your word" in outcome.detail
    assert [(one.who, one.said) for one in outcome.witnesses] == [("operator", "stopped"), ("ssh", "unknown")]
    assert outcome.witnesses[1].detail == "connection refused"
    assert reminders(scene.where) == ()
    assert scene.receipts("stop") == ["unproven", "attested"]


@pytest.mark.parametrize("said", ["unsure", "there", "gone"])
def test_any_other_word_ends_nothing(scene: Scene, said: Word) -> None:
    order = stop(scene)
    start(scene, order, [])
    assert word(scene, order, said).kind == "unproven"


def test_the_reminder_stays_while_the_operator_is_unsure(scene: Scene) -> None:
    order = stop(scene)
    start(scene, order, [])
    word(scene, order, "unsure")
    assert len(reminders(scene.where)) == 1


def test_it_is_not_sent_again_while_his_word_is_missing_and_is_once_he_saw_it_run(scene: Scene) -> None:
    order, ran = stop(scene), list[str]()
    start(scene, order, ran)
    again = start(scene, order, ran)
    assert "your word is missing" in again.detail
    assert ran == ["shutdown"]
    word(scene, order, "there")
    start(scene, order, ran)
    assert ran == ["shutdown", "shutdown"]


def test_a_destroy_by_hand_needs_proof_and_approval_and_ends_by_word(scene: Scene) -> None:
    order = scene.order()
    assert codes(start(scene, replace(order, proof=None))) == ["proof-missing"]
    assert codes(start(scene, replace(order, approval=None))) == ["approval-missing"]
    begun = start(scene, order)
    assert begun.kind == "unproven"
    assert "释放" in begun.check_by_hand
    outcome = word(scene, order, "gone")
    assert outcome.kind == "attested"
    assert word(scene, order, "there") == outcome  # settled
    assert scene.receipts() == ["unproven", "attested"]


def test_appr_replay_by_hand(scene: Scene) -> None:
    order = scene.order()
    start(scene, order)
    word(scene, order, "there")
    assert codes(start(scene, order)) == ["approval-used"]


@pytest.mark.parametrize(
    ("before", "code"),
    [
        (Before(known=False, ssh="connection refused"), "box-unknown"),
        (Before(known=True, ssh="", busy=(Writer(path="a", evidence="open"),)), "box-busy"),
    ],
)
def test_an_unseen_or_busy_box_is_not_destroyed_by_hand_either(
    scene: Scene, before: Before, code: str
) -> None:
    order = scene.order()
    scene.before = replace(before, roster=scene.before.roster)
    assert code in codes(start(scene, order))
    assert reminders(scene.where) == ()


def test_a_hold_blocks_it(scene: Scene) -> None:
    hold.hold(scene.ledger, VICTIM, "r", scene.now)
    assert codes(start(scene, scene.order())) == ["held"]


def test_the_word_that_a_box_ended_without_rgt_is_taken_as_that(scene: Scene) -> None:
    outcome = word(scene, scene.order(), "gone")
    assert outcome.kind == "attested"
    assert "not ended by rgt" in outcome.detail


@pytest.mark.parametrize("verb", ["stop", "destroy"])
def test_without_any_id_the_name_alone_destroys_nothing(scene: Scene, verb: Verb) -> None:
    nameless = VICTIM.model_copy(update={"instance_id": None, "host_key": None})
    assert "machine-unidentified" in codes(start(scene, replace(scene.order(verb), victim=nameless)))


async def elsewhere(_transport: Transport) -> bool:
    return False


async def test_nothing_that_stops_a_box_is_sent_to_this_computer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Watched(LocalTransport):
        ran: ClassVar[list[str]] = []

        async def run(
            self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
        ) -> Completed:
            self.ran.append(script.text)
            return await super().run(script, stdin=stdin, timeout=timeout, limit=limit)

    monkeypatch.setitem(by_hand.IN_BOX, "shutdown", Script("exit 3"))
    assert await on_this_computer(LocalTransport())
    assert "was not sent: the box runs on this computer" in await run_in_box(Watched(), "shutdown")
    assert "exit 3" not in Watched.ran


def test_a_box_on_this_computer_is_not_stopped_from_inside_whatever_the_reason(scene: Scene) -> None:
    scene.before = replace(scene.before, own_computer=True)
    order, ran = replace(stop(scene), anyway="it hangs"), list[str]()
    refused = start(scene, order, ran)
    assert (refused.kind, ran) == ("refused", [])
    assert "own-computer" in codes(refused)


async def test_only_known_commands_run_in_a_box_and_a_cut_link_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_hand, "on_this_computer", elsewhere)
    monkeypatch.setitem(by_hand.IN_BOX, "shutdown", Script("exit 3"))
    assert await run_in_box(LocalTransport(), "shutdown") == "shutdown ended with 3"

    class Cut(LocalTransport):
        async def run(
            self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
        ) -> Completed:
            raise LinkLost("gone")

    assert await run_in_box(Cut(), "shutdown") == "the link ended with shutdown"
    with pytest.raises(KeyError):
        await run_in_box(LocalTransport(), "rm -rf /")
    assert all(script.args == () and "$1" not in script.text for script in IN_BOX.values())


@pytest.mark.parametrize(("platform", "product"), [("featurize", ""), ("matpool", "host")])
async def test_what_a_profile_writes_is_what_is_run_and_never_on_this_computer(
    platform: str, product: str, tmp_path: Path
) -> None:
    facts = profiles.load(shipped("profiles"), tmp_path).by_id[platform].facts
    assert facts is not None
    action = facts.action("destroy")
    assert action is not None
    calls = [way.call for way in action.ways if way.kind == "in-box"]
    (call,) = calls
    assert call in IN_BOX
    assert "NAME" not in call
    assert "the box runs on this computer" in await run_in_box(LocalTransport(), call)


async def test_matpools_token_is_read_there_and_is_in_no_argument(tmp_path: Path) -> None:
    """Against a process 1 and a tool of the test's own."""
    tool = tmp_path / "matncli"
    tool.write_text(f'#!/bin/sh\necho "$MATCLOUD_CANCELTOKEN|$*" >"{tmp_path}/ran"\n')
    tool.chmod(0o755)
    environ = tmp_path / "environ"
    environ.write_bytes(b"A=1\0MATCLOUD_CANCELTOKEN=a b$(x)\0B=2\0")
    (call,) = (key for key in IN_BOX if "matncli" in key)
    text = IN_BOX[call].text.replace("/proc/1/environ", str(environ))
    text = text.replace("/public/script/matncli", str(tool))
    assert (await LocalTransport().run(Script(text))).exit == 0
    told = (tmp_path / "ran").read_text().strip()
    assert told == "a b$(x)|node cancel -url https://matpool.com/api/public/node"
    environ.write_bytes(b"A=1\0")
    assert (await LocalTransport().run(Script(text))).exit == 78
