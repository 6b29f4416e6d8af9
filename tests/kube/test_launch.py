"""Runs as Jobs of a cluster: made once, like the pod they are launched through, on its claim or not."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.rig.kube_api import Cluster
from tui.cli import main
from tui.fleet.paths import Paths, paths
from tui.fleet.settings import load
from tui.runs import launch

pytestmark = [pytest.mark.slow, pytest.mark.real]


@pytest.fixture
def claim(kube: Cluster, tmp_path: Path) -> Path:
    """A claim, mounted in the operator's pod."""
    mount = tmp_path / "claim"
    mount.mkdir()
    spec = kube.pod("desk")["spec"]
    spec["volumes"] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "tmp", "emptyDir": {}},
    ]
    box = spec["containers"][0]
    box |= {"image": "img@sha256:1", "env": [{"name": "A", "value": "1"}]}
    box["volumeMounts"] = [
        {"name": "data", "mountPath": str(mount)},
        {"name": "tmp", "mountPath": str(tmp_path / "scratch")},
    ]
    return mount


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claim: Path) -> Paths:
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    assert main(["add", "pod:ml/desk@rig", "--name", "k8s"]) == 0
    return paths()


def job_file(tmp_path: Path, more: str = "") -> Path:
    folder = tmp_path / "job"
    folder.mkdir(exist_ok=True)
    (folder / "code.txt").write_text("x")
    file = folder / "job.toml"
    file.write_text(
        'name = "train"\nproject = "shop"\nfinish = "final"\ncheckpoints = "ckpt"\n'
        'run = ["sh", "-c", "echo step 1/1; echo $RGT_IN_POD >>$RGT_RUN/pods; echo ok >$RGT_RUN/final"]\n'
        f'resources = {{ gpu = ":2", cores = 4, memory = "8 GiB" }}\n{more}'
    )
    return file


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    capsys.readouterr()
    main([*words, "--json"])
    out: dict[str, object] = json.loads(capsys.readouterr().out)
    return out


def test_a_run_is_one_job_in_pods_like_the_desk(
    kube: Cluster, claim: Path, where: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kube.runs_jobs = True
    file = job_file(tmp_path)
    first = told(capsys, "launch", str(file), "--on", "k8s", "--dir", str(claim))
    assert first["kind"] in ("first-step", "finished")
    (made,) = kube.posted
    spec = made["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert made["spec"]["backoffLimit"] == 6
    assert (container["image"], container["env"]) == ("img@sha256:1", [{"name": "A", "value": "1"}])
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2", "memory": "8192Mi"}
    assert [one["name"] for one in spec["volumes"]] == ["data"]  # what dies with a pod is not taken along
    (run,) = load(where.fleet_file).runs
    (job,) = (key.rpartition("/")[2] for key in kube.objects if key.startswith("Job/"))
    assert (run.pid, run.session) == (None, f"job:{job}")  # of no pod that is gone tomorrow
    assert told(capsys, "launch", str(file), "--on", "k8s", "--dir", str(claim))["kind"] == "finished"
    assert len(kube.posted) == 1
    assert (Path(str(first["folder"])) / "pods").read_text().count("rgt-train") == 1


def test_that_it_waits_is_told_with_the_schedulers_words_and_it_is_made_once(
    kube: Cluster,
    claim: Path,
    where: Paths,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "PENDING_S", 0.5)
    file = job_file(tmp_path)
    first = told(capsys, "launch", str(file), "--on", "k8s", "--dir", str(claim))
    assert first["kind"] == "pending"
    assert "no pod of it is there" in str(first["why"])
    (name,) = (key.rpartition("/")[2] for key in kube.objects if key.startswith("Job/"))
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3: gpu"}
    kube.pod(f"{name}-x", job=name, phase="Pending", conditions=[waiting])
    again = told(capsys, "launch", str(file), "--on", "k8s", "--dir", str(claim))
    assert again["kind"] == "pending"
    assert "0/3: gpu" in str(again["why"])
    assert len(kube.posted) == 1
    kube.objects = {key: one for key, one in kube.objects.items() if not key.startswith(f"Job/ml/{name}")}
    capsys.readouterr()
    assert main(["launch", str(file), "--on", "k8s", "--dir", str(claim)]) == 0  # gone: it is made anew
    assert f"rgt add job:ml/{name}/run@rig" in capsys.readouterr().out
    assert len(kube.posted) == 2


def test_a_failed_job_makes_room_for_the_next_attempt(
    kube: Cluster, claim: Path, where: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kube.runs_jobs = True
    file = job_file(tmp_path)
    file.write_text(file.read_text().replace("echo step 1/1;", "[ -e $RGT_RUN/again ] || exit 5;"))
    first = told(capsys, "launch", str(file), "--on", "k8s", "--dir", str(claim))
    assert first["kind"] == "dead"
    deadline = time.monotonic() + 10
    while not any(one["status"].get("conditions") for one in kube.objects.values() if one["kind"] == "Job"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    (Path(str(first["folder"])) / "again").touch()
    second = told(capsys, "resume", str(first["run"]))
    assert (second["kind"], second["attempt"], len(kube.posted)) == ("finished", 2, 2)


def test_a_folder_on_no_claim_is_refused_before_anything(
    kube: Cluster, where: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch = tmp_path / "scratch"
    assert main(["launch", str(job_file(tmp_path)), "--on", "k8s", "--dir", str(scratch)]) == 1
    assert "no persistent volume claim" in capsys.readouterr().out
    assert kube.posted == []
    assert not scratch.exists()


def test_a_queue_is_one_indexed_job(
    kube: Cluster, claim: Path, where: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kube.runs_jobs = True
    file = job_file(tmp_path, '[matrix]\nlr = ["1", "2", "3"]\n[slurm]\nat_once = 2\n')
    assert main(["queue", str(file), "--on", "k8s", "--dir", str(claim)]) == 0
    (made,) = kube.posted
    spec = made["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 3, 2)
    deadline = time.monotonic() + 20
    while True:
        told_cells = told(capsys, "matrix")["cells"]
        assert isinstance(told_cells, list)
        if {one["state"] for one in told_cells} == {"complete"}:
            break
        assert time.monotonic() < deadline, told_cells
        time.sleep(0.3)
    pods = sorted(path.read_text().strip() for path in claim.rglob("pods"))
    assert len(pods) == len(set(pods)) == 3
