"""The fleet in text and JSON says what the screen says, and unknown stays unknown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.fixtures import fleet_fixture as fixture
from tui.fleet.report import exit_code, progress_words, status_json, status_lines, status_table
from tui.model.cells import width
from tui.model.failure import Exit
from tui.model.instance import Link, LinkState
from tui.model.reading import known
from tui.model.run import Progress
from tui.model.snapshot import FleetSnapshot
from tui.model.text import SafeText


def test_columns_line_up_also_for_hostile_and_wide_names() -> None:
    snapshot = fixture.hostile()
    lines = list(status_table(snapshot, fixture.NOW))
    place = width(lines[0][: lines[0].index("PLATFORM")])
    for line, box in zip(lines[1:], snapshot.boxes, strict=False):
        column = line.index(box.instance.platform, len(box.name))
        assert width(line[:column]) == place


def test_unknown_is_a_question_mark_and_null() -> None:
    snapshot = fixture.fleet()
    rows = {line.split()[0]: line for line in status_table(snapshot, fixture.NOW)}
    assert rows["parked-4090"].split()[-5:-1] == ["?"] * 4
    told = json.loads(json.dumps(status_json(snapshot, fixture.NOW), allow_nan=False))
    parked = next(box for box in told["boxes"] if box["name"] == "parked-4090")
    assert set(parked["percent"].values()) == {None}
    assert parked["price_per_hour"] is None
    assert parked["probed_at"] is None


def test_no_card_is_not_an_unknown_card_and_a_name_is_said_once() -> None:
    live = fixture.fleet().boxes[0]
    assert live.telemetry is not None
    bare = replace(live, telemetry=replace(live.telemetry, gpus=known(())))
    lost = replace(live, link=Link(LinkState.UNREACHABLE, detail=SafeText(f"{live.name}: no answer.")))
    (_, row, *_) = status_table(FleetSnapshot(boxes=(bare,)), fixture.NOW)
    assert row.split()[-5:-3] == ["–", "–"]
    assert "gpu –  vram –" in next(status_lines(FleetSnapshot(boxes=(bare,)), fixture.NOW))
    assert f"{live.name}: no answer." in list(status_table(FleetSnapshot(boxes=(lost,)), fixture.NOW))


def test_what_is_wrong_is_said_in_both() -> None:
    snapshot = fixture.fleet()
    for told in (status_table, status_lines):
        assert any("Inodes are running out" in line for line in told(snapshot, fixture.NOW))
    assert exit_code(snapshot) is Exit.ATTENTION


def test_an_empty_fleet_is_fine() -> None:
    assert exit_code(FleetSnapshot(started=True)) is Exit.FINE


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (None, "–"),
        (Progress(), "–"),
        (Progress(finished=True), "finished"),
        (Progress(unit="epoch", done=3, total=90, loss=0.25), "epoch 3/90 loss 0.25"),
        (Progress(unit="step", done=12400, eta_s=7800), "step 12,400 2 h 10 m left"),
        (Progress(loss=float("nan")), "loss nan"),
    ],
)
def test_progress_in_words(progress: Progress | None, words: str) -> None:
    assert progress_words(progress, progress.eta_s if progress else None) == words
