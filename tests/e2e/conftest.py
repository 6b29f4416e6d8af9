"""A real box (OpenSSH on loopback), a home for rgt, and a run that rgt never started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rig import Sshd

TRAIN = textwrap.dedent(
    """
    import pathlib, sys, time
    pathlib.Path("ckpt").mkdir(exist_ok=True)
    for epoch in range(1, 10_000):
        for step in range(1, 11):
            print(f"epoch {epoch}/9999 step {step}/10 loss {1 / (epoch + step / 10):.4f}", flush=True)
            time.sleep(0.03)
        pathlib.Path(f"ckpt/epoch_{epoch}.pt").write_bytes(b"x" * 2048)
    """
)


@dataclass(slots=True)
class Home:
    """An `RGT_HOME` and the environment of an `rgt` that uses it."""

    path: Path
    environment: dict[str, str]

    @property
    def fleet(self) -> Path:
        return self.path / "config" / "fleet.toml"

    def rgt(self, *words: str, stdin: str = "", timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """Run `rgt` as a person does in a shell."""
        return subprocess.run(
            [sys.executable, "-m", "tui.cli", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.environment,
            check=False,
        )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "PYTHONPATH", "VIRTUAL_ENV")}
    environment = {
        **kept,
        "LANG": "C.UTF-8",
        "TERM": "screen-256color",
        "RGT_HOME": str(tmp_path / "rgt"),
        "RGT_SSH_CONFIG": os.devnull,
    }
    return Home(tmp_path / "rgt", environment)


@pytest.fixture
def box(home: Home, sshd: Sshd) -> Sshd:
    """A box that `rgt` knows as ``box-a``."""
    command = f"ssh -p {sshd.port} -i {sshd.client_key} {sshd.user}@{sshd.host}"
    added = home.rgt("add", command, "--name", "box-a")
    assert added.returncode == 0, added.stderr
    return sshd


@dataclass(slots=True)
class Job:
    """A training process that somebody started by hand on the box."""

    folder: Path
    pid: int

    @property
    def log(self) -> Path:
        return self.folder / "train.log"

    def wait_for_lines(self, count: int) -> None:
        end = time.monotonic() + 60
        while not self.log.exists() or self.log.read_text().count("\n") < count:
            assert time.monotonic() < end, "the job writes nothing"
            time.sleep(0.05)


@pytest.fixture
def job(box: Sshd) -> Iterator[Job]:
    """`nohup python train.py >train.log &`, typed into a shell on the box."""
    folder = box.home / "exp one"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(TRAIN)
    shell = f"cd '{folder}' && nohup {sys.executable} train.py >train.log 2>&1 & echo $!"
    started = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, text=True, timeout=10, check=True)
    job = Job(folder, int(started.stdout))
    try:
        job.wait_for_lines(5)
        yield job
    finally:
        os.kill(job.pid, signal.SIGKILL)
