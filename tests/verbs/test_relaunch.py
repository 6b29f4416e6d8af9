"""`rgt relaunch`: a run goes on on another box with its checkpoints, and never on two at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, until_ended, where
from tests.verbs.test_resume import GOES_ON, until_step
from tui.cli import main
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.runs.book import book
from tui.workers.lock import starting

__all__ = ["box", "where"]

TRAIN = GOES_ON.replace('"/ckpt.part"', '"/ckpt-1.part"').replace('"/ckpt"', '"/ckpt-1"')
TRAIN = TRAIN.replace("400", "4000")  # it is at work for as long as any of these tests


@pytest.fixture
def other(sshd_factory: Callable[..., Sshd], where: Paths, tmp_path: Path) -> Sshd:
    sockets = tmp_path / "tmux2"
    sockets.mkdir()
    server = sshd_factory(extra_config=(f"SetEnv TMUX_TMPDIR={sockets}",))
    text = where.fleet_file.read_text()
    where.fleet_file.write_text(
        f'{text}[instances.box-2]\nplatform = "ssh"\nhost = "{server.host}"\nport = {server.port}\n'
        f'user = "{server.user}"\nkey = "{server.client_key}"\n'
    )
    return server


@pytest.fixture
def run(other: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run on box-1 that is at step 10 or later."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "job.toml").write_text(
        'name = "t"\nproject = "p"\nrun = ["python3", "-u", "train.py"]\ncheckpoints = "ckpt-*"\n'
    )
    assert main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"]) == 0
    folder = Path(json.loads(capsys.readouterr().out)["folder"])
    until_step(folder, 10)
    return folder


def copied(run: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(run / "ckpt-1", copy / "ckpt-1")
    return copy


def end(box: Sshd, run: Path) -> None:
    """Kill the wrapper, which would write the job's end down, and then its job."""
    holder = int((run / ".rgt" / "attempts" / "1" / "holder").read_text().split()[0])
    if psutil.pid_exists(holder):
        psutil.Process(holder).kill()
    for process in psutil.process_iter(["environ"]):
        if (process.info["environ"] or {}).get("RGT_RUN") == str(run):
            process.kill()


