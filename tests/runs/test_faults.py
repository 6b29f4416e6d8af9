"""What goes wrong with jobs, one test for each: told as what it is, and the run can go on."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.real import absent
from tests.rig.tmpfs import fill, remount, tmpfs
from tests.runs.begun import Begin, begin, laid_down
from tui.box.local import LocalTransport
from tui.model.text import log_lines
from tui.runs.launch import first_step
from tui.runs.plan_files import wrapper
from tui.runs.truth import judge, look
from tui.triage.progress import ProgressReader

__all__ = ["begin"]

HERE = LocalTransport()


@pytest.mark.slow
async def test_job_hang_one_that_ignores_a_term_is_ended_when_its_time_is_up(begin: Begin) -> None:
    """JOB-HANG: it is alive by every process table; only its limit, kept on the box, ends it."""
    hang = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    one = await begin(stages=[{"name": "hang", "run": [sys.executable, "-c", hang], "timeout": "2 s"}])
    truth = await one.until(lambda truth: truth.child is not None)
    assert (truth.state, truth.alive) == ("running", True)
    assert one.process.wait(timeout=60) == 137
    truth = await look(HERE, str(one.run))
    assert (truth.state, truth.end["signal"]) == ("failed", "KILL")


@pytest.fixture
def small_cgroup() -> Iterator[str]:
    """The file of processes of a cgroup that has 64 MiB."""
    v2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    root = Path("/sys/fs/cgroup" if v2 else "/sys/fs/cgroup/memory")
    place = root / f"rgt-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError:
        absent("a cgroup cannot be made here")
    try:
        limit = place / ("memory.max" if v2 else "memory.limit_in_bytes")
        limit.write_text(str(64 << 20))
        (place / "cgroup.procs").read_text()
    except OSError:
        place.rmdir()
        absent("this cgroup takes no memory limit")
    yield str(place / "cgroup.procs")
    for pid in (place / "cgroup.procs").read_text().split():  # a nap of the heartbeat, which ends by itself
        (root / "cgroup.procs").write_text(pid)
    time.sleep(0.1)
    place.rmdir()


async def test_job_oom_a_kill_by_the_kernel_is_told_from_any_other(begin: Begin, small_cgroup: str) -> None:
    """JOB-OOM: the cgroup's own count of kills says who did it; the status alone could be anybody's."""
    eat = "x = bytearray(300_000_000); print(len(x))"
    enter = ("sh", "-c", 'echo $$ >"$1" && shift && exec "$@"', "enter", small_cgroup)
    one = await begin(run=[sys.executable, "-c", eat], before=enter)
    assert one.wait() == 137
    truth = await look(HERE, str(one.run))
    assert (truth.state, truth.end["signal"], truth.end["oom"]) == ("failed", "KILL", "1")
    assert truth.why.endswith("The kernel killed for want of memory in its cgroup meanwhile.")
    other = await begin(run=["sh", "-c", "kill -KILL $$"], place=one.run.parent / "r-2")
    assert other.wait() == 137
    assert "memory" not in (await look(HERE, str(other.run))).why


async def test_clock_jump_an_artifact_is_known_by_what_lay_there_before_not_by_its_time(begin: Begin) -> None:
    """CLOCK-JUMP: the box's clock went back while the job ran; what it made seems older than its plan."""
    one = await begin(run=["sh", "-c", "echo x >out; touch -d 2001-01-01 out"], finish="out")
    assert one.wait() == 0
    assert (await look(HERE, str(one.run))).state == "finished"


@pytest.mark.parametrize(("word", "status"), [("true", 75), ("echo new >out", 0)])
async def test_an_artifact_that_lay_there_before_is_none(
    begin: Begin, tmp_path: Path, word: str, status: int
) -> None:
    run = await laid_down(tmp_path / "r-1", run=["sh", "-c", word], finish="out")
    (run / "out").write_text("of another run\n")
    os.utime(run / "out", (1e9, 1e9))
    one = await begin(place=run)
    assert one.wait() == status
    again = await begin(place=run)  # the second attempt remembers what lay there before the first
    assert again.wait() == status


