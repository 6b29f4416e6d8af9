"""What a queue's finished cells say of its boxes."""

from __future__ import annotations

import pytest

from tui.model.text import SafeText, safe
from tui.runs.matrix import Row, cost_lines, costs
from tui.runs.queue import judged


def row(box: str, state: str, took: float | None, by: str | None = None) -> Row:
    return Row("c", {}, box, state, 1, SafeText(""), False, False, False, safe(by) if by else None, took)


def test_the_middle_of_the_complete_cells_counts_on_the_box_that_did_them() -> None:
    found = costs(
        [
            row("a", "complete", 100.0), row("a", "complete", 120.0), row("a", "complete", 5000.0),
            row("a", "failed", 1.0), row("a", "waiting", None), row("a", "running", None),
            row("a", "complete", 60.0, by="b"), row("c", "waiting", None),
        ]
    )  # fmt: skip
    assert [(one.box, one.cells, one.each_s, one.left, one.speed) for one in found] == [
        ("a", 3, 120.0, 2, 1.0),
        ("b", 1, 60.0, 0, 2.0),
    ]
    assert found[0].left_s == 240.0


def test_the_lines_tell_what_the_next_queue_takes() -> None:
    lines = cost_lines([row("a", "complete", 100.0), row("b", "complete", 50.0), row("b", "waiting", None)])
    assert lines[-1] == "for the next queue on these boxes: --speed a=1.0 --speed b=2.0"
    assert "1 left" in lines[1]
    assert cost_lines([row("a", "waiting", None)]) == []
    assert len(cost_lines([row("a", "complete", 0.0), row("b", "complete", 9.0)])) == 2


@pytest.mark.parametrize(
    ("end", "took", "expected"),
    [("finished:0:", "7", 7.0), ("finished:0:", "?", None), ("none", "7", None), ("failed:1:", "-3", None)],
)
def test_only_what_has_ended_has_a_cost(end: str, took: str, expected: float | None) -> None:
    [seen] = judged(f"cell c 1 {end} gone gone no no {took}\n")
    assert seen.took_s == expected
