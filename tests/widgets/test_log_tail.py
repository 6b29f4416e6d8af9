"""The newest lines of a log below a detail: quiet, never too wide, and gone where there is no room."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tests.fixtures.run_fixture import log_lines
from tui.model.text import LogText
from tui.widgets.glyphs import UNICODE
from tui.widgets.lines import length
from tui.widgets.log_tail import LEAST, tail_lines


def text(line: tuple[tuple[str, str], ...]) -> str:
    return "".join(part for part, _ in line)


def test_the_newest_lines_stand_below_a_rule_that_names_the_file() -> None:
    lines = tail_lines(log_lines(40), "/root/train.log", 80, 8, UNICODE)
    assert len(lines) == 8
    assert lines[0] == ()
    assert "log /root/train.log" in text(lines[1])
    assert "step    39" in text(lines[-1])


@pytest.mark.parametrize("rows", range(LEAST))
def test_too_few_rows_have_none_of_it(rows: int) -> None:
    assert tail_lines(log_lines(40), "train.log", 80, rows, UNICODE) == []


def test_an_error_stands_out_among_them() -> None:
    lines = tail_lines([LogText("step 1"), LogText("CUDA error: an illegal access")], "t.log", 60, 9, UNICODE)
    quiet, loud = lines[-2:]
    assert {style for _, style in quiet} == {"", "dim"}
    assert (loud[0][1], quiet[1][1]) == ("danger", "dim") and "dim" not in {style for _, style in loud}


@pytest.mark.parametrize("width", [20, 50, 120])
def test_no_line_is_too_wide_and_none_carries_an_escape(width: int) -> None:
    for line in tail_lines(log_lines(400), "/a/" * 60, width, 30, UNICODE):
        assert length(line) <= width
        assert cell_len(text(line)) <= width
        assert "\x1b" not in text(line)
