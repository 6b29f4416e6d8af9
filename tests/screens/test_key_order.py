"""Keys that come in one burst do what they do when they are typed slowly."""

from __future__ import annotations

import asyncio

import pytest
from textual import events
from textual.keys import _character_to_key
from textual.widgets import Input

from tests.fixtures.fleet_fixture import fleet
from tests.screens.app_harness import roster, running, until
from tui import key_order
from tui.app import RgtApp
from tui.screens.command_line import CommandLine
from tui.screens.fleet import FleetScreen


@pytest.fixture(autouse=True)
def patiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason to let a key go early."""
    monkeypatch.setattr(key_order, "PATIENCE_S", 30.0)


def burst(app: RgtApp, text: str, *after: str) -> None:
    """All of these keys, before any of them is done."""
    for one in text:
        app.post_message(events.Key(_character_to_key(one), one))
    for key in after:
        app.post_message(events.Key(key, None))


async def test_a_burst_goes_to_the_line_that_its_first_key_opens() -> None:
    async with running(fleet()) as (app, pilot):
        sorted_by = roster(app).sort_by
        burst(app, "/done", "enter")
        await until(pilot, lambda: roster(app).query_text == "done")
        assert roster(app).counts[0] == 1
        assert isinstance(app.screen, FleetScreen)  # `e` in it opens another view
        assert roster(app).sort_by == sorted_by  # `s` sorts


async def test_a_burst_goes_to_the_view_that_its_first_key_opens() -> None:
    async with running(fleet()) as (app, pilot):
        burst(app, ":hel")
        await until(pilot, lambda: isinstance(app.screen, CommandLine))
        await until(pilot, lambda: any(one.value == "hel" for one in app.screen.query(Input)))


async def test_keys_that_move_are_all_done_in_order() -> None:
    async with running(fleet()) as (app, pilot):
        keys = [item.key for item in roster(app).items]
        burst(app, "jjjk")
        await until(pilot, lambda: roster(app).key == keys[2])


async def test_a_key_that_is_done_twice_lets_one_key_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a busy screen the trace and the timer come both, before the next key is there."""
    done = key_order.KeyOrder._done

    def twice(self: key_order.KeyOrder, number: int) -> None:
        done(self, number)
        done(self, number)

    monkeypatch.setattr(key_order.KeyOrder, "_done", twice)
    async with running(fleet()) as (app, pilot):
        burst(app, "/abcdefgh", "enter")
        await until(pilot, lambda: app._keys._given == 10 and not app._keys._number)
        assert roster(app).query_text == "abcdefgh"


async def test_keys_that_were_typed_ahead_for_a_shell_do_nothing_here() -> None:
    async with running(fleet()) as (app, pilot):
        here = roster(app).key
        app._lending.away = True
        burst(app, "jj")
        await until(pilot, lambda: app._keys._given == 2 and not app._keys._number)
        assert roster(app).key == here
        app._lending.away = False
        await pilot.press("j")
        await until(pilot, lambda: roster(app).key != here)


async def test_a_key_whose_trace_is_lost_holds_nothing_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_order.KeyOrder, "passed", lambda _self, _message: None)
    monkeypatch.setattr(key_order, "PATIENCE_S", 0.3)
    async with running(fleet()) as (app, pilot):
        keys = [item.key for item in roster(app).items]
        began = asyncio.get_running_loop().time()
        burst(app, "jj")
        await until(pilot, lambda: roster(app).key == keys[2])
        assert asyncio.get_running_loop().time() - began >= key_order.PATIENCE_S * 0.9
