"""An app with a real store, a frozen clock and nothing behind it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from tests.fixtures.fleet_fixture import NOW
from tui.app import RgtApp
from tui.fleet import themes
from tui.fleet.paths import shipped
from tui.fleet.store import Store
from tui.model.command import Command
from tui.model.snapshot import FleetSnapshot
from tui.screens.fleet import FleetScreen
from tui.screens.view import View
from tui.widgets.roster import Roster

THEMES = themes.load([shipped("themes")]).by_name


class HeldStore(Store):
    """A store whose snapshot the test sets itself. `send` and `offer` work as ever."""

    def __init__(self, snapshot: FleetSnapshot) -> None:
        super().__init__(clock=lambda: NOW, frame_s=0.01)
        self._snapshot = snapshot
        self.publish: Callable[[FleetSnapshot, frozenset[str]], None] | None = None

    async def pump(self, publish: Callable[[FleetSnapshot, frozenset[str]], None]) -> None:
        self.publish = publish

    def replace(self, snapshot: FleetSnapshot) -> None:
        """Publish another snapshot, as the pump would."""
        self._snapshot = snapshot
        assert self.publish is not None
        self.publish(snapshot, frozenset())

    def sent(self) -> list[Command]:
        """The commands sent so far; they are taken out."""
        found = []
        while not self.commands.empty():
            found.append(self.commands.get_nowait())
        return found


@asynccontextmanager
async def running(
    snapshot: FleetSnapshot, size: tuple[int, int] = (120, 40), *, store: Store | None = None, **options: Any
) -> AsyncIterator[tuple[RgtApp, Pilot[int]]]:
    """An app that shows `snapshot`. Fails when anything in it failed."""
    options.setdefault("themes", THEMES)
    options.setdefault("environ", {})
    options.setdefault("state", Path("/nonexistent"))
    app = RgtApp(store or HeldStore(snapshot), **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, View) or len(app.screen_stack) > 2)
        await pilot.pause()
        yield app, pilot
        assert not list(app.faults)


async def until(pilot: Pilot[int], holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something holds; the deadline is generous, since a machine that is busy is no fault."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "did not come to hold in time"
        await pilot.pause(0.02)


def roster(app: RgtApp) -> Roster:
    """The roster of the fleet view, wherever the app is now."""
    fleet = next(s for s in app.screen_stack if isinstance(s, FleetScreen))
    return fleet.query_one(Roster)


def said(app: RgtApp) -> list[str]:
    """The sentences shown as toasts."""
    return [notification.message for notification in app._notifications]


def held(app: RgtApp) -> HeldStore:
    assert isinstance(app.store, HeldStore)
    return app.store


def picture(app: RgtApp) -> list[str]:
    """The whole screen as text, one string per row."""
    width, height = app.size
    strips = app.screen._compositor.render_strips(app.size)
    assert len(strips) == height
    assert all(strip.cell_length == width for strip in strips)
    return [strip.text for strip in strips]
