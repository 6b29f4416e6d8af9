"""Lines are exactly as wide as their pane, hold no control code, and are painted only where they differ."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult

from tui.widgets.gauge import bar_spans
from tui.widgets.glyphs import ASCII, UNICODE, Glyphs
from tui.widgets.ink import Ink
from tui.widgets.lines import Line, Lines, broken, clip, differences, fit, length, shortened, wrap

ANY_TEXT = st.text(max_size=40)


@pytest.mark.parametrize(
    ("text", "width", "right", "shown"),
    [
        ("abc", 5, False, "abc  "),
        ("abc", 5, True, "  abc"),
        ("abcdef", 4, False, "abc…"),
        ("实例-北京", 6, False, "实例-…"),
        ("实例", 4, False, "实例"),
        ("实例实", 5, False, "实例…"),
        ("实例实", 4, False, "实 …"),  # half of a wide character is a blank
        ("x", 0, False, ""),
    ],
)
def test_fit_is_exact(text: str, width: int, right: bool, shown: str) -> None:
    assert fit(text, width, right=right) == shown
    assert cell_len(fit(text, width, right=right)) == width


@given(ANY_TEXT, st.integers(1, 30))
def test_wrapped_lines_are_never_too_wide_and_lose_no_word(text: str, width: int) -> None:
    lines = wrap(text, width + 1)
    assert all(cell_len(line) <= width + 1 for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(ANY_TEXT, st.integers(2, 30))
def test_output_is_broken_at_the_width_and_keeps_its_blanks(text: str, width: int) -> None:
    lines = broken(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines) == text


def test_clip_keeps_styles_and_marks_the_cut() -> None:
    line: Line = (("abc", "strong"), ("defgh", "dim"), ("never", ""))
    assert clip(line, 6) == (("abc", "strong"), ("de…", "dim"))
    assert clip(line, 40) == line


def test_differences_name_only_what_changed() -> None:
    old: Line = (("name        ", "strong"), (" 12", ""), (" 34", ""), ("            ", ""), ("live", ""))
    new: Line = (("name        ", "strong"), (" 13", ""), (" 34", ""), ("            ", ""), ("10s ", ""))
    assert differences(old, new) == [(12, 3), (30, 4)]
    assert differences(old, old) == []
    assert differences(old, (*old[:2], (" 345", ""))) == [(15, 0)]  # other widths: to the end
    near: Line = (("name        ", "strong"), (" 13", ""), (" 35", ""), ("            ", ""), ("live", ""))
    assert differences(old, near) == [(12, 6)]


class OneLine(App[None]):
    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line

    def compose(self) -> ComposeResult:
        yield Lines((self.line,))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(ANY_TEXT, st.sampled_from(["", "dim", "danger strong"])), max_size=4))
async def test_whatever_is_shown_is_as_wide_as_the_pane_and_printable(spans: list[tuple[str, str]]) -> None:
    app = OneLine(tuple(spans))
    async with app.run_test(size=(33, 3)):
        strip = app.query_one(Lines).render_line(0)
        assert cell_len(strip.text) == 33
        assert strip.text.isprintable()


async def test_only_changed_lines_are_painted() -> None:
    app = OneLine((("first", ""),))
    async with app.run_test(size=(30, 8)) as pilot:
        lines = app.query_one(Lines)
        lines.styles.height = 5
        text: list[Line] = [((f"row {n}", ""),) for n in range(5)]
        lines.show(text)
        await pilot.pause()
        before = lines.painted
        lines.show(text)
        await pilot.pause()
        assert lines.painted == before
        text[3] = (("other", ""),)
        lines.show(text)
        await pilot.pause()
        assert lines.painted == before + 1


def test_length_counts_cells() -> None:
    assert length((("ab", ""), ("北京", "dim"))) == 6


def test_a_path_is_cut_at_its_front_so_that_what_is_said_of_it_stays() -> None:
    text = "Inodes are running out on /tmp/rgt-demo/boxes/inodes-4090/data: 92 % used, full in 31 s."
    assert shortened(text, 200) == text
    cut = shortened(text, 75)
    assert cell_len(cut) == 75
    assert "/inodes-4090/data: 92 % used, full in 31 s." in cut
    assert shortened(text, 20).count("…") == 1  # the rest is the caller's to cut
    assert shortened("No path in here at all.", 5) == "No path in here at all."


@pytest.mark.parametrize(
    ("text", "shown"), [("abcdefgh", "abcd…"), ("abcde   ", "abcde"), ("实例实例", "实例…")]
)
async def test_a_line_that_is_too_wide_says_so(text: str, shown: str) -> None:
    widget = Lines([((text, ""),)])

    class Narrow(App[None]):
        def compose(self) -> ComposeResult:
            yield widget

    async with Narrow().run_test(size=(5, 1)):
        assert widget.render_line(0).text == shown


REVERSED = Ink({"c-attention": "ansi_yellow", "c-attention-style": "bold", "c-selection-style": "reverse"})


def test_a_reversed_row_has_no_blocks_of_colour() -> None:
    assert REVERSED.style("cursor").reverse
    assert REVERSED.style("attention").color is not None
    told = REVERSED.flat("attention")
    assert told.bold and told.color is None  # what it says still stands out
    assert REVERSED.style("cursor").__add__(REVERSED.flat("edge")).reverse is False


def test_history_strips_are_quieter_than_letters_and_seen() -> None:
    dark = Ink({"c-dim": "#a8a8a8", "c-background": "#121212"})
    colour = dark.style("graph").color
    assert colour is not None and colour.get_truecolor() == (0x6C, 0x6C, 0x6C)
    assert Ink({"c-dim": "ansi_bright_black"}).style("graph") == Ink({"c-dim": "ansi_bright_black"}).style(
        "dim"
    )


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("share", [None, 0.0, 0.001, 0.5, 0.97, 1.0])
def test_a_bar_shows_how_much_there_is_besides_how_much_is_used(share: float | None, glyphs: Glyphs) -> None:
    spans = bar_spans(share, 10, glyphs, tick=0.9, level="attention")
    assert length(spans) == 10
    styles = {style for _, style in spans}
    if share is None:
        assert "".join(text for text, _ in spans).isspace()  # not known is not empty
    else:
        assert ("attention" in styles) == (share > 0)
        assert ("rule" in styles) == (share < 0.97)
        assert (glyphs.bar_tick in [text for text, _ in spans]) == (share < 0.97)
