"""A running job as a box: through a step beside it, and never by the login node's figures."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.box.boxes import Desk, instance
from tests.rig import Sshd
from tests.rig.slurm import Slurm
from tui.box.errors import ConnectFailure
from tui.box.slurm_step import SlurmBox
from tui.box.transport import LinkLost, Script
from tui.model.instance import Instance
from tui.model.run import RunSpec
from tui.model.via import NoWay, SlurmStep
from tui.verbs.wiring import Dialer
from tui.workers.box import BoxTransport
from tui.workers.once import log_end, take

pytestmark = [pytest.mark.slow, pytest.mark.real]


class Hpc:
    """An operator, the login node, and jobs beside it."""

    def __init__(self, login: Sshd, tmp: Path) -> None:
        self.desk = Desk(tmp)
        self.login = instance(login, "hpc")
        self.dial = Dialer(self.desk.connector(), self.desk.records.append)

    def job(self, job: str) -> Instance:
        return replace(self.login, name=f"hpc-{job}", platform="slurm", via=SlurmStep(job, "hpc"))

    async def enter(self, job: str) -> BoxTransport:
        return await self.dial(self.job(job))

    async def refused(self, job: str) -> ConnectFailure:
        with pytest.raises(ConnectFailure) as caught:
            await (await self.enter(job)).close()
        return caught.value


@pytest.fixture
def hpc(login: Sshd, tmp_path: Path) -> Hpc:
    return Hpc(login, tmp_path)


async def test_what_is_seen_is_the_jobs_and_not_the_login_nodes(
    slurm: Slurm, hpc: Hpc, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    script = f'echo "epoch 3/10 loss 0.5" >{log}; exec sleep 300'
    job = slurm.submit(script, "--gres=gpu:1", "--job-name=shop-lr3")
    slurm.until(job, "RUNNING")
    box = await hpc.enter(job)
    try:
        assert isinstance(box, SlurmBox)
        done = await box.run(Script("echo $SLURM_JOB_ID $CUDA_VISIBLE_DEVICES $RGT_MARK; [ -t 1 ]; echo $?"))
        assert done.stdout.decode().split() == [job, "0", "1"]
        spec = RunSpec("r", "j", log=str(log), session=f"slurm:{job}")
        told = await take(box, (), (spec,), time.time)
        assert told.host.value is not None
        assert job in [str(one.name) for one in told.sessions.value or () if one.kind == "slurm"]
        (truth,) = told.runs
        assert truth.session_alive is True
        assert [str(line) for line in await log_end(box, spec, 4096)][-1:] == ["epoch 3/10 loss 0.5"]
    finally:
        await box.close()
    assert all(record.box in ("hpc", f"hpc-{job}") for record in hpc.desk.records)


async def test_a_waiting_job_says_why_and_is_entered_once_it_runs(slurm: Slurm, hpc: Hpc) -> None:
    first = slurm.submit("sleep 300", "--gres=gpu:2")
    slurm.until(first, "RUNNING")
    second = slurm.submit("sleep 300", "--gres=gpu:2")
    deadline = time.monotonic() + 10
    while slurm.state(second) != ("PENDING", "Resources"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    waits = await hpc.refused(second)
    assert (waits.code, waits.retry) == ("job-pending", True)
    assert "(Resources)" in waits.what
    slurm.run("scancel", first)
    slurm.until(second, "RUNNING")
    box = await hpc.enter(second)
    assert (await box.run(Script("echo $SLURM_JOB_ID"))).stdout.decode().strip() == second
    await box.close()


async def test_preempted_and_requeued_it_is_a_lost_link_then_waits_then_the_same_job(
    slurm: Slurm, hpc: Hpc
) -> None:
    job = slurm.submit("sleep 300", "--gres=gpu:2", "--requeue")
    slurm.until(job, "RUNNING")
    box = await hpc.enter(job)
    channel = await box.open(Script("echo on; sleep 300", why="watch"))
    assert await channel.read() == b"on\n"
    urgent = slurm.submit("sleep 300", "--gres=gpu:2", "--partition=urgent")
    with pytest.raises(LinkLost, match="watch"):
        while await channel.read():
            pass
    await channel.close()
    await box.close()
    slurm.until(urgent, "RUNNING")
    waits = await hpc.refused(job)
    assert (waits.code, waits.retry) == ("job-pending", True)
    slurm.run("scancel", urgent)
    slurm.until(urgent, "CANCELLED", "")
    slurm.until(job, "RUNNING")
    again = await hpc.enter(job)
    done = await again.run(Script("echo $SLURM_JOB_ID $SLURM_RESTART_COUNT"))
    assert done.stdout.decode().split()[0] == job
    await again.close()


async def test_a_suspended_job_takes_no_step_and_is_looked_for_again(slurm: Slurm, hpc: Hpc) -> None:
    job = slurm.submit("sleep 300", "--gres=gpu:1")
    slurm.until(job, "RUNNING")
    slurm.run("scontrol", "suspend", job)
    assert slurm.state(job)[0] == "SUSPENDED"
    held = await hpc.refused(job)
    assert (held.code, held.retry) == ("job-suspended", True)
    slurm.run("scontrol", "resume", job)
    await (await hpc.enter(job)).close()


async def test_job_forgotten_ended_and_forgotten_are_two_things_and_neither_is_tried_again(
    slurm: Slurm, hpc: Hpc
) -> None:
    job = slurm.submit("exit 3")
    slurm.until(job, "FAILED")
    over = await hpc.refused(job)
    assert (over.code, over.retry) == ("job-over", False)
    assert "FAILED" in over.what
    slurm.until(job, "")
    gone = await hpc.refused(job)
    assert (gone.code, gone.retry) == ("job-forgotten", False)
    array = slurm.submit("sleep 300", "--array=0-1", "--gres=gpu:1")
    slurm.until(f"{array}_1", "RUNNING")
    box = await hpc.enter(f"{array}_1")
    raw = slurm.run("squeue", "-h", "-j", f"{array}_1", "-o", "%A")
    done = await box.run(Script("echo $SLURM_JOB_ID"))
    assert done.stdout.decode().strip() == raw
    await box.close()


async def test_ctld_dead_a_silent_controller_says_nothing_of_the_job(slurm: Slurm, hpc: Hpc) -> None:
    job = slurm.submit("sleep 300", "--gres=gpu:1")
    slurm.until(job, "RUNNING")
    slurm.stop_controller()
    try:
        silent = await hpc.refused(job)
        assert (silent.code, silent.retry) == ("slurm-silent", True)
    finally:
        slurm.start_controller()
    slurm.until(job, "RUNNING")


async def test_where_there_is_no_way_it_is_said_why(hpc: Hpc) -> None:
    box = Instance("nb", "colab", None, via=NoWay("a notebook offers no shell from outside"))
    with pytest.raises(ConnectFailure, match="offers no shell") as caught:
        await hpc.dial(box)
    assert caught.value.retry is False
