"""A kernel's words about others blame nobody here, and each way a link fails has its class."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from tests.fixtures import run_fixture
from tests.fixtures.run_fixture import BOX, NOW, RUN
from tui.box.errors import CommandRefused, ConnectFailure, fold, identity_changed
from tui.box.transport import LinkLost
from tui.model.event import Diagnosed
from tui.model.failure import Failure
from tui.model.instance import Ended, Link, LinkState
from tui.model.look import LookAnswer
from tui.model.reading import Reading, known
from tui.model.snapshot import Attention, BoxView, RunView
from tui.model.telemetry import Host
from tui.model.text import SafeText, safe
from tui.workers.evidence import diagnosed
from tui.workers.triage import load_rules
from tui.workers.witnesses import about_this_run

BOOTED = NOW - 90_000
PID = 4121


def picture(*, container: bool = False) -> tuple[BoxView, RunView]:
    """A box whose run is gone, and the run; its log grew last 1 s before NOW."""
    base = run_fixture.snapshot()
    box, run = base.box(BOX), base.run(RUN)
    assert box is not None and box.telemetry is not None and run is not None and run.truth is not None
    first = BOOTED + (50_000 if container else 1)
    host = Host(SafeText("Linux"), booted_at=BOOTED, container_started_at=first, clock_offset_s=0.0)
    gone = replace(run.truth, alive=False, gone_reason=SafeText("gone"), process=None)
    telemetry = replace(
        box.telemetry, host=known(host), runs=(gone,), filesystems=Reading(), gpu_processes=Reading()
    )
    spec = replace(run.spec, pid=PID)
    return replace(box, telemetry=telemetry), replace(run, truth=gone, spec=spec)


def dmesg(pid: int, seconds_ago: float) -> LookAnswer:
    at = NOW - seconds_ago - BOOTED
    lines = (
        f"[{at:12.6f}] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
        f"[{at:12.6f}] Memory cgroup out of memory: Killed process {pid} (python) total-vm:9kB, anon-rss:5kB",
        f"[{at:12.6f}] oom_reaper: reaped process {pid} (python), now anon-rss:0kB",
        "[    5.000000] usb 1-1: new device",
    )
    return LookAnswer(BOX, "dmesg", NOW, SafeText("dmesg"), 0, tuple(map(safe, lines)))


@pytest.mark.parametrize(
    ("pid", "seconds_ago", "container", "blamed"),
    [
        (PID, 5, False, True),
        (999, 5, False, False),  # another process of the same kernel
        (999, 5, True, True),  # in a container pids are others: it may be ours
        (PID, 3600, False, False),  # long before the last line of the log
        (999, 3600, True, False),
    ],
)
def test_only_a_kill_that_can_have_been_ours_is_the_cause(
    tmp_path: Path, pid: int, seconds_ago: float, container: bool, blamed: bool
) -> None:
    box, run = picture(container=container)
    seen = replace(box, looks=(dmesg(pid, seconds_ago),))
    told = diagnosed(load_rules(tmp_path), seen, run, None, log_at=None, at=NOW).diagnosis
    assert ("host_oom_kill" in [one.cls for one in told.incidents]) is blamed
    said = [one.why for one in told.ruled_out if one.cls == "host_oom_kill"]
    assert bool(said) is not blamed
    assert all(f"pid {pid} (python)" in why for why in said)


def test_other_words_of_the_kernel_stay() -> None:
    box, run = picture()
    kernel = about_this_run(dmesg(999, 5), box, run)
    assert kernel.answer.lines == ("[    5.000000] usb 1-1: new device",)
    assert about_this_run(dmesg(999, 5), box, None).answer.lines == dmesg(999, 5).lines


def test_nothing_wrong_is_never_said_beside_a_mount_that_fills_up(tmp_path: Path) -> None:
    box, run = picture()
    assert run.truth is not None and box.telemetry is not None
    alive = replace(run, truth=replace(run.truth, alive=True, gone_reason=SafeText("")), attention=())
    telemetry = replace(box.telemetry, runs=(replace(run.truth, alive=True, gone_reason=SafeText("")),))
    filling = Attention(
        "attention", SafeText("inodes 88%"), SafeText("Inodes are running out on /d: 88 % used.")
    )
    rules = load_rules(tmp_path)

    def told(*attention: Attention) -> Diagnosed:
        seen = replace(box, telemetry=telemetry, looks=(), attention=attention)
        return diagnosed(rules, seen, alive, None, log_at=None, at=NOW)

    assert told().diagnosis.outcome == "running" and not told().pressing
    assert told().diagnosis.verdict.startswith("Nothing is wrong")
    assert told(filling).pressing == (filling.text,)
    assert told(filling).diagnosis.verdict == "Nothing has failed yet, but its box needs you."
    cut = replace(box, link=Link(LinkState.UNREACHABLE, NOW - 9, SafeText("nothing listens")))
    gone = replace(cut, ended=Ended(BOX, NOW - 3600, SafeText("proven by two witnesses")))
    over = diagnosed(rules, gone, alive, None, log_at=None, at=NOW).diagnosis
    assert over.verdict.startswith("Destroyed 1 h ago, proven") and not over.incidents


WHERE = "root@10.0.0.9:22"
FAILURES: tuple[tuple[Failure, LinkState, str], ...] = (
    (fold(TimeoutError(), BOX, WHERE), LinkState.UNREACHABLE, "ssh_unreachable"),
    (fold(ConnectionRefusedError(), BOX, WHERE), LinkState.UNREACHABLE, "ssh_unreachable"),
    (fold(socket.gaierror(-2, "unknown"), BOX, WHERE), LinkState.UNREACHABLE, "ssh_unreachable"),
    (fold(ConnectionResetError(), BOX, WHERE), LinkState.UNREACHABLE, "ssh_dropped"),
    (fold(asyncssh.PermissionDenied("no"), BOX, WHERE), LinkState.REFUSED, "ssh_auth_failed"),
    (CommandRefused(BOX, "no commands here"), LinkState.REFUSED, "ssh_channel_refused"),
    (LinkLost(f"The link to {BOX} broke."), LinkState.LOST, "ssh_dropped"),
    (
        identity_changed(BOX, WHERE, offered="SHA256:a", pinned="SHA256:b", source="the pin"),
        LinkState.IDENTITY,
        "ssh_host_key",
    ),
)


@pytest.mark.parametrize(("failure", "state", "cls"), FAILURES, ids=[f"{s.name}-{c}" for _, s, c in FAILURES])
def test_each_way_a_link_fails_has_its_class_and_keeps_its_own_words(
    tmp_path: Path, failure: Failure, state: LinkState, cls: str
) -> None:
    assert not isinstance(failure, ConnectFailure) or failure.state is state
    box, run = picture()
    cut = replace(box, link=Link(state, NOW - 9, failure.line))
    told = diagnosed(load_rules(tmp_path), cut, run, None, log_at=None, at=NOW).diagnosis
    assert told.outcome == "unreachable"
    assert told.incidents[0].cls == cls
    assert told.incidents[0].plane == "control"
    (evidence, *_) = told.incidents[0].evidence
    assert evidence.text == failure.line
    assert evidence.at == NOW - 9
