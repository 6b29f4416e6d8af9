"""What is said of cards and memory is said of the machine that has the run, not of the desk."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fixtures.fleet_fixture import NOW
from tests.fixtures.scheduled_fixture import desk_and_job
from tests.screens.app_harness import HeldStore, picture, running, until
from tui.model.snapshot import FleetSnapshot
from tui.model.via import SlurmStep
from tui.screens.run import RunScreen
from tui.widgets.detail import Look, detail_lines
from tui.widgets.glyphs import UNICODE
from tui.widgets.gpu_panel import GpuPanel
from tui.widgets.memory_panel import MemoryPanel


def scheduled() -> FleetSnapshot:
    return desk_and_job(None, SlurmStep("42", "desk"), "slurm:42")


def alone() -> FleetSnapshot:
    """The desk, without the machine that its scheduler gave."""
    whole = scheduled()
    return replace(whole, boxes=whole.boxes[:1])


def detail(snapshot: FleetSnapshot, width: int) -> str:
    (box, *_), (run,) = snapshot.boxes, snapshot.runs
    look = Look(box, run, snapshot.machine_of(box, run), NOW, 2.0, UNICODE, lambda _: "k")
    lines = (line for group in detail_lines(look, width) for line in group)
    return "\n".join("".join(part for part, _ in line) for line in lines)


@pytest.mark.parametrize("width", [58, 119])
def test_the_detail_tells_the_cards_of_the_job(width: int) -> None:
    said = detail(scheduled(), width)
    assert "job on" in said and "none on this box" not in said
    assert " 97%" in said
    assert "n/a: the machine of its job is not in the fleet" in detail(alone(), width)


async def test_the_run_view_tells_the_cards_of_the_job() -> None:
    store = HeldStore(scheduled())
    name = scheduled().runs[0].name
    async with running(scheduled(), (140, 50), store=store) as (app, pilot):
        app.open_run("desk", name)
        await until(pilot, lambda: isinstance(app.screen, RunScreen) and bool(app.screen.query(MemoryPanel)))
        gpu, memory = (app.screen.query_one(kind) for kind in (GpuPanel, MemoryPanel))
        await until(pilot, lambda: "GPU on job" in gpu.text and "97 %" in gpu.text)
        assert "memory on job" in memory.text
        store.replace(replace(alone(), version=alone().version + 1))
        await until(pilot, lambda: "the machine of its job is not in" in gpu.text)
        assert not any("no GPU on this box" in row for row in picture(app))
