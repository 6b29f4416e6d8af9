"""What tests of launched runs share: a box on a real sshd, its fleet, and an end to what runs on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig import Sshd
from tui.fleet.paths import Paths, paths


@pytest.fixture
def box(sshd_factory: Callable[..., Sshd], tmp_path: Path) -> Sshd:
    """A box whose tmux has a socket of its own."""
    sockets = tmp_path / "tmux"
    sockets.mkdir()
    return sshd_factory(extra_config=(f"SetEnv TMUX_TMPDIR={sockets}",))


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, box: Sshd) -> Paths:
    """The operator's files with this one box."""
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    monkeypatch.setenv("HUB_TOKEN", "hf_secret")
    found = paths()
    found.fleet_file.parent.mkdir(parents=True)
    found.fleet_file.write_text(
        f'[instances.box-1]\nplatform = "ssh"\nhost = "{box.host}"\nport = {box.port}\nuser = "{box.user}"\n'
        f'key = "{box.client_key}"\n'
    )
    return found


def until_ended(run: Path, attempt: int = 1) -> str:
    """The record of an attempt's end, once it is there."""
    end = run / ".rgt" / "attempts" / str(attempt) / "end"
    deadline = time.monotonic() + 20
    while not end.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return end.read_text()