def test_a_run_that_died_goes_on_elsewhere_with_its_name_and_its_checkpoint(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copied(run, tmp_path)
    words = ["relaunch", run.name, "--on", "box-2", "--from", str(copy)]
    assert main(words) == 1
    assert "may be at work on box-1" in capsys.readouterr().err
    end(box, run)
    assert main([*words, "--dry-run"]) == 0
    told = capsys.readouterr().err
    assert "old      dead: It is lost there" in told
    assert "carry    ckpt-1" in told
    assert not (other.home / "rgt").exists()
    assert main(words) == 0
    there = other.home / "rgt" / "p" / "active" / run.name
    first = next(line for line in (there / "train.log").read_text().split("\n") if line.startswith("step"))
    assert int(first.split("/")[0].split()[1]) == int((copy / "ckpt-1").read_text()) + 1
    page = book(where).page(run.name)
    assert (page.box, page.folder) == ("box-2", str(there))
    assert len(list((where.state / "runs" / "before").iterdir())) == 1
    spec = next(one for one in settings.load(where.fleet_file).runs if one.name == run.name)
    assert spec.box == "box-2"
    capsys.readouterr()
    assert main(["resume", run.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attempt"] == 1
    assert main(["receipts", "--json"]) == 0
    *_, moved, last = json.loads(capsys.readouterr().out)["receipts"]
    told = "from box-1, which is dead; 1 checkpoints to carry"
    assert (moved["act"], moved["detail"], last["act"]) == ("relaunch", told, "launch")
    assert main([*words, "--json"]) == 0  # it is there: nothing is started, and nobody's pid is lost
    assert json.loads(capsys.readouterr().out)["kind"] == "runs"
    assert spec in settings.load(where.fleet_file).runs


def test_silence_is_no_death_until_somebody_gives_his_word(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copied(run, tmp_path)
    words = ["relaunch", run.name, "--on", "box-2", "--from", str(copy)]
    box.stop_listening()
    assert main(words) == 3
    assert "is not known" in capsys.readouterr().err
    assert not (other.home / "rgt").exists()
    end(box, run)
    assert main([*words, "--old-is-gone"]) == 0
    capsys.readouterr()
    assert main(["receipts", "--json"]) == 0
    last = json.loads(capsys.readouterr().out)["receipts"][-2]
    assert "which is unknown, by the operator's word" in last["detail"]


def test_a_launch_elsewhere_and_a_relaunch_beside_another_start_nothing(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", str(tmp_path / "code" / "job.toml"), "--on", "box-2"]) == 1
    assert "was launched on box-1" in capsys.readouterr().err
    end(box, run)
    job = str(tmp_path / "code" / "job.toml")
    with starting(where, run.name):
        for words in (["relaunch", run.name, "--on", "box-2", "--from-scratch"], ["resume", run.name],
                      ["launch", job, "--on", "box-1"]):  # fmt: skip
            assert main(words) == 1
            assert f"{run.name} is being started by rgt with pid" in capsys.readouterr().err
    assert not (other.home / "rgt/p/active").exists()


def test_a_relaunch_that_was_cut_off_goes_on_by_the_same_command(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copied(run, tmp_path)
    end(box, run)
    there = other.home / "rgt/p/active" / run.name
    page = book(where).page(run.name)  # as it is when rgt is killed between the page and the first word there
    book(where).move(page.model_copy(update={"box": "box-2", "folder": str(there)}))
    assert main(["relaunch", run.name, "--on", "box-1", "--from", str(copy)]) == 3
    assert "Somebody may be starting it" in capsys.readouterr().err
    assert main(["relaunch", run.name, "--on", "box-2", "--from", str(copy)]) == 0
    first = next(line for line in (there / "train.log").read_text().split("\n") if line.startswith("step"))
    assert int(first.split("/")[0].split()[1]) == int((copy / "ckpt-1").read_text()) + 1


def test_what_is_not_the_same_run_or_has_no_checkpoint_is_refused(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end(box, run)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main(["relaunch", run.name, "--on", "box-2", "--from", str(empty)]) == 2
    assert "It would begin at step 0" in capsys.readouterr().err
    assert main(["relaunch", run.name, "--on", "box-1", "--from-scratch"]) == 2
    (tmp_path / "code" / "train.py").write_text("print('other')\n")
    assert main(["relaunch", run.name, "--on", "box-2", "--from-scratch"]) == 1
    assert "is not what it was launched with" in capsys.readouterr().err
    assert not (other.home / "rgt").exists()


def test_a_finished_run_is_not_done_again(
    where: Paths, box: Sshd, other: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "job.toml").write_text('name = "t"\nproject = "p"\nrun = ["echo", "step 1/1 loss: 1"]\n')
    assert main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"]) == 0
    run = Path(json.loads(capsys.readouterr().out)["folder"])
    until_ended(run)
    assert main(["relaunch", run.name, "--on", "box-2", "--from-scratch"]) == 1
    assert "is finished" in capsys.readouterr().err


def test_it_goes_on_from_the_durable_copy_on_record(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("tui.custody.roster.SETTLE_S", 0.05)
    end(box, run)
    words = ["relaunch", run.name, "--on", "box-2", "--pulled"]
    assert main(words) == 2
    assert f"rgt pull {run.name} --to DEST" in capsys.readouterr().err
    main(["roster", run.name, "--verb", "stop"])  # attention: it ends on a box whose disk is not known
    assert main(["digest", run.name]) == 0, capsys.readouterr()
    assert main(["pull", run.name, "--to", f"box-2:{tmp_path}/vault"]) == 0, capsys.readouterr()
    assert main([*words, "--dry-run"]) == 0
    assert f"from box-2:{tmp_path}/vault/{run.name}-" in capsys.readouterr().err
    assert not (where.state / "carried").exists()
    assert main(words) == 0
    there = other.home / "rgt/p/active" / run.name
    first = next(line for line in (there / "train.log").read_text().split("\n") if line.startswith("step"))
    assert int(first.split("/")[0].split()[1]) == int((run / "ckpt-1").read_text()) + 1
    assert not (where.state / "carried" / run.name).exists()
