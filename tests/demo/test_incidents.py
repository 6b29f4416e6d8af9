"""Faults that really happen on demo boxes, each diagnosed from the live box, in a shell and on screen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rig.tmux import tmux
from tui.demo.boxes import INCIDENTS
from tui.demo.fleet import DemoFleet, embedded_fleet

pytestmark = [pytest.mark.slow, pytest.mark.real]


@pytest.fixture(scope="module")
def fleet() -> Iterator[DemoFleet]:
    with embedded_fleet(incidents=tuple(INCIDENTS), alone=True) as running:
        yield running


def environment(fleet: DemoFleet) -> dict[str, str]:
    return {**os.environ, **fleet.environment, "LANG": "C.UTF-8"}


def happened(fleet: DemoFleet, incident: str) -> Callable[[], bool]:
    """Whether the fault is there by now, told from the box's own files and processes."""
    plan = INCIDENTS[incident]
    home = fleet.home.parent / "boxes" / plan.name
    log = home / "data" / "active" / plan.run / "train.log"

    def words() -> str:
        return log.read_text() if log.exists() else ""

    def stopped() -> bool:
        stat = (Path("/proc") / (home / ".sim" / "pid").read_text() / "stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"

    return {
        "inodes_full": lambda: "No space left on device" in words(),
        "host_oom_kill": lambda: (home / ".sim" / "dmesg").exists(),
        "loss_nan": lambda: words().count("loss nan") + words().count("loss inf") > 8,
        "proc_stuck": stopped,
    }[incident]


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.2)


def triage(fleet: DemoFleet, run: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tui.cli", "triage", run, "--json"],
        env=environment(fleet), capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


WITNESS = {
    "inodes_full": ("inodes", "No space left"),
    "host_oom_kill": ("Killed process",),
    "loss_nan": ("loss",),
    "proc_stuck": ("stopped", "state", "T"),
}
"""Words of which one stands in the evidence."""

OUTCOME = {"inodes_full": "dead", "host_oom_kill": "dead", "loss_nan": "running", "proc_stuck": "stalled"}


@pytest.mark.parametrize("incident", INCIDENTS)
def test_each_fault_is_diagnosed_from_the_live_box(fleet: DemoFleet, incident: str) -> None:
    wait_until(happened(fleet, incident), incident)
    code, told = triage(fleet, INCIDENTS[incident].run)
    assert told["outcome"] == OUTCOME[incident]
    assert [one["class"] for one in told["incidents"]][:1] == [incident]
    assert code == 1
    first = told["incidents"][0]
    evidence = " ".join(e["text"] for e in first["evidence"])
    assert any(word in evidence for word in WITNESS[incident]), evidence
    assert first["remedy"]


def test_a_fault_is_read_on_screen_with_one_key(fleet: DemoFleet) -> None:
    wait_until(happened(fleet, "host_oom_kill"), "host_oom_kill")
    with tmux(80, 24) as pane:
        pane.start([sys.executable, "-m", "tui.cli", "--glyphs", "unicode"], dict(fleet.environment))
        pane.wait_for(r"greedy-a6000.*host oom kill", 60)  # in the roster without a key
        pane.keys(":")
        pane.wait_for(r"─ command")  # what is typed before it would be keys of the roster
        pane.type("triage spiral-greedy")
        pane.keys("Enter")
        screen = pane.wait_for(r"(?s)triage: greedy-a6000.*RAM.*do next", 40)
        assert "dead" in screen
        assert "Memory cgroup out of memory" in screen
        pane.keys("Escape")
        pane.keys("C-q")
        pane.wait_for(r"EXIT=0")
