"""The demo's finished run through the wizard by keyboard, to a box that is gone and a copy that loads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.rig.tmux import Tmux, tmux
from tui.demo.fleet import DemoFleet, embedded_fleet

pytestmark = [pytest.mark.slow, pytest.mark.real, pytest.mark.timeout(240)]

RGT = [sys.executable, "-m", "tui.cli"]
BOX, RUN = "done-a10", "spiral-done"


def start(pane: Tmux, fleet: DemoFleet) -> None:
    pane.start(RGT, {**fleet.environment, "LANG": "C.UTF-8"})
    pane.wait_for(rf"{BOX} .*finished", 60)


def wizard(pane: Tmux) -> None:
    """Open the wizard of the finished run by its name, wherever its row is."""
    pane.keys(":")
    pane.wait_for(r"─ command")
    pane.type(f"teardown {RUN}")
    pane.keys("Enter")
    pane.wait_for(rf"teardown: {BOX}")


def give_up_what_is_left(pane: Tmux) -> None:
    pane.wait_for(r"\d to decide", 40)
    pane.keys("Tab")
    for _ in range(12):
        if not re.search(r"\d to decide", pane.screen()):
            return
        pane.keys("S")
        pane.wait_for(r"scrap it")
        pane.type("comes back by itself")
        pane.keys("Enter")
        time.sleep(0.4)
    raise AssertionError(pane.screen())


def kill_9(pane: Tmux) -> None:
    children = psutil.Process(pane.pane_pid()).children(recursive=True)
    app = next(p.pid for p in children if "tui.cli" in " ".join(p.cmdline()))
    os.kill(app, signal.SIGKILL)
    pane.wait_for(r"EXIT=137")


def test_from_the_roster_through_kill_9_to_a_box_that_is_gone(tmp_path: Path) -> None:
    vault, (columns, rows) = tmp_path / "vault", (60, 15)
    with embedded_fleet(speed=4) as fleet:
        box = next(b for b in fleet.boxes if b.run == RUN)
        with tmux(columns, rows) as pane:
            start(pane, fleet)
            wizard(pane)
            give_up_what_is_left(pane)
            pane.wait_for(r"3 copy .*where to", 40)
            pane.keys("t")
            pane.wait_for(r"copy to")
            pane.type(str(vault))
            pane.keys("Enter")
            pane.wait_for(r"then type destroy", 90)
            kill_9(pane)
        with tmux(columns, rows) as pane:
            start(pane, fleet)
            wizard(pane)
            screen = pane.wait_for(r"then type destroy \S+ [0-9a-f]{8}", 90)
            assert max(len(line) for line in screen.splitlines()) <= columns
            phrase = re.search(r"then type (destroy \S+ [0-9a-f]{8})", screen)
            assert phrase is not None
            for typed in (phrase[1].upper(), phrase[1][:-1], ""):
                pane.keys("p")
                pane.wait_for(r"  type destroy")
                time.sleep(0.4)
                pane.type(typed)
                pane.keys("Enter")
                pane.wait_for(r"Nothing was done")
            assert Path(box.out).exists()
            pane.keys("p")
            pane.wait_for(r"  type destroy")
            time.sleep(0.4)
            pane.type(phrase[1])
            pane.keys("Enter")
            pane.wait_for(r"PROVEN by two witnesses", 90)
            pane.keys("C-q")
            pane.wait_for(r"EXIT=0")
        assert not Path(box.out).exists()
        (bag,) = vault.iterdir()
        told = subprocess.run(
            [*RGT, "verify", f"{bag}/data", "--json"], capture_output=True, text=True, timeout=90, check=False
        )
        assert {c["verdict"] for c in json.loads(told.stdout)["checkpoints"]} == {"ok"}
