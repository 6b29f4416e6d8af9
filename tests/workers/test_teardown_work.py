"""The one piece of work of a teardown."""

from __future__ import annotations

import asyncio

import pytest

from tui.fleet.store import Store
from tui.model.teardown import TeardownView
from tui.workers import teardown_work
from tui.workers.teardown_board import Board
from tui.workers.teardown_work import Work


async def test_work_that_holds_on_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teardown_work, "LEAVE_S", 0.01)
    store = Store()
    work = Work(Board(store, TeardownView("box", "run", "stop")), store)
    begun, answered = asyncio.Event(), asyncio.Event()

    async def on_a_disk_that_hangs() -> None:
        begun.set()
        try:
            await answered.wait()
        except asyncio.CancelledError:
            await answered.wait()
            raise

    assert await work.rest()
    work.start(on_a_disk_that_hangs)
    await begun.wait()
    assert await work.cancel()
    assert not await work.rest()
    answered.set()
    monkeypatch.setattr(teardown_work, "LEAVE_S", 60.0)
    assert await work.rest()
