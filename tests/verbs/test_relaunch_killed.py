"""`rgt` is killed at every step of a relaunch, and asked again: the run goes on on the new box alone."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.verbs.launched import box, where
from tests.verbs.test_relaunch import copied, end, other, run
from tui.cli import main
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.runs.book import book

__all__ = ["box", "other", "run", "where"]

STEPS = (
    "call:tui.custody.receipts:Ledger.append",
    "call:tui.runs.book:Book.move",
    "after:lay down the run's plan",
    "after:the copy is whole",
    "after:is the checkpoint there?",
    "after:bring a checkpoint",
    "after:is the checkpoint the same?",
    "after:start the run, detached",
    "call:tui.fleet.fleet_source:FleetFile.set_run",
)
"""Those that only a relaunch has, and the ends of what it has in common with a launch."""


def killed(step: str, words: list[str]) -> int:
    """`rgt relaunch` in a process of its own that dies at this step; how it ended."""
    child = [sys.executable, "-m", "tests.verbs.killed_child", step, *words]
    done = subprocess.run(child, capture_output=True, timeout=90, check=False)
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr.decode()[-2000:]
    return done.returncode


def goes_on_there_alone(
    where: Paths, other: Sshd, run: Path, copy: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A last relaunch tells that it runs there, begun once from the checkpoint; status says the same."""
    assert main([*words, "--json"]) == 0
    there = other.home / "rgt/p/active" / run.name
    assert json.loads(capsys.readouterr().out)["kind"] in ("runs", "first-step")
    for folder in (run, there):
        assert [one.name for one in (folder / ".rgt" / "attempts").iterdir()] == ["1"]
    lines = (there / "train.log").read_text().split("\n")
    first = int((copy / "ckpt-1").read_text()) + 1
    assert [line.partition("/")[0] for line in lines if f"step {first}/" in line] == [f"step {first}"]
    assert lines[0].startswith(f"step {first}/")
    page = book(where).page(run.name)
    assert (page.box, page.folder) == ("box-2", str(there))
    (spec,) = settings.load(where.fleet_file).runs
    holder = (there / ".rgt" / "attempts" / "1" / "holder").read_text().split()
    assert (spec.box, spec.pid, spec.log) == ("box-2", int(holder[0]), f"{there}/train.log")
    assert main(["status", "--json"]) in (0, 1)
    boxes = json.loads(capsys.readouterr().out)["boxes"]
    told = [(one["name"], each["name"], each["state"]) for one in boxes for each in one["runs"]]
    assert told == [("box-2", run.name, "running")]
    assert main(["receipts", "--json"]) == 0
    acts = [one["act"] for one in json.loads(capsys.readouterr().out)["receipts"]]
    assert "relaunch" in acts


@pytest.mark.slow
def test_killed_at_every_step_one_after_another_it_goes_on_there_once(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each dies one step later than the one before, and finds what that one left behind."""
    copy = copied(run, tmp_path)
    end(box, run)
    words = ["relaunch", run.name, "--on", "box-2", "--from", str(copy)]
    assert [step for step in STEPS if killed(step, words) != -signal.SIGKILL] == []
    goes_on_there_alone(where, other, run, copy, words, capsys)


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_there_once(
    where: Paths, box: Sshd, other: Sshd, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, chance = copied(run, tmp_path), random.Random(5)
    end(box, run)
    words = ["relaunch", run.name, "--on", "box-2", "--from", str(copy)]
    for _ in range(3):
        process = subprocess.Popen(
            [sys.executable, "-m", "tui.cli", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(1.0, 6.0))
        process.kill()
        process.wait(timeout=10)
    goes_on_there_alone(where, other, run, copy, words, capsys)
