"""`rgt queue` and `rgt matrix` on a real sshd: every cell once, each state by its own witness."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, where
from tui.cli import main
from tui.fleet.paths import Paths

__all__ = ["box", "where"]

JOB = """\
name = "sweep"
project = "p"
run = ["sh", "-c", "[ $0 != 2 ] || exit 4; echo $0 >>$RGT_RUN/../../ran; echo x >$RGT_RUN/out", "{cell.seed}"]
finish = "out"
secrets = ["HUB_TOKEN"]
[matrix]
seed = [1, 2, 3, 4]
"""


@pytest.fixture
def job(where: Paths, tmp_path: Path) -> Path:
    text = where.fleet_file.read_text()
    where.fleet_file.write_text(text + text.replace("box-1", "box-2"))
    code = tmp_path / "code"
    code.mkdir()
    (code / "job.toml").write_text(JOB)
    return code / "job.toml"


def until_over(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    deadline = time.monotonic() + 40
    while True:
        main(["matrix", "--json"])
        cells = json.loads(capsys.readouterr().out)["cells"]
        if not {cell["state"] for cell in cells} & {"waiting", "claimed", "running"}:
            return {cell["values"]["seed"]: cell for cell in cells}
        assert time.monotonic() < deadline, cells
        time.sleep(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_every_cell_runs_once_and_each_state_has_its_own_witness(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str], shared: bool
) -> None:
    project = box.home / ("all/p" if shared else "rgt/p")
    words = ["--shared", str(project.parent)] if shared else []
    assert main(["queue", str(job), "--on", "box-1,box-2", "--json", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["cells"], told["started"]) == (4, {"box-1": True, "box-2": True})
    cells = until_over(capsys)
    assert sorted((project / "ran").read_text().split()) == ["1", "3", "4"]
    assert {seed: cell["state"] for seed, cell in cells.items()} == {
        "1": "complete", "2": "failed", "3": "complete", "4": "complete",
    }  # fmt: skip
    assert {(cell["sealed"], cell["accepted"]) for cell in cells.values()} == {(False, False)}
    assert main(["queue", str(job), "--on", "box-1", *words]) == 1
    assert "was begun on box-1, box-2" in capsys.readouterr().err
    elsewhere = [] if shared else ["--shared", str(box.home / "all")]
    assert main(["queue", str(job), "--on", "box-2,box-1", *elsewhere]) == 1  # each cell a second time
    assert "nothing was started" in capsys.readouterr().err.lower()
    assert not list(box.home.glob(("rgt" if shared else "all") + "/p/ran"))
    assert main(["close", str(cells["1"]["run"])]) == 0
    capsys.readouterr()
    assert main(["matrix"]) == 1
    table = capsys.readouterr().out
    assert "complete 3" in table
    assert "s a cell (" in table
    assert {seed: cell["took_s"] is None for seed, cell in cells.items()} == dict.fromkeys("1234", False)
    assert "sealed 1" in table
    assert "status 4" in table


def test_a_queue_whose_worker_is_alive_is_left_at_work(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job.write_text(JOB.replace("echo x >", "while [ ! -e $RGT_RUN/../../go ]; do sleep 0.1; done; echo x >"))
    project = box.home / "rgt" / "p"
    words = ["queue", str(job), "--on", "box-1"]
    assert main(words) == 0
    deadline = time.monotonic() + 20
    while not (project / "ran").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    capsys.readouterr()
    assert main(words) == 0
    assert "box-1: its worker is at work already; nothing was started." in capsys.readouterr().out
    (project / "go").touch()
    until_over(capsys)
    assert sorted((project / "ran").read_text().split()) == ["1", "3", "4"]


@pytest.mark.slow
def test_one_cell_is_gone_on_with_by_its_name(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cell is a run: what failed is resumed alone, and the matrix tells its second attempt."""
    job.write_text(JOB.replace("[ $0 != 2 ] || exit 4", "[ $0 != 2 ] || [ -e $RGT_RUN/mended ] || exit 4"))
    assert main(["queue", str(job), "--on", "box-1"]) == 0
    capsys.readouterr()
    failed = until_over(capsys)["2"]
    assert (failed["state"], failed["attempt"]) == ("failed", 1)
    (box.home / "rgt" / "p" / "active" / str(failed["run"]) / "mended").touch()
    assert main(["resume", str(failed["run"]), "--json"]) == 0
    capsys.readouterr()
    cells = until_over(capsys)
    assert {(cell["state"], cell["attempt"]) for cell in cells.values()} == {("complete", 1), ("complete", 2)}
    assert sorted((box.home / "rgt" / "p" / "ran").read_text().split()) == ["1", "2", "3", "4"]


def test_a_folder_that_is_not_shared_is_refused(
    where: Paths, sshd: Sshd, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A path below the home names another folder on another box."""
    text = where.fleet_file.read_text().replace(str(box.port), str(sshd.port), 1)
    where.fleet_file.write_text(text.replace(str(box.client_key), str(sshd.client_key), 1))
    assert main(["queue", str(job), "--on", "box-1,box-2", "--shared", "~/all"]) == 1
    assert "does not see in" in capsys.readouterr().err
    assert main(["matrix"]) == 2


def test_a_dry_run_shows_the_split(where: Paths, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queue", str(job), "--on", "box-1,box-2", "--speed", "box-1=3", "--dry-run"]) == 0
    assert "box-1: 3 cells of 4" in capsys.readouterr().out
    assert main(["queue", str(job), "--on", "box-1", "--speed", "box-9=3"]) == 2
    assert main(["matrix"]) == 2
