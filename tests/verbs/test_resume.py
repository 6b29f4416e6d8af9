"""`rgt resume`, `drill` and `handbook` on a real sshd with a training that really goes on, or does not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, until_ended, where
from tui.cli import main
from tui.fleet import settings
from tui.fleet.leash_notes import note
from tui.fleet.paths import Paths
from tui.runs.plan_files import wrapper, wrapper_name

__all__ = ["box", "where"]

GOES_ON = """\
import os, time
run = os.environ["RGT_RUN"]
try:
    step = int(open(run + "/ckpt").read())
except FileNotFoundError:
    step = 0
while step < 400:
    step += 1
    print(f"step {step}/400 loss: {10 / (step + 5):.4f} lr: {1e-3 * (1 - step / 400):.3e}", flush=True)
    open(run + "/ckpt.part", "w").write(str(step)); os.replace(run + "/ckpt.part", run + "/ckpt")
    time.sleep(0.05)
"""

QUICK = GOES_ON.replace("400", "8000").replace("0.05", "0.004")
"""It writes steps between each look of the drill and the kill: none of them is the new attempt's."""
FORGETS = QUICK.replace('int(open(run + "/ckpt").read())', "0")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the operator types, in order."""
    words: list[str] = []
    monkeypatch.setattr("tui.custody.keyboard.read_line", lambda *_: words.pop(0))
    monkeypatch.setattr("tui.custody.keyboard.require_terminal", lambda: None)
    return words


def launched(tmp_path: Path, capsys: pytest.CaptureFixture[str], train: str) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(train)
    (code / "job.toml").write_text('name = "t"\nproject = "p"\nrun = ["python3", "-u", "train.py"]\n')
    assert main(["launch", str(code / "job.toml"), "--on", "box-1", "--json"]) == 0
    return Path(json.loads(capsys.readouterr().out)["folder"])


def kill(run: Path, attempt: int) -> None:
    child = int((run / ".rgt" / "attempts" / str(attempt) / "child").read_text().split()[0])
    os.kill(child, signal.SIGKILL)
    until_ended(run, attempt)


def until_step(run: Path, step: int) -> None:
    deadline = time.monotonic() + 60
    while f"step {step}/" not in (run / "train.log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("train", "verdict"), [(GOES_ON, "goes on"), (FORGETS, "began again")])
def test_a_drill_tells_whether_a_run_goes_on(
    where: Paths,
    box: Sshd,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    asked: list[str],
    train: str,
    verdict: str,
) -> None:
    run = launched(tmp_path, capsys, train)
    until_step(run, 30)
    before = next(one for one in settings.load(where.fleet_file).runs if one.name == run.name)
    asked.append(f"kill {run.name}")
    assert main(["drill", run.name, "--json"]) == (0 if verdict == "goes on" else 1)
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == verdict
    after = next(one for one in settings.load(where.fleet_file).runs if one.name == run.name)
    assert after.pid != before.pid
    assert until_ended(run, 1).startswith("reason failed\nstatus 137\nsignal KILL")


def test_without_the_whole_word_nothing_is_killed(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str]
) -> None:
    run = launched(tmp_path, capsys, GOES_ON)
    asked.append("kill")
    assert main(["drill", run.name]) == 1
    assert "Nothing was done." in capsys.readouterr().out
    assert not (run / ".rgt" / "attempts" / "1" / "end").exists()


def test_the_identical_command_or_resume_goes_on_after_an_update_too_and_another_plan_is_refused(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launched(tmp_path, capsys, GOES_ON)
    until_step(run, 5)
    assert main(["resume", run.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attempt"] == 1
    kill(run, 1)
    (run / wrapper_name()).rename(run / ".rgt/wrapper-older.sh")  # as an older rgt laid it down
    (run / ".rgt/plan/wrapper").write_text(".rgt/wrapper-older.sh\n")
    assert main(["launch", str(tmp_path / "code" / "job.toml"), "--on", "box-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attempt"] == 2
    kill(run, 2)
    (run / wrapper_name()).write_bytes(wrapper()[:1000])  # by a link that was cut
    (tmp_path / "code" / "train.py").write_text("raise SystemExit('the code here changed')")
    assert main(["resume", run.name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attempt"] == 3
    assert (run / wrapper_name()).read_bytes() == wrapper()
    (run / ".rgt" / "plan" / "id").write_text("0" * 64)
    assert main(["resume", run.name]) == 1
    assert "does not hold the plan" in capsys.readouterr().err


def test_the_handbook_needs_no_connection(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launched(tmp_path, capsys, GOES_ON)
    box.stop_listening()
    assert main(["handbook", run.name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["goes on"] == f"rgt resume {run.name}"
    assert "leash" not in told
    kill(run, 1)
    (run / "ckpt").write_text("399")
    (run / wrapper_name()).rename(run / ".rgt/wrapper-older.sh")  # this rgt has a newer one
    (run / ".rgt/plan/wrapper").write_text(".rgt/wrapper-older.sh\n")
    subprocess.run(["bash", "-c", told["by hand"]], check=True, timeout=20)
    assert "status 0" in until_ended(run, attempt=2)
    note(where, "box-1", 1_800_000_000.0)
    assert main(["handbook", run.name, "--json"]) == 0
    assert "stops itself 2027-01-1" in json.loads(capsys.readouterr().out)["leash"]


def test_a_run_that_was_laid_down_and_never_started_is_not_begun_without_its_code(
    where: Paths, box: Sshd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launched(tmp_path, capsys, "print('step 1/1 loss: 1')\n")
    until_ended(run)
    shutil.rmtree(run / ".rgt/attempts")
    assert main(["resume", run.name]) == 1
    assert "never started" in capsys.readouterr().err
    assert not (run / ".rgt/attempts").exists()
