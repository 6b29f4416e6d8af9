"""Who uses which GPU: whose process it is, which card is free, and what can't be told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from tests.fixtures.fleet_fixture import LIVE, NOW, fleet, gpu, hostile, instance, judged
from tui.model.reading import known, unknown
from tui.model.snapshot import BoxView, FleetSnapshot
from tui.model.telemetry import GpuProcess, Telemetry
from tui.model.text import safe
from tui.widgets.card_rows import SORTS, arranged, detail_lines, head_line, sum_words, use_line, uses
from tui.widgets.glyphs import UNICODE
from tui.widgets.match import matcher


def seen(
    *processes: GpuProcess | None, age_s: float = 1.0, used: tuple[int, ...] = (70_000, 3)
) -> FleetSnapshot:
    """One box with two cards of 80 GB; None among the processes: the driver does not tell them."""
    told = next(box.telemetry for box in fleet().boxes if box.telemetry is not None)
    cards = tuple(
        replace(gpu(i, 50, 0), uuid=safe(f"GPU-{i}"), mem_used_mib=float(mib), mem_total_mib=81_920.0)
        for i, mib in enumerate(used)
    )
    listed = tuple(p for p in processes if p is not None)
    telemetry: Telemetry = replace(
        told,
        taken_at=NOW - age_s,
        gpus=known(cards),
        gpu_processes=unknown(safe("no permission")) if None in processes else known(listed),
    )
    return judged((BoxView(instance("ablate-01", "autodl", 1.98), LIVE, telemetry=telemetry),), ())


def said(snapshot: FleetSnapshot, width: int = 120) -> list[str]:
    found = uses(snapshot, NOW, 2.0)
    return ["".join(text for text, _ in use_line(use, width, UNICODE)) for use in found]


def test_each_process_has_a_row_and_a_card_without_any_is_free() -> None:
    two = [GpuProcess(pid, safe("GPU-0"), mib, safe(f"python {pid}")) for pid, mib in ((41, 1e4), (42, 6e4))]
    lines = said(seen(*two))
    assert len(lines) == 3
    assert "42" in lines[0] and "58.6 GiB" in lines[0] and "ablate-01" in lines[0]  # the heavier one first
    assert "41" in lines[1] and "ablate-01" not in lines[1]
    assert lines[2].rstrip().endswith("free")
    assert sum_words(list(uses(seen(*two), NOW, 2.0))) == "2 cards, 1 free"


def test_memory_that_nobody_listed_holds_is_not_free() -> None:
    lines = said(seen(used=(70_000, 3)))
    assert "68.4 GiB held by no listed process" in lines[0]
    assert "free" not in lines[0]


def test_what_is_not_told_or_old_is_not_called_free() -> None:
    assert "n/a: no permission" in said(seen(None))[0]
    old = list(uses(seen(age_s=600), NOW, 2.0))
    assert {use.free for use in old} == {None}
    assert sum_words(old) == "2 cards, 2 not known"
    assert "as of 10m ago" in "".join(text for text, _ in detail_lines(old[0], 120, NOW, 2.0)[0])


@pytest.mark.parametrize(
    ("order", "cards"),
    [("box", [0, 0, 1]), ("free", [1, 0, 0]), ("use", [0, 0, 1]), ("memory", [0, 0, 1])],
)
def test_cards_are_sorted_and_each_names_itself_once(order: str, cards: list[int]) -> None:
    two = [GpuProcess(pid, safe("GPU-0"), mib, safe(f"python {pid}")) for pid, mib in ((41, 1e4), (42, 6e4))]
    found = arranged(uses(seen(*two), NOW, 2.0), order, matcher(""))
    assert [use.gpu.index for use in found if use.gpu is not None] == cards
    assert [use.first for use in found] == [n == 0 or cards[n - 1] != card for n, card in enumerate(cards)]


def test_a_filter_that_hides_a_cards_first_process_leaves_its_figures_on_the_next() -> None:
    two = [GpuProcess(pid, safe("GPU-0"), mib, safe(f"python {pid}")) for pid, mib in ((41, 1e4), (42, 6e4))]
    everything = list(uses(seen(*two), NOW, 2.0))
    (left,) = arranged(everything, "box", matcher("41"))
    assert left.first and "ablate-01" in use_line(left, 120, UNICODE)[0][0]
    assert [use.why for use in arranged(everything, "memory", matcher("free"))] == ["free"]
    assert not arranged(everything, SORTS[-1], matcher("nobody"))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("snapshot", [fleet(), hostile()], ids=["six", "hostile"])
def test_no_row_is_too_wide_or_unprintable(snapshot: FleetSnapshot, width: int) -> None:
    for line in (*said(snapshot, width), "".join(text for text, _ in head_line(width))):
        assert cell_len(line) <= width
        assert line.isprintable()
