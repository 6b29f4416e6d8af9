"""The guided setup in a real tmux, from an empty home to a watched box on a real sshd."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.real import need
from tests.rig import Sshd
from tests.rig.tmux import Tmux
from tui.fleet import settings
from tui.fleet.paths import Paths

HERE = str(Path(sys.executable).parent)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def pane(tmp_path: Path, home: Path) -> Iterator[Callable[..., Tmux]]:
    need("tmux")
    opened: list[Tmux] = []

    def make(columns: int, rows: int, **more: str) -> Tmux:
        opened.append(Tmux(columns, rows))
        environment = {
            "HOME": str(home),
            "RGT_HOME": str(tmp_path / "rgt"),
            "RGT_NO_ACCOUNTS": "1",
            "PATH": f"{HERE}:{os.environ['PATH']}",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            **more,
        }
        opened[-1].start([sys.executable, "-m", "tui.cli", "setup"], environment)
        return opened[-1]

    yield make
    for one in opened:
        one.stop()


def answered(pane: Tmux, question: str, *keys: str) -> None:
    pane.wait_for(question)
    pane.wait_for("waits for you")
    pane.keys(*keys)


def pasted(pane: Tmux, question: str, text: str) -> None:
    answered(pane, question)
    pane.type(text)
    pane.keys("Enter")


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "rows"), [(120, 40), (60, 15)])
def test_from_an_empty_home_to_a_watched_box(
    pane: Callable[..., Tmux], sshd: Sshd, home: Path, tmp_path: Path, columns: int, rows: int
) -> None:
    one = pane(columns, rows, HUB_TOKEN="t0ken")
    answered(one, "Where do you rent", "G", "Enter")  # the last one: any box over SSH
    answered(one, "Read it once", "Enter")
    answered(one, "Which key", "G", "Enter")
    one.wait_for("AAAA")
    public = home / ".ssh" / "rgt_ssh_ed25519.pub"
    sshd.authorize(public.read_text())
    answered(one, "Paste the line", "Enter")
    answered(one, "no API that rgt", "Enter")
    answered(one, "Rent here", "Enter")
    pasted(one, "Paste the login", f"ssh -p {sshd.port} {sshd.user}@{sshd.host}")
    answered(one, "Enter connects", "Enter")
    one.wait_for(re.escape(sshd.host_key_fingerprint[:30]))
    answered(one, "The box shows", "Enter")
    answered(one, "Enter measures", "Enter")
    one.wait_for("Checkpoint size", 60.0)
    pasted(one, "Checkpoint size", "1 GB, 2, 1 GB")
    pasted(one, "Which secrets", "HUB_TOKEN")
    answered(one, "Nothing is needed here", "Enter")
    answered(one, "Enter ends the setup", "Enter")
    one.wait_for("done")
    one.keys("Enter")
    one.wait_for("fleet")
    found = settings.load(Paths(tmp_path / "rgt" / "config", tmp_path / "rgt" / "state").fleet_file).instances
    assert [(box.platform, box.endpoint and box.endpoint.port) for box in found] == [("ssh", sshd.port)]
    secrets = sshd.home / ".rgt" / "secrets"
    assert secrets.read_text() == "HUB_TOKEN=t0ken\n"
    assert secrets.stat().st_mode & 0o077 == 0
    kept = [path for path in (tmp_path / "rgt").rglob("*") if path.is_file()]
    assert not [path for path in kept if b"t0ken" in path.read_bytes()]
    one.wait_for("live")


@pytest.mark.slow
def test_it_goes_on_after_kill_9_where_it_was(pane: Callable[..., Tmux], tmp_path: Path) -> None:
    first = pane(80, 24)
    answered(first, "Where do you rent", "G", "Enter")
    answered(first, "Read it once", "Enter")
    first.wait_for("Which key")
    os.kill(first.pane_pid(), 9)
    first.stop()
    second = pane(80, 24)
    second.wait_for("Which key")


@pytest.mark.slow
def test_a_box_that_is_not_there_is_told_and_asked_again(
    pane: Callable[..., Tmux], sshd: Sshd, home: Path
) -> None:
    one = pane(100, 30)
    answered(one, "Where do you rent", "G", "Enter")  # the last one: any box over SSH
    answered(one, "Read it once", "Enter")
    answered(one, "Which key", "G", "Enter")
    answered(one, "Paste the line", "Enter")
    answered(one, "no API that rgt", "Enter")
    answered(one, "Rent here", "Enter")
    pasted(one, "Paste the login", "no login at all")
    one.wait_for("problem")
    pasted(one, "Paste the login", f"ssh -p {sshd.port} {sshd.user}@{sshd.host}")
    answered(one, "Enter connects", "Enter")  # the new key is not on the box yet
    one.wait_for("did not do")
    sshd.authorize((home / ".ssh" / "rgt_ssh_ed25519.pub").read_text())
    answered(one, "Enter connects", "Enter")
    one.wait_for("The box shows", 30.0)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_each_step_that_fails_is_told_and_done_again(
    pane: Callable[..., Tmux], sshd: Sshd, home: Path
) -> None:
    (home / ".ssh").rmdir()
    (home / ".ssh").touch()
    one = pane(100, 34)
    answered(one, "Where do you rent", "g", "Enter")  # the first one: AutoDL
    answered(one, "Read it once", "Enter")
    failed(one, "Which key", r"cannot be\s+made", "Enter")
    (home / ".ssh").unlink()
    answered(one, "Which key", "Enter")
    answered(one, "Paste the line", "Enter")
    pasted(one, "API key", "not-a-key-at-all")
    one.wait_for("problem")
    one.keys("Escape")
    one.wait_for("s skip")
    one.keys("s")
    one.wait_for("skip because")
    one.type("ordinary instances have none")
    one.keys("Enter")
    answered(one, "Rent here", "Enter")
    pasted(one, "Paste the login", "no login at all")
    one.wait_for("problem")
    pasted(one, "Paste the login", f"ssh -p {sshd.port} {sshd.user}@{sshd.host}")
    sshd.authorize((home / ".ssh" / "rgt_autodl_ed25519.pub").read_text())
    sshd.stop_listening()
    failed(one, "Enter connects", "did not do", "Enter")
    sshd.restart()
    answered(one, "Enter connects", "Enter")
    one.wait_for("The box shows", 40.0)
    answered(one, "The box shows", "Enter")
    one.wait_for("Enter measures")
    sshd.stop_listening()
    failed(one, "Enter measures", "did not do", "Enter")
    sshd.restart()
    answered(one, "Enter measures", "Enter")
    one.wait_for("Checkpoint size", 90.0)
    pasted(one, "Checkpoint size", "rather large")
    one.wait_for("problem")
    pasted(one, "Checkpoint size", "1 GB, 2, 1 GB")
    pasted(one, "Which secrets", "NOT_SET_ANYWHERE")
    one.wait_for("problem")
    (sshd.home / ".rgt").touch()
    pasted(one, "Which secrets", "")
    failed(one, "Set these for your logins", "were not set", "g", "Enter")
    (sshd.home / ".rgt").unlink()
    answered(one, "Set these for your logins", "g", "Enter")
    one.wait_for("Enter ends the setup")
    one.wait_for("skipped, ordinary instances have none")


def failed(pane: Tmux, question: str, says: str, *keys: str) -> None:
    answered(pane, question, *keys)
    pane.wait_for(says, 60.0)
