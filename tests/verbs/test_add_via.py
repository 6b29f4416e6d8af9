"""`rgt add` for machines that answer no SSH, and what follows when their login node is renamed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.cli import main
from tui.fleet.paths import Paths, paths
from tui.fleet.settings import load
from tui.model.via import PodExec, SlurmStep


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "home"))
    assert main(["add", "ssh me@login.hpc.example", "--name", "hpc", "--platform", "slurm"]) == 0
    return paths()


def test_a_job_is_added_by_its_id_and_follows_its_login_node(
    home: Paths, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["add", "slurm:4227@hpc", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"name": "hpc-4227", "platform": "slurm", "transport": "slurm:4227@hpc"}
    assert main(["rename", "hpc", "cluster"]) == 0
    loaded = load(home.fleet_file)
    assert loaded.problems == ()
    assert loaded.instances[1].via == SlurmStep("4227", "cluster")


def test_a_pod_is_added_and_a_dry_run_writes_nothing(home: Paths) -> None:
    before = home.fleet_file.read_text()
    assert main(["add", "pod:ml/train-0@prod", "--dry-run"]) == 0
    assert home.fleet_file.read_text() == before
    assert main(["add", "pod:ml/train-0@prod"]) == 0
    assert load(home.fleet_file).instances[1].via == PodExec("ml", "train-0", None, "prod")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("slurm:1@nowhere", "no box of the fleet"),
        ("slurm:1;x@hpc", "slurm:JOBID"),
        ("pod:train", "pod:NAMESPACE"),
    ],
)
def test_what_can_not_be_added_is_said(text: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", text]) == 2
    assert word in capsys.readouterr().err


def test_the_same_job_is_not_added_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "slurm:1@hpc"]) == 0
    assert main(["add", "slurm:1@hpc"]) != 0
    assert "already in the fleet as hpc-1" in capsys.readouterr().err


def test_ssh_into_a_job_names_the_command_that_does_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "slurm:1@hpc"]) == 0
    assert main(["ssh", "hpc-1"]) == 2
    assert "srun --jobid" in capsys.readouterr().err
