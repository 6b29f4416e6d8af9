"""The panels' lines: what they say, and that they keep their width for whatever a box may say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fixtures import run_fixture as fixture
from tui.model.reading import Source, known, unknown
from tui.model.snapshot import BoxView, Sample
from tui.model.telemetry import Cadence, Filesystem, Gpu, Memory, Telemetry
from tui.model.text import SafeText, safe
from tui.widgets.checkpoint_panel import CheckpointPanel, checkpoint_lines, checkpoint_summary
from tui.widgets.curve import curve_lines, spread
from tui.widgets.disk_panel import DiskPanel, disk_lines, disk_summary
from tui.widgets.figures import NA, compact, pair, percent, size
from tui.widgets.gauge import gauge
from tui.widgets.glyphs import ASCII, UNICODE
from tui.widgets.gpu_panel import GpuPanel, gpu_lines, gpu_summary
from tui.widgets.lines import Line, clip, length
from tui.widgets.memory_panel import memory_lines, memory_summary
from tui.widgets.panel import Panel, Sight, apart, packed
from tui.widgets.process_panel import process_lines
from tui.widgets.run_head import head_lines
from tui.widgets.strip import columns, history
from tui.widgets.summary import summary_lines

GLYPHS = (UNICODE, ASCII)


def sight(**changes: object) -> Sight:
    return replace(Sight(fixture.box(), fixture.run(), fixture.NOW), **changes)  # type: ignore[arg-type]


def with_telemetry(telemetry: Telemetry | None) -> Sight:
    return sight(box=replace(fixture.box(), telemetry=telemetry))


def text(lines: list[Line]) -> str:
    return "\n".join("".join(part for part, _ in line) for line in lines)


def styles(lines: list[Line], words: str) -> set[str]:
    return {style for line in lines for part, style in line if words in part}


# -- figures ------------------------------------------------------------------------------------------


def test_figures_in_three_places_and_unknown_by_name() -> None:
    assert [size(n) for n in (0, 999, 1000, 9_812_000_000, None)] == ["0 B", "999 B", "1.0 kB", "9.8 GB", NA]
    assert size(80 * 1024**3, binary=True) == "80.0 GiB"
    assert pair(68e9, 200e9) == "68 / 200 GB"
    assert pair(None, 200e9) == f"{NA} / 200 GB"
    assert percent(99.99) == "99 %"  # full is said only of what is full
    assert percent(math.nan) == NA
    assert [compact(n) for n in (812, 12_400, 999_999, 3_100_000, None)] == [
        "812",
        "12.4k",
        "1.0M",
        "3.1M",
        NA,
    ]


# -- strips and gauges --------------------------------------------------------------------------------


def test_a_strip_has_a_fixed_scale() -> None:
    busy = history([(float(i), 100.0) for i in range(8)], 8, UNICODE)
    idle = history([(float(i), 0.0) for i in range(8)], 8, UNICODE)
    assert busy == "▇" * 8  # below a full cell, or two strips would merge
    assert idle == "▁" * 8
    assert history([(0.0, math.nan), (1.0, None), (2.0, 50.0)], 3, UNICODE) == "  ▄"


def test_silence_is_a_gap_and_a_slower_pace_is_not() -> None:
    steady = [(2.0 * i, 50.0) for i in range(10)]
    cut = [s for s in steady if not 4 < s[0] < 14]
    assert None in columns(cut)
    assert columns(steady) == [50.0] * 10
    slower = [*steady, *((18 + 10.0 * i, 50.0) for i in range(1, 6))]
    assert None not in columns(slower)
    assert columns([]) == []


def test_a_gauge_that_is_not_known_has_a_reason_and_no_bar() -> None:
    line = gauge("bytes", None, "", 40, UNICODE, why="df gave no size")
    assert text([line]).strip() == "bytes  n/a  df gave no size"
    assert UNICODE.bar_full not in text([line])


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.one_of(st.none(), st.floats()), st.integers(1, 120), st.floats(0, 100), st.sampled_from(GLYPHS))
def test_gauges_are_as_wide_as_asked(pct: float | None, width: int, tick: float, glyphs: object) -> None:
    line = gauge("inodes", pct, "192k/200k  96 %", width, glyphs, tick_pct=tick)  # type: ignore[arg-type]
    assert length(clip(line, width)) <= width
    if width >= 27:
        assert length(line) == width


# -- what each panel says -------------------------------------------------------------------------------


def test_cards_say_what_they_do_and_what_they_could_not_tell() -> None:
    said = text(gpu_lines(sight(), 60))
    assert "97 %" in said
    assert "71.2 / 80.0 GiB" in said
    assert "389/400 W" in said
    assert "throttled: power cap" in said
    assert "3.0 GiB held by no listed process" in said
    assert "n/a: util, power: told [Unknown Error]" in said
    assert "0 %" not in said.split("1 A100")[1]


def test_no_card_and_no_tool_are_two_things() -> None:
    none = replace(fixture.telemetry(), gpus=known(()))
    assert "no GPU on this box" in text(gpu_lines(with_telemetry(none), 40))
    absent = replace(fixture.telemetry(), gpus=unknown(SafeText("nvidia-smi: command not found")))
    assert "n/a  nvidia-smi: command not found" in text(gpu_lines(with_telemetry(absent), 40))
    assert "n/a" in text(gpu_lines(with_telemetry(None), 40))


def test_a_sick_card_is_a_danger() -> None:
    card = replace(fixture.gpus()[0], health="lost", ecc_uncorrected=3, throttle=None)
    lines = gpu_lines(with_telemetry(replace(fixture.telemetry(), gpus=known((card,)))), 60)
    assert styles(lines, "card lost") == {"danger"}
    assert styles(lines, "3 uncorrected ECC errors") == {"danger"}
    assert "n/a: throttle" in text(lines)


def test_mig_has_no_utilisation_and_that_is_not_idleness() -> None:
    card = replace(fixture.gpus()[0], util_pct=None, mig=True)
    said = text(gpu_lines(with_telemetry(replace(fixture.telemetry(), gpus=known((card,)))), 60))
    assert "MIG is on" in said


def test_many_cards_take_two_lines_each() -> None:
    cards = tuple(replace(fixture.gpus()[0], index=n, throttle=(), uuid=None) for n in range(8))
    lines = gpu_lines(with_telemetry(replace(fixture.telemetry(), gpus=known(cards))), 40)
    assert len(lines) == 16


def test_disks_show_bytes_and_inodes_and_when_they_are_full() -> None:
    lines = disk_lines(sight(), 60)
    said = text(lines)
    assert "34 %" in said and "96 %" in said
    assert "+58 files/min" in said and "full in 2 h 10 m" in said
    assert styles(lines, "192k / 200k") == {"attention"}
    assert "mount does not answer" in said
    bytes_line, inodes_line = (next(part for part in lines if w in text([part])) for w in ("bytes", "inodes"))
    assert length(bytes_line[:-1]) == length(inodes_line[:-1])  # their tracks are of one length


def test_what_a_disk_does_not_have_is_not_zero() -> None:
    fs = (
        Filesystem(SafeText("/a"), SafeText("x"), size_bytes=10, used_bytes=5, use_pct=50.0),
        Filesystem(SafeText("/b"), SafeText("x"), capacity_meaningless=True, inodes=10, inode_use_pct=10.0),
    )
    said = text(disk_lines(with_telemetry(replace(fixture.telemetry(), filesystems=known(fs))), 60))
    assert "this filesystem counts none" in said
    assert "an object store names no real size" in said
    assert " 0 %" not in said


def test_memory_is_the_cgroups_and_kills_before_us_are_no_news() -> None:
    lines = memory_lines(sight(), 60)
    assert "41.0 / 64.0 GiB" in text(lines)
    assert styles(lines, "none since rgt looks") == {"dim"}
    worse = replace(fixture.telemetry(), memory=known(Memory(64 * 2**30, 63 * 2**30, 3, 2)))
    lines = memory_lines(with_telemetry(worse), 60)
    assert styles(lines, "2 since rgt looks") == {"danger"}
    free = replace(fixture.telemetry(), memory=known(Memory(None, 2**30, None, 2, 503 * 2**30, 300 * 2**30)))
    said = text(memory_lines(with_telemetry(free), 60))
    assert "none set by the cgroup" in said
    assert "n/a  no count is kept" in said
    assert "machine" in said


def test_checkpoints_are_aged_by_the_boxs_clock() -> None:
    said = text(checkpoint_lines(sight(), 40))
    assert said.splitlines()[0].split() == ["epoch_041.pth", "1.2", "GB", "6", "m", "ago"]
    assert "35 older" in said
    truth = replace(fixture.truth(), checkpoints=known(()))
    none = sight(run=replace(fixture.run(), truth=truth))
    assert "no file matches …p-a/seed3/ckpt/*.pth" in text(checkpoint_lines(none, 40))
    unset = sight(run=replace(fixture.run(), truth=None))
    assert "n/a" in text(checkpoint_lines(unset, 40))


def test_the_runs_process_comes_first_and_a_stuck_one_says_so() -> None:
    lines = process_lines(sight(), 100)
    assert "4121" in text([lines[1]])
    assert styles(lines, "python train.py --config") == {"strong"}
    assert "waits on disk" in text(lines)
    assert "70.7 GiB" in text([lines[1]])


@pytest.mark.parametrize(
    ("panel", "age", "word"),
    [
        (CheckpointPanel, 12.0, "live"),  # asked every 10 s where nobody says otherwise
        (CheckpointPanel, 45.0, "stale 30s"),
        (DiskPanel, 45.0, "stale 30s"),
        (GpuPanel, 14.0, "stale 10s"),
    ],
)
def test_a_value_is_old_when_its_next_look_is_overdue(panel: type[Panel], age: float, word: str) -> None:
    assert panel().word(aged(age))[0] == word


def test_a_slower_cadence_makes_nothing_stale_unless_the_box_is_silent() -> None:
    quiet = Cadence(slow_s=30.0)
    assert DiskPanel().word(aged(45.0, cadence=quiet))[0] == "live"
    assert DiskPanel().word(aged(100.0, cadence=quiet))[0] == "stale 1m"
    assert DiskPanel().word(aged(45.0, heard=45.0, cadence=quiet))[0] == "stale 30s"


def aged(age: float, *, heard: float = 1.0, cadence: Cadence = Cadence()) -> Sight:  # noqa: B008 - frozen
    """Everything dear was read `age` seconds ago, and the box answered `heard` seconds ago."""
    seen = sight()
    assert seen.box is not None and seen.box.telemetry is not None and seen.run is not None
    told, truth = seen.box.telemetry, seen.run.truth
    assert truth is not None
    then = Source(SafeText("x"), seen.now - age)
    told = replace(
        told,
        taken_at=seen.now - heard,
        filesystems=replace(told.filesystems, source=then),
        gpus=replace(told.gpus, source=then),
        cadence=cadence,
    )
    run = replace(seen.run, truth=replace(truth, checkpoints=replace(truth.checkpoints, source=then)))
    return replace(seen, box=replace(seen.box, telemetry=told), run=run)


def test_a_curve_says_its_scale_and_counts_what_is_no_number() -> None:
    lines = curve_lines([2.0, 1.0, math.nan, math.inf], 40, UNICODE)
    said = text(lines)
    assert said.splitlines()[0] == " " * 12 + "✕✕"  # over the columns that are gaps
    assert said.splitlines()[1].strip().startswith("2 █")
    assert "✕ 2 of the last 4 are no number" in said
    assert spread([1.0, 3.0, math.nan, math.nan], 2) == [2.0, None]
    assert curve_lines([], 40, UNICODE) == []
    assert len(curve_lines([5.0, 5.0], 40, UNICODE)) == 5


def test_a_spike_and_a_plateau_are_marked_and_said() -> None:
    spiky = [1.0 - i / 200 for i in range(40)]
    spiky[20] = 8.0
    said = text(curve_lines(spiky, 60, UNICODE))
    assert said.splitlines()[0].rstrip() == " " * 30 + "▲"
    assert "▲ 1 spike in the last 40" in said
    level = text(curve_lines([0.5, 0.501] * 30, 60, UNICODE))
    assert "plateau: level for the last 60" in level


def test_old_values_are_said_to_be_old() -> None:
    old = sight(now=fixture.NOW + 240)
    first = head_lines(old, fixture.RUN, fixture.BOX, 80)[0]
    assert text([first]).rstrip().endswith("stale 4m")


def test_the_head_names_state_progress_and_what_is_wrong() -> None:
    first, second = head_lines(sight(), fixture.RUN, fixture.BOX, 120)
    assert "● running" in text([first]) and "ep 41/100" in text([first])
    assert "Inodes are running out" in text([second])
    assert second[0][1] == "attention"


# -- widths -----------------------------------------------------------------------------------------------

NAMES = st.one_of(
    st.text(max_size=40).map(safe),
    st.sampled_from(["/数据/模型/检查点", "한국어 디스크", "[red]/dev/nvme0n1[/]", "x" * 200, ""]).map(safe),
)
NUMBERS = st.one_of(st.none(), st.floats(min_value=0, max_value=1e15), st.sampled_from([math.nan, math.inf]))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(NAMES, NUMBERS, NUMBERS, st.integers(12, 130), st.sampled_from(GLYPHS))
def test_no_line_is_wider_than_its_pane(
    name: SafeText, one: float | None, two: float | None, width: int, glyphs: object
) -> None:
    whole = None if one is None or not math.isfinite(one) else int(one)
    card = Gpu(0, name, util_pct=two, mem_used_mib=one, mem_total_mib=two, temp_c=one, power_w=two)
    disk = Filesystem(name, name, name, whole, whole, whole, two, whole, whole, one)
    telemetry = replace(fixture.telemetry(), gpus=known((card, card)), filesystems=known((disk,)))
    box: BoxView = replace(
        fixture.box(), telemetry=telemetry, history=tuple(Sample(float(i), (one, two)) for i in range(200))
    )
    seen = Sight(box, fixture.run(), fixture.NOW, glyphs=glyphs)  # type: ignore[arg-type]
    panels = (gpu_lines, disk_lines, memory_lines, checkpoint_lines, process_lines)
    lines = [line for panel in panels for line in panel(seen, width)]
    for line in lines:
        assert length(clip(line, width)) <= width
    for line in (*summary_lines(seen, seen, width), *head_lines(seen, name, name, width)):
        assert length(line) <= max(width, 20)


@pytest.mark.parametrize("summary", [gpu_summary, disk_summary, memory_summary, checkpoint_summary])
def test_summaries_keep_the_worst_at_the_narrowest(summary: object) -> None:
    line = summary(sight(), 60)  # type: ignore[operator]
    assert length(line) <= 60
    assert text([line]).strip()


def test_parts_that_do_not_fit_are_left_out_whole() -> None:
    head: Line = (("head ", ""),)
    line = packed(head, [(("aaaa", ""),), (), (("bbbb", ""),)], 10)
    assert text([line]) == "head aaaa"
    assert text([apart((("name", ""),), (("right", ""),), 8, UNICODE)]) == "n… right"
