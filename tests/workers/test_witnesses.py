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
from tui.triage.engine import diagnose
from tui.triage.scan import scan
from tui.verbs.triage import diagnosis_lines
from tui.widgets.glyphs import UNICODE
from tui.widgets.triage_rows import TriageView, entries
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


def test_of_two_kills_each_line_says_which_it_means(tmp_path: Path) -> None:
    """The run's own, and another's of the same class: both are told, and can be told apart."""
    box, run = picture()
    two = dmesg(PID, 5)
    two = replace(two, lines=(*dmesg(999, 4000).lines[:3], *two.lines))
    told = diagnosed(load_rules(tmp_path), replace(box, looks=(two,)), run, None, log_at=None, at=NOW)
    (ours,) = (one for one in told.diagnosis.incidents if one.cls == "host_oom_kill")
    assert ours.which == f"pid {PID} (python), at kernel time {90_000 - 5:.6f} s"
    (other,) = (one.why for one in told.diagnosis.ruled_out if one.cls == "host_oom_kill")
    assert "pid 999 (python)" in other and f"at kernel time {90_000 - 4000:.6f} s" in other
    lines = list(diagnosis_lines(told.diagnosis))
    assert any(line.startswith(f"host_oom_kill (pid {PID} (python), at kernel time") for line in lines)
    first = replace(ours, cls="cuda_oom")  # it is shown first, and the kill only beside it
    both = replace(told, diagnosis=replace(told.diagnosis, incidents=(first, ours)))
    view = TriageView(box, run, both, NOW, 2.0, UNICODE)
    rows = ["".join(text for text, _ in line) for entry in entries(view, 160, 60) for line in entry.lines]
    assert any("also found" in row and f"host_oom_kill (pid {PID} (python), at kernel" in row for row in rows)


def test_a_consequence_is_named_with_its_place(tmp_path: Path) -> None:
    rules = load_rules(tmp_path)
    log = (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        b"capacity of 23.64 GiB of which 1.05 GiB is free.\n"
        b"x\n"
        b"RuntimeError: NCCL communicator was aborted on rank 1.\n"
    )
    (first, *_) = diagnose(rules, scan([log], rules.finder)).incidents
    assert (first.cls, first.which) == ("cuda_oom", "line 1")
    assert first.also and first.follows == tuple(f"{cls} (line 3)" for cls in first.also)


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
