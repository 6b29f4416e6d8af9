"""The roster under the operator's hands: cursor, order, filter, and what is painted."""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len

from tests.fixtures.fleet_fixture import NOW, fleet, gpu, hostile, judged
from tests.screens.app_harness import held, roster, running
from tui.model.reading import known
from tui.model.snapshot import FleetSnapshot
from tui.widgets.picker import Picker


def with_util(snapshot: FleetSnapshot, box: str, util: float) -> FleetSnapshot:
    """The same fleet after a probe in which one box's GPU use changed."""
    boxes = []
    for view in snapshot.boxes:
        if view.name == box and view.telemetry is not None:
            card = replace((view.telemetry.gpus.value or (gpu(0, 0, 0),))[0], util_pct=util)
            seen = replace(view.telemetry, gpus=known((card,)), taken_at=NOW - 0.5)
            view = replace(view, telemetry=seen)
        boxes.append(view)
    return replace(snapshot, boxes=tuple(boxes), version=snapshot.version + 1)


async def test_only_the_changed_row_is_painted() -> None:
    async with running(fleet()) as (app, pilot):
        widget = roster(app)
        await pilot.press("j")
        await pilot.pause()
        before = widget.painted
        held(app).replace(with_util(fleet(), "ablate-02", 42))
        await pilot.pause(0.1)
        assert widget.painted == before + 1
        assert "42" in widget.text
        held(app).replace(with_util(fleet(), "ablate-02", 42))
        await pilot.pause(0.1)
        assert widget.painted <= before + 2  # once more to take the bold away


async def test_a_snapshot_that_shows_nothing_new_paints_nothing() -> None:
    async with running(fleet()) as (app, pilot):
        await pilot.pause()
        before = roster(app).painted
        held(app).replace(replace(fleet(), version=99))
        await pilot.pause(0.1)
        assert roster(app).painted == before


async def test_sorting_keeps_the_cursor_on_its_box() -> None:
    async with running(fleet()) as (app, pilot):
        widget = roster(app)
        assert widget.key == ("ablate-01", "sweep-a.seed3")  # the worst one, until a key is pressed
        await pilot.press("j", "j")
        chosen = widget.key
        for _ in range(8):
            await pilot.press("s")
            assert widget.key == chosen
        await pilot.press("full_stop")
        assert widget.key == chosen
        assert widget.turned


async def test_the_cursor_stays_when_the_rows_move_under_it() -> None:
    async with running(fleet()) as (app, pilot):
        widget = roster(app)
        await pilot.press("j")
        chosen = widget.key
        turned = replace(fleet(), boxes=tuple(reversed(fleet().boxes)), version=7)
        held(app).replace(turned)
        await pilot.pause(0.1)
        assert widget.key == chosen
        gone = replace(turned, boxes=tuple(b for b in turned.boxes if b.name != chosen[0]), version=8)  # type: ignore[index]
        held(app).replace(gone)
        await pilot.pause(0.1)
        assert widget.key is not None
        assert widget.key != chosen


async def test_a_run_that_appears_keeps_the_cursor_on_its_box() -> None:
    boxes = fleet().boxes
    async with running(judged(boxes, ())) as (app, pilot):
        widget = roster(app)
        await pilot.press("j", "j")
        box = widget.key[0] if widget.key else ""
        held(app).replace(replace(fleet(), version=5))
        await pilot.pause(0.1)
        assert widget.key is not None
        assert widget.key[0] == box


async def test_moving() -> None:
    async with running(fleet(), (80, 24)) as (app, pilot):
        widget = roster(app)
        last = len(widget.items) - 1
        for key, place in (("G", last), ("g", 0), ("j", 1), ("k", 0), ("3", 2), ("end", last), ("home", 0)):
            await pilot.press(key)
            assert widget.cursor == place, key
        await pilot.press("9")
        assert widget.cursor == 0  # there is no ninth row


async def test_more_rows_than_room_scroll_with_the_cursor() -> None:
    base = fleet().boxes[1]
    boxes = tuple(replace(base, instance=replace(base.instance, name=f"box-{n:02}")) for n in range(50))
    async with running(judged(boxes, ()), (60, 15)) as (app, pilot):
        widget = roster(app)
        await pilot.press("G")
        assert widget.line_at(widget.size.height - 1)[1]
        await pilot.press("pageup")
        await pilot.press("pageup")
        assert any(widget.line_at(y)[1] for y in range(widget.size.height))
        await pilot.press("g")
        assert widget.line_at(1)[1]


async def test_marks_and_the_value_under_the_cursor() -> None:
    async with running(fleet()) as (app, pilot):
        widget = roster(app)
        await pilot.press("space", "space")
        assert [key[0] for key in widget.chosen()] == [item.key[0] for item in widget.items[:2]]  # type: ignore[index]
        assert "◆" in widget.text
        assert widget.column == "STATE"
        await pilot.press("right")
        assert widget.column == "RUN"
        await pilot.press("left", "left")
        assert widget.column == "PLATFORM"


async def test_hostile_names_leave_every_row_exact() -> None:
    for size in ((60, 15), (80, 24), (120, 40), (200, 60)):
        async with running(hostile(), size) as (app, pilot):
            widget = roster(app)
            await pilot.press("G")
            for y in range(widget.size.height):
                text = widget.render_line(y).text
                assert cell_len(text) == widget.size.width
                assert text.isprintable()


async def test_numbers_stand_under_their_heads() -> None:
    async with running(fleet()) as (app, _):
        widget = roster(app)
        head = widget.render_line(0).text
        row = widget.render_line(1).text
        for title, number in (
            ("GPU%", "97"),
            ("VRAM%", "89"),
            ("DISK%", "41"),
            ("INODE%", "▲96"),
            ("SEEN", "live"),
        ):
            end = head.index(title) + len(title)
            assert row[:end].endswith(number), title


async def test_the_ascii_set_has_nothing_else() -> None:
    from tui.widgets.glyphs import ASCII

    async with running(fleet(), glyphs=ASCII) as (app, pilot):
        await pilot.pause()
        for widget in app.screen.query(Picker):
            assert widget.text.isascii()


async def test_a_list_without_items_has_no_selection() -> None:
    async with running(FleetSnapshot(started=True)) as (app, pilot):
        widget = roster(app)
        await pilot.press("j", "k", "G", "enter", "e", "y", "space", "s")
        assert widget.key is None
        assert widget.chosen() == []
