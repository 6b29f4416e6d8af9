"""The handbook page: every line is copied as it must be typed, and what is not known is said."""

from __future__ import annotations

import pytest

from tests.fixtures import launch_fixture as at
from tests.screens.app_harness import held, picture, running, until
from tui.app import RgtApp
from tui.model.command import ReadHandbook
from tui.model.handbook import HandbookView
from tui.screens.fleet import FleetScreen
from tui.screens.handbook import HandbookScreen

SIZES = [(60, 15), (80, 24), (120, 40)]


def flat(app: RgtApp) -> str:
    return " ".join(" ".join(picture(app)).split())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("page", [at.LAUNCHED, at.WATCHED])
async def test_a_page_fits_and_each_line_is_copied_whole(page: HandbookView, size: tuple[int, int]) -> None:
    copied: list[str] = []
    async with running(at.kept(page), size) as (app, pilot):
        app.copy_text = lambda text: copied.append(text) or "copied"  # type: ignore[assignment,func-returns-value,return-value]
        await app.perform("handbook", page.run)
        await until(pilot, lambda: isinstance(app.screen, HandbookScreen) and app.screen.is_mounted)
        await pilot.pause(0.05)
        assert ReadHandbook(page.run) in held(app).sent()
        assert f"handbook: {page.run}" in picture(app)[0]
        assert ("did not launch this run" in flat(app)) is not page.launched
        for _ in page.lines:
            await pilot.press("y", "j")
        assert copied == [text for _, text in page.lines]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))


async def test_h_opens_the_page_of_the_run_under_the_cursor() -> None:
    async with running(at.kept(at.LAUNCHED)) as (app, pilot):
        assert isinstance(app.screen, FleetScreen)
        app.screen.go_to("ablate-01", at.LAUNCHED.run)
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, HandbookScreen))
        assert held(app).sent()[-1] == ReadHandbook(at.LAUNCHED.run)


async def test_another_runs_page_is_not_shown_meanwhile() -> None:
    async with running(at.kept(at.LAUNCHED)) as (app, pilot):
        await app.perform("handbook", "grid-3")
        await until(pilot, lambda: isinstance(app.screen, HandbookScreen))
        await pilot.pause(0.05)
        assert "Looking it up" in flat(app)
        assert "Looking it up" in picture(app)[1]  # no row is wasted on a head that it has not got
        assert "rgt resume" not in flat(app)
