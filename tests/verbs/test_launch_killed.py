"""`rgt` is killed at every step of a launch, and launched again: the run is neither lost nor doubled."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, where
from tui.cli import main
from tui.fleet import settings
from tui.fleet.paths import Paths

__all__ = ["box", "where"]

ANSWERED = (
    "call:tui.runs.book:Book.write",
    "after:lay down the run's plan",
    "after:is it the plan?",
    "after:which files of the code are missing?",
    "after:take files of the code",
    "after:the run's own copy of the code",
    "after:the copy is whole",
    "after:give the job its secrets",
    "after:start the run, detached",
    "after:the log's end",
    "call:tui.custody.receipts:Ledger.append",
    "call:tui.fleet.fleet_source:FleetFile.add_run",
)
SENT = (
    "sent:lay down the run's plan",
    "sent:take files of the code",
    "sent:the run's own copy of the code",
    "sent:give the job its secrets",
    "sent:start the run, detached",
)

TRAIN = """\
import os, time
open(os.environ["RGT_RUN"] + "/begun", "a").write("begun\\n")
for step in range(1, 2000):
    print(f"step {step}/2000 loss: 0.5", flush=True)
    time.sleep(0.2)
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "job.toml").write_text(
        'name = "t"\nproject = "p"\nrun = ["python3", "train.py"]\nsecrets = ["HUB_TOKEN"]\n'
    )
    return code / "job.toml"


def killed(step: str, job: Path) -> int:
    """`rgt launch` in a process of its own that dies at this step; how it ended."""
    words = [sys.executable, "-m", "tests.verbs.killed_child", step]
    done = subprocess.run(
        [*words, "launch", str(job), "--on", "box-1"], capture_output=True, timeout=90, check=False
    )
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr.decode()[-2000:]
    return done.returncode


def is_one_and_whole(where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A last launch sees one attempt that was begun once, and it is watched."""
    assert main(["launch", str(job), "--on", "box-1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    run = Path(told["folder"])
    assert (told["kind"], told["attempt"]) == ("first-step", 1)
    assert [one.name for one in (run / ".rgt" / "attempts").iterdir()] == ["1"]
    assert (run / "begun").read_text() == "begun\n"
    assert [one.name for one in (box.home / "rgt" / "p" / "active").iterdir()] == [run.name]
    spec = next(one for one in settings.load(where.fleet_file).runs if one.name == told["run"])
    assert spec.pid == int((run / ".rgt" / "attempts" / "1" / "holder").read_text().split()[0])


@pytest.mark.slow
@pytest.mark.parametrize("steps", [ANSWERED, SENT], ids=["answered", "sent"])
def test_killed_at_every_step_one_after_another_it_runs_once(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str], steps: tuple[str, ...]
) -> None:
    """Each launch dies one step later than the one before, and finds what that one left behind."""
    lived = [step for step in steps if killed(step, job) != -signal.SIGKILL]
    assert steps is SENT or lived == []  # what was on its way may have arrived, and is not sent again
    is_one_and_whole(where, box, job, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_it_runs_once(
    where: Paths, box: Sshd, job: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    chance = random.Random(seed)
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "tui.cli", "launch", str(job), "--on", "box-1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(0.5, 5.0))
        process.kill()
        process.wait(timeout=10)
    is_one_and_whole(where, box, job, capsys)


@pytest.mark.slow
def test_job_double_two_launches_of_one_run_at_the_same_time_start_it_once(
    where: Paths, box: Sshd, job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JOB-DOUBLE: two computers and two terminals of each, one command, one moment.

    On one computer one starts it, and one that came too soon says so; between computers the box decides.
    """
    homes = [where.config.parent, tmp_path / "another computer"]
    shutil.copytree(where.config, homes[1] / where.config.name)
    words = [sys.executable, "-m", "tui.cli", "launch", str(job), "--on", "box-1", "--json"]
    for_each = [[_started(words, home) for _ in range(2)] for home in homes]
    for of_one in for_each:
        ends = [(process.communicate(timeout=90), process.returncode) for process in of_one]
        told = [json.loads(out)["kind"] for (out, _), code in ends if code == 0]
        assert told, ends
        assert set(told) == {"first-step"}
        assert all(b"is being started by rgt" in err for (_, err), code in ends if code)
    is_one_and_whole(where, box, job, capsys)


def _started(words: list[str], home: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "RGT_HOME": str(home)}
    )
