"""The log view driven by keys and messages in a headless app."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.pilot import Pilot

from tests.widgets.log_harness import HandBuffer, LogApp, body
from tui.model.command import LoadOlder
from tui.model.text import safe
from tui.widgets.logfilter import BadPattern
from tui.widgets.logview import LogView

SIZES = ((60, 15), (80, 24), (120, 40))


def numbered(first: int, last: int) -> list[str]:
    return [f"line {n}" for n in range(first, last)]


async def settle(pilot: Pilot[None]) -> None:
    """Let the view look at everything and draw it."""
    view = pilot.app.query_one(LogView)
    view.changed()
    for _ in range(1000):
        await pilot.pause(0.01)
        if view.reader is None or view.reader.work(0):
            break
    await pilot.pause(0.03)


@pytest.mark.parametrize("size", SIZES)
async def test_the_end_of_the_log_is_in_view_and_stays_there(size: tuple[int, int]) -> None:
    app = LogApp(HandBuffer(numbered(0, 500)))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert body(app.view)[-1] == "line 499"
        app.buffer.add("line 500")
        await settle(pilot)
        assert body(app.view)[-1] == "line 500"
        assert "follow on" in app.view.screen_rows[-1]
        assert len(app.view.screen_rows) == size[1]


@pytest.mark.parametrize("size", SIZES)
async def test_going_up_pauses_and_says_how_much_waits(size: tuple[int, int]) -> None:
    app = LogApp(HandBuffer(numbered(0, 500)))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await pilot.press("pageup")
        before = body(app.view)
        app.buffer.add(*numbered(500, 1704))
        await settle(pilot)
        assert body(app.view) == before
        assert "paused" in app.view.screen_rows[-1]
        assert "1,204 new" in app.view.screen_rows[-1]
        await pilot.press("G")
        assert body(app.view)[-1] == "line 1703"
        assert "follow on" in app.view.screen_rows[-1]


async def test_going_down_past_the_last_line_follows_again() -> None:
    app = LogApp(HandBuffer(numbered(0, 50)))
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        await pilot.press("k", "k", "j", "j")
        assert "paused" in app.view.text
        await pilot.press("j")
        assert "follow on" in app.view.text


async def test_the_parked_reader_does_not_move_while_the_ring_is_trimmed() -> None:
    app = LogApp(HandBuffer(numbered(0, 1000), cap=1000))
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        await pilot.press("g")
        page = body(app.view)
        assert page[0] == "line 0"
        for start in range(1000, 6000, 500):
            app.buffer.add(*numbered(start, start + 500))
            await settle(pilot)
            assert body(app.view) == page
        assert app.buffer.base == 5000
        await pilot.press("pagedown")
        text = app.view.text
        assert "left memory meanwhile" in text
        assert "line 5000" in text


async def test_the_place_holds_while_wrapped_lines_are_resized() -> None:
    lines = [f"{n:04d} " + "word " * 40 for n in range(300)]
    app = LogApp(HandBuffer(lines))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.view.action_wrap()
        await pilot.press("pageup", "pageup")
        assert app.view.reader is not None
        place = app.view.reader.place
        await settle(pilot)
        top = (place.top, place.top_offset)
        first = body(app.view)[0]
        await pilot.resize_terminal(61, 15)
        await settle(pilot)
        assert app.view.reader.place.top == top[0]
        narrow = body(app.view)[0]
        text = lines[top[0]]
        assert narrow and narrow in text
        assert text.index(narrow) <= top[1] < text.index(narrow) + 59
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert body(app.view)[0][:40] in text
        assert first in text


async def test_a_page_that_grew_is_filled_from_above() -> None:
    app = LogApp(HandBuffer(numbered(0, 100)))
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        await pilot.press("k")
        await pilot.resize_terminal(60, 40)
        await settle(pilot)
        assert body(app.view)[-1] == "line 99"
        assert body(app.view)[0] == "line 62"


async def test_older_lines_are_asked_for_once_and_do_not_move_the_page() -> None:
    app = LogApp(HandBuffer(numbered(5000, 5100), base=5000))
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        await pilot.press("g", "k", "k")
        assert app.sent == [LoadOlder("seed3", before=5000, count=2000)]
        assert "asking the spool" in app.view.text
        page = body(app.view)
        app.buffer.add_older(*numbered(3000, 5000))
        await settle(pilot)
        assert body(app.view) == page
        assert "asking" not in app.view.text
        await pilot.press("k")
        assert body(app.view)[0] == "line 4999"


async def test_filters_in_and_out_with_context_and_separators() -> None:
    app = LogApp(HandBuffer([f"{n} {'loss' if n % 10 == 0 else 'step'} {n % 7}" for n in range(100)]))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        app.view.add_filter("loss", keep=True)
        await settle(pilot)
        rows = [row for row in body(app.view) if row]
        assert [row.split()[0] for row in rows] == [str(n) for n in range(0, 100, 10)]
        assert "1 filter" in app.view.screen_rows[-1]
        assert "90 hidden" in app.view.screen_rows[-1]
        app.view.set_context(1)
        await settle(pilot)
        rows = [row for row in body(app.view) if row]
        assert "── 7 hidden ──" in rows[-4]
        assert [row.split()[0] for row in rows[-3:]] == ["89", "90", "91"]
        app.view.add_filter("/ 6$/", keep=False)
        await settle(pilot)
        assert all(not row.endswith(" 6") for row in body(app.view))
        await pilot.press("1")
        await settle(pilot)
        assert '1 only "loss" (off)' in app.view.screen_rows[1]
        await pilot.press("1")
        app.view.action_clear_filters()
        await settle(pilot)
        assert body(app.view)[-1].startswith("99")
        assert "hidden" not in app.view.screen_rows[-1]


async def test_filters_keep_up_with_what_arrives_and_what_leaves() -> None:
    app = LogApp(HandBuffer(cap=500))
    async with app.run_test(size=(60, 15)) as pilot:
        app.view.add_filter("even", keep=True)
        for n in range(0, 2000, 100):
            app.buffer.add(*(f"{i} {'even' if i % 2 == 0 else 'odd'}" for i in range(n, n + 100)))
            await settle(pilot)
        assert body(app.view)[-1] == "1998 even"
        assert app.view.reader is not None
        assert app.view.reader.hidden == 250


async def test_everything_hidden_says_so() -> None:
    app = LogApp(HandBuffer(numbered(0, 10)))
    async with app.run_test(size=(60, 15)) as pilot:
        app.view.add_filter("nowhere", keep=True)
        await settle(pilot)
        assert "every line in memory is hidden" in app.view.text


async def test_search_goes_up_from_the_end_and_counts() -> None:
    lines = numbered(0, 300)
    lines[40] = "NaN here"
    lines[90] = "a nan there"
    app = LogApp(HandBuffer(lines))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.view.find("nan")
        await settle(pilot)
        assert app.view.reader is not None
        assert app.view.reader.place.cursor == 90
        assert "match 2 of 2" in app.view.screen_rows[-1]
        app.view.action_prev_match()
        await settle(pilot)
        assert app.view.reader.place.cursor == 40
        app.view.action_prev_match()
        await settle(pilot)
        assert "no match above" in app.view.screen_rows[-1]
        app.view.find("NaN")
        await settle(pilot)
        assert "match 1 of 1" in app.view.screen_rows[-1]


async def test_error_like_lines_are_found_and_marked_in_the_gutter() -> None:
    lines = numbered(0, 200)
    lines[50] = "RuntimeError: CUDA error: out of memory"
    lines[120] = "OSError: [Errno 28] No space left on device"
    app = LogApp(HandBuffer(lines))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.view.action_prev_error()
        await settle(pilot)
        assert app.view.reader is not None
        assert app.view.reader.place.cursor == 120
        row = next(r for r in app.view.screen_rows if "Errno 28" in r)
        assert row.startswith("▌!")
        app.view.action_prev_error()
        await settle(pilot)
        assert app.view.reader.place.cursor == 50
        app.view.action_next_error()
        await settle(pilot)
        assert app.view.reader.place.cursor == 120


async def test_marked_lines_are_copied_and_the_page_too() -> None:
    app = LogApp(HandBuffer(numbered(0, 100)))
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        app.view.action_copy()
        await pilot.pause()
        assert app.copied == [("line 99", "the line")]
        await pilot.press("k", "k")
        app.view.action_mark()
        app.view.action_mark()
        app.view.action_copy()
        await pilot.press("Y")
        await pilot.pause()
        assert app.copied[1] == ("line 97\nline 98", "2 marked lines")
        assert app.copied[2][0].splitlines()[-1] == "line 99"


async def test_saving_takes_every_line_that_the_filters_keep() -> None:
    app = LogApp(HandBuffer([f"\x1b[31m{n}\x1b[0m" for n in range(5000)]))
    async with app.run_test(size=(60, 15)) as pilot:
        app.view.add_filter("/^\\d*7$/", keep=True)
        app.view.save("out.log")
        await pilot.pause()
        assert list(app.saved[0].lines)[:3] == ["7", "17", "27"]
        assert len(app.saved[0].lines) == 500
        assert app.saved[0].path == "out.log"


async def test_the_unfinished_line_is_shown_and_replaced() -> None:
    app = LogApp(HandBuffer(numbered(0, 30)))
    async with app.run_test(size=(60, 15)) as pilot:
        app.buffer.partial = type(app.buffer.partial)(" 41%|####      | 41/100")
        await settle(pilot)
        assert body(app.view)[-1].strip().startswith("41%")
        app.buffer.partial = type(app.buffer.partial)(" 42%|####      | 42/100")
        await settle(pilot)
        assert body(app.view)[-1].strip().startswith("42%")
        app.buffer.add("100%|##########| 100/100")
        app.buffer.partial = type(app.buffer.partial)("")
        await settle(pilot)
        assert body(app.view)[-1].startswith("100%")


async def test_lost_bytes_are_a_rule_through_the_log_that_no_filter_hides() -> None:
    buffer = HandBuffer(numbered(0, 5))
    buffer.add_gap("1.2 MB lost: rotated away while offline")
    buffer.add(*numbered(5, 8))
    app = LogApp(buffer)
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.add_filter("line 7", keep=True)
        await settle(pilot)
        rows = [row for row in body(app.view) if row]
        assert rows[0].startswith("── 1.2 MB lost: rotated away while offline ──")
        assert rows[1] == "line 7"


async def test_long_lines_scroll_sideways_and_say_that_they_go_on() -> None:
    app = LogApp(HandBuffer(["".join(chr(65 + i % 26) for i in range(200))]))
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        assert body(app.view)[0].endswith("…")
        await pilot.press("right")
        assert body(app.view)[0].startswith("QRST")
        assert "from column 17" in app.view.screen_rows[-1]
        await pilot.press("left")
        assert body(app.view)[0].startswith("ABCD")


async def test_colours_are_kept_and_no_other_escape_leaves_the_view() -> None:
    app = LogApp(HandBuffer(["\x1b[31mred\x1b[0m plain", "evil \x1b]52;c;AAAA\x07 \x9b2J end [b]x[/b]"]))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        segments = [s for y in range(3) for s in app.view.render_line(y)]
        red = next(s for s in segments if s.text == "red")
        assert red.style is not None and red.style.color is not None and red.style.color.number == 1
        assert all(c.isprintable() for s in segments for c in s.text)
        assert "[b]x[/b]" in app.view.text


async def test_bad_patterns_are_refused_in_words() -> None:
    app = LogApp(HandBuffer(["x"]))
    async with app.run_test(size=(60, 15)):
        for typed in ("/(/", "/(a+)+$/", "/*/"):
            with pytest.raises(BadPattern) as caught:
                app.view.find(typed)
            assert typed in caught.value.line


async def test_rows_that_did_not_change_are_not_painted() -> None:
    app = LogApp(HandBuffer(numbered(0, 5)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        painted = app.view.painted
        await settle(pilot)
        assert app.view.painted == painted
        app.buffer.add("line 5")
        await settle(pilot)
        assert app.view.painted - painted <= 3


TEXTS = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("模型损失中文한국어ｆｕｌｌ\u200d\ufe0f⚠❤🏳🌈é\u0301\u202e\x1b\x9b\x07\t[]/"),
    ),
    max_size=200,
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(st.lists(TEXTS, min_size=1, max_size=8), st.booleans(), st.integers(10, 90), st.integers(0, 3))
def test_every_row_is_as_wide_as_the_pane(lines: list[str], wrap: bool, width: int, skips: int) -> None:
    async def look() -> None:
        app = LogApp(HandBuffer(["\x1b[1;38;5;200m" + line + "\x1b[0m" for line in lines]))
        async with app.run_test(size=(width, 15)) as pilot:
            if wrap:
                app.view.action_wrap()
            app.view.find(lines[0].strip() or "x")
            app.view.add_filter("x", keep=False)
            for _ in range(skips):
                app.view.action_sideways(1)
            await pilot.pause()
            for y in range(15):
                strip = app.view.render_line(y)
                assert sum(cell_len(s.text) for s in strip) == width
                assert all(c.isprintable() for c in strip.text)

    asyncio.run(look())


async def test_ingest_is_not_held_up_by_the_view() -> None:
    """Not a benchmark: it fails only when the view costs as much as a slow disk would."""
    stem = "x" * 80
    lines = tuple(safe(f"2024-05-01 12:00:00 step {n} loss 0.{n % 1000:03d} {stem}") for n in range(1000))
    app = LogApp(HandBuffer(cap=20_000))
    async with app.run_test(size=(120, 40)) as pilot:
        app.view.add_filter("/loss 0\\.1\\d\\d/", keep=True)
        app.view.frame_s = 0.1
        fed, slowest, begun = 0, 0.0, time.perf_counter()
        while (now := time.perf_counter()) - begun < 1.0:
            app.buffer.add(*lines)
            app.view.changed()
            fed += len(lines)
            await asyncio.sleep(0.001)
            slowest = max(slowest, time.perf_counter() - now)
        took = time.perf_counter() - begun
        await settle(pilot)
        assert body(app.view)[-1].startswith("2024-05-01 12:00:00 step 199")
    print(f"{fed / took:,.0f} lines/s with a regex filter on; slowest turn {1000 * slowest:.0f} ms")
    assert fed / took > 50_000


async def test_the_line_under_the_cursor_stays_in_view_when_the_pane_shrinks() -> None:
    lines = numbered(0, 300)
    lines[250] = "Errno 28"
    app = LogApp(HandBuffer(lines))
    async with app.run_test(size=(80, 60)) as pilot:
        await settle(pilot)
        app.view.find("Errno")
        await settle(pilot)
        await pilot.resize_terminal(80, 12)
        await settle(pilot)
        assert "Errno 28" in body(app.view)
