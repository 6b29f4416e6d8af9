"""The setup's worker: step after step, kept on disk, going on after a crash, told when one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import AnswerSetup, BackSetup, LeaveSetup, SkipSetup, StartSetup
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.setup import Asked, SetupView, StepId
from tui.model.text import SafeText
from tui.setup.state import STEPS, Did, Shown, State, Step, Tools, load
from tui.workers.setup import Setup

ASKED = Shown(SafeText("x"), SafeText("y"), Asked("text", SafeText("what?")))


@dataclass
class Plain:
    """A step that takes any answer but ``no``; ``more`` asks further, ``boom`` breaks."""

    name: str
    took: list[str] = field(default_factory=list)

    async def ask(self, state: State, tools: Tools) -> Shown:
        return ASKED

    async def take(
        self, state: State, tools: Tools, answer: str, tell: Callable[[SafeText], None]
    ) -> Did | Shown:
        self.took.append(answer)
        tell(SafeText("at it"))
        match answer:
            case "no":
                raise Failure("That will not do.")
            case "boom":
                raise RuntimeError("broken")
            case "more":
                return Shown(SafeText("x"), SafeText("y"), Asked("read", SafeText("really?")))
            case "wait":
                await asyncio.sleep(60)
        return Did(brief=answer, data={"id": answer} if self.name != "connect" else {"box": "b"})


class Rig:
    def __init__(self, tmp: Path) -> None:
        self.where = Paths(tmp / "config", tmp / "state")
        self.steps: dict[StepId, Step] = {name: Plain(name) for name in STEPS}
        self.store = Store()
        tools: Any = type(
            "T", (), {"where": self.where, "profiles": {}, "instance": lambda _s, n: Instance(n, "ssh", None)}
        )()
        self.setup = Setup(self.store, tools, lambda: self.steps)

    async def tell(self, *commands: object) -> SetupView:
        for command in commands:
            await self.setup.handle(command)  # type: ignore[arg-type]
            await self.settled()
        return self.setup._view

    async def settled(self) -> None:
        async with asyncio.timeout(20):
            while (work := self.setup._work) is not None and not work.done():
                await asyncio.sleep(0.01)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_steps_follow_each_other_to_the_end(rig: Rig) -> None:
    view = await rig.tell(StartSetup())
    for name in STEPS:
        assert (view.current, view.step(name) and view.step(name).state) == (name, "needs-you")  # type: ignore[union-attr]
        view = await rig.tell(AnswerSetup(name, f"did {name}"))
    assert view.over
    assert view.box == "b"
    assert load(rig.where) == State()


async def test_a_failure_is_told_and_the_step_asks_again(rig: Rig) -> None:
    for answer, says in (("no", "That will not do."), ("boom", "broken")):
        view = await rig.tell(StartSetup(), AnswerSetup("platform", answer))
        step = view.step("platform")
        assert step is not None
        assert (step.state, step.asked, view.working) == ("failed", ASKED.asked, False)
        assert says in view.problem
    view = await rig.tell(AnswerSetup("platform", "fine"))
    assert (view.current, view.problem) == ("surface", "")


async def test_more_may_be_asked_before_a_step_is_done(rig: Rig) -> None:
    view = await rig.tell(StartSetup(), AnswerSetup("platform", "more"))
    step = view.step("platform")
    assert step is not None
    assert step.asked is not None
    assert step.asked.prompt == "really?"
    assert load(rig.where) == State()


async def test_it_goes_on_in_another_process(rig: Rig, tmp_path: Path) -> None:
    await rig.tell(StartSetup(), AnswerSetup("platform", "autodl"), SkipSetup("surface", "I know it"))
    other = Rig(tmp_path)
    await rig.tell(LeaveSetup())
    view = await other.tell(StartSetup())
    assert view.current == "key"
    skipped = view.step("surface")
    assert skipped is not None
    assert (skipped.state, skipped.reason) == ("skipped", "I know it")
    view = await other.tell(StartSetup(anew=True))
    assert view.current == "platform"


async def test_one_rgt_at_a_time_has_the_setup(rig: Rig, tmp_path: Path) -> None:
    await rig.tell(StartSetup(), AnswerSetup("platform", "autodl"))
    other = Rig(tmp_path)
    with pytest.raises(Failure, match=r"rgt with pid \d+, since .* is at the setup") as held:
        await other.tell(StartSetup(anew=True))
    assert held.value.code == "setup-held"
    assert (other.setup._view.working, other.setup._view.problem) == (False, held.value.line)
    with pytest.raises(Failure, match="is at the setup"):
        await other.tell(AnswerSetup("platform", "runpod"))
    assert load(rig.where).platform == "autodl"
    await rig.setup.handle(AnswerSetup("surface", "wait"))
    await rig.setup.handle(LeaveSetup())
    with pytest.raises(Failure, match="is at the setup"):  # it works on when nobody looks
        await other.tell(StartSetup())
    await rig.setup.close()
    assert (await other.tell(StartSetup())).current == "surface"
    await other.tell(AnswerSetup("surface", "b"), LeaveSetup())
    with pytest.raises(Failure, match="for another step"):  # as it stands on disk, not as it once was here
        await rig.tell(AnswerSetup("surface", "c"))


async def test_a_step_is_left_out_only_for_a_reason(rig: Rig) -> None:
    await rig.tell(StartSetup())
    with pytest.raises(Failure, match="reason"):
        await rig.tell(SkipSetup("platform", " "))


async def test_an_answer_for_another_step_does_nothing(rig: Rig) -> None:
    await rig.tell(StartSetup())
    with pytest.raises(Failure, match="another step"):
        await rig.tell(AnswerSetup("rent", "x"))


async def test_going_back_ends_what_runs_and_forgets_what_came_after(rig: Rig) -> None:
    await rig.tell(StartSetup(), AnswerSetup("platform", "a"), AnswerSetup("surface", "b"))
    await rig.setup.handle(AnswerSetup("key", "wait"))
    await asyncio.sleep(0.05)
    with pytest.raises(Failure, match="at work"):
        await rig.setup.handle(AnswerSetup("key", "again"))
    await rig.setup.handle(LeaveSetup())
    view = await rig.tell(BackSetup("surface"))
    assert view.current == "surface"
    assert set(load(rig.where).done) == {"platform"}
    with pytest.raises(Failure, match="still to come"):
        await rig.tell(BackSetup("mirrors"))


async def test_a_box_that_is_there_has_its_renting_behind_it(rig: Rig) -> None:
    view = await rig.tell(StartSetup("box-1"))
    assert view.box == "box-1"
    rent = view.step("rent")
    assert rent is not None
    assert rent.state == "done"
    await rig.setup.close()
