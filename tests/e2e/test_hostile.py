"""What goes wrong at 3 a.m.: identities, full disks, odd input. Each was a defect once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Home, Job
from tests.rig import Sshd

pytestmark = pytest.mark.real


def test_a_renamed_box_with_another_host_key_is_not_taken_for_a_new_one(home: Home, box: Sshd) -> None:
    assert home.rgt("probe", "box-a").returncode in (0, 1, 4)
    old = box.host_key_fingerprint
    assert home.rgt("rename", "box-a", "box-b").returncode == 0
    assert home.rgt("probe", "box-b").returncode in (0, 1, 4)
    box.new_host_key()
    refused = home.rgt("probe", "box-b")
    assert refused.returncode == 1
    assert old in refused.stderr


def test_ssh_with_a_home_that_cannot_be_written(home: Home, box: Sshd) -> None:
    assert home.rgt("probe", "box-a").returncode in (0, 1, 4)
    folder = home.path / "state" / "hostkeys" / "known_hosts"
    folder.write_text("a file where a folder should be")
    refused = home.rgt("ssh", "box-a", "true")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert str(folder) in refused.stderr
    folder.unlink()
    assert home.rgt("ssh", "box-a", "true").returncode == 0
    (written,) = folder.iterdir()
    stamp = written.stat().st_ino
    assert home.rgt("ssh", "box-a", "true").returncode == 0
    assert written.stat().st_ino == stamp  # right already: a full disk would stop nobody


def test_the_last_lines_are_as_many_as_asked_for(home: Home, box: Sshd, job: Job) -> None:
    home.rgt("watch", "box-a", "--log", str(job.log), "--name", "r")
    assert len(home.rgt("logs", "r", "-n", "3").stdout.splitlines()) == 3
    none = home.rgt("logs", "r", "-n", "0")
    assert (none.returncode, none.stdout) == (0, "")


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (">/dev/full", 4, "rgt: the output cannot be written: No space left on device.\n"),
        (">&-", 0, ""),
        ("| true", 0, ""),
    ],
)
def test_an_output_that_takes_nothing_is_no_crash(home: Home, end: str, code: int, said: str) -> None:
    line = f'"$0" -m tui.cli profiles autodl {end}; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable],
        capture_output=True,
        text=True,
        env=home.environment,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_follower_that_is_ended_leaves_nothing_behind(
    home: Home, box: Sshd, job: Job, tmp_path: Path, number: signal.Signals
) -> None:
    home.rgt("watch", "box-a", "--log", str(job.log), "--name", "r")
    follower = subprocess.Popen(
        [sys.executable, "-m", "tui.cli", "logs", "r", "-f"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**home.environment, "TMPDIR": str(tmp_path)},
    )
    assert follower.stdout is not None
    follower.stdout.readline()
    assert list(tmp_path.glob("rgt-spool-*"))
    follower.send_signal(number)
    _, said = follower.communicate(timeout=15)
    assert follower.returncode == 130
    assert "Traceback" not in said
    assert not list(tmp_path.glob("rgt-spool-*"))
