"""What several looks at a card show that one does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tui.fleet.gpu_health import health, memory_line
from tui.model.reading import Reading
from tui.model.telemetry import Gpu, GpuProcess, Memory, Telemetry
from tui.model.text import SafeText, safe

CARD = Gpu(
    0, safe("A100"), uuid=safe("GPU-1"), util_pct=90.0, sm_clock_mhz=1410.0, power_w=390.0,
    power_limit_w=400.0, power_default_limit_w=400.0, mem_used_mib=30_000.0, mem_total_mib=81_920.0,
    throttle=(), ecc_uncorrected=0,
)  # fmt: skip
HOLDER = GpuProcess(77, SafeText("GPU-1"), 29_800.0, safe("python"))


def look(card: Gpu, *holders: GpuProcess) -> Telemetry:
    return Telemetry(0.0, gpus=Reading((card,)), gpu_processes=Reading(tuple(holders)))


def test_a_healthy_card_has_spans_and_no_problem() -> None:
    [card] = health([look(CARD, HOLDER), look(replace(CARD, sm_clock_mhz=1200.0), HOLDER)])
    assert (card.clock_mhz, card.problems, card.unknown) == ((1200.0, 1410.0), (), ())
    assert card.holders == (HOLDER,)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"throttle": (safe("hw_thermal_slowdown"),)}, "held back in 100%"),
        ({"ecc_uncorrected": 2}, "2 memory errors"),
        ({"remap_pending": True}, "waits for a reset"),
        ({"remap_failed": True}, "should be changed"),
        ({"health": "requires_reset"}, "requires reset"),
        ({"power_limit_w": 250.0}, "capped at 250 of 400 W"),
    ],
)
def test_what_is_wrong_is_a_sentence(change: dict[str, object], word: str) -> None:
    [card] = health([look(replace(CARD, **change), HOLDER)])  # type: ignore[arg-type]
    assert len(card.problems) == 1
    assert word in card.problems[0]


def test_a_brake_is_told_by_its_share_and_a_power_cap_is_work_not_a_fault() -> None:
    capped = replace(CARD, throttle=(safe("sw_power_cap"),))
    [card] = health([look(capped, HOLDER), look(CARD, HOLDER), look(CARD, HOLDER), look(CARD, HOLDER)])
    assert card.brakes == (("sw_power_cap", 0.25),)
    assert card.problems == ()


def test_memory_that_nobody_owns_is_found_only_where_every_look_shows_it() -> None:
    [leak] = health([look(CARD), look(CARD)])
    assert leak.unowned_mib == 30_000.0
    assert "no process that is listed owns them" in leak.problems[0]
    [start] = health([look(CARD), look(CARD, HOLDER)])  # a process between its allocation and the list
    assert start.problems == ()


def test_what_is_not_told_is_unknown_and_no_problem() -> None:
    silent = replace(CARD, throttle=None, ecc_uncorrected=None)
    [card] = health([Telemetry(0.0, gpus=Reading((silent,)))])
    assert (card.problems, len(card.unknown), card.unowned_mib) == ((), 3, None)


def test_a_card_that_is_away_in_some_looks_is_told() -> None:
    gone = Telemetry(0.0, gpus=Reading(()), gpu_processes=Reading(()))
    [card] = health([look(CARD, HOLDER), gone])
    assert "1 of 2 looks" in card.problems[0]


def test_the_memory_line_names_whose_limit_it_is() -> None:
    assert "the cgroup's limit); 3 killed" in memory_line(Memory(8 << 30, 1 << 30, 3, 2), SafeText(""))
    assert "no limit of our own" in memory_line(Memory(None, 1, None, 1, 64 << 30), SafeText(""))
    assert memory_line(None, safe("no cgroup")) == "memory n/a (no cgroup)"
