"""What goes wrong at 3 a.m.: identities, full disks, odd input. Each was a defect once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import Home, Job
from tests.e2e.test_screen import start
from tests.rig import Sshd
from tests.rig.tmux import tmux
from tui.box.local import LocalTransport
from tui.model.telemetry import Candidate, CheckpointFile
from tui.model.text import SafeText
from tui.screens.adopt import spec_of
from tui.workers.once import take

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
    _, said = follower.communicate(timeout=60)
    assert follower.returncode == 130
    assert "Traceback" not in said
    assert not list(tmp_path.glob("rgt-spool-*"))


def test_a_fleet_file_that_cannot_be_read_is_not_an_empty_fleet(home: Home) -> None:
    home.fleet.parent.mkdir(parents=True)
    home.fleet.write_text("[instances.a\nhost = 1\n")
    told = home.rgt("status")
    assert (told.returncode, told.stdout) == (1, "")
    assert "fleet.toml:1" in told.stderr
    record = json.loads(home.rgt("status", "--json").stdout)
    assert record["boxes"] is None
    assert "fleet.toml:1" in record["problems"][0]
    with tmux(80, 24) as pane:
        start(pane, home)
        pane.wait_for(r"Which boxes there are can't be told")
        time.sleep(7)  # the toasts are gone by then
        screen = pane.wait_for(r"\? boxes")
        assert "fleet.toml:1" in screen
        assert "No box is known" not in screen


def test_what_another_shell_writes_comes_on_screen(home: Home, box: Sshd, job: Job) -> None:
    with tmux(110, 30) as pane:
        start(pane, home)
        pane.wait_for(r"box-a.*running")
        home.rgt("watch", "box-a", "--log", str(job.log), "--pid", str(job.pid), "--name", "by-hand")
        pane.wait_for(r"by-hand.*ep ")
        whole = home.fleet.read_text()
        home.fleet.write_text(whole + "[instances.")  # an editor half way
        pane.wait_for(r"fleet.toml:\d+")
        assert "by-hand" in pane.screen()
        home.fleet.write_text(whole)
        home.rgt("remove", "by-hand")
        end = time.monotonic() + 20
        while "by-hand" in pane.screen() or "fleet.toml" in pane.screen():
            assert time.monotonic() < end, pane.screen()
            time.sleep(0.1)


def test_a_wrong_theme_in_the_settings_does_not_stop_the_watch(home: Home, box: Sshd) -> None:
    home.fleet.write_text(home.fleet.read_text() + '\n[settings]\ntheme = "nope"\n')
    with tmux(100, 24) as pane:
        start(pane, home)
        pane.wait_for(r"There is no theme 'nope'")
        pane.wait_for(r"box-a.*running")
    with tmux(100, 24) as pane:
        start(pane, home, "--theme", "nope")
        pane.wait_for(r"EXIT=2")


@pytest.fixture
def locked(home: Home, sshd: Sshd) -> str:
    """A box that takes a key with a passphrase; gives the passphrase."""
    key = sshd.new_client_key("locked", passphrase="sesam öffne")
    sshd.authorize(key.with_suffix(".pub").read_text())
    command = f"ssh -p {sshd.port} -i {key} {sshd.user}@{sshd.host}"
    assert home.rgt("add", command, "--name", "box-a").returncode == 0
    return "sesam öffne"


def test_a_passphrase_is_asked_on_the_terminal_and_ctrl_c_takes_the_question_back(
    home: Home, locked: str
) -> None:
    with tmux(100, 24) as pane:
        start(pane, home, "probe", "box-a")
        pane.wait_for(r"Passphrase for")
        pane.keys("C-c")
        pane.wait_for(r"EXIT=130")
    with tmux(100, 24) as pane:
        start(pane, home, "probe", "box-a")
        pane.wait_for(r"Passphrase for")
        pane.type("wrong\n")
        pane.wait_for(r"Wrong passphrase")
        pane.type(f"{locked}\n")
        screen = pane.wait_for(r"EXIT=[014]")
        assert "sesam" not in screen
        assert "wrong" not in screen
        assert "disk /" in screen


def test_a_passphrase_is_typed_on_screen_and_kept_over_a_cut(home: Home, locked: str, sshd: Sshd) -> None:
    with tmux(100, 24) as pane:
        start(pane, home)
        pane.wait_for(r"needs password")
        pane.keys("Enter")
        pane.wait_for(r"esc cancels")
        pane.type("q:?A!")  # keys that mean something elsewhere
        pane.wait_for(r"•••••")
        pane.keys("Enter")
        pane.wait_for(r"Wrong passphrase")
        pane.keys("Enter")
        pane.wait_for(r"esc cancels")
        pane.type(locked)
        pane.keys("Enter")
        pane.wait_for(r"box-a .*● running")
        assert sshd.kill_sessions()
        time.sleep(1)
        pane.wait_for(r"box-a .*● running")
        assert "asks" not in pane.screen()


def test_a_forward_says_what_is_at_its_other_end(home: Home, sshd_factory: Callable[..., Sshd]) -> None:
    boxes = {"no": sshd_factory(extra_config=["AllowTcpForwarding no"]), "yes": sshd_factory()}
    for name, sshd in boxes.items():
        command = f"ssh -p {sshd.port} -i {sshd.client_key} {sshd.user}@{sshd.host}"
        assert home.rgt("add", command, "--name", name).returncode == 0
    refused = home.rgt("forward", "no", "6006")
    assert refused.returncode == 1
    assert "forbids port forwarding" in refused.stderr
    with tmux(120, 24) as pane:
        start(pane, home)
        pane.wait_for(r"2 live")
        for words in ("goto no", "forward 6006", "goto yes", "forward 1", "forward 1"):
            pane.keys(":")
            pane.wait_for(r"\n: *\n")
            pane.type(words)
            pane.keys("Enter")
            time.sleep(0.5)
        pane.wait_for(r"forbids port forwarding")
        pane.keys("C-f")
        screen = pane.wait_for(r"yes:1 +Nothing listens on port 1")
        assert screen.count("yes:1 ") == 1
        assert "no:6006" not in screen


async def test_checkpoints_in_a_folder_named_like_a_pattern_are_found(tmp_path: Path) -> None:
    """Sweeps name folders so, and and nothing would match the folder's own name."""
    for folder in (tmp_path / "lr=[0.1,0.2] a*b?" / "ckpt", tmp_path / "lr=0" / "ckpt"):
        folder.mkdir(parents=True)
        (folder / "best.pt").write_bytes(b"x" * 10)
    odd = CheckpointFile(SafeText(f"{tmp_path}/lr=[0.1,0.2] a*b?/ckpt/best.pt"), 10, 0.0)
    candidate = Candidate(SafeText("python train.py"), os.getpid(), checkpoints=(odd,))
    spec = spec_of(candidate, "here", "r", None, None)
    taken = await take(LocalTransport("here"), (), (spec,), time.time)
    (truth,) = taken.runs
    assert [c.path for c in truth.checkpoints.value or ()] == [odd.path]
