"""The run screen in the app, driven by keys and snapshots, at the sizes people have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from tests.fixtures import run_fixture as fixture
from tui.app import RgtApp
from tui.fleet.store import Store
from tui.model.command import Command, LoadOlder, SearchLog
from tui.model.log import LogBatch, LogState, SearchHit, SearchResult
from tui.model.snapshot import FleetSnapshot
from tui.model.text import LogText, SafeText
from tui.screens.fleet import FleetScreen
from tui.screens.run import RunScreen
from tui.widgets.disk_panel import DiskPanel
from tui.widgets.footer import Footer
from tui.widgets.glyphs import ASCII, UNICODE, Glyphs
from tui.widgets.lines import Lines
from tui.widgets.logview import LogView
from tui.widgets.panel import Panel
from tui.widgets.search_list import SearchList
from tui.widgets.summary import Summary

SIZES = ((60, 15), (80, 24), (120, 40), (200, 60))


@asynccontextmanager
async def opened(
    size: tuple[int, int],
    picture: FleetSnapshot | None = None,
    run: str | None = fixture.RUN,
    *,
    read_only: bool = False,
    glyphs: Glyphs = UNICODE,
) -> AsyncIterator[tuple[RgtApp, RunScreen, Pilot[int]]]:
    app = RgtApp(fixture.store(picture), read_only=read_only, glyphs=glyphs)
    async with app.run_test(size=size, notifications=True) as pilot:
        await ready(app, pilot)
        app.open_run(fixture.BOX, run)
        await pilot.pause(0.1)
        screen = app.screen
        assert isinstance(screen, RunScreen)
        yield app, screen, pilot
        assert not app.faults


async def ready(app: RgtApp, pilot: Pilot[int]) -> None:
    """Wait for the fleet view, which comes after the first frame."""
    for _ in range(1000):
        if isinstance(app.screen, FleetScreen):
            return
        await pilot.pause(0.02)
    raise AssertionError("the fleet view did not come")


def shown(screen: RunScreen) -> str:
    """All that stands on the screen, row by row, as the compositor has it."""
    rows = screen._compositor.render_strips()
    return "\n".join("".join(s.text for s in row) for row in rows)


def commands(store: Store) -> list[Command]:
    return [store.commands.get_nowait() for _ in range(store.commands.qsize())]


def toasts(app: RgtApp) -> str:
    return " ".join(note.message for note in app._notifications)


async def typed(pilot: Pilot[int], key: str, text: str) -> None:
    await pilot.press(key, *text, "enter")
    await pilot.pause(0.15)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
async def test_every_row_is_as_wide_as_the_screen(size: tuple[int, int], glyphs: Glyphs) -> None:
    pictures = (fixture.snapshot(), fixture.never_probed(), fixture.unreadable())
    for picture in pictures:
        async with opened(size, picture, glyphs=glyphs) as (_, screen, _pilot):
            rows = shown(screen).split("\n")
            assert len(rows) == size[1]
            assert {cell_len(row) for row in rows} == {size[0]}
            assert all(row.isprintable() for row in rows)


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_wrong_and_what_the_log_says_are_in_sight(size: tuple[int, int]) -> None:
    async with opened(size) as (_, screen, _pilot):
        said = shown(screen)
        assert "running" in said and "ep 41/100" in said
        assert "Inodes are running out" in said
        assert "96 %" in said
        assert "follow on · wrap off · behind 0 B · file 9.8 GB" in said
        assert "412/1000" in said  # the progress bar, the log's last state
        assert "follow" in screen.query_one(Footer).text


async def test_panels_stand_beside_or_fold_into_lines() -> None:
    async with opened((120, 40)) as (_, screen, pilot):
        assert screen.query_one(DiskPanel).region.x > screen.log_view.region.right - 1
        assert not screen.query_one(Summary).region
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.1)
        assert screen.query_one(Summary).region.height == 4
        assert not screen.query_one(DiskPanel).region
        assert screen.log_view.size.width == 80


async def test_tab_moves_and_zoom_gives_the_whole_screen() -> None:
    async with opened((120, 40)) as (_, screen, pilot):
        await pilot.press("tab", "tab", "z")
        await pilot.pause(0.1)
        assert isinstance(screen.focused, DiskPanel)
        assert screen.focused.size.width >= 118
        assert [p for p in screen.query(Panel) if p.display] == [screen.focused]
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert screen.log_view.region
        assert screen.is_current
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert not screen.is_current


async def test_the_summary_unfolds_into_the_panels() -> None:
    async with opened((60, 15)) as (_, screen, pilot):
        await pilot.press("shift+tab")
        await pilot.pause(0.05)
        if not isinstance(screen.focused, Summary):
            screen.query_one(Summary).focus()
        await pilot.press("z")
        await pilot.pause(0.1)
        assert isinstance(screen.focused, Panel)
        assert screen.focused.size.width >= 58
        await pilot.press("tab", "tab", "z")
        await pilot.pause(0.1)
        assert isinstance(screen.focused, Summary)
        assert screen.log_view.region


async def test_the_log_grows_with_what_the_store_publishes() -> None:
    async with opened((80, 24)) as (app, screen, pilot):
        buffer = app.store.log(fixture.RUN)
        app.store._snapshot = replace(app.snapshot, version=8)
        buffer.append(LogBatch(fixture.RUN, buffer.end, (LogText("a new line"),), fixture.NOW))
        screen.apply(app.snapshot, frozenset({fixture.RUN}))
        await pilot.pause(0.3)
        assert "a new line" in shown(screen)


async def test_filters_search_and_context_are_typed_below_the_log() -> None:
    async with opened((120, 40)) as (app, screen, pilot):
        await typed(pilot, "i", "INFO")
        assert '1 only "INFO"' in shown(screen)
        await typed(pilot, "o", "/epoch 3[0-8]/")
        assert "2 filters" in shown(screen)
        await typed(pilot, "plus", "1")
        assert "±1 lines around" in shown(screen)
        await typed(pilot, "slash", "no such text")
        assert "no match in memory; B asks the box" in screen.log_view.screen_rows[-1]
        await pilot.press("0")
        await pilot.pause(0.1)
        assert "filter" not in screen.log_view.screen_rows[-1]
        await typed(pilot, "i", "/(/")
        assert "is not a regex" in toasts(app)
        await pilot.press("i", "up")
        await pilot.pause(0.05)
        assert screen.typed_line.open
        await pilot.press("escape")
        await pilot.pause(0.05)
        assert "-open" not in screen.typed_line.classes
        assert screen.is_current
        assert isinstance(screen.focused, LogView)


async def test_keys_typed_into_the_line_do_nothing_else() -> None:
    async with opened((80, 24)) as (_, screen, pilot):
        await pilot.press("slash", *"fwzq0")
        await pilot.pause(0.05)
        reader = screen.log_view.reader
        assert reader is not None and reader.place.follow and not reader.wrap
        assert screen.typed_line.open


async def test_the_next_error_is_one_key_away_also_from_a_panel() -> None:
    async with opened((120, 40)) as (_, screen, pilot):
        await pilot.press("tab", "left_square_bracket")
        await pilot.pause(0.2)
        reader = screen.log_view.reader
        assert reader is not None
        assert "No space left" in reader.text(reader.place.cursor)
        assert "paused" in shown(screen)


async def test_copying_says_which_way_it_went() -> None:
    copied: list[str] = []

    def take(text: str) -> SafeText:
        copied.append(text)
        return SafeText("copied by hand")

    async with opened((120, 40)) as (app, _screen, pilot):
        app.copy_text = take  # type: ignore[method-assign]
        await pilot.press("k", "y")
        await pilot.pause(0.1)
        assert copied[0].endswith("loss 0.3761")
        assert "the line: copied by hand" in toasts(app)
        await pilot.press("tab", "y")
        await pilot.pause(0.1)
        assert "97 %" in copied[1]


async def test_older_lines_are_asked_of_the_spool() -> None:
    store = fixture.store()
    buffer = store.log(fixture.RUN)
    del buffer.lines[:100]
    buffer.base = 100
    app = RgtApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(app, pilot)
        app.open_run(fixture.BOX, fixture.RUN)
        await pilot.pause(0.1)
        commands(store)
        await pilot.press("g")
        assert commands(store) == [LoadOlder(fixture.RUN, before=100, count=2000)]
        buffer.prepend(LogBatch(fixture.RUN, 50, tuple(LogText(f"old {n}") for n in range(50)), 0.0))
        screen = app.screen
        assert isinstance(screen, RunScreen)
        screen.apply(app.snapshot, frozenset({fixture.RUN}))
        await pilot.press("k")
        await pilot.pause(0.1)
        assert "old 49" in shown(screen)
        await pilot.press("G")
        assert buffer._older == 0


async def test_a_search_on_the_box_shows_what_range_it_covered() -> None:
    async with opened((80, 24)) as (app, screen, pilot):
        commands(app.store)
        await typed(pilot, "B", "Errno")
        assert commands(app.store) == [SearchLog(fixture.RUN, "Errno", ignore_case=False, regex=False)]
        assert "searching the spool and the box" in shown(screen)
        hits = (
            SearchHit(392, LogText("\x1b[31mOSError: [Errno 28]\x1b[0m")),
            SearchHit(None, LogText("earlier [Errno 5]"), 4_200_000_000),
        )
        covered = SafeText("bytes 0 to 9.8 GB on the box")
        result = SearchResult(fixture.RUN, SafeText("Errno"), hits, covered, complete=True)
        app.store._snapshot = replace(app.snapshot, version=9, searches=(result,))
        screen.apply(app.snapshot, frozenset())
        await pilot.pause(0.1)
        said = shown(screen)
        assert "2 found in bytes 0 to 9.8 GB on the box" in said
        assert "at 4.2 GB" in said
        await pilot.press("enter")
        await pilot.pause(0.1)
        reader = screen.log_view.reader
        assert reader is not None and reader.place.cursor == 392
        screen.query_one(SearchList).focus()
        await pilot.press("escape")
        assert not screen.query_one(SearchList).display


async def test_a_box_without_a_run_says_how_to_watch_one_and_shows_it_then() -> None:
    async with opened((120, 40), fixture.snapshot(watched=False), None) as (app, screen, pilot):
        said = shown(screen)
        assert "No run of this box is watched" in said
        assert "Press a to choose what to watch: 2 here look like a run." in said
        assert "python finetune.p" in said
        assert "adopt" in screen.query_one(Footer).text
        app.store._snapshot = replace(fixture.snapshot(), version=9)
        screen.apply(app.snapshot, frozenset())
        await pilot.pause(0.2)
        assert screen.here() == (fixture.BOX, fixture.RUN)
        assert "412/1000" in shown(screen)


async def test_read_only_offers_nothing_that_changes_something() -> None:
    async with opened((120, 40), fixture.snapshot(watched=False), None, read_only=True) as (
        _,
        screen,
        _pilot,
    ):
        assert "adopt" not in screen.query_one(Footer).text
        assert "Read-only mode cannot start to watch one." in shown(screen)


async def test_nothing_known_is_never_a_zero() -> None:
    async with opened((120, 40), fixture.never_probed()) as (_, screen, _pilot):
        said = shown(screen)
        assert "n/a  not probed yet" in said
        assert "behind n/a" in said
        assert " 0 %" not in said
        assert "connect.west.example.com does not answer" in said


async def test_explain_tells_command_and_raw_output() -> None:
    async with opened((120, 40)) as (app, screen, pilot):
        await pilot.press("tab", "e")
        await pilot.pause(0.2)
        assert app.screen is not screen
        rows = app.screen._compositor.render_strips()
        said = "\n".join("".join(s.text for s in row) for row in rows)
        assert "nvidia-smi --query-gpu" in said
        assert "0, NVIDIA A100-SXM4-80GB, 97 %" in said


async def test_a_run_that_is_no_longer_watched_is_said_to_be() -> None:
    async with opened((80, 24)) as (app, screen, pilot):
        app.store._snapshot = replace(app.snapshot, version=8, runs=())
        screen.apply(app.snapshot, frozenset())
        await pilot.pause(0.1)
        assert "not watched" in shown(screen)


async def test_a_snapshot_that_says_nothing_new_paints_nothing() -> None:
    async with opened((120, 40)) as (app, screen, pilot):
        await pilot.pause(0.2)
        widgets: Iterable[Lines] = [w for w in screen.query(Lines) if w.region]
        before = {w: w.painted for w in widgets}
        for _ in range(5):
            screen.apply(app.snapshot, frozenset())
            await pilot.pause(0.05)
        assert {w: w.painted for w in before} == before


async def test_the_screen_survives_every_size() -> None:
    async with opened((120, 40)) as (_, screen, pilot):
        for size in ((40, 10), (300, 90), (45, 60), (99, 11), (100, 12)):
            await pilot.resize_terminal(*size)
            await pilot.pause(0.05)
            rows = shown(screen).split("\n")
            assert {cell_len(row) for row in rows} == {size[0]}
        await asyncio.sleep(0)


async def test_saving_writes_what_the_filters_keep_and_says_where(tmp_path: Path) -> None:
    async with opened((120, 40)) as (app, screen, pilot):
        await typed(pilot, "i", "INFO")
        await typed(pilot, "ctrl+s", str(tmp_path / "kept.log"))
        await pilot.pause(0.2)
        lines = (tmp_path / "kept.log").read_text().splitlines()
        assert len(lines) == 40  # every INFO line, and the gap that no filter hides
        assert "\x1b" not in "".join(lines)
        assert f"40 lines saved to {tmp_path}" in toasts(app)
        await typed(pilot, "ctrl+s", str(tmp_path / "kept.log"))
        await pilot.pause(0.2)
        assert "exists; nothing was written" in toasts(app)
        assert screen.is_current


async def test_a_focused_panel_scrolls_its_column() -> None:
    async with opened((120, 24)) as (_, screen, pilot):
        side = screen.query_one("#side")
        await pilot.press("tab", "j", "j")
        await pilot.pause(0.05)
        assert side.scroll_y == 2
        await pilot.press("G")
        await pilot.pause(0.05)
        assert side.scroll_y == side.max_scroll_y
        await pilot.press("g")
        await pilot.pause(0.05)
        assert side.scroll_y == 0


def rule(screen: RunScreen) -> str:
    """The rule above the log, without what stands beside it."""
    line = next(row for row in shown(screen).splitlines() if row.startswith("\u2500 log"))
    return line.split(" \u2500 \u2500 ")[0] + " "


async def test_a_silent_box_is_not_said_to_be_followed() -> None:
    """A link that stands proves nothing: what was last heard does."""
    async with opened((120, 40)) as (app, screen, pilot):
        assert " live " in rule(screen)
        assert "behind 0 B" in shown(screen)
        app.store.clock = lambda: fixture.NOW + 21
        screen.apply(app.snapshot, frozenset())
        await pilot.pause(0.2)
        assert "silent 20s" in shown(screen)
        assert " live " not in rule(screen)
        assert "behind n/a" in shown(screen)
        end = app.store.log(fixture.RUN).end
        late = LogBatch(fixture.RUN, end, (LogText("on it goes"),), fixture.NOW + 20)
        app.store.log(fixture.RUN).append(late)  # the probe is late, the log is not
        screen.apply(replace(app.snapshot, version=99), frozenset((fixture.RUN,)))
        await pilot.pause(0.2)
        assert " live " in rule(screen)


async def test_lines_that_cannot_be_kept_are_said_beside_the_log() -> None:
    why = SafeText("the log spool cannot be written: No space left on device")
    run = replace(fixture.run(), log_state=LogState(fixture.RUN, SafeText("following"), why))
    async with opened((160, 40), replace(fixture.snapshot(), runs=(run,))) as (_, screen, _pilot):
        assert why in shown(screen)


async def test_an_answer_that_is_no_good_is_not_lost() -> None:
    async with opened((120, 40)) as (app, screen, pilot):
        await typed(pilot, "slash", "/[/")
        await pilot.pause(0.1)
        assert "not a regex" in toasts(app)
        assert "-open" in screen.typed_line.classes
        await pilot.press("left", "backspace", "x", "enter")
        await pilot.pause(0.1)
        assert "-open" not in screen.typed_line.classes
        reader = screen.log_view.reader
        assert reader is not None and reader.search is not None
        assert reader.search.source == "/x/"
        await pilot.press("slash", "escape")
        assert "-open" not in screen.typed_line.classes
