"""The launch on screen: what is asked is seen at every size, and only a key on its line starts a run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.fixtures import launch_fixture as at
from tests.fixtures.fleet_fixture import fleet
from tests.screens.app_harness import held, picture, running, said, until
from tui.app import RgtApp
from tui.model.command import (
    BackLaunch,
    CheckAgain,
    ChooseBox,
    ChooseJob,
    Command,
    LeaveLaunch,
    OpenLaunch,
    StartLaunch,
)
from tui.model.launch import LaunchView
from tui.model.text import safe
from tui.screens.fleet import FleetScreen
from tui.screens.launch import LaunchScreen
from tui.screens.typed_line import TypedLine
from tui.widgets.glyphs import ASCII

SIZES = [(60, 15), (80, 24), (120, 40)]
MOMENTS = {
    "choosing": at.CHOOSING,
    "where": at.WHERE,
    "checking": at.CHECKING,
    "stopped": at.STOPPED,
    "planned": at.PLANNED,
    "starting": at.STARTING,
    "stepped": at.STEPPED,
    "dead": at.DEAD,
    "unreached": at.UNREACHED,
    "cut": at.CUT,
}
SHOWS = {
    "choosing": ("which job file", "launched before", "sweep-a"),
    "where": ("on which box", "ablate-02", "1 A100 card"),
    "checking": ("at work", "looks at ablate-02"),
    "stopped": ("must not be started", "2 stops", "not on the"),
    "planned": ("waits for your word", "/root/autodl-tmp/ablate/active"),
    "starting": ("at work", "12 s since your word", "3 of 38 files"),
    "stepped": ("first step seen", "loss 0.0612", "Checkpoints: a save takes 5.0 s"),
    "dead": ("dead", "No module named 'einops'"),
    "unreached": ("stopped", "permission denied"),
    "cut": ("never started twice",),
}


@asynccontextmanager
async def launching(
    view: LaunchView | None, size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[tuple[RgtApp, Pilot[int]]]:
    """The launch in front, showing `view`; what was sent on the way is taken out."""
    async with running(at.fleet(view), size, **options) as (app, pilot):
        app.push_screen(LaunchScreen(at.BOX))
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.is_mounted)
        await until(pilot, lambda: "launch" in shown(app))
        await pilot.pause(0.05)
        held(app).sent()
        yield app, pilot


def shown(app: RgtApp) -> str:
    return "\n".join(picture(app))


def flat(app: RgtApp) -> str:
    """The screen's words, whatever line they stand on."""
    return " ".join(shown(app).split())


def sent(app: RgtApp) -> list[Command]:
    return held(app).sent()


async def turn(app: RgtApp, pilot: Pilot[int], view: LaunchView) -> None:
    """The worker says something new."""
    held(app).replace(replace(at.fleet(view), version=app.snapshot.version + 1))
    await pilot.pause(0.08)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("moment", MOMENTS)
async def test_every_moment_fits(moment: str, size: tuple[int, int]) -> None:
    async with launching(MOMENTS[moment], size) as (app, _):
        assert picture(app)[0].startswith("─ launch")
        for words in SHOWS[moment]:
            assert words in flat(app), shown(app)
        assert "help" in picture(app)[-1]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_without_colours_and_wide_glyphs_it_is_ascii(moment: str) -> None:
    async with launching(MOMENTS[moment], (80, 24), glyphs=ASCII, theme="mono") as (app, _):
        foreign = "超分训练集"
        assert "".join(c for c in shown(app) if c not in foreign).replace("\n", "").isascii(), shown(app)


async def test_l_opens_it_with_the_box_under_the_cursor_and_leaving_stops_nothing() -> None:
    async with running(fleet()) as (app, pilot):
        fleet_view = app.screen
        assert isinstance(fleet_view, FleetScreen)
        fleet_view.go_to(at.BOX, None)
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        assert [c for c in sent(app) if isinstance(c, OpenLaunch)] == [OpenLaunch(at.BOX)]
        await turn(app, pilot, at.STARTING)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        assert sent(app) == [LeaveLaunch()]
        assert any("It goes on" in line for line in said(app))
        await pilot.press("L")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        assert "3 of 38 files" in flat(app)


async def test_the_command_line_names_a_job() -> None:
    async with running(fleet()) as (app, pilot):
        await app.perform("launch", "~/exp/job.toml")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.is_mounted)
        await pilot.pause(0.05)
        opened = next(c for c in sent(app) if isinstance(c, OpenLaunch))
        assert opened.file == "~/exp/job.toml"


async def test_read_only_mode_has_no_launch() -> None:
    async with running(at.fleet(at.PLANNED), read_only=True) as (app, pilot):
        await pilot.press("L")
        await app.perform("launch", "job.toml")
        await app.perform("start")
        await pilot.pause()
        assert isinstance(app.screen, FleetScreen)
        assert any("read-only" in line for line in said(app))


async def test_a_job_is_chosen_by_enter_and_a_broken_one_is_not() -> None:
    async with launching(at.CHOOSING) as (app, pilot):
        await pilot.press("enter")
        assert sent(app) == [ChooseJob("/j/a.toml")]
        await pilot.press("j", "j", "j", "enter")
        assert sent(app) == []
        assert any("name is missing" in line for line in said(app))


