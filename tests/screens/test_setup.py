"""The setup on screen: one question at every size, answers sent as they are meant, secrets nowhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual import events
from textual.pilot import Pilot

from tests.fixtures import setup_fixture as at
from tests.screens.app_harness import held, picture, running, until
from tui.app import RgtApp
from tui.model.command import AnswerSetup, BackSetup, Command, LeaveSetup, SkipSetup, StartSetup
from tui.model.setup import Asked, SetupStep, SetupView
from tui.model.text import SafeText, safe
from tui.screens.setup import SetupScreen

SIZES = [(60, 15), (80, 24), (120, 40)]


@asynccontextmanager
async def guide(
    view: SetupView, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[RgtApp, Pilot[int]]]:
    """The setup in front, showing `view`; what was sent on the way is taken out."""
    async with running(at.fleet(view), size) as (app, pilot):
        app.push_screen(SetupScreen())
        await until(pilot, lambda: isinstance(app.screen, SetupScreen) and app.screen.is_mounted)
        await until(pilot, lambda: "setup" in shown(app))
        assert held(app).sent() == [StartSetup("")]
        yield app, pilot


def shown(app: RgtApp) -> str:
    return "\n".join(picture(app))


def sent(app: RgtApp) -> list[Command]:
    return held(app).sent()


def answers(app: RgtApp) -> list[tuple[str, str]]:
    return [(one.step, one.answer) for one in sent(app) if isinstance(one, AnswerSetup)]


@pytest.mark.parametrize("size", SIZES)
async def test_the_question_and_what_can_be_chosen_are_seen(size: tuple[int, int]) -> None:
    async with guide(at.CHOOSING, size) as (app, pilot):
        assert "Rent here, or go on" in shown(app)
        assert "0.69 USD/h" in shown(app)
        await pilot.press("j", "enter")
        assert answers(app) == [("rent", "a")]


@pytest.mark.parametrize("size", SIZES)
async def test_a_line_is_typed_and_sent_as_it_is(size: tuple[int, int]) -> None:
    async with guide(at.MEASURED, size) as (app, pilot):
        await pilot.press(*"12 GB, 3", "enter")
        await pilot.pause(0.2)
        assert answers(app) == [("budget", "12 GB, 3")]


async def test_a_failure_is_told_and_the_line_is_open_again() -> None:
    async with guide(at.FAILED) as (app, pilot):
        assert "problem A line of the text is no part" in shown(app)
        await pilot.press(*"ssh a@b", "enter")
        await pilot.pause(0.2)
        assert answers(app) == [("connect", "ssh a@b")]


async def test_several_pasted_lines_are_one_answer() -> None:
    async with guide(at.FAILED) as (app, pilot):
        assert app.focused is not None
        app.focused.post_message(events.Paste("ssh -p 1 root@h\npassw0rd"))
        await pilot.pause(0.2)
        assert answers(app) == [("connect", "ssh -p 1 root@h\npassw0rd")]
        assert "passw0rd" not in shown(app)


async def test_what_costs_money_is_typed_and_not_pasted() -> None:
    asked = Asked("text", safe("Type rent to send exactly this."), word=SafeText("rent"))
    steps = tuple(
        replace(one, state="needs-you", asked=asked) if one.id == "rent" else one for one in at.CHOOSING.steps
    )
    async with guide(replace(at.CHOOSING, steps=steps)) as (app, pilot):
        assert app.focused is not None
        app.focused.post_message(events.Paste("rent"))
        await pilot.pause(0.2)
        assert answers(app) == []
        await pilot.press(*"rent", "enter")
        await pilot.pause(0.2)
        assert answers(app) == [("rent", "rent")]


async def test_a_secret_is_masked_and_does_not_stay() -> None:
    steps = tuple(
        SetupStep("credentials", "needs-you", asked=Asked("secret", safe("API key")))
        if one.id == "credentials"
        else one
        for one in at.CHOOSING.steps
    )
    view = replace(at.CHOOSING, steps=steps, current="credentials")
    async with guide(view) as (app, pilot):
        await pilot.press(*"sk-live-1")
        assert "sk-live" not in shown(app)
        await pilot.press("enter")
        await pilot.pause(0.2)
        commands = sent(app)
        assert [one.answer for one in commands if isinstance(one, AnswerSetup)] == ["sk-live-1"]
        assert "sk-live" not in repr(commands)
        assert all("sk-live" not in str(getattr(field, "value", "")) for field in app.screen.query("Input"))


async def test_a_step_is_left_out_with_a_reason_alone() -> None:
    async with guide(at.CHOOSING) as (app, pilot):
        await pilot.press("s", "enter")
        assert sent(app) == []
        await pilot.press(*"rented already", "enter")
        assert sent(app) == [SkipSetup("rent", "rented already")]


async def test_going_back_takes_the_key_twice() -> None:
    async with guide(at.CHOOSING) as (app, pilot):
        await pilot.press("tab", "k", "b")
        assert sent(app) == []
        await pilot.press("b")
        assert sent(app) == [BackSetup("credentials")]


async def test_leaving_says_that_it_is_kept() -> None:
    async with guide(at.CHOOSING) as (app, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, SetupScreen))
        assert sent(app) == [LeaveSetup()]


async def test_while_it_works_nothing_is_answered() -> None:
    async with guide(replace(at.CHOOSING, working=True)) as (app, pilot):
        await pilot.press("enter", "s")
        assert sent(app) == []
        assert "at work" in shown(app)
