"""A queue on a cluster is an array of its scheduler: each cell once, and not twice where asked again."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.rig.slurm import Slurm
from tests.slurm.test_launch import where
from tui.cli import main
from tui.fleet.paths import Paths

__all__ = ["where"]
pytestmark = [pytest.mark.slow, pytest.mark.real]


def cells(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    main(["matrix", "--json"])
    told: list[dict[str, object]] = json.loads(capsys.readouterr().out)["cells"]
    return told


def test_each_cell_is_a_task_of_one_array(
    slurm: Slurm, where: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    (folder / "code.txt").write_text("x")
    file = folder / "job.toml"
    file.write_text(
        'name = "sweep"\nproject = "shop"\nfinish = "final"\n'
        'run = ["sh", "-c", "echo $SLURM_JOB_ID >>$RGT_RUN/tasks; sleep 1; echo {cell.lr} >$RGT_RUN/final"]\n'
        'resources = { gpu = ":1" }\n[matrix]\nlr = ["0.1", "0.2", "0.3"]\n[slurm]\nat_once = 2\n'
    )
    assert main(["queue", str(file), "--on", "hpc"]) == 0, capsys.readouterr()
    array = {row.split("_")[0] for row in slurm.run("squeue", "-h", "-o", "%i").split()}
    assert len(array) == 1
    assert main(["queue", str(file), "--on", "hpc"]) == 0  # asked again: it is there already
    assert {row.split("_")[0] for row in slurm.run("squeue", "-h", "-o", "%i").split()} <= array
    deadline = time.monotonic() + 25
    found = cells(capsys)
    while {one["state"] for one in found} != {"complete"}:
        assert time.monotonic() < deadline, (found, slurm.run("squeue"))
        time.sleep(0.3)
        found = cells(capsys)
    assert len(found) == 3
    for one in found:
        (run,) = (tmp_path).rglob(f"active/{one['run']}")
        assert len((run / "tasks").read_text().split()) == 1  # once, and by one task
