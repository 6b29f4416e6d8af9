"""`rgt demo` as a whole: what it starts, and that nothing of it is left however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.real import need
from tests.rig.tmux import tmux
from tui.cli import main
from tui.demo.fleet import DemoFleet, embedded_fleet
from tui.demo.host import MARKER
from tui.demo.job_file import write_job
from tui.fleet import settings
from tui.runs.job_file import read_job
from tui.workers.job_files import looks_like_a_job

RGT = [sys.executable, "-m", "tui.cli"]
BOXES = ("steady-a100", "inodes-4090", "flaky-h100", "done-a10", "done-l4")


def alive(root: Path) -> list[str]:
    """Command lines of every process of a demo whose directory lies in or is `root`."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            marked = process.environ().get(MARKER, "").startswith(str(root))
            if process.status() != psutil.STATUS_ZOMBIE and (marked or f"tui.demo.host {root}" in words):
                found.append(words)
        except (psutil.Error, OSError):
            continue
    return found


def wait_until(holds: Callable[[], bool], what: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what()
        time.sleep(0.1)


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of this test's own, so that what is left in it is seen."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def on_box(fleet: DemoFleet, command: str) -> str:
    box = fleet.boxes[0]
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
    words = ["ssh", "-F", "none", "-i", str(fleet.key), "-p", str(box.port)]
    words += [part for option in options for part in ("-o", option)] + ["demo@127.0.0.1", command]
    return subprocess.run(words, capture_output=True, text=True, timeout=20, check=True).stdout


def test_five_boxes_come_up_and_nothing_is_left_behind(temp: Path) -> None:
    with embedded_fleet(seed=3, speed=10) as fleet:
        assert tuple(box.name for box in fleet.boxes) == BOXES
        told = settings.load(fleet.home / "config" / "fleet.toml")
        assert told.problems == ()
        simulated = {i.name: i.simulated for i in told.instances}
        assert simulated == dict.fromkeys(BOXES, ("GPU",)) | {
            "inodes-4090": ("GPU", "inode limit"),
            "done-a10": ("GPU", "provider"),
            "done-l4": ("GPU", "provider"),
        }
        assert {run.box for run in told.runs} == set(BOXES)
        on_box(fleet, "setsid sleep 300 >/dev/null 2>&1 </dev/null & nohup sleep 301 >/dev/null 2>&1 &")
        assert len(alive(temp)) >= 6  # the host, the jobs that go on, and two that somebody started and left
    assert alive(temp) == []
    assert list(temp.iterdir()) == []


def test_a_failure_inside_leaves_nothing_either(temp: Path) -> None:
    with pytest.raises(RuntimeError, match="on purpose"), embedded_fleet(speed=10):
        raise RuntimeError("on purpose")
    assert alive(temp) == []
    assert list(temp.iterdir()) == []


def test_a_host_that_is_killed_leaves_no_job(temp: Path) -> None:
    with embedded_fleet(speed=10):
        (host,) = [
            p
            for p in psutil.process_iter(["cmdline"])
            if f"tui.demo.host {temp}" in " ".join(p.info["cmdline"] or ())
        ]
        host.kill()
    assert alive(temp) == []
    assert list(temp.iterdir()) == []


@pytest.mark.slow
def test_killed_in_its_pane_the_demo_cleans_up(temp: Path) -> None:
    with tmux(120, 40) as pane:
        pane.start([*RGT, "demo"], {"TMPDIR": str(temp)})
        screen = pane.wait_for(r"(?s)steady-a100.*running", 60)
        assert all(box in screen for box in BOXES)
        pane.wait_for("simulated")
        children = psutil.Process(pane.pane_pid()).children(recursive=True)
        os.kill(
            next(p.pid for p in children if " ".join(p.cmdline()).endswith("tui.cli demo")), signal.SIGKILL
        )
        pane.wait_for(r"EXIT=\d+")
        wait_until(
            lambda: not alive(temp) and not list(temp.iterdir()), lambda: (alive(temp), list(temp.iterdir()))
        )


@pytest.mark.parametrize("speed", ["0.05", "0", "-1", "101", "nan", "inf", "fast"])
def test_speeds_out_of_bounds_are_refused_in_a_line(speed: str, temp: Path) -> None:
    words = [*RGT, "demo", "--selftest", f"--speed={speed}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "--speed" in done.stderr.splitlines()[-1]
    assert list(temp.iterdir()) == []


def test_its_job_is_launched_by_name_trains_on_the_boxs_own_disk_and_ends_with_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need("tmux")
    with embedded_fleet(seed=3, speed=10) as fleet:
        root = fleet.home.parent
        for name, value in fleet.environment.items():
            monkeypatch.setenv(name, value)
        assert main(["launch", "spiral", "--on", "steady-a100", "--json"]) == 0, capsys.readouterr()
        told = json.loads(capsys.readouterr().out)
        run = Path(told["folder"])
        assert told["kind"] == "first-step"
        assert run.is_relative_to(root / "boxes" / "steady-a100" / "data")
        assert told["run"] in {run.name for run in settings.load(fleet.home / "config" / "fleet.toml").runs}
        assert (root / "tmux0").is_dir()
        wait_until(lambda: any(run.glob("ckpt-*")), lambda: (run / "train.log").read_text(), 60)
        assert any(run.name in words for words in alive(root))
    assert alive(root) == []
    assert not root.exists()


def test_its_job_file_says_what_it_takes(tmp_path: Path) -> None:
    job = read_job(write_job(tmp_path, 2.0))
    assert (job.name, job.finish, job.resources.gpu.count) == ("spiral", "metrics.json", 0)
    assert job.run is not None
    assert job.run[-1] == "0.125"
    assert looks_like_a_job(tmp_path / "jobs" / "spiral" / "job.toml")
