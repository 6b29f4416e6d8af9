"""Room on a full mount from the screen: marks, the exact plan, the typed phrase, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual import events
from textual.pilot import Pilot

from tests.fixtures import triage_fixture as fixture
from tests.fixtures.run_fixture import BOX, FS, NOW
from tests.screens.app_harness import HeldStore, held, picture, running, said, until
from tests.screens.test_teardown import QUIET_S, type_out
from tui.app import RgtApp
from tui.model.command import Command, ReclaimStorage
from tui.model.reclaim import ReclaimPlan, ReclaimView, Removal, Room, plan_of
from tui.model.snapshot import FleetSnapshot
from tui.model.storage import Ladder
from tui.model.text import SafeText
from tui.screens.phrase import PhraseInput
from tui.screens.reclaim import ReclaimScreen
from tui.screens.storage import StorageScreen
from tui.widgets.glyphs import ASCII, UNICODE, Glyphs

SIZES = ((60, 15), (80, 24), (120, 40))
PIP, TRASH = f"{FS}/.cache/pip", f"{FS}/.Trash-0"


def surveyed(made: Ladder | None = None, view: ReclaimView | None = None) -> FleetSnapshot:
    """The box after its survey: a pip cache that comes back, and a trash that does not."""
    made = made or ladder()
    base = fixture.snapshot()
    boxes = tuple(replace(b, ladder=made, reclaim=view) if b.name == BOX else b for b in base.boxes)
    return replace(base, boxes=boxes)


def ladder() -> Ladder:
    made = fixture.ladder()
    return replace(made, at=NOW - 20)


@asynccontextmanager
async def opened(
    snapshot: FleetSnapshot,
    size: tuple[int, int] = (120, 40),
    *,
    glyphs: Glyphs = UNICODE,
    read_only: bool = False,
) -> AsyncIterator[tuple[RgtApp, Pilot[int]]]:
    async with running(snapshot, size, glyphs=glyphs, read_only=read_only) as (app, pilot):
        app.push_screen(StorageScreen(BOX))
        await until(pilot, lambda: isinstance(app.screen, StorageScreen) and app.screen.is_mounted)
        await until(pilot, lambda: "may go" in shown(app))
        held(app).sent()
        yield app, pilot


def shown(app: RgtApp) -> str:
    return " ".join("\n".join(picture(app)).split())


def sent(app: RgtApp) -> list[Command]:
    return held(app).sent()


async def plan_in_front(app: RgtApp, pilot: Pilot[int]) -> ReclaimPlan:
    await pilot.press("R")
    await until(pilot, lambda: isinstance(app.screen, ReclaimScreen) and app.screen.is_mounted)
    await until(pilot, lambda: "reclaim:" in shown(app))
    assert isinstance(app.screen, ReclaimScreen)
    return app.screen.plan


async def typed(app: RgtApp, pilot: Pilot[int], text: str) -> list[Command]:
    await pilot.press("p")
    await until(pilot, lambda: app.screen.query_one(PhraseInput).has_focus)
    await asyncio.sleep(QUIET_S)
    await type_out(pilot, text)
    await pilot.press("enter")
    await asyncio.sleep(0.15)
    await pilot.pause()
    return sent(app)


async def turn(app: RgtApp, pilot: Pilot[int], view: ReclaimView) -> None:
    """The worker says something new."""
    store = held(app)
    assert isinstance(store, HeldStore)
    store.replace(replace(surveyed(view=view), version=app.snapshot.version + 1))
    await pilot.pause(0.05)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
async def test_every_row_fits_before_and_after(size: tuple[int, int], glyphs: Glyphs) -> None:
    async with opened(surveyed(), size, glyphs=glyphs) as (app, pilot):
        plan = await plan_in_front(app, pilot)
        for view in (None, over(plan)):
            if view is not None:
                await turn(app, pilot, view)
            rows = picture(app)
            assert {cell_len(row) for row in rows} == {size[0]}
            assert all(row.isprintable() for row in rows)
            assert glyphs is UNICODE or "\n".join(rows).isascii()


async def test_without_marks_the_plan_is_all_that_comes_back_with_its_exact_paths() -> None:
    async with opened(surveyed()) as (app, pilot):
        plan = await plan_in_front(app, pilot)
        assert [one.path for one in plan.entries] == [PIP]
        text = shown(app)
        for part in (
            PIP, "6,114 files", "812 MB", "comes back", "pip cache: holds only what pip downloads",
            "inodes: 96.2 % used now, 93.1 % after: computed", "L2:", "16,296 files short", str(plan.phrase),
            "waits for you", "not read: 2 processes could not be read",
        ):  # fmt: skip
            assert part in text, part
        assert TRASH not in text


async def test_marked_places_alone_and_what_is_gone_for_ever_says_so() -> None:
    async with opened(surveyed()) as (app, pilot):
        await pilot.press("space", "space", "k", "space")  # both marked, the first one not any more
        text = "\n".join(picture(app))
        assert any(UNICODE.mark in row and ".Trash-0" in row for row in picture(app)), text
        assert not any(UNICODE.mark in row and ".cache/pip" in row for row in picture(app)), text
        assert "plan for 1 marked" in shown(app)
        plan = await plan_in_front(app, pilot)
        assert [one.path for one in plan.entries] == [TRASH]
        assert plan.phrase.startswith(f"reclaim {BOX} for ever ")
        assert "L3:" in shown(app) and "for ever" in shown(app)


async def test_only_the_typed_line_is_sent_with_the_plan_it_was_typed_for() -> None:
    async with opened(surveyed()) as (app, pilot):
        plan = await plan_in_front(app, pilot)
        await pilot.press("enter", "y", "space")
        await pilot.pause()
        assert sent(app) == []
        assert await typed(app, pilot, str(plan.phrase)) == [ReclaimStorage(plan, str(plan.phrase))]


async def test_a_paste_and_what_was_typed_ahead_are_no_answer() -> None:
    async with opened(surveyed()) as (app, pilot):
        plan = await plan_in_front(app, pilot)
        await pilot.press("p", *"reclaim", "enter")
        await asyncio.sleep(0.15)
        assert sent(app) == [] and any("typed ahead" in line for line in said(app))
        await asyncio.sleep(QUIET_S)
        field = app.screen.query_one(PhraseInput)
        field.post_message(events.Paste(str(plan.phrase)))
        await pilot.pause()
        await type_out(pilot, str(plan.phrase))
        await pilot.press("enter")
        await asyncio.sleep(0.15)
        await pilot.pause()
        assert sent(app) == [] and any("It was pasted" in line for line in said(app))


def over(plan: ReclaimPlan) -> ReclaimView:
    removals = tuple(Removal(one.path, "removed") for one in plan.entries)
    before, after = Room(9 * 10**9, 10**10, 192_410, 200_000), Room(8 * 10**9, 10**10, 186_300, 200_000)
    return ReclaimView(plan, removals, SafeText("1 removed of 1"), False, True, before, after, 12)


async def test_a_refusal_can_be_answered_again_and_the_end_is_what_was_observed() -> None:
    async with opened(surveyed()) as (app, pilot):
        plan = await plan_in_front(app, pilot)
        waits = (Removal(plan.entries[0].path, "waits"),)
        await turn(app, pilot, ReclaimView(plan, waits, SafeText("Nothing was done: it differs.")))
        assert "Nothing was done: it differs." in shown(app)
        assert "waits for you" in shown(app) and str(plan.phrase) in shown(app)
        work = (Removal(plan.entries[0].path, "at work"),)
        await turn(app, pilot, ReclaimView(plan, work, SafeText("removing 1 of 1"), working=True))
        assert "at work" in shown(app) and str(plan.phrase) not in shown(app)
        await pilot.press("p")
        await pilot.pause()
        assert not app.screen.query_one(PhraseInput).has_focus
        await turn(app, pilot, over(plan))
        text = shown(app)
        assert "observed: 1.0 GB and 6,110 inodes came free" in text
        assert "inodes 96.2 % used before, 93.2 % now; receipt 000012" in text
        assert "removed" in text and str(plan.phrase) not in text
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, StorageScreen))


async def test_one_at_work_is_gone_back_to_and_a_reason_is_shown() -> None:
    plan = plan_of(ladder())
    work = ReclaimView(plan, (Removal(plan.entries[0].path, "at work"),), SafeText("removing 1 of 1"), True)
    async with opened(surveyed(view=work)) as (app, pilot):
        await pilot.press("space", "down", "space")  # other marks change nothing about it
        assert await plan_in_front(app, pilot) == plan
        assert "removing 1 of 1" in shown(app)
        why = SafeText("pid 41 has it open (python train.py)")
        skipped = (Removal(plan.entries[0].path, "skipped", why),)
        await turn(app, pilot, replace(over(plan), removals=skipped))
        assert "skipped" in shown(app) and "pid 41 has it open" in shown(app)


async def test_read_only_has_no_such_key_and_a_list_without_proof_no_plan() -> None:
    async with opened(surveyed(), read_only=True) as (app, pilot):
        await pilot.press("R")
        await pilot.pause(0.1)
        assert isinstance(app.screen, StorageScreen)
        assert "plan to remove" not in shown(app)
        await app.perform("reclaim")
        await until(pilot, lambda: any("read-only" in line for line in said(app)))
    trash_alone = replace(ladder(), reclaim=ladder().reclaim[1:])
    async with opened(surveyed(trash_alone)) as (app, pilot):
        await pilot.press("R")
        await pilot.pause(0.1)
        held(app).fold()
        assert any("only by name" in str(notice.text) for notice in held(app).snapshot.notices)
        assert isinstance(app.screen, StorageScreen)


async def test_commands_are_copied_for_whoever_would_rather_run_them() -> None:
    async with opened(surveyed()) as (app, pilot):
        await pilot.press("space", "space", "y")
        await pilot.pause()
        assert any(line.startswith("2 commands: ") for line in said(app))
        await plan_in_front(app, pilot)
        await pilot.press("y")
        await pilot.pause()
        assert sent(app) == []
