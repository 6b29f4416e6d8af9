"""The app in a real tmux against a real box: typed at, looked at, killed."""

from __future__ import annotations

import os
import re
import signal
import sys
import time

import psutil
import pytest

from tests.e2e.conftest import Home, Job
from tests.rig import Sshd
from tests.rig.tmux import Tmux, tmux

pytestmark = pytest.mark.real

RGT = [sys.executable, "-m", "tui.cli"]


def app_pid(pane: Tmux) -> int:
    """The process of the app in the pane."""
    children = psutil.Process(pane.pane_pid()).children(recursive=True)
    return next(p.pid for p in children if "tui.cli" in " ".join(p.cmdline()))


def start(pane: Tmux, home: Home, *options: str) -> None:
    kept = {k: v for k, v in home.environment.items() if k.startswith(("RGT_", "PYTHON")) or k == "LANG"}
    pane.start([*RGT, *options], kept)


def select(pane: Tmux, mark: str) -> None:
    """Move down a list until the details of the selected row show `mark`."""
    for step in range(1, 60):
        time.sleep(0.15)
        if mark in re.sub(r"\s*\n\s*", "", pane.screen()):  # a long path goes on in the next row
            return
        pane.keys("j" if step % 10 else "g")  # from the top again: a busy machine draws late
    raise AssertionError(f"no row shows {mark!r}:\n{pane.screen()}")


@pytest.mark.parametrize(("columns", "rows"), [(60, 15), (80, 24), (120, 40)])
def test_adopting_a_run_by_keyboard_alone(home: Home, box: Sshd, job: Job, columns: int, rows: int) -> None:
    with tmux(columns, rows) as pane:
        start(pane, home)
        pane.wait_for(r"box-a.*live")
        pane.keys("a")
        pane.wait_for(r"adopt: what runs on")
        select(pane, "exp one")  # the machine may run other things that look like training
        pane.keys("Enter")
        pane.keys("Enter")
        pane.wait_for(r"exp-one|exp one|train")
        pane.wait_for(r"epoch \d+/9999|ep +\d+")
        pane.keys("Enter")
        pane.wait_for(r"loss 0\.\d+")
        assert max(len(line) for line in pane.screen().splitlines()) <= columns
        pane.keys("C-q")
        pane.wait_for(r"EXIT=0")
    assert "train.log" in home.fleet.read_text()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_a_usable_terminal(home: Home, box: Sshd, number: signal.Signals) -> None:
    with tmux(80, 24) as pane:
        start(pane, home)
        pane.wait_for(r"box-a")
        os.kill(app_pid(pane), number)
        screen = pane.wait_for(r"EXIT=\d+")
        assert re.search(r"EXIT=(130|143|129)", screen)
        assert pane.call("display-message", "-p", "-t", "t", "#{alternate_on}").strip() == "0"
        assert pane.call("display-message", "-p", "-t", "t", "#{cursor_flag}").strip() == "1"
        assert pane.call("display-message", "-p", "-t", "t", "#{mouse_any_flag}").strip() == "0"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_terminal_that_is_closed_takes_the_app_with_it(
    home: Home, box: Sshd, number: signal.Signals
) -> None:
    """Also where the multiplexer itself dies: nothing is left that reads a dead terminal again and again."""
    with tmux(80, 24) as pane:
        start(pane, home)
        pane.wait_for(r"box-a")
        app = psutil.Process(app_pid(pane))
        os.kill(int(pane.call("display-message", "-p", "#{pid}")), number)
        app.wait(timeout=15)


def test_kill_9_loses_nothing_that_was_written(home: Home, box: Sshd, job: Job) -> None:
    home.rgt("watch", "box-a", "--log", str(job.log), "--pid", str(job.pid), "--name", "by-hand")
    before = home.fleet.read_bytes()
    with tmux(100, 30) as pane:
        start(pane, home)
        pane.wait_for(r"by-hand.*epoch|by-hand.*ep ")
        os.kill(app_pid(pane), signal.SIGKILL)
        pane.wait_for(r"EXIT=137")
    assert home.fleet.read_bytes() == before
    with tmux(100, 30) as pane:
        start(pane, home)
        pane.wait_for(r"by-hand.*epoch|by-hand.*ep ")  # the lock and the spool of the dead one stop nobody
        pane.keys("C-q")
        pane.wait_for(r"EXIT=0")


def test_a_second_rgt_says_so_and_looks_on(home: Home, box: Sshd, job: Job) -> None:
    home.rgt("watch", "box-a", "--log", str(job.log), "--pid", str(job.pid), "--name", "by-hand")
    with tmux(120, 40) as first, tmux(120, 40) as second:
        start(first, home)
        first.wait_for(r"by-hand.*ep")
        start(second, home)
        second.wait_for(r"by-hand.*ep")
        second.keys("Enter")
        second.wait_for(rf"rgt with pid {app_pid(first)}")
        second.wait_for(r"loss 0\.\d+")


def test_a_changed_host_key_stops_the_box_and_shows_both(home: Home, box: Sshd) -> None:
    assert home.rgt("probe", "box-a").returncode in (0, 1, 4)
    old = box.host_key_fingerprint
    box.new_host_key()
    with tmux(140, 40) as pane:
        start(pane, home)
        screen = pane.wait_for(r"host key changed")
        pane.keys("C")
        screen = pane.wait_for(r"SHA256:")
        assert old in screen.replace("\n", "")
        assert box.host_key_fingerprint in screen.replace("\n", "")


def test_a_shell_on_the_box_and_back(home: Home, box: Sshd) -> None:
    with tmux(100, 30) as pane:
        start(pane, home)
        pane.wait_for(r"box-a.*live")
        pane.keys("!")
        pane.wait_for(r"(?s)leave it to come back.*[$#] *\n")
        pane.type("echo from-$((40+2))-box; exit\n")
        pane.wait_for(r"box-a.*live")


def test_copying_works_in_a_default_tmux_and_says_which_way(home: Home, box: Sshd) -> None:
    with tmux(100, 30) as pane:
        start(pane, home)
        pane.wait_for(r"box-a.*live")
        pane.keys("y")
        screen = pane.wait_for(r"Copied .* tmux")
        copied = pane.call("show-buffer").strip().lstrip("●▲ ")
        assert copied
        assert copied in screen  # the value under the cursor


@pytest.mark.parametrize(
    "options", [["--color", "16"], ["--color", "none", "--glyphs", "ascii"], ["--theme", "light"]]
)
def test_poor_terminals_say_states_in_words(home: Home, box: Sshd, options: list[str]) -> None:
    with tmux(80, 24) as pane:
        start(pane, home, *options)
        pane.wait_for(r"box-a.*live")
        if "none" in options:
            colours = re.findall(r"\x1b\[[0-9;]*m", pane.screen(escapes=True))
            assert not any(re.search(r"\b(3[0-7]|4[0-7]|38|48|9[0-7]|10[0-7])\b", c) for c in colours)
            assert pane.screen().isascii()


def test_read_only_has_no_way_to_change_anything(home: Home, box: Sshd, job: Job) -> None:
    with tmux(100, 30) as pane:
        start(pane, home, "--read-only")
        pane.wait_for(r"read-only")
        pane.wait_for(r"box-a.*live")
        pane.keys("a")
        pane.keys("A")
        pane.keys("?")
        screen = pane.wait_for(r"help")
        assert "adopt" not in screen
        assert "add box" not in screen
    assert "runs" not in home.fleet.read_text()
