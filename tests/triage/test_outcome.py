"""What is true now comes from the box; a log proves only what happened once."""

from __future__ import annotations

import pytest

from tests.triage import reading
from tui.model.incident import RunOutcome
from tui.model.reading import known
from tui.model.telemetry import Filesystem, Gpu, Host, LogFile, Memory, RunTruth, Telemetry
from tui.model.text import SafeText
from tui.triage.engine import diagnose
from tui.triage.inputs import Known
from tui.triage.outcome import outcome
from tui.triage.scan import scan


def _probe(
    alive: bool | None, *, util: float = 90.0, log_age: float = 5.0, boot: str = "a", end: str | None = None
) -> Telemetry:
    log = LogFile(SafeText("/w/train.log"), 1, 10, 1000.0 - log_age)
    return Telemetry(
        1000.0,
        host=known(Host(SafeText("Linux"), boot_id=SafeText(boot), clock_offset_s=0.0)),
        gpus=known((Gpu(0, SafeText("A100"), util_pct=util),)),
        runs=(RunTruth("r", alive, log=known(log), end=SafeText(end) if end else None),),
    )


@pytest.mark.parametrize(
    ("of", "probe", "ended_well", "wanted"),
    [
        (Known(reachable=False), None, False, "unreachable"),
        (Known(run="r"), _probe(True), False, "running"),
        (Known(run="r"), _probe(True, util=0.0, log_age=4000), False, "stalled"),
        (Known(run="r"), _probe(True, util=80.0, log_age=4000), False, "running"),
        (Known(run="r"), _probe(True, util=0.0, log_age=4000), True, "running"),
        (Known(run="r"), _probe(False), False, "dead"),
        (Known(run="r"), _probe(False), True, "finished"),
        (Known(run="r", boot_id="b"), _probe(None), False, "dead"),
        (Known(run="r", rc=0), _probe(False), False, "finished"),
        (Known(run="r"), _probe(False, end="finished"), False, "finished"),
        (Known(run="r"), _probe(False, end="failed, status 1"), True, "dead"),
        (Known(run="r"), _probe(True, end="failed, status 1"), False, "running"),
        (Known(run="r"), _probe(None, end="failed, status 1"), True, "dead"),
        (Known(run="r"), _probe(None, end="finished"), False, "finished"),
        (Known(session_alive=False), None, False, "dead"),
        (Known(rc=137), None, False, "dead"),
        (Known(), None, True, "finished"),
        (Known(), None, False, "unknown"),
    ],
)
def test_outcome(of: Known, probe: Telemetry | None, ended_well: bool, wanted: RunOutcome) -> None:
    assert outcome(of, probe, ended_well=ended_well, has_log=True) == wanted


def test_an_error_in_a_log_alone_does_not_make_the_run_dead() -> None:
    found = diagnose(reading.rules(), scan([b"MemoryError\n"], reading.rules().finder))
    assert found.outcome == "unknown"
    assert [one.cls for one in found.incidents] == ["host_alloc_failed"]


def test_a_run_that_lives_is_not_called_dead_for_an_error_in_its_log() -> None:
    log = scan([b"RuntimeError: CUDA error: unknown error\n"], reading.rules().finder)
    found = diagnose(reading.rules(), log, (), _probe(True), Known(run="r"))
    assert found.outcome == "running"
    assert "alive" in found.verdict


def test_what_training_got_over_is_named_as_ruled_out() -> None:
    log = scan([b"MemoryError\nstep 10 loss 2.0\nstep 20 loss 1.9\n"], reading.rules().finder)
    found = diagnose(reading.rules(), log)
    assert found.incidents == ()
    assert {one.cls for one in found.ruled_out} >= {"host_alloc_failed"}
    assert "went on" in found.ruled_out[0].why


def test_consequences_stand_beside_the_first_cause() -> None:
    text = (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 1 has a total capacity "
        b"of 79.11 GiB of which 2.75 GiB is free. this process has 76.35 GiB memory in use.\n"
        b"[rank0]:[E1] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\n"
        b"run.sh: line 2: 77 Killed   python train.py\n"
    )
    found = diagnose(reading.rules(), scan([text], reading.rules().finder))
    assert [one.cls for one in found.incidents] == ["cuda_oom"]
    assert set(found.incidents[0].also) == {"nccl_timeout", "sigkill_unexplained"}


def test_what_would_look_alike_is_ruled_out_by_what_was_seen() -> None:
    disk = Filesystem(
        SafeText("/data"), SafeText("/dev/vdb"), size_bytes=10**12, avail_bytes=0, use_pct=100.0,
        inodes=1000, inode_use_pct=3.0, inodes_free=970, read_only=False,
    )  # fmt: skip
    probe = Telemetry(1000.0, filesystems=known((disk,)), memory=known(Memory(oom_kills=2)))
    log = scan([b"OSError: [Errno 28] No space left on device: '/data/x'\n"], reading.rules().finder)
    found = diagnose(reading.rules(), log, (), probe).incidents[0]
    assert found.cls == "disk_full"
    assert {one.cls for one in found.ruled_out} == {"inodes_full", "fs_readonly"}
    assert "3 %" in found.ruled_out[0].why
    killed = scan([b"Killed\n"], reading.rules().finder)
    healthy = Telemetry(1000.0, memory=known(Memory(oom_kills=2)))
    found = diagnose(reading.rules(), killed, (), healthy, Known(oom_kills=2)).incidents[0]
    assert [(one.cls, "2 kills" in one.why) for one in found.ruled_out] == [("host_oom_kill", True)]