def told(now: int, beat: int, *, ticks: str = "777") -> str:
    return (
        f"now {now}\nhere box boot-1\nplan p\nattempt 1\nholder 12 777 boot-1 box\n"
        f"start began {now - 50}\nheartbeat {beat}\nproc holder {ticks} S\n"
    )


def test_clock_skew_a_heart_beats_by_the_clock_of_its_own_box() -> None:
    """CLOCK-SKEW: the box is years off; ages are differences of its own times, and life is no time at all."""
    for now in (1_000_000_000, 2_500_000_000):
        truth = judge(told(now, now - 7))
        assert (truth.state, truth.beat_s) == ("running", 7.0)


def test_clock_jump_a_heartbeat_from_the_future_is_fresh_and_life_is_the_process_itself() -> None:
    """CLOCK-JUMP: back by an hour: no negative age, no death. Forward by a day: old beat, and still alive."""
    assert (judge(told(1_700_000_000, 1_700_003_600)).state, judge(told(5000, 8600)).beat_s) == (
        "running",
        0.0,
    )
    jumped = judge(told(1_700_086_400, 1_700_000_000))
    assert (jumped.state, jumped.alive, jumped.beat_s) == ("running", True, 86400.0)
    assert (
        judge(told(1_700_000_000, 1_700_000_000, ticks="778")).state == "lost"
    )  # its number, another process


async def test_a_full_disk_fails_the_job_and_its_end_is_recorded_all_the_same(
    begin: Begin, tmp_path: Path
) -> None:
    with tmpfs(tmp_path / "small", size=1 << 20) as disk:
        run = await laid_down(disk / "r-1", run=["sh", "-c", "cat /dev/zero >big"])
        one = await begin(place=run)
        assert one.wait() == 1
        truth = await look(HERE, str(run))
        assert (truth.state, truth.end["reason"]) == ("failed", "failed")
        assert "The disk was full then" in truth.why
        assert b"No space left" in (run / "train.log").read_bytes() or os.statvfs(disk).f_bavail < 8
        (run / "big").unlink()
        (run / ".rgt/plan/stages/01-train/argv").write_text("true\n")
        again = await begin(place=run)
        assert again.wait() == 0
        assert (await look(HERE, str(run))).state == "finished"


@pytest.mark.parametrize("shell", ["dash", "busybox", "bash"])
@pytest.mark.parametrize("lacks", ["bytes", "inodes", "writes"])
async def test_where_no_attempt_can_be_recorded_nothing_is_started(
    begin: Begin, tmp_path: Path, shell: str, lacks: str
) -> None:
    """Unrecorded it would be started a second time beside itself; and it must not try for ever."""
    size = 0 if lacks == "inodes" else 1 << 20
    with tmpfs(tmp_path / "small", size=size or 8 << 20, inodes=60 if lacks == "inodes" else 0) as disk:
        run = await laid_down(disk / "r-1", run=["sh", "-c", "echo y >out"], finish="out")
        taken = [disk / f"f{n}" for n in range(60)]
        if lacks == "bytes":
            fill(disk, 0)
        elif lacks == "writes":
            remount(disk, "ro")
        else:
            with suppress(OSError):
                for path in taken:
                    path.touch()
        one = await begin(shell, place=run)
        assert one.wait() == 74
        assert (await look(HERE, str(run))).state == "placed"
        if lacks == "writes":
            remount(disk, "rw")
        for path in (disk / "ballast", *taken):
            path.unlink(missing_ok=True)
        again = await begin(shell, place=run)
        assert again.wait() == 0
        truth = await look(HERE, str(run))
        assert (truth.state, truth.attempt) == ("finished", 1)


async def test_an_old_artifact_is_no_proof_where_its_trace_could_not_be_kept(
    begin: Begin, tmp_path: Path
) -> None:
    run = await laid_down(tmp_path / "r-1", run=["true"], finish="out")
    (run / "out").write_text("old\n")
    os.utime(run / "out", (1e9, 1e9))
    (run / ".rgt/before").write_text("in the way, as a full disk is\n")
    one = await begin(place=run)
    assert one.wait() == 74
    truth = await look(HERE, str(run))
    assert (truth.state, truth.end["reason"], truth.done) == ("failed", "disk-gate", ())


