"""Rows of single lines: folding, cutting, and what differs between two of them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.model.text import LogText, log_text
from tui.widgets.logrows import breaks, changed, decode, row, window

TEXTS = st.text(
    st.one_of(st.characters(min_codepoint=32, max_codepoint=126), st.sampled_from("模型损失한국어━█é")),
    max_size=80,
)
RED, PLAIN = Style(color="red"), Style()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TEXTS, st.integers(2, 40))
def test_folding_loses_nothing_and_splits_no_character(text: str, width: int) -> None:
    starts = list(breaks(text, width))
    parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    assert "".join(parts) == text
    assert all(cell_len(part) <= width for part in parts)
    assert all(cell_len(a) + cell_len(b[:1]) > width for a, b in pairwise(parts))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TEXTS, st.integers(0, 60), st.integers(1, 40))
def test_a_window_is_what_the_pane_shows(text: str, skip: int, width: int) -> None:
    start, end, blank = window(text, skip, width)
    cells = row(decode(LogText(text)), start, end, width, PLAIN, (), blank)
    shown = "".join(s.text for s in cells)
    whole = "".join(c + "\0" * (cell_len(c) - 1) for c in text)  # one entry a cell
    expected = whole[skip : skip + width].ljust(width)
    expected = " " + expected[1:] if expected.startswith("\0") else expected
    drawn = "".join(c + "\0" * (cell_len(c) - 1) for c in shown)
    assert len(drawn) == width
    assert drawn.rstrip() in (
        expected.rstrip(),
        expected[:-1].rstrip(),
    )  # a wide one cut at the right is left out


@settings(max_examples=200, deadline=None, derandomize=True)
@given(TEXTS, TEXTS, st.integers(1, 60), st.booleans())
def test_cells_outside_the_difference_are_the_same(one: str, other: str, width: int, red: bool) -> None:
    def strip(text: str, style: Style) -> Strip:
        return Strip([Segment(text[:5], PLAIN), Segment(text[5:], style)]).adjust_cell_length(width, PLAIN)

    old, new = strip(one, PLAIN), strip(other, RED if red else PLAIN)
    start, cells = changed(old, new)
    if not cells:
        assert old == new
        return
    assert 0 <= start < width and start + cells <= width
    for a, b in ((0, start), (start + cells, width)):
        if a < b:
            left, right = old.crop(a, b), new.crop(a, b)
            assert left.text == right.text
            assert left.simplify() == right.simplify()


def test_colours_are_decoded_and_blinking_is_not() -> None:
    line = decode(log_text("\x1b[1;31mred\x1b[0m \x1b[5;38;2;1;2;3mrgb\x1b[0m"))
    assert line.text == "red rgb"
    (start, end, red), (_, _, rgb) = line.styles
    assert (start, end) == (0, 3)
    assert red.bold and red.color is not None and red.color.number == 1
    assert rgb.color is not None and rgb.color.triplet == (1, 2, 3)
    assert not rgb.blink
