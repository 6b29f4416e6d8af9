"""A queue's cells on screen: each witness by itself, what nobody knows as ``?``, thousands of them fast."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from tests.fixtures import launch_fixture as at
from tests.screens.app_harness import held, picture, running, said, until
from tui.app import RgtApp
from tui.model.command import LeaveMatrix, LookAtMatrix, ReadHandbook, WatchMatrix
from tui.model.queue import MatrixView
from tui.model.text import safe
from tui.screens.fleet import FleetScreen
from tui.screens.handbook import HandbookScreen
from tui.screens.matrix import MatrixScreen
from tui.widgets.glyphs import ASCII, UNICODE
from tui.widgets.lines import length
from tui.widgets.matrix_rows import cell_line, columns_of, counts_spans, head_line

SIZES = [(60, 15), (80, 24), (120, 40)]


@asynccontextmanager
async def matrix(
    view: MatrixView | None = at.GRID, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[RgtApp, Pilot[int]]]:
    async with running(at.queued(view), size) as (app, pilot):
        await pilot.press("m")
        await until(pilot, lambda: isinstance(app.screen, MatrixScreen) and app.screen.is_mounted)
        await pilot.pause(0.05)
        yield app, pilot


def shown(app: RgtApp) -> str:
    return "\n".join(picture(app))


def cells_of(app: RgtApp) -> list[str]:
    assert isinstance(app.screen, MatrixScreen)
    return [str(item.key) for item in app.screen.picker.items if item.key is not None]


@pytest.mark.parametrize("size", SIZES)
async def test_states_values_and_counts_are_seen(size: tuple[int, int]) -> None:
    async with matrix(size=size) as (app, pilot):
        rows = picture(app)
        assert rows[0].startswith("─ matrix: grid-7c01e5aa")
        assert "✓20" in rows[0] or "20 complete" in rows[0]
        assert "✕5" in rows[0] or "5 failed" in rows[0]
        assert "asked 20s ago" in shown(app)
        assert "1 box does not answer" in shown(app)
        await pilot.press(*"jjjj")
        assert "failed on ablate-01, try 2" in shown(app)
        await pilot.press(*"jjjjj")
        assert "unreachable on parked-4090: The link to it: unreachable." in " ".join(shown(app).split())
        assert "感知" in shown(app)


async def test_boxes_are_asked_only_while_it_is_in_front() -> None:
    async with matrix() as (app, pilot):
        assert WatchMatrix("") in held(app).sent()
        await pilot.press("r")
        assert held(app).sent() == [LookAtMatrix()]
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, HandbookScreen))
        sent = held(app).sent()
        assert sent == [LeaveMatrix(), ReadHandbook(at.cell(0).name)]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MatrixScreen))
        assert held(app).sent() == [WatchMatrix("")]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        assert LeaveMatrix() in held(app).sent()


async def test_a_named_queue_shows_no_other_ones_cells() -> None:
    async with running(at.queued()) as (app, pilot):
        await app.perform("matrix", "grid-11d2c3b4")
        await until(pilot, lambda: isinstance(app.screen, MatrixScreen) and app.screen.is_mounted)
        await pilot.pause(0.05)
        assert WatchMatrix("grid-11d2c3b4") in held(app).sent()
        assert cells_of(app) == []
        assert "asks the boxes" in shown(app)


async def test_it_is_filtered_and_sorted() -> None:
    async with matrix() as (app, pilot):
        await pilot.press("slash", *"failed", "enter")
        await pilot.pause()
        assert len(cells_of(app)) == 5
        assert "5 of 48" in shown(app)
        await pilot.press("escape", "s")
        assert cells_of(app)[0] == at.cell(4).name  # the worst first
        assert "worst first" in shown(app)
        await app.perform("sort", "nonsense")
        await app.perform("filter", "/(/")
        await until(pilot, lambda: len(said(app)) > 0 or bool(held(app).fold()) or True)
        assert len(cells_of(app)) == 48


async def test_the_cursor_stays_on_its_cell_when_boxes_answer_anew() -> None:
    async with matrix() as (app, pilot):
        await pilot.press(*"jjj")
        cells = (*at.GRID.cells[:3], replace(at.GRID.cells[3], state="complete"), *at.GRID.cells[4:])
        held(app).replace(replace(at.queued(replace(at.GRID, cells=cells[::-1])), version=9))
        await pilot.pause(0.05)
        assert isinstance(app.screen, MatrixScreen)
        assert app.screen.cell is not None
        assert (app.screen.cell.name, app.screen.cell.state) == (at.cell(3).name, "complete")


async def test_what_cannot_be_shown_says_why() -> None:
    problem = MatrixView(
        problem=safe("No queue was started from here. Start one: rgt queue JOB --on BOX,BOX.")
    )
    async with matrix(problem, (60, 15)) as (app, _):
        assert "No queue was started from here" in shown(app)


async def test_before_any_answer_every_state_is_unknown() -> None:
    cells = tuple(
        replace(one, state="?", attempt=None, sealed=None, accepted=None, evaluated=None)
        for one in at.GRID.cells
    )
    view = replace(at.GRID, cells=cells, counts=(), at=None, asking=True, silent=())
    async with matrix(view) as (app, _):
        row = next(line for line in picture(app) if "ablate-01" in line)
        assert row.split()[-5:] == ["?", "?", "?", "?", "?"]
        assert "asks the boxes" in shown(app)


async def test_thousands_of_cells_scroll_without_being_drawn() -> None:
    async with matrix(at.grid(5000)) as (app, pilot):
        assert isinstance(app.screen, MatrixScreen)
        picker = app.screen.picker
        began, painted = time.perf_counter(), picker.painted
        for _ in range(30):
            picker.action_page_down()
            await pilot.pause()
        took = time.perf_counter() - began
        assert picker.painted - painted <= 31 * picker.size.height
        assert took / 30 < 0.15  # a loaded machine; alone it is some 10 ms
        before = picker.items
        held(app).replace(replace(app.snapshot, version=app.snapshot.version + 1))
        await pilot.pause(0.05)
        assert picker.items is before  # the same cells are not laid out again


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=lambda g: g.name)
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_lines_keep_their_width_and_columns(width: int, glyphs: object) -> None:
    from tui.widgets.glyphs import Glyphs

    assert isinstance(glyphs, Glyphs)
    columns = columns_of(at.GRID, width)
    assert length(head_line(at.GRID, columns, width, glyphs)) <= width
    for one in at.GRID.cells:
        line = cell_line(one, columns, width, glyphs)
        assert length(line) <= width
        text = "".join(part for part, _ in line)
        assert one.state in text
        assert ("感" in text) is (one.values[2] == "感知损失")
        if glyphs is ASCII:
            assert text.replace("感知损失", "").replace("感", "").replace("知", "").isascii()
    assert length(counts_spans(at.GRID, glyphs, width - 30)) <= width - 30


def test_glyphs_that_stand_for_several_states_are_counted_together() -> None:
    view = replace(at.GRID, counts=(("failed", 2), ("lost", 3), ("complete", 4)))
    assert "".join(text for text, _ in counts_spans(view, UNICODE, 20)) == "✕5  ✓4"
    assert "".join(text for text, _ in counts_spans(view, UNICODE, 60)) == "2 failed · 3 lost · 4 complete"


def test_many_names_leave_states_and_verdicts_in_sight() -> None:
    names = tuple(safe(f"name{n}") for n in range(12))
    cells = tuple(replace(one, values=tuple(safe("0.00012") for _ in names)) for one in at.GRID.cells)
    view = replace(at.GRID, names=names, cells=cells)
    for width in (60, 80, 120):
        columns = columns_of(view, width)
        line = "".join(text for text, _ in cell_line(cells[0], columns, width, UNICODE))
        assert line.split()[-5:] == ["complete", "1", "✓", "✓", "✓"]
        assert 1 < len(columns.values) < 12