async def test_inodes_that_are_gone_are_told_as_that(begin: Begin, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "small", size=8 << 20, inodes=120) as disk:
        word = "i=0; while : >f$i; do i=$((i + 1)); done 2>/dev/null; exit 1"
        one = await begin(place=await laid_down(disk / "r-1", run=["sh", "-c", word]))
        assert one.wait() in (1, 2)
        truth = await look(HERE, str(one.run))
        assert truth.state == "failed"
        assert "no inodes left" in truth.why


@pytest.mark.slow
def test_a_disk_that_fills_in_torch_save_leaves_the_checkpoint_before_whole(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from tui.runs.templates.checkpoint import Checkpoints

    class Part:
        def __init__(self, size: int) -> None:
            self.state = {"w": torch.arange(size, dtype=torch.float32)}

        def state_dict(self) -> dict[str, object]:
            return dict(self.state)

        def load_state_dict(self, state: dict[str, object]) -> None:
            self.state = dict(state)

    with tmpfs(tmp_path / "small", size=8 << 20) as disk:
        kept = Checkpoints(disk / "ckpt")
        kept.save(1, model=Part(250_000))
        ballast = fill(disk, 300_000)
        with pytest.raises((OSError, RuntimeError)):
            kept.save(2, model=Part(250_000))
        assert [path.name for path in (disk / "ckpt").iterdir()] == ["step-000000001.pt"]
        part = Part(1)
        assert Checkpoints(disk / "ckpt").load(model=part) == 1
        assert part.state["w"].shape == (250_000,)
        ballast.unlink()
        kept.save(2, model=Part(250_000))
        assert Checkpoints(disk / "ckpt").load(model=part) == 2


async def test_a_payload_that_never_prints_its_last_line_is_finished_by_its_artifact(begin: Begin) -> None:
    quiet = (
        "import os; said = open(1, 'w', closefd=False); said.write('the last line')\n"
        "with open(os.environ['RGT_RUN'] + '/out', 'w') as out: out.write('x')\n"
        "os._exit(0)"
    )
    one = await begin(run=[sys.executable, "-c", "exec(" + repr(quiet) + ")"], finish="out")
    assert one.wait() == 0
    assert (await look(HERE, str(one.run))).state == "finished"
    assert "last line" not in (one.run / "train.log").read_text()
    loud = await begin(run=["echo", "training finished"], finish="out", place=one.run.parent / "r-2")
    assert loud.wait() == 75


async def test_a_wrapper_with_windows_line_ends_reaches_no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    crlf = wrapper().replace(b"\n", b"\r\n")
    assert subprocess.run(["sh", "-n"], input=crlf, capture_output=True, timeout=10).returncode != 0
    monkeypatch.setattr(Path, "read_bytes", lambda _path: crlf)
    assert b"\r" not in wrapper()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_wrapper_that_is_killed_or_stopped_is_not_doubled(
    begin: Begin, number: signal.Signals
) -> None:
    one = await begin(run=["sleep", "60"])
    await one.until(lambda truth: truth.child is not None)
    one.process.send_signal(number)
    if number is signal.SIGKILL:
        one.process.wait(timeout=5)
    truth = await look(HERE, str(one.run))
    assert (truth.state, truth.alive) == ("running", number is signal.SIGSTOP)
    second = await begin()
    assert second.wait() == 73


def test_job_nan_a_loss_that_is_no_number_is_told_as_one() -> None:
    """JOB-NAN: the first step is seen and its loss is none: the answer says so, and does not call it fine."""
    seen = ProgressReader().feed(log_lines(b"step 1/10 loss: nan\n"), 0.0)
    assert seen is not None
    assert seen.loss is not None
    assert math.isnan(seen.loss)
    assert "no number" in first_step(seen)
    assert "no number" not in first_step(replace(seen, loss=0.5))
