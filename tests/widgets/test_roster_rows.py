"""The roster as data: what each row says, in which order, in which columns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from tests.fixtures.fleet_fixture import NOW, fleet, hostile
from tests.fixtures.scheduled_fixture import desk_and_job
from tui.fleet.report import status_table
from tui.model.run import Progress
from tui.model.snapshot import FleetSnapshot
from tui.model.via import JobExec, PodExec, SlurmStep, Via
from tui.widgets.glyphs import ASCII, UNICODE
from tui.widgets.match import matcher
from tui.widgets.roster_columns import EDGE, STRIP, gap, layout, needs_of
from tui.widgets.roster_rows import (
    SORTS,
    Row,
    arranged,
    count_word,
    loss_strip,
    mark_changes,
    progress_word,
    rows_of,
)


def everything(_: str) -> bool:
    return True


def by_box(snapshot: FleetSnapshot, now: float = NOW) -> dict[str, Row]:
    return {row.key[0]: row for row in rows_of(snapshot, now, UNICODE)}


def test_what_a_row_says() -> None:
    rows = by_box(fleet())
    cells = {name: cell.text for name, cell in rows["ablate-01"].cells.items()}
    assert cells["STATE"] == "▲ inodes 96%"
    assert cells["BOX STATE"] == "▲ inodes 96%"
    assert cells["RUN STATE"] == "● running"
    assert cells["INODE"] == "▲96"
    assert cells["DISK"] == "41"
    assert cells["GPU"] == "97"
    assert cells["PROGRESS"] == "ep 41/100"
    assert cells["WORST"] == "inode 96%"
    assert cells["AGE"] == "live"
    assert rows["done-01"].cells["STATE"].text == "■ finished"


@pytest.mark.parametrize(
    ("via", "job_via", "session", "gpu"),
    [
        (PodExec("ns", "desk"), JobExec("ns", "rgt-a-1", "run"), "job:rgt-a-1", "97"),
        (PodExec("ns", "desk"), JobExec("other", "rgt-a-1", "run"), "job:rgt-a-1", "n/a"),
        (PodExec("ns", "desk"), JobExec("ns", "rgt-b-1", "run"), "job:rgt-a-1", "n/a"),
        (None, SlurmStep("42", "desk"), "slurm:42", "97"),
        (None, SlurmStep("42", "hpc"), "slurm:42", "n/a"),
        (None, SlurmStep("43", "desk"), "slurm:42", "n/a"),
        (None, SlurmStep("42", "desk"), "rgt-tmux", "n/a"),
    ],
)
def test_a_scheduled_run_has_the_cards_of_the_machine_that_runs_it(
    via: Via | None, job_via: Via, session: str, gpu: str
) -> None:
    snapshot = desk_and_job(via, job_via, session)
    row = by_box(snapshot)["desk"]
    assert row.cells["GPU"].text == gpu
    assert (row.cells["DISK"].text, row.cells["BOX"].text) == ("41", "desk")  # its files are here
    (told,) = (line for line in status_table(snapshot, NOW) if line.startswith("desk "))
    assert (" 97 " in told) is (gpu == "97")


def test_unknown_is_never_zero() -> None:
    cells = by_box(fleet())["parked-4090"].cells
    assert cells["GPU"].text == cells["DISK"].text == cells["INODE"].text == ""
    assert cells["$/H"].text == cells["SPENT"].text == "?"
    assert cells["STATE"].text == "? unreachable"


def test_stale_rows_say_so_in_words() -> None:
    row = by_box(fleet())["lora-a10"]
    assert row.stale
    assert row.cells["AGE"].text == "4m"
    assert row.cells["STATE"].text == "? unknown 4m"
    later = by_box(fleet(), NOW + 3600)["ablate-01"]
    assert later.stale
    assert later.cells["STATE"].text == "? unknown 1h"


def test_state_is_never_colour_alone() -> None:
    for row in rows_of(fleet(), NOW, ASCII):
        glyph, word = row.cells["STATE"].text.split(" ", 1)
        assert glyph in "*o#?x!-"
        assert word


def test_worst_first_and_unknown_last() -> None:
    rows = rows_of(fleet(), NOW, UNICODE)
    order = [row.key[0] for row in arranged(rows, "attention", reverse=False, keep=everything)]
    assert order[0] == "ablate-01"
    assert set(order[-2:]) == {"ablate-02", "vlm-h100"}
    for name in ("inode", "disk", "gpu", "cost", "age"):
        for turned in (False, True):
            last = arranged(rows, name, reverse=turned, keep=everything)[-1]
            assert last.key[0] == "parked-4090", name
    assert arranged(rows, "inode", reverse=False, keep=everything)[0].key[0] == "ablate-01"
    names = [row.key[0] for row in arranged(rows, "name", reverse=False, keep=everything)]
    assert names == sorted(names)


def test_equal_rows_keep_their_order() -> None:
    rows = [replace(row, order=dict.fromkeys(SORTS, 1.0)) for row in rows_of(fleet(), NOW, UNICODE)]
    for name in SORTS:
        assert arranged(rows, name, reverse=False, keep=everything) == rows
        assert arranged(rows, name, reverse=True, keep=everything) == rows


def test_filter_sees_every_column() -> None:
    rows = rows_of(fleet(), NOW, UNICODE)
    kept = arranged(rows, "name", reverse=False, keep=matcher("runpod vlm-sft"))
    assert [row.key for row in kept] == [("vlm-h100", "vlm-sft")]


def test_a_changed_number_is_marked_until_the_next_look() -> None:
    row = by_box(fleet())["ablate-01"]
    first = mark_changes([row], {})[0]
    assert not first.changed
    new_cells = {**row.cells, "GPU": replace(row.cells["GPU"], text="12")}
    second = mark_changes([replace(row, cells=new_cells, stamp=(2.0, 0.0))], {row.key: first})[0]
    assert second.changed == {"GPU"}
    same_look = mark_changes([replace(second, changed=frozenset())], {row.key: second})[0]
    assert same_look.changed == {"GPU"}
    third = mark_changes([replace(second, stamp=(3.0, 0.0))], {row.key: second})[0]
    assert not third.changed


@pytest.mark.parametrize("snapshot", [fleet(), hostile()], ids=["quiet", "hostile"])
@pytest.mark.parametrize("width", [*range(20, 230, 7), 60, 80, 100, 120, 200])
def test_columns_fill_no_more_than_the_pane(snapshot: FleetSnapshot, width: int) -> None:
    rows = rows_of(snapshot, NOW, UNICODE)
    columns = layout(width, needs_of(rows))
    left = None
    total = EDGE
    for column, cells in columns:
        total += gap(left, column, width) + cells
        left = column
    assert columns[0][0].id == "BOX"
    assert total <= max(width, EDGE + columns[0][1])


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (60, {"BOX", "STATE", "PROGRESS", "WORST", "AGE"}),
        (80, {"BOX", "STATE", "PROGRESS", "GPU", "VRAM", "DISK", "INODE", "AGE"}),
        (120, {"PLATFORM", "RUN", "PROGRESS", "GPU", "VRAM", "DISK", "INODE", "$/H", "NEXT CLOCK", "AGE"}),
        (150, {"BOX STATE", "RUN STATE", "PLATFORM", "SPENT", "NEXT CLOCK", "INODE"}),
    ],
)
def test_columns_by_width(width: int, expected: set[str]) -> None:
    needs = needs_of(rows_of(fleet(), NOW, UNICODE))
    assert expected <= {column.id for column, _ in layout(width, needs)}


def test_hostile_names_are_printable_and_apart() -> None:
    rows = rows_of(hostile(), NOW, UNICODE)
    assert len({row.key for row in rows}) == len(rows)
    for row in rows:
        for cell in row.cells.values():
            assert cell.text.isprintable()


def test_progress_words() -> None:
    assert progress_word(None) == ""
    assert progress_word(Progress("epoch", 3, None)) == "ep 3"
    assert progress_word(Progress("step", 12_400, 60_000)) == "st 12.4k/60k"
    assert progress_word(Progress("", None, None, finished=True)) == "finished"
    assert [count_word(n) for n in (0, 9_999, 10_000, 3_141_592, 2_000_000_000)] == [
        "0",
        "9999",
        "10k",
        "3.1M",
        "2G",
    ]


def test_loss_strip_has_a_fixed_floor_and_shows_gaps() -> None:
    falling = Progress("epoch", 1, 2, losses=(4.0, 3.0, 2.0, 1.0))
    assert loss_strip(falling, STRIP, UNICODE) == "   ▇▆▄▂"
    broken = Progress("epoch", 1, 2, losses=(4.0, float("nan"), 2.0))
    assert loss_strip(broken, 3, UNICODE) == "▇ ▄"
    assert loss_strip(None, 3, UNICODE) == "   "
    assert cell_len(loss_strip(replace(falling, losses=tuple(map(float, range(1, 121)))), 16, UNICODE)) == 16