@pytest.mark.parametrize(
    ("view", "says"),
    [
        (LaunchView(working=True), "Still looking for job files"),
        (None, "Still looking for job files"),
        (at.CHECKING, "It looks at ablate-02: wait, or b goes back"),
        (at.STOPPED, "r looks again, b goes back"),
        (at.PLANNED, "Enter starts nothing; L on the last line does"),
        (at.STARTING, "It is being started: wait."),
        (at.CUT, "Nothing is to be chosen here: r looks again, b goes back"),
    ],
)
async def test_enter_says_why_it_does_nothing(view: LaunchView | None, says: str) -> None:
    async with launching(view, (60, 15)) as (app, pilot):
        await pilot.press("enter")
        assert sent(app) == []
        assert any(says in line for line in said(app)), said(app)


async def test_who_pressed_enter_too_early_is_told_when_the_look_is_done() -> None:
    async with launching(LaunchView(working=True)) as (app, pilot):
        await pilot.press("enter")
        await turn(app, pilot, at.CHOOSING)
        assert any("Here they are; Enter chooses" in line for line in said(app))
        assert sent(app) == []  # what was not seen is not chosen


async def test_a_file_that_could_not_be_taken_stays_under_the_cursor() -> None:
    """A second Enter must not choose another one."""
    async with launching(at.CHOOSING) as (app, pilot):
        await pilot.press("j", "enter")
        (first,) = sent(app)
        assert isinstance(first, ChooseJob)
        await turn(app, pilot, replace(at.CHOOSING, working=True))
        await turn(app, pilot, replace(at.CHOOSING, problem=safe("It is a matrix, which a queue runs.")))
        assert "which a queue runs" in flat(app)
        await pilot.press("enter")
        assert sent(app) == [first]


async def test_a_path_is_typed_and_earlier_ones_come_back() -> None:
    async with launching(at.CHOOSING, (60, 15)) as (app, pilot):
        await pilot.press("G", "enter")
        assert app.screen.query_one(TypedLine).open
        await pilot.press("up", "enter")
        assert sent(app) == [ChooseJob("/j/a.toml")]
        await pilot.press("t", *"x.toml".replace(".", "."), "enter")
        await pilot.pause()
        assert sent(app) == [ChooseJob("x.toml")]
        await pilot.press("t", "enter")
        await pilot.pause()
        assert app.screen.query_one(TypedLine).open
        assert sent(app) == []


async def test_the_box_where_one_looked_is_proposed_and_not_chosen() -> None:
    async with launching(at.WHERE) as (app, pilot):
        assert sent(app) == []
        assert isinstance(app.screen, LaunchScreen)
        assert app.screen.choice is not None
        assert app.screen.choice.key == at.BOX
        await pilot.press("enter")
        assert sent(app) == [ChooseBox(at.BOX)]


@pytest.mark.parametrize("size", SIZES)
async def test_only_the_key_on_the_start_line_starts_a_run(size: tuple[int, int]) -> None:
    async with launching(at.PLANNED, size) as (app, pilot):
        await pilot.press("G")
        assert "pushes the code and starts" in flat(app)
        await pilot.press("g")
        for key in ("L", "enter", "j", "L", "enter", "tab", "L", "enter", "tab"):
            await pilot.press(key)
        assert sent(app) == []
        await pilot.press("G", "enter", "space")
        assert sent(app) == []
        await pilot.press("tab", "L")  # the cursor stays on the line, the keys go elsewhere
        assert sent(app) == []
        await pilot.press("tab", "L")
        assert sent(app) == [StartLaunch(at.PLANNED.consent)]


@pytest.mark.parametrize("drawn", [True, False])
async def test_a_new_plan_is_never_under_a_cursor_that_stood_on_start(drawn: bool) -> None:
    async with launching(at.PLANNED) as (app, pilot):
        await pilot.press("G", "r")
        assert sent(app) == [CheckAgain()]
        if drawn:  # a screen that is busy draws only the newest
            await turn(app, pilot, at.CHECKING)
        await turn(app, pilot, replace(at.PLANNED, consent="e" * 64))
        await pilot.press("L")
        assert sent(app) == []
        await pilot.press("G", "L")
        assert sent(app) == [StartLaunch("e" * 64)]


async def test_what_stops_a_launch_leaves_nothing_to_start() -> None:
    async with launching(at.STOPPED) as (app, pilot):
        await pilot.press("G", "L", "enter")
        assert sent(app) == []
        await pilot.press("r", "b")
        assert sent(app) == [CheckAgain(), BackLaunch("box")]


async def test_an_earlier_step_is_looked_at_and_gone_back_to() -> None:
    async with launching(at.PLANNED) as (app, pilot):
        await pilot.press("tab", "k")
        await pilot.pause()
        assert "The clocks agree" in flat(app)
        await pilot.press("g", "b")
        assert sent(app) == [BackLaunch("job")]


async def test_the_answer_opens_the_run() -> None:
    view = replace(at.STEPPED, run="sweep-a.seed3", box="ablate-01")
    async with launching(view) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.__class__.__name__ == "RunScreen")
    async with launching(at.STEPPED) as (app, pilot):
        await pilot.press("enter", "N")
        assert isinstance(app.screen, LaunchScreen)  # it is not in this fleet
        assert sent(app) == [OpenLaunch(at.BOX, anew=True)]


async def test_y_copies_a_line_in_full() -> None:
    copied: list[str] = []
    async with launching(at.PLANNED, (60, 15)) as (app, pilot):
        app.copy_text = lambda text: copied.append(text) or "copied"  # type: ignore[assignment,func-returns-value,return-value]
        await pilot.press("j", "j", "j", "y")
        assert copied == [
            "python train.py --config sweep-a.yaml --resume auto; done when metrics.json is there"
        ]
