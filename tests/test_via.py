"""The written form of ways to machines that answer no SSH."""

from __future__ import annotations

import pytest

from tui.fleet.settings import read
from tui.model.via import JobExec, NoWay, PodExec, SlurmStep, parse_via


@pytest.mark.parametrize(
    ("text", "via"),
    [
        ("slurm:4227@hpc", SlurmStep("4227", "hpc")),
        ("slurm:4227_3@hpc", SlurmStep("4227_3", "hpc")),
        ("pod:ml/train-0", PodExec("ml", "train-0")),
        ("pod:ml/train-0/main", PodExec("ml", "train-0", "main")),
        ("pod:ml/a.b@admin@prod", PodExec("ml", "a.b", None, "admin@prod")),
        ("pod:ml/a/c@arn:aws:eks:eu:1:cluster/x", PodExec("ml", "a", "c", "arn:aws:eks:eu:1:cluster/x")),
        ("job:ml/sweep", JobExec("ml", "sweep")),
        ("job:ml/sweep/run@prod", JobExec("ml", "sweep", "run", "prod")),
        ("none", NoWay()),
    ],
)
def test_written_and_read_again(text: str, via: object) -> None:
    assert parse_via(text) == via
    assert str(via) == text


@pytest.mark.parametrize(
    "text",
    ["slurm:4227", "slurm:x@hpc", "slurm:1;rm@hpc", "pod:train-0", "pod:ML/x", "pod:ml/-x", "pod:ml/x/",
     "pod:ml/x@", "pod:ml/x@--all", "pod:ml/x@a b", "none:x", "ssh:host", "",
     "job:sweep", "job:ml/x/", "job:ml/x@--all"],
)  # fmt: skip
def test_what_is_no_way_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_via(text)


HPC = '[instances.hpc]\nplatform = "slurm"\nssh = "me@login.example"\n'


def test_a_job_has_its_login_nodes_address_and_its_own_id() -> None:
    loaded = read(HPC + '[instances.j]\ntransport = "slurm:42@hpc"\n')
    job = loaded.instances[1]
    assert loaded.problems == ()
    assert (job.platform, job.instance_id, job.via) == ("slurm", "42", SlurmStep("42", "hpc"))
    assert job.endpoint == loaded.instances[0].endpoint
    assert not job.here


def test_a_clusters_job_is_asked_about_by_its_own_name() -> None:
    (job,) = read('[instances.p]\ntransport = "job:ml/sweep/run@prod"\n').instances
    assert (job.platform, job.instance_id, job.via) == (
        "kubernetes",
        "ml/job/sweep",
        JobExec("ml", "sweep", "run", "prod"),
    )


def test_a_pod_is_neither_this_computer_nor_an_ssh_box() -> None:
    (pod,) = read('[instances.p]\ntransport = "pod:ml/train-0"\n').instances
    assert (pod.platform, pod.instance_id, pod.endpoint, pod.here) == (
        "kubernetes",
        "ml/pod/train-0",
        None,
        False,
    )


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ('[instances.j]\ntransport = "slurm:42@nowhere"\n', "not in this file"),
        ('[instances.l]\nplatform = "local"\n[instances.j]\ntransport = "slurm:42@l"\n', "answers SSH"),
        ('[instances.j]\nssh = "a@b"\ntransport = "slurm:42@hpc"\n', "transport of its own"),
        ('[instances.j]\ntransport = "slurm:42"\n', "slurm:JOBID@LOGIN-BOX"),
    ],
)
def test_what_is_wrong_is_said_and_left_out(more: str, word: str) -> None:
    loaded = read(HPC + more)
    assert "j" not in {one.name for one in loaded.instances}
    assert any(word in problem.what for problem in loaded.problems)
