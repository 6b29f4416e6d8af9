"""Pods and Jobs through the real kubectl: what there is, what is gone, and what only looks like it."""

from __future__ import annotations

import json

import pytest

from tests.rig.kube_api import Cluster
from tui.box.cluster import Cluster as Context
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
    assert "is to be deleted" in await plane.destroy(JOB)
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


async def test_one_of_the_same_name_made_later_is_neither_deleted_nor_suspended(
    kube: Cluster, plane: Kubernetes
) -> None:
    alone = victim("ml/pod/alone")
    await plane.describe(alone)
    await plane.describe(JOB)
    kube.pod("alone")
    kube.put("Job", "sweep", {}, dict(RUNNING))
    for act, one in ((plane.destroy, alone), (plane.destroy, JOB), (plane.stop, JOB)):
        with pytest.raises(VerbRefused, match="another one, made later") as refused:
            await act(one)
        assert refused.value.code == "another-machine"
    assert {"Pod/ml/alone", "Job/ml/sweep"} <= set(kube.objects)
    assert "suspend" not in kube.objects["Job/ml/sweep"]["spec"]
    await plane.describe(alone)  # the operator looked again: now it is this one
    await plane.destroy(alone)
    assert "Pod/ml/alone" not in kube.objects


async def test_another_terminals_context_redirects_nothing(kube: Cluster, plane: Kubernetes) -> None:
    config = json.loads(kube.kubeconfig.read_text())
    elsewhere = {"name": "elsewhere", "context": {"cluster": "elsewhere", "user": "ada"}}
    config["clusters"].append({"name": "elsewhere", "cluster": {"server": "http://127.0.0.1:1"}})
    config["contexts"].append(elsewhere)
    kube.kubeconfig.write_text(json.dumps({**config, "current-context": "elsewhere"}))
    await plane.describe(JOB)
    await plane.destroy(JOB)
    assert "Job/ml/sweep" not in kube.objects
    bare = Kubernetes(Context(), "ml")
    kube.asked.clear()
    for asked in (bare.describe(victim("ml/pod/alone")), bare.destroy(victim("ml/pod/alone"))):
        with pytest.raises(NoAnswer, match=r"No context .* is named .* elsewhere"):
            await asked
    assert [one for one in kube.asked if one != "GET /version"] == []


async def test_where_the_kubeconfig_has_no_current_context_none_is_needed(
    kube: Cluster, plane: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As inside a pod: there kubectl finds its cluster by itself."""
    monkeypatch.setenv("KUBECONFIG", str(kube.tmp / "none"))
    with pytest.raises(NoAnswer, match="kubectl says"):  # it was asked: here there is no cluster to be found
        await Kubernetes(Context(), "ml").describe(JOB)
