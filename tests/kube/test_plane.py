"""Pods and Jobs through the real kubectl: what there is, what is gone, and what only looks like it."""

from __future__ import annotations

import pytest

from tests.rig.kube_api import Cluster
from tui.box.kubectl import Cluster as Context
from tui.model.custody import Victim
from tui.platforms.control import NoAnswer, NoSuchMachine, NotAllowed, VerbRefused
from tui.platforms.kubernetes import Kubernetes

pytestmark = pytest.mark.real


def victim(id_: str) -> Victim:
    return Victim(name="p", platform="kubernetes", instance_id=id_)


JOB = victim("ml/job/sweep")
RUNNING = {"active": 1, "conditions": []}


@pytest.fixture
def plane(kube: Cluster) -> Kubernetes:
    gpus = {"template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}}
    kube.put("Job", "sweep", gpus, dict(RUNNING))
    kube.pod("sweep-abc", job="sweep")
    kube.pod("alone")
    return Kubernetes(Context("rig"), "ml")


async def test_the_whole_namespace_and_who_asks(plane: Kubernetes) -> None:
    found = await plane.list_all()
    assert found.complete
    assert found.account is not None
    assert found.account.startswith("ada at http://127.0.0.1")
    assert {one.id: one.state for one in found.machines} == {
        "ml/job/sweep": "running",
        "ml/pod/sweep-abc": "running",
        "ml/pod/alone": "running",
    }
    job = await plane.describe(JOB)
    assert (job.gpu, job.state) == ("2 × gpu", "running")
    assert job.created_at is not None
    assert job.price is not None
    assert job.price.per_hour is None


async def test_a_job_is_gone_with_its_pods_and_not_before(kube: Cluster, plane: Kubernetes) -> None:
    kube.sticky = True
    assert "deleted" in await plane.destroy(JOB)
    left = await plane.describe(JOB)
    assert (left.state, left.said) == ("destroying", "NotFound")
    listed = (await plane.list_all()).find("ml/job/sweep")
    assert listed is not None
    assert listed.state == "destroying"
    del kube.objects["Pod/ml/sweep-abc"]
    with pytest.raises(NoSuchMachine):
        await plane.describe(JOB)
    assert (await plane.list_all()).find("ml/job/sweep") is None


async def test_a_suspended_job_is_stopped_when_no_pod_runs(kube: Cluster, plane: Kubernetes) -> None:
    await plane.stop(JOB)
    assert (await plane.describe(JOB)).state == "stopping"
    del kube.objects["Pod/ml/sweep-abc"]
    assert (await plane.describe(JOB)).state == "stopped"


async def test_a_pod_that_would_be_made_again_is_not_deleted(kube: Cluster, plane: Kubernetes) -> None:
    with pytest.raises(VerbRefused, match="Job sweep"):
        await plane.destroy(victim("ml/pod/sweep-abc"))
    with pytest.raises(VerbRefused, match="can't stop one"):
        await plane.stop(victim("ml/pod/alone"))
    assert not any(line.startswith("DELETE") for line in kube.asked)
    await plane.destroy(victim("ml/pod/alone"))
    with pytest.raises(NoSuchMachine):
        await plane.describe(victim("ml/pod/alone"))


async def test_terminating_is_there(kube: Cluster, plane: Kubernetes) -> None:
    kube.objects["Pod/ml/alone"]["metadata"] |= {
        "deletionTimestamp": "2026-11-01T01:00:00Z",
        "finalizers": ["x"],
    }
    told = await plane.describe(victim("ml/pod/alone"))
    assert told.state == "destroying"
    assert any("finalizers" in note for note in told.notes)


async def test_nothing_but_a_plain_not_found_is_gone(kube: Cluster, plane: Kubernetes) -> None:
    kube.denied.add("get")
    with pytest.raises(NotAllowed):
        await plane.describe(JOB)
    kube.denied.clear()
    kube.objects.clear()
    kube.namespace = "other"
    with pytest.raises(NoAnswer, match="right context"):
        await plane.describe(JOB)
    with pytest.raises(NoAnswer, match="names no pod"):
        await plane.describe(victim("train-0"))
    kube.stop()
    with pytest.raises(NoAnswer):
        await plane.describe(JOB)
    with pytest.raises(NoAnswer):
        await plane.list_all()
