"""How often the dear parts of a box are asked, and what makes that more often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.model.instance import Instance
from tui.model.reading import known
from tui.model.snapshot import Attention, BoxView, Growth
from tui.model.telemetry import Filesystem, Telemetry
from tui.model.text import SafeText
from tui.workers.box import Pace
from tui.workers.rhythm import LEARNING, NEAR_PCT, Rhythm, presses

PACE = Pace()


def ticks(rhythm: Rhythm, count: int, **how: bool) -> list[str]:
    """The letters of the parts that each tick asks for: Gpus, Filesystems, Candidates, Processes."""
    asked = []
    for _ in range(count):
        at, _cadence = rhythm.next(**{"urgent": False, "viewed": False, "cards": True, **how})
        on = (at.gpus, at.filesystems, at.candidates, at.processes)
        asked.append("".join(letter for letter, yes in zip("gfcp", on, strict=True) if yes))
    return asked


def settled() -> Rhythm:
    rhythm = Rhythm(PACE)
    ticks(rhythm, LEARNING * PACE.filesystems_quiet)
    rhythm.hurry()
    return rhythm


def test_the_first_tick_asks_for_everything_and_growth_is_learned_fast() -> None:
    asked = ticks(Rhythm(PACE), 26)
    assert asked[0] == "gfcp"
    assert [n for n, parts in enumerate(asked) if "f" in parts] == [0, 5, 10, 15, 20, 25]


def test_a_quiet_box_is_asked_seldom_and_one_that_presses_often() -> None:
    quiet, urgent = ticks(settled(), 61), ticks(settled(), 61, urgent=True)
    assert [n for n, parts in enumerate(quiet) if "f" in parts] == [0, 20, 40, 60]
    assert [n for n, parts in enumerate(quiet) if "c" in parts] == [0, 60]
    assert [n for n, parts in enumerate(urgent) if "f" in parts] == list(range(0, 61, 5))
    assert [n for n, parts in enumerate(urgent) if "c" in parts] == [0, 15, 30, 45, 60]


def test_a_look_makes_the_dear_parts_due_at_once() -> None:
    rhythm = settled()
    ticks(rhythm, 8)
    assert ticks(rhythm, 1, viewed=True) == ["gfp"]
    assert ticks(rhythm, 4, viewed=True) == ["g"] * 4


def test_a_box_without_cards_is_asked_for_them_with_the_slow_parts() -> None:
    asked = ticks(settled(), 31, cards=False)
    assert [n for n, parts in enumerate(asked) if "g" in parts] == [0, 20]
    assert [("g" in a) for a in ticks(settled(), 4)] == [True, False, True, False]


def test_hurry_asks_for_everything_once() -> None:
    rhythm = settled()
    ticks(rhythm, 3)
    rhythm.hurry()
    assert ticks(rhythm, 2) == ["gfcp", ""]


def test_the_cadence_is_what_happens() -> None:
    rhythm = settled()
    _, quiet = rhythm.next(urgent=False, viewed=False, cards=True)
    _, urgent = rhythm.next(urgent=True, viewed=False, cards=True)
    _, viewed = rhythm.next(urgent=False, viewed=True, cards=True)
    assert (quiet.gpus_s, quiet.slow_s, quiet.processes_s, quiet.seldom_s) == (4.0, 40.0, 120.0, 120.0)
    assert (urgent.slow_s, urgent.processes_s, urgent.seldom_s) == (10.0, 30.0, 30.0)
    assert (viewed.gpus_s, viewed.slow_s, viewed.processes_s) == (2.0, 10.0, 10.0)


QUIET = BoxView(Instance("a", "ssh", None))


def mounted(**values: float | bool) -> BoxView:
    disk = replace(Filesystem(SafeText("/"), SafeText("/dev/vda")), **values)  # type: ignore[arg-type]
    return replace(QUIET, telemetry=Telemetry(1.0, filesystems=known((disk,))))


@pytest.mark.parametrize(
    ("box", "pressing"),
    [
        (None, False),
        (QUIET, False),
        (mounted(use_pct=NEAR_PCT - 1, inode_use_pct=3.0), False),
        (mounted(use_pct=NEAR_PCT), True),
        (mounted(inode_use_pct=NEAR_PCT), True),
        (mounted(use_pct=100.0, read_only=True), False),  # an image fills nothing
        (replace(QUIET, growth=((SafeText("/"), Growth(bytes_full_in_s=3600.0)),)), True),
        (replace(QUIET, growth=((SafeText("/"), Growth(inodes_full_in_s=1e6)),)), False),
        (replace(QUIET, attention=(Attention("attention", SafeText("x"), SafeText("x")),)), True),
    ],
)
def test_what_presses(box: BoxView | None, pressing: bool) -> None:
    assert presses(box) is pressing
