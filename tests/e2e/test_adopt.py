"""A run that rgt never started, on a box reached over real OpenSSH, from first sight to a followed log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.e2e.conftest import Home, Job
from tests.rig import Sshd

pytestmark = pytest.mark.real


def test_a_run_started_by_hand_is_found_adopted_and_told(home: Home, box: Sshd, job: Job) -> None:
    probed = home.rgt("probe", "box-a", "--json")
    assert probed.returncode in (0, 1, 4), probed.stderr
    found = [c for c in json.loads(probed.stdout)["candidates"] if c["pid"] == job.pid]
    assert found, "the probe does not propose the run"
    assert found[0]["cwd"] == str(job.folder)
    assert found[0]["logs"][0] == str(job.log)

    words = ("--log", str(job.log), "--checkpoints", f"{job.folder}/ckpt/*.pt", "--pid", str(job.pid))
    watched = home.rgt("watch", "box-a", *words, "--name", "by-hand")
    assert watched.returncode == 0, watched.stderr
    assert "by-hand" in home.fleet.read_text()

    (run,) = json.loads(home.rgt("status", "--json").stdout)["boxes"][0]["runs"]
    assert run["state"] == "running"
    assert run["progress"]["done"] >= 1
    assert run["progress"]["total"] == 9999

    logs = home.rgt("logs", "by-hand", "-n", "3")
    assert logs.returncode == 0, logs.stderr
    assert len(logs.stdout.splitlines()) == 3
    assert all("loss" in line for line in logs.stdout.splitlines())


def test_a_dead_run_is_told_dead_and_a_stopped_box_unreachable(home: Home, box: Sshd, job: Job) -> None:
    home.rgt("watch", "box-a", "--log", str(job.log), "--pid", str(job.pid), "--name", "by-hand")
    stopper = subprocess.Popen(["sleep", "60"])
    try:
        os.kill(job.pid, signal.SIGKILL)
        time.sleep(0.3)
        status = home.rgt("status", "--json")
        (run,) = json.loads(status.stdout)["boxes"][0]["runs"]
        assert run["state"] == "dead"
        assert status.returncode == 1
        box.stop()
        status = home.rgt("status", "--json")
        (told,) = json.loads(status.stdout)["boxes"]
        assert told["runs"][0]["state"] == "unreachable"  # not dead, not stopped: it was not seen
        assert told["percent"] == {"gpu": None, "vram": None, "disk": None, "inode": None}
        assert status.returncode == 3
    finally:
        stopper.kill()
        stopper.wait(timeout=10)
        restarted = subprocess.Popen(["sleep", "30"])  # the fixture ends a process of this number
        job.pid = restarted.pid


def test_logs_follow_through_a_cut(home: Home, box: Sshd, job: Job) -> None:
    home.rgt("watch", "box-a", "--log", str(job.log), "--pid", str(job.pid), "--name", "by-hand")
    follower = subprocess.Popen(
        [sys.executable, "-m", "tui.cli", "logs", "by-hand", "-f", "-n", "1", "--plain"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=home.environment,
    )
    try:
        assert follower.stdout is not None
        lines = [follower.stdout.readline().rstrip("\n") for _ in range(20)]
        box.kill_sessions()
        lines += [follower.stdout.readline().rstrip("\n") for _ in range(60)]
    finally:
        follower.send_signal(signal.SIGINT)
        follower.wait(timeout=60)
    written = job.log.read_text().splitlines()
    start = written.index(lines[0])
    assert lines == written[start : start + len(lines)]  # none lost, none doubled, none changed
    assert follower.returncode == 130


def test_a_password_in_a_paste_is_never_echoed_or_stored(home: Home) -> None:
    secret = "hunter2-Zx9"
    paste = f"ssh -p 34567 root@connect.west.example.com\n{secret}\n"
    added = home.rgt("add", "--name", "pasted", stdin=paste)
    assert added.returncode == 0, added.stderr
    assert secret not in added.stdout + added.stderr
    everything = [p.read_bytes() for p in home.path.rglob("*") if p.is_file()]
    assert everything
    assert all(secret.encode() not in content for content in everything)


@pytest.mark.parametrize(
    "text",
    [
        "ssh -p 22 root@host;reboot",
        "ssh -oProxyCommand=reboot root@host",
        "ssh root@-oProxyCommand=x",
        "ssh root@$(id)",
    ],
)
def test_dangerous_pastes_are_refused_in_one_line(home: Home, text: str) -> None:
    refused = home.rgt("add", text)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert not home.fleet.exists()
