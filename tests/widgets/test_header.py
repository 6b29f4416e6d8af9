"""The first line: what stays in it when room is short."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from tests.fixtures.fleet_fixture import LIVE, NOW, fleet, instance, judged
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.widgets.glyphs import UNICODE
from tui.widgets.header import header_line


def said(snapshot: FleetSnapshot, width: int, *, read_only: bool = False) -> str:
    line = header_line(snapshot, NOW, width, UNICODE, read_only=read_only, period_s=2.0)
    return "".join(text for text, _ in line)


def two_currencies() -> FleetSnapshot:
    """Five live boxes paid in two currencies, all of them stand-ins: the longest ordinary header."""
    boxes = []
    for n in range(5):
        rented = replace(instance(f"b{n}", "autodl", 2.98), simulated=("GPU",))
        boxes.append(BoxView(replace(rented, currency="CNY" if n % 2 else "USD"), LIVE))
    return judged(tuple(boxes), ())


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("snapshot", [fleet(), two_currencies()], ids=["six", "stand-ins"])
def test_the_price_of_an_hour_is_told_at_every_width(snapshot: FleetSnapshot, width: int) -> None:
    text = said(snapshot, width)
    assert "/h" in text
    assert cell_len(text) == width


def test_what_is_wrong_is_the_last_thing_to_go() -> None:
    assert "attention" in said(fleet(), 24)
    assert "/h" not in said(fleet(), 24)


def test_boxes_that_are_well_are_left_out_before_those_that_are_not() -> None:
    assert "4 live" in said(fleet(), 100)
    narrow = said(fleet(), 75)
    assert "live" not in narrow
    assert "1 stale  1 unknown" in narrow


def test_what_is_not_real_or_not_allowed_says_so_even_without_room() -> None:
    text = said(two_currencies(), 40, read_only=True)
    assert "read-only" in text
    assert "simulated" in text
