"""A cluster's control plane against a real Slurm: each state told right, and gone only where it is."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.rig.slurm import Slurm
from tui.fleet.paths import Paths
from tui.model.custody import Victim
from tui.model.instance import Endpoint, Instance
from tui.model.via import SlurmStep
from tui.platforms.control import NoControlPlane, NoSuchMachine, VerbRefused
from tui.platforms.find import Wanted, plane_for
from tui.platforms.slurm import Slurm as Plane

pytestmark = [pytest.mark.slow, pytest.mark.real]
BY_HAND = NoControlPlane("slurm", why="nobody can be asked", console="look")


@pytest.fixture
def plane(login: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plane:
    config = tmp_path / "ssh_config"
    config.write_text("Host *\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n")
    monkeypatch.setenv("RGT_SSH_CONFIG", str(config))
    end = Endpoint(login.host, login.port, login.user, key=str(login.client_key))
    box = Instance("j", "slurm", end, "1", via=SlurmStep("1", "hpc"))
    found = plane_for(Wanted(box, None, Paths(config=tmp_path, state=tmp_path)), BY_HAND)
    assert isinstance(found, Plane)
    bare = plane_for(Wanted(replace(box, via=None), None, Paths(config=tmp_path, state=tmp_path)), BY_HAND)
    assert isinstance(bare, NoControlPlane)
    assert "login node" in bare.why
    return found


def victim(job: str) -> Victim:
    return Victim(name="j", platform="slurm", instance_id=job)


async def test_a_job_from_the_queue_to_its_end(slurm: Slurm, plane: Plane) -> None:
    first = slurm.submit("trap '' TERM; sleep 300 & wait; sleep 300", "--gres=gpu:2", "--job-name=a|b c=d")
    slurm.until(first, "RUNNING")
    second = slurm.submit("sleep 300", "--gres=gpu:1", "--requeue")
    deadline = time.monotonic() + 10
    while slurm.state(second)[1] != "Resources":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    runs, waits = await plane.describe(victim(first)), await plane.describe(victim(second))
    assert (runs.state, runs.said) == ("running", "RUNNING")
    assert runs.gpu.startswith("2 × ")
    assert (waits.state, waits.said) == ("starting", "PENDING")
    assert "It waits: Resources." in waits.notes
    everything = await plane.list_all()
    assert everything.complete
    assert everything.account == "root@rig"
    assert {one.id: one.state for one in everything.machines if one.id in (first, second)} == {
        first: "running",
        second: "starting",
    }
    with pytest.raises(VerbRefused, match="can't be stopped and kept"):
        await plane.stop(victim(first))
    assert await plane.destroy(victim(second)) == "scancel took it"
    assert (await plane.describe(victim(second))).state == "gone"
    await plane.destroy(victim(first))
    # SIGTERM was trapped: its node is held until KillWait is over, and that is not gone.
    held = await plane.describe(victim(first))
    assert (held.said, held.state) == ("COMPLETING", "destroying")
    slurm.until(first, "CANCELLED", "")
    slurm.until(second, "", timeout=30)
    with pytest.raises(NoSuchMachine):
        await plane.describe(victim(second))
    assert (await plane.list_all()).find(second) is None


async def test_a_requeued_job_is_the_same_and_not_gone(slurm: Slurm, plane: Plane) -> None:
    job = slurm.submit("sleep 300", "--gres=gpu:1", "--requeue")
    slurm.until(job, "RUNNING")
    before = await plane.describe(victim(job))
    slurm.run("scontrol", "requeue", job)
    slurm.until(job, "PENDING")
    after = await plane.describe(victim(job))
    assert before.created_at is not None
    assert (after.state, after.created_at) == ("starting", None)  # a requeue dates it anew
