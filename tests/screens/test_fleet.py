"""The fleet view, driven by keys at four sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len
from textual.widgets import Input

from tests.fixtures.fleet_fixture import HOSTILE_NAMES, LIVE, NOW, fleet, hostile, instance, judged, telemetry
from tests.screens.app_harness import HeldStore, held, picture, roster, running, said, until
from tui.model.command import ForgetRun, GiveSecret, ProbeNow, ReconnectNow, TrustHostKey
from tui.model.log import LogBatch
from tui.model.reading import unknown
from tui.model.run import RunState
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.model.text import LogText, safe
from tui.screens.ask import HostKeySheet, SecretSheet
from tui.screens.explain import ExplainScreen
from tui.screens.fleet import FleetScreen
from tui.screens.run import RunScreen
from tui.widgets.detail import Detail, Look, sentence
from tui.widgets.footer import Footer
from tui.widgets.glyphs import UNICODE
from tui.widgets.header import Header
from tui.widgets.lines import Lines
from tui.widgets.roster_rows import SORTS

SIZES = ((60, 15), (80, 24), (120, 40), (200, 60))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "snapshot", [fleet(), hostile(), FleetSnapshot(started=True)], ids=["quiet", "hostile", "none"]
)
async def test_every_row_of_the_screen_is_exact_and_printable(
    size: tuple[int, int], snapshot: FleetSnapshot
) -> None:
    async with running(snapshot, size) as (app, pilot):
        for _ in range(len(snapshot.boxes) + 1):
            for row in picture(app):
                assert row.isprintable()
            await pilot.press("j")


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_wrong_is_said_at_every_size(size: tuple[int, int]) -> None:
    async with running(fleet(), size) as (app, _):
        text = "\n".join(picture(app))
        assert "▲ inodes 96%" in text
        assert "Inodes are running out on /root/" in text
        assert "enter open" in text
        assert "? unknown 4m" in text


async def test_where_the_detail_stands() -> None:
    for size, shown, beside in (
        ((60, 15), False, False),
        ((120, 40), True, False),
        ((200, 60), True, False),  # all of it fits below, with lines of the log as they are
        ((200, 30), True, True),
    ):
        async with running(fleet(), size) as (app, _):
            detail = app.screen.query_one(Detail)
            assert (detail.region.height > 0) is shown
            if shown:
                assert (detail.region.x > 0) is beside


async def test_resizing_moves_it() -> None:
    async with running(fleet(), (200, 60)) as (app, pilot):
        await pilot.resize_terminal(60, 15)
        await pilot.pause(0.1)
        assert app.screen.query_one(Detail).region.height == 0
        await pilot.resize_terminal(100, 30)
        await pilot.pause(0.1)
        assert app.screen.query_one(Detail).region.height > 0
        assert "full in 2 h 10 m at 58 files/min" in "\n".join(picture(app))


async def test_the_header_counts_and_sums() -> None:
    async with running(fleet()) as (app, _):
        text = app.screen.query_one(Header).text
        assert "6 boxes  4 live  1 stale  1 unknown" in text
        assert "burn 9.08+? $/h" in text
        assert "read-only" not in text
    async with running(fleet(), read_only=True) as (app, _):
        assert "read-only" in app.screen.query_one(Header).text


async def test_an_unknown_price_is_not_nothing() -> None:
    only = (BoxView(instance("a", "ssh", None), LIVE),)
    async with running(judged(only, ())) as (app, _):
        assert "burn ? $/h" in app.screen.query_one(Header).text


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40)])
async def test_what_is_simulated_says_so_at_every_size(size: tuple[int, int]) -> None:
    stand_in = replace(instance("a", "ssh", 1.0), simulated=("GPU",))
    async with running(judged((BoxView(stand_in, LIVE),), ()), size=size) as (app, _):
        assert "simulated" in app.screen.query_one(Header).text
    async with running(fleet(), size=size) as (app, _):
        assert "simulated" not in app.screen.query_one(Header).text


async def test_the_detail_tells_apart_not_known_and_none() -> None:
    blind = replace(telemetry(None, ()), filesystems=unknown(safe("df does not answer")))
    async with running(judged((BoxView(instance("a", "ssh", 1.0), LIVE, blind),), ())) as (app, _):
        text = app.screen.query_one(Detail).text
        assert "n/a: nvidia-smi is not installed here" in text
        assert "n/a: df does not answer" in text
    none = telemetry((), ())
    async with running(judged((BoxView(instance("a", "ssh", 1.0), LIVE, none),), ())) as (app, _):
        assert "none on this box" in app.screen.query_one(Detail).text


async def test_an_empty_fleet_says_how_to_begin() -> None:
    async with running(FleetSnapshot(started=True), (80, 24)) as (app, _):
        text = app.screen.query_one("#empty", Lines).text
        assert "rgt add" in text
        assert "rgt demo" in text
    async with running(FleetSnapshot(started=True), (80, 24), read_only=True) as (app, _):
        assert "  A " not in app.screen.query_one("#empty", Lines).text


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (160, 40)])
async def test_a_filter_that_leaves_no_row_says_so_and_how_to_get_them_back(size: tuple[int, int]) -> None:
    async with running(fleet(), size=size) as (app, pilot):
        await pilot.press("slash", *"zzz" * 30, "enter")
        await until(pilot, lambda: not roster(app).items)
        assert "filter 0 of 6" in picture(app)[1]
        text = " ".join("\n".join(picture(app)).replace("│", " ").split())
        assert "None of 6 rows matches the filter. esc shows all of them." in text
        await pilot.press("escape")
        await until(pilot, lambda: len(roster(app).items) == 6)


async def test_filter_while_typing() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("slash", *"ablate")
        await until(pilot, lambda: len(roster(app).items) == 2)
        await pilot.press("enter")
        assert app.focused is roster(app)
        assert "filter 2 of 6  ablate" in picture(app)[1]
        await pilot.press("escape")
        assert len(roster(app).items) == 6
        await pilot.press("slash", *"!autodl", "enter")
        boxes = {item.key[0] for item in roster(app).items if isinstance(item.key, tuple)}
        assert boxes == {"vlm-h100", "parked-4090", "lora-a10"}


async def test_a_bad_regex_is_said_and_the_list_stays() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("slash", *"/abl")
        await until(pilot, lambda: len(roster(app).items) < 6)
        shown = len(roster(app).items)
        await pilot.press("left_parenthesis")
        await pilot.pause()
        assert len(roster(app).items) == shown
        assert "no regular expression" in picture(app)[1]
        await pilot.press("escape")
        assert len(roster(app).items) == 6


async def test_letters_typed_into_the_filter_start_nothing() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("slash", *"rDXLqsU!")
        await pilot.pause()
        assert app.screen.query_one("#filter", Input).value == "rDXLqsU!"
        assert held(app).sent() == []


async def test_sort_by_key_and_by_word() -> None:
    async with running(fleet()) as (app, pilot):
        seen = []
        for _ in SORTS:
            await pilot.press("s")
            seen.append(roster(app).sort_by)
        assert seen == [*SORTS[1:], SORTS[0]]
        await app.perform("sort", "disk")
        assert roster(app).sort_by == "disk"
        await app.perform("sort", "colour")
        assert roster(app).sort_by == "disk"


async def test_enter_opens_the_run_and_escape_comes_back() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, FleetScreen)
        assert any("ctrl+q leaves" in text for text in said(app))


async def test_probe_takes_the_marked_boxes() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("r")
        assert held(app).sent() == [ProbeNow("ablate-01")]
        await pilot.press("space", "space", "r")
        commands = held(app).sent()
        assert len(commands) == 2
        assert all(isinstance(command, ProbeNow) for command in commands)


async def test_forget_and_reconnect() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.press("U", "j", "U")  # two different runs, once each
        assert held(app).sent() == []
        await pilot.press("k", "U", "U")
        assert held(app).sent() == [ForgetRun("sweep-a.seed3")]
        await app.perform("goto", "lora-a10")
        await pilot.press("C")
        assert held(app).sent() == [ReconnectNow("lora-a10")]


async def test_read_only_removes_what_changes_something() -> None:
    async with running(fleet(), read_only=True) as (app, pilot):
        await pilot.press("U", "C", "A", "a", "F", "exclamation_mark")
        await pilot.pause()
        assert held(app).sent() == []
        assert len(app.screen_stack) == 2
        footer = app.screen.query_one(Footer).text
        assert "shell" not in footer
        assert "add box" not in footer
        await app.perform("forget")
        await pilot.pause()
        assert held(app).sent() == []
        assert any("read-only" in text for text in said(app))


async def test_a_secret_is_masked_sent_once_and_nowhere_else() -> None:
    async with running(hostile()) as (app, pilot):
        await app.perform("goto", HOSTILE_NAMES[1])
        await pilot.pause()
        assert "密码 [/b]:" in app.screen.query_one(Detail).text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SecretSheet))
        await pilot.press(*"hunter2")
        await pilot.pause()
        assert not [row for row in picture(app) if "hunter2" in row]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        (command,) = held(app).sent()
        assert isinstance(command, GiveSecret)
        assert (command.box, command.secret) == (HOSTILE_NAMES[1], "hunter2")
        assert "hunter2" not in repr(command)
        assert not [text for text in said(app) if "hunter2" in text]


async def test_a_changed_host_key_takes_the_typed_name() -> None:
    async with running(hostile()) as (app, pilot):
        await app.perform("goto", HOSTILE_NAMES[0])
        await pilot.press("C")
        await until(pilot, lambda: isinstance(app.screen, HostKeySheet))
        text = "\n".join(picture(app))
        assert "SHA256:" + "A" * 43 in text
        assert "SHA256:" + "B" * 43 in text
        await pilot.press("enter")
        await pilot.pause()
        assert held(app).sent() == []
        assert isinstance(app.screen, HostKeySheet)
        app.screen.query_one(Input).value = HOSTILE_NAMES[0]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        assert held(app).sent() == [TrustHostKey(HOSTILE_NAMES[0], "SHA256:" + "A" * 43)]


async def test_a_small_pane_tells_what_is_wrong_in_the_rows_that_are_blank() -> None:
    async with running(fleet(), size=(60, 15)) as (app, _):
        rows = picture(app)
        told = " ".join(" ".join(rows[-7:-1]).split())
        look = app.screen._look()  # type: ignore[attr-defined]
        wrong = look.box.attention[0].text
        assert wrong in told
        assert all(len(row) <= 60 for row in rows)
    async with running(fleet(), size=(60, 12)) as (app, _):
        assert roster(app).room >= roster(app).counts[0]  # the roster has lost no row to it


@pytest.mark.parametrize("rows", range(1, 9))
@pytest.mark.parametrize("width", [20, 40, 60, 100])
def test_the_most_urgent_is_cut_with_an_ellipsis_and_loses_no_word_before(rows: int, width: int) -> None:
    box = fleet().boxes[0]
    look = Look(box, None, box, NOW, 2.0, UNICODE, lambda _: "k")
    said = ["".join(text for text, _ in line) for line in sentence(look, width, rows)]
    assert 1 <= len(said) <= rows
    assert all(cell_len(line) <= width for line in said)
    whole = ["".join(text for text, _ in line) for line in sentence(look, width, 99)]
    assert said[:-1] == whole[: len(said) - 1]
    assert said[-1].endswith("…") or said == whole[: len(said)]


async def test_explain_shows_command_and_output() -> None:
    async with running(fleet()) as (app, pilot):
        roster(app).column = "GPU"
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, ExplainScreen))
        text = "\n".join(picture(app))
        assert "nvidia-smi --query-gpu=index,utilization.gpu" in text
        assert "0, 97, 72908" in text
        assert "1 s ago" in text


@pytest.mark.parametrize(
    "column", ["STATE", "DISK", "INODE", "PROGRESS", "$/H", "NEXT CLOCK", "AGE", "VRAM", "RUN", "BOX"]
)
async def test_every_value_can_be_explained(column: str) -> None:
    async with running(hostile()) as (app, pilot):
        for _ in range(3):
            roster(app).column = column
            await pilot.press("e")
            await until(pilot, lambda: isinstance(app.screen, ExplainScreen))
            assert all(row.isprintable() for row in picture(app))
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, FleetScreen))
            await pilot.press("j")


async def test_copying_says_where_it_went(tmp_path: object) -> None:
    async with running(fleet(), state=tmp_path) as (app, pilot):
        await pilot.press("y")
        await pilot.pause()
        assert any("copied.txt" in text for text in said(app))


@pytest.mark.parametrize(("rows", "whole"), [(1, False), (2, True), (3, True)])
def test_a_row_with_nothing_wrong_is_told_in_the_rows_that_are_blank(rows: int, whole: bool) -> None:
    run = next(run for run in fleet().runs if run.state is RunState.FINISHED)
    box = fleet().box(run.spec.box)
    assert box is not None
    look = Look(box, run, box, NOW, 2.0, UNICODE, lambda _: "k")
    said = ["".join(text for text, _ in line) for line in sentence(look, 59, rows)]
    assert 1 <= len(said) <= rows
    assert all(cell_len(line) <= 59 for line in said)
    assert (run.why.split()[-1] in said[-1]) is whole
    assert said[-1].endswith("…") is not whole


async def test_newest_lines_of_a_log_stand_where_there_is_room_and_change_now_and_then() -> None:
    store, now = HeldStore(fleet()), NOW
    store.clock = lambda: now
    batch = LogBatch("sweep-a.seed3", 0, (LogText("step 1 of many"),), NOW)
    store.log("sweep-a.seed3").append(batch)
    async with running(fleet(), (120, 40), store=store) as (app, pilot):
        await until(pilot, lambda: any("step 1 of many" in row for row in picture(app)))
        store.log("sweep-a.seed3").append(replace(batch, first=1, lines=(LogText("step 2 of many"),)))
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        screen.apply(app.snapshot, frozenset())
        await pilot.pause()
        assert not any("step 2 of many" in row for row in picture(app))
        now += 2.0
        screen.apply(app.snapshot, frozenset())
        await until(pilot, lambda: any("step 2 of many" in row for row in picture(app)))
        await pilot.press("j")
        await until(pilot, lambda: not any("step 2 of many" in row for row in picture(app)))
