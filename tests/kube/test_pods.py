"""A pod as a box: through the real kubectl, against an API server that can be broken."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import psutil
import pytest

from tests.rig.kube_api import Cluster
from tui.box.errors import CommandRefused, ConnectFailure
from tui.box.kubectl import PodBox, enter_job, enter_pod
from tui.box.transport import LinkLost, Script
from tui.cli import main
from tui.fleet.paths import paths
from tui.fleet.settings import load
from tui.model.command import CommandRecord
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec
from tui.model.via import JobExec, PodExec
from tui.workers.once import log_end, take

pytestmark = pytest.mark.real
VIA = PodExec("ml", "train-0", None, "rig")


async def enter(via: PodExec = VIA, records: list[CommandRecord] | None = None) -> PodBox:
    told = records.append if records is not None else lambda record: None
    return await enter_pod(Instance("p", "kubernetes", None, via=via), via, told)


async def refused(via: PodExec = VIA) -> Failure:
    with pytest.raises(Failure) as caught:
        await enter(via)
    return caught.value


async def test_words_status_and_bytes_pass_kubectl_unchanged(kube: Cluster, tmp_path: Path) -> None:
    kube.pod("train-0")
    log = tmp_path / "train.log"
    log.write_text("step 1/3\nstep 2/3\n")
    box = await enter()
    data = bytes(range(256)) * 400
    script = Script('printf "%s|" "$1" "$RGT_IN_POD"; printf err >&2; cat; exit 7', ("a b\n'$(x)\"",))
    done = await box.run(script, stdin=data, timeout=20)
    assert (done.exit, done.stderr) == (7, b"err")
    assert done.stdout == b"a b\n'$(x)\"|train-0|" + data
    telemetry = await take(box, (), (), time.time)
    assert telemetry.host.value is not None
    lines = await log_end(box, RunSpec("r", "p", log=str(log)), 4096)
    assert [str(line) for line in lines] == ["step 1/3", "step 2/3"]
    await box.close()


async def test_a_cut_connection_is_a_lost_link_and_ends_what_ran(kube: Cluster) -> None:
    kube.pod("train-0")
    box = await enter()
    channel = await box.open(Script("echo $$; sleep 60", why="watch"), timeout=20)
    pid = int(await channel.read())
    kube.cut()
    with pytest.raises(LinkLost):
        await channel.read()
    await channel.close()
    for _ in range(50):
        if not psutil.pid_exists(pid):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it lives on in the container")


async def test_closing_a_channel_ends_what_runs_in_the_container(kube: Cluster) -> None:
    kube.pod("train-0")
    box = await enter()
    channel = await box.open(Script("echo $$; exec sleep 60"), timeout=20)
    pid = int(await channel.read())
    await channel.close()
    for _ in range(50):
        if not psutil.pid_exists(pid):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it lives on in the container")


async def test_why_a_pod_can_not_be_entered(kube: Cluster) -> None:
    gone = await refused()
    assert (gone.code, getattr(gone, "retry", None)) == ("no-such-pod", False)
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes: gpu",
    }
    kube.pod("train-0", phase="Pending", conditions=[waiting])
    waits = await refused()
    assert (waits.code, getattr(waits, "retry", None)) == ("pod-waits", True)
    assert "0/3 nodes: gpu" in waits.what
    kube.pod("train-0", phase="Failed", reason="Evicted", message="The node was low on resource")
    over = await refused()
    assert (over.code, getattr(over, "retry", None)) == ("pod-over", False)
    assert "low on resource" in over.what
    kube.denied.add("get")
    denied = await refused()
    assert isinstance(denied, ConnectFailure)
    assert denied.retry is False
    wrong = await refused(PodExec("ml", "train-0", None, "elsewhere"))
    assert "elsewhere" in wrong.what


async def test_a_wrong_cluster_is_not_a_pod_that_is_gone(kube: Cluster) -> None:
    kube.namespace = "other"
    assert "Check the context" in (await refused()).do


async def test_a_container_without_a_shell_says_so(kube: Cluster) -> None:
    kube.pod("train-0")
    kube.shell = False
    box = await enter()
    with pytest.raises(CommandRefused, match="no /bin/sh"):
        await box.run(Script("echo hi"), timeout=20)


async def test_a_pod_of_the_same_name_is_another_machine(kube: Cluster) -> None:
    kube.pod("train-0")
    box = await enter()
    assert await box.alive()
    kube.pod("train-0")
    assert not await box.alive()


async def test_a_cluster_that_is_away_says_nothing_of_the_pod(kube: Cluster) -> None:
    kube.stop()
    away = await refused()
    assert isinstance(away, ConnectFailure)
    assert away.retry is True
    assert "does not answer" in away.what


async def test_without_kubectl_it_is_said(kube: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert (await refused()).code == "no-kubectl"


SWEEP = JobExec("ml", "sweep", None, "rig")


async def inside(via: JobExec = SWEEP) -> PodBox:
    return await enter_job(Instance("s", "kubernetes", None, via=via), via, lambda record: None)


async def shut(via: JobExec = SWEEP) -> ConnectFailure:
    with pytest.raises(ConnectFailure) as caught:
        await inside(via)
    return caught.value


async def test_a_job_is_looked_into_through_whichever_pod_runs(kube: Cluster) -> None:
    gone = await shut()
    assert (gone.code, gone.retry) == ("no-such-pod", False)
    job = kube.put("Job", "sweep", {}, {"active": 1, "conditions": []})
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3: gpu"}
    kube.pod("sweep-a", job="sweep", phase="Pending", conditions=[waiting])
    waits = await shut()
    assert (waits.code, waits.retry) == ("pod-waits", True)
    assert "0/3: gpu" in waits.what
    kube.pod("sweep-a", job="sweep")
    kube.pod("other")
    first = await inside()
    assert (await first.run(Script('echo "$RGT_IN_POD"'), timeout=20)).stdout == b"sweep-a\n"
    telemetry = await take(first, (), (), time.time)
    assert telemetry.host.value is not None
    kube.pod("sweep-a", job="sweep", phase="Failed")
    kube.pod("sweep-b", job="sweep")["metadata"]["creationTimestamp"] = "2026-11-02T00:00:00Z"
    assert (await inside()).via.pod == "sweep-b"
    job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    kube.pod("sweep-b", job="sweep", phase="Succeeded")
    over = await shut()
    assert (over.code, over.retry) == ("pod-over", False)
    assert "COMPLETED" in over.what
    assert (await shut(JobExec("ml", "sweep"))).code == "no-context"


def test_a_jobs_machine_is_a_box_and_what_is_forbidden_is_said(
    kube: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    kube.put("Job", "sweep", {}, {"active": 1, "conditions": []})
    kube.pod("sweep-a", job="sweep")
    assert main(["add", "job:ml/sweep"]) == 0
    assert "It is reached by job:ml/sweep@rig." in capsys.readouterr().out
    main(["probe", "sweep", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["host"]["system"]
    assert told["gpu_error"] is None
    kube.denied.add("exec")
    main(["status", "sweep", "--json"])
    (box,) = json.loads(capsys.readouterr().out)["boxes"]
    assert "pods/exec" in json.dumps(box)
    assert "forbidden" in json.dumps(box)


async def test_a_pod_of_no_named_context_is_not_looked_for(kube: Cluster) -> None:
    kube.pod("train-0")
    failure = await refused(PodExec("ml", "train-0"))
    assert failure.code == "no-context"
    assert "pod:NAMESPACE/NAME@rig" in failure.line
    assert [one for one in kube.asked if one != "GET /version"] == []


def test_what_is_added_keeps_the_context_that_was_current(
    kube: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    assert main(["add", "pod:ml/train-0", "--dry-run"]) == 0
    assert "pod:ml/train-0@rig" in capsys.readouterr().out
    assert main(["add", "pod:ml/train-0"]) == 0
    assert "pod:ml/train-0@rig" in capsys.readouterr().out
    assert load(paths().fleet_file).instances[0].via == PodExec("ml", "train-0", None, "rig")
