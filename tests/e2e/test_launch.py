"""A tiny job through the Launch view by keyboard, on a real sshd: from a typed path to its first step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Home
from tests.e2e.test_screen import start
from tests.rig import Sshd
from tests.rig.tmux import tmux
from tui.fleet import settings

pytestmark = [pytest.mark.slow, pytest.mark.real]

TRAIN = """\
import os, time
time.sleep(2)
for step in range(1, 200):
    print(f"step {step}/199 loss: {1 / step:.3f}", flush=True)
    time.sleep(0.1)
"""
JOB = 'name = "tiny"\nproject = "p"\nrun = ["python3", "train.py"]\n'


@pytest.fixture
def box(home: Home, sshd_factory: Callable[..., Sshd], tmp_path: Path) -> Sshd:
    """A box whose tmux has a socket of its own."""
    sockets = tmp_path / "tmux"
    sockets.mkdir()
    server = sshd_factory(extra_config=(f"SetEnv TMUX_TMPDIR={sockets}",))
    command = f"ssh -p {server.port} -i {server.client_key} {server.user}@{server.host}"
    added = home.rgt("add", command, "--name", "box-a")
    assert added.returncode == 0, added.stderr
    return server


def test_from_a_typed_path_to_the_first_step(home: Home, box: Sshd, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "job.toml").write_text(JOB)
    with tmux(60, 15) as pane:
        start(pane, home)
        pane.wait_for(r"box-a.*live")
        pane.keys("L")
        pane.wait_for(r"another one")
        pane.keys("t")
        pane.wait_for(r"path to a job")
        pane.type(str(code / "job.toml"))
        pane.keys("Enter")
        pane.wait_for(r"on which box")
        pane.keys("Enter")
        pane.wait_for(r"waits for your word", 60)
        pane.keys("Enter", "L", "G", "Enter")
        pane.wait_for(r"Enter starts nothing")
        assert not (box.home / "rgt").exists()
        pane.keys("L")
        pane.wait_for(r"since your word")
        pane.keys("Escape")
        pane.wait_for(r"─ fleet")
        pane.keys("L")
        pane.wait_for(r"first step seen", 60)
        pane.keys("Enter")
        pane.wait_for(r"step \d+/199 loss")
        pane.keys("H")
        pane.wait_for(r"goes on +rgt resume tiny-")
        assert max(len(line) for line in pane.screen().splitlines()) <= 60
        pane.keys("C-q")
        pane.wait_for(r"EXIT=0")
    (run,) = settings.load(home.fleet).runs
    folder = box.home / "rgt" / "p" / "active" / run.name
    assert [one.name for one in (folder / ".rgt" / "attempts").iterdir()] == ["1"]
