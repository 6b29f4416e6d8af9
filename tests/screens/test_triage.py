"""The triage view in the app: read in a glance, and driven by keys that change nothing on a box."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from tests.fixtures import run_fixture
from tests.fixtures import triage_fixture as fixture
from tests.fixtures.run_fixture import BOX, FS, NOW, RUN
from tests.screens.test_run import commands, ready, toasts
from tui.app import RgtApp
from tui.fleet.store import Store
from tui.model.command import Diagnose, LoadOlder, SurveyStorage, TakeLook
from tui.model.event import Diagnosed, LadderMade, Looked
from tui.model.incident import Diagnosis
from tui.model.text import SafeText, safe
from tui.screens.explain import ExplainScreen
from tui.screens.run import RunScreen
from tui.screens.storage import StorageScreen
from tui.screens.triage import TriageScreen
from tui.widgets.chooser import Chooser
from tui.widgets.footer import Footer
from tui.widgets.glyphs import ASCII, UNICODE, Glyphs

SIZES = ((60, 15), (80, 24), (120, 40), (200, 60))


@asynccontextmanager
async def opened(
    size: tuple[int, int] = (120, 40),
    store: Store | None = None,
    *,
    read_only: bool = False,
    glyphs: Glyphs = UNICODE,
) -> AsyncIterator[tuple[RgtApp, TriageScreen, Pilot[int]]]:
    app = RgtApp(store or fixture.store(), read_only=read_only, glyphs=glyphs)
    async with app.run_test(size=size, notifications=True) as pilot:
        await ready(app, pilot)
        await pilot.press("t")
        await pilot.pause(0.15)
        screen = app.screen
        assert isinstance(screen, TriageScreen)
        yield app, screen, pilot
        assert not app.faults


def rows(app: RgtApp) -> list[str]:
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in row) for row in strips]


def said(app: RgtApp) -> str:
    return "\n".join(rows(app))


def without_looks() -> Store:
    picture = fixture.snapshot()
    boxes = tuple(replace(box, looks=(), ladder=None) for box in picture.boxes)
    return run_fixture.store(replace(picture, boxes=boxes))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
async def test_every_row_is_as_wide_as_the_screen(size: tuple[int, int], glyphs: Glyphs) -> None:
    for store in (fixture.store(), fixture.store(fixture.healthy()), without_looks()):
        async with opened(size, store, glyphs=glyphs) as (app, _, _pilot):
            shown = rows(app)
            assert len(shown) == size[1]
            assert {cell_len(row) for row in shown} == {size[0]}
            assert all(row.isprintable() for row in shown)
            assert glyphs is UNICODE or "\n".join(shown).isascii()


@pytest.mark.parametrize("size", SIZES)
async def test_verdict_evidence_and_next_step_are_in_sight_without_a_key(size: tuple[int, int]) -> None:
    async with opened(size) as (app, screen, _):
        text = said(app)
        assert "Inodes are running out on /root/autodl-fs" in " ".join(text.split())
        assert "running: pid 4121 alive" in text
        assert "control plane" in text
        assert "192,410 of 200,000" in text
        assert "log 18" in text
        assert "disk_full (bytes 34 %)" in text
        assert "List the directories with the most files" in text
        assert screen.query_one(Chooser).selected == ("step", 0)
        assert "taken 14:02" in text or "taken" in text


async def test_a_mount_that_fills_up_is_not_shown_as_health_and_its_remedy_is_the_first_choice() -> None:
    press = safe(f"Inodes are running out on {FS}: 88 % used, full in 42 s at this rate.")
    told = fixture.healthy()
    verdict = SafeText("Nothing has failed yet, but its box needs you.")
    told = replace(told, pressing=(press,), diagnosis=replace(told.diagnosis, verdict=verdict))
    for size in SIZES:
        async with opened(size, fixture.store(told)) as (app, screen, _):
            text = " ".join(said(app).split())
            assert f"{UNICODE.attention} Nothing has failed yet" in text
            assert "88 % used" in text
            assert screen.query_one(Chooser).selected == ("look", "disk_files")


async def test_a_digit_leads_into_the_log_at_that_line() -> None:
    async with opened() as (app, _, pilot):
        await pilot.press("2")
        await pilot.pause(0.2)
        assert isinstance(app.screen, RunScreen)
        reader = app.screen.log_view.reader
        assert reader is not None
        assert reader.place.cursor == 17  # line 18, counted from 0
        await pilot.press("escape", "escape")
        await pilot.pause(0.1)
        assert type(app.screen).__name__ == "TriageScreen"


async def test_a_line_before_those_in_memory_is_fetched_from_the_spool() -> None:
    store = fixture.store()
    buffer = store.log(RUN)
    del buffer.lines[:19]
    buffer.base += 19
    async with opened(store=store) as (app, _, pilot):
        commands(store)
        await pilot.press("2")
        await pilot.pause(0.2)
        assert isinstance(app.screen, RunScreen)
        asked = [c for c in commands(store) if isinstance(c, LoadOlder)]
        assert asked and asked[0].before == 19


async def test_evidence_without_a_line_shows_where_it_comes_from() -> None:
    async with opened() as (app, _, pilot):
        await pilot.press("1")
        await pilot.pause(0.1)
        assert isinstance(app.screen, ExplainScreen)
        assert f"df -i {FS}" in said(app)


async def test_a_look_is_taken_on_enter_and_its_answer_is_shown() -> None:
    store = without_looks()
    async with opened(store=store) as (app, screen, pilot):
        commands(store)
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert TakeLook(BOX, RUN, "disk_files") in commands(store)
        assert "asked, waiting" in said(app)
        await store.put(Looked(replace(fixture.answer(), at=NOW)))
        store.fold()
        screen.apply(store.snapshot, frozenset())
        await pilot.pause(0.1)
        assert "3 lines, exit 0" in said(app)
        assert "enter shows them" in toasts(app)
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert isinstance(app.screen, ExplainScreen)
        assert "./results/vis" in said(app)


async def test_nothing_that_changes_a_box_is_ever_sent() -> None:
    store = fixture.store()
    async with opened(store=store) as (app, screen, pilot):
        keys = len(screen.query_one(Chooser).keys)
        for _ in range(keys):
            await pilot.press("enter")
            await pilot.pause(0.02)
            while not isinstance(app.screen, TriageScreen):
                await pilot.press("escape")
                await pilot.pause(0.05)
            await pilot.press("j")
        sent = {type(command).__name__ for command in commands(store)}
        assert sent <= {"Diagnose", "TakeLook", "SurveyStorage", "ViewAt", "LoadOlder"}


async def test_a_command_is_copied_and_never_run() -> None:
    async with opened() as (app, screen, pilot):
        await pilot.press("j")
        assert screen.query_one(Chooser).selected == ("step", 1)
        assert "copy" in screen.query_one(Footer).text
        await pilot.press("y")
        await pilot.pause(0.1)
        assert app.clipboard == "tar -cf vis-000.tar results/vis && ls -l vis-000.tar"


async def test_another_finding_can_be_shown_and_science_is_labelled_apart() -> None:
    async with opened() as (app, screen, pilot):
        screen.query_one(Chooser).select(("incident", 1))
        await pilot.press("enter")
        await pilot.pause(0.1)
        text = said(app)
        assert "science: the experiment itself" in text
        assert "never start this config again as it is" in text
        assert "Go back to the last checkpoint" in text


async def test_a_run_with_nothing_wrong_says_so_and_what_was_looked_at() -> None:
    async with opened(store=fixture.store(fixture.healthy())) as (app, _, _pilot):
        text = said(app)
        assert "Nothing wrong was found" in text
        assert "looked at" in text and "log (2,412 lines)" in text and "disks" in text
        assert "evidence" not in text.split("\n", 3)[3].split("more looks")[0]


async def test_what_could_not_be_read_is_said() -> None:
    told = replace(fixture.healthy(), looked_at=((SafeText("cards"), None), (SafeText("probe"), NOW - 700)))
    async with opened(store=fixture.store(told)) as (app, _, _pilot):
        assert "cards not read" in said(app)
        assert "probe 10m" in said(app)


async def test_before_a_diagnosis_is_there_it_says_what_it_does() -> None:
    picture = run_fixture.snapshot()
    store = run_fixture.store(picture)
    async with opened(store=store) as (app, _, pilot):
        assert Diagnose(BOX, RUN) in commands(store)
        assert "Reading the log" in said(app)
        told = Diagnosis("dead", SafeText("The kernel killed it for memory."), (), NOW)
        await store.put(Diagnosed(BOX, RUN, told, NOW))
        store.fold()
        app.screen.apply(store.snapshot, frozenset())  # type: ignore[attr-defined]
        await pilot.pause(0.1)
        assert "The kernel killed it for memory." in said(app)


async def test_the_ladder_is_asked_for_shown_and_only_copied() -> None:
    store = without_looks()
    async with opened(store=store) as (app, screen, pilot):
        commands(store)
        screen.query_one(Chooser).select(("storage", str(FS)))
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert SurveyStorage(BOX, RUN, str(FS)) in commands(store)
        await store.put(LadderMade(replace(fixture.ladder(), at=NOW)))
        store.fold()
        screen.apply(store.snapshot, frozenset())
        await pilot.pause(0.2)
        assert isinstance(app.screen, StorageScreen)
        text = " ".join(said(app).split())
        assert "14,088 files short" in text
        assert "in use by pid 4121" in text
        assert "pip cache: holds only what pip downloads or builds again" in text
        await pilot.press("y")
        await pilot.pause(0.1)
        assert "rgt has removed nothing" in toasts(app)
        assert not commands(store)


async def test_it_opens_from_everywhere_and_by_name_and_read_only() -> None:
    async with opened(read_only=True) as (app, _, pilot):
        await pilot.press("escape")
        app.open_run(BOX, RUN)
        await pilot.pause(0.1)
        await pilot.press("t")
        await pilot.pause(0.1)
        assert isinstance(app.screen, TriageScreen)
        await pilot.press("escape", "escape")
        await app.perform("triage", RUN)
        await pilot.pause(0.1)
        assert isinstance(app.screen, TriageScreen)
        await app.perform("triage", safe("nobody"))
        await pilot.pause(0.1)


async def test_an_unknown_name_is_refused_in_a_sentence() -> None:
    async with opened() as (app, _, pilot):
        await pilot.press("escape")
        await app.perform("triage", "nobody")
        await pilot.pause(0.2)
        assert "There is no box or run named 'nobody'" in toasts(app)
