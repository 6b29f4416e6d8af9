"""Runs as jobs of a real Slurm: submitted once, told why they wait, requeued and neither lost nor doubled."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.rig import Sshd
from tests.rig.slurm import Slurm
from tui.box.local import LocalTransport
from tui.cli import main
from tui.fleet.paths import Paths, paths
from tui.fleet.settings import load
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.via import SlurmStep
from tui.runs import launch
from tui.runs.detach import lay_down
from tui.runs.errand import errand
from tui.runs.scheduler import submit
from tui.runs.truth import Truth, look
from tui.workers.launch_once import worked_out

pytestmark = [pytest.mark.slow, pytest.mark.real]

# Steps that are slow at first and quick after a requeue; each leaves its checkpoint whole.
LOOP = (
    'n=$(cat "$RGT_RUN/ckpt" 2>/dev/null || echo 0); nap=%s; '
    '[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || nap=0.02; '
    'while [ $n -lt %d ]; do n=$((n+1)); echo "step $n/%d loss: 0.$n"; echo $n >"$RGT_RUN/part"; '
    'mv "$RGT_RUN/part" "$RGT_RUN/ckpt"; sleep $nap; done; echo ok >"$RGT_RUN/final"'
)


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: Sshd) -> Paths:
    """The operator's files with the login node as their one box."""
    monkeypatch.setenv("RGT_HOME", str(tmp_path / "rgt"))
    config = tmp_path / "ssh_config"
    config.write_text("Host *\n  UserKnownHostsFile /dev/null\n  GlobalKnownHostsFile /dev/null\n")
    monkeypatch.setenv("RGT_SSH_CONFIG", str(config))
    found = paths()
    found.fleet_file.parent.mkdir(parents=True)
    found.fleet_file.write_text(
        f'[instances.hpc]\nplatform = "slurm"\nhost = "{login.host}"\nport = {login.port}\n'
        f'user = "{login.user}"\nkey = "{login.client_key}"\n'
    )
    return found


def job_file(
    tmp_path: Path, steps: int, nap: float, *, gpus: int = 1, name: str = "train", more: str = ""
) -> Path:
    folder = tmp_path / f"job-{name}"
    folder.mkdir()
    (folder / "code.txt").write_text(name)
    file = folder / "job.toml"
    script = LOOP % (nap, steps, steps)
    file.write_text(
        f'name = "{name}"\nproject = "shop"\nrun = ["sh", "-c", {json.dumps(script)}]\nfinish = "final"\n'
        f'checkpoints = "ckpt"\nresources = {{ gpu = ":{gpus}", cores = 1 }}\n{more}'
    )
    return file


def launched(capsys: pytest.CaptureFixture[str], file: Path, expect: int = 0) -> dict[str, object]:
    capsys.readouterr()
    code = main(["launch", str(file), "--on", "hpc", "--json"])
    shown = capsys.readouterr()
    assert code == expect, shown
    told: dict[str, object] = json.loads(shown.out)
    return told


def truth_of(slurm: Slurm, folder: object, monkeypatch: pytest.MonkeyPatch) -> Truth:
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return asyncio.run(look(LocalTransport(), str(folder)))


def until(slurm: Slurm, folder: object, monkeypatch: pytest.MonkeyPatch, *states: str) -> Truth:
    deadline = time.monotonic() + 25
    while (truth := truth_of(slurm, folder, monkeypatch)).state not in states:
        assert time.monotonic() < deadline, (truth, slurm.log()[-1500:])
        time.sleep(0.2)
    return truth


def test_job_requeue_a_run_goes_on_where_it_was_under_its_id_and_keeps_its_log(
    slurm: Slurm,
    where: Paths,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """JOB-REQUEUE: the scheduler starts it again; a site's default would empty its log without a word."""
    told = launched(capsys, job_file(tmp_path, 80, 0.2))
    assert (told["kind"], told["attempt"]) == ("first-step", 1)
    run = Path(str(told["folder"]))
    before = until(slurm, run, monkeypatch, "running")
    job = before.job
    assert job is not None
    (spec,) = load(where.fleet_file).runs
    assert (spec.session, spec.pid) == (f"slurm:{job}", None)  # no pid of another machine
    assert "gres:gpu:1" in slurm.run("squeue", "-h", "-j", job, "-o", "%b") or "gpu" in slurm.run(
        "scontrol", "show", "job", job
    )
    # The same launch again: it is alive, so nothing is submitted.
    again = launched(capsys, tmp_path / "job-train" / "job.toml")
    assert again["kind"] == "first-step"
    assert slurm.run("squeue", "-h", "-o", "%A").split() == [job]
    slurm.run("scontrol", "requeue", job)
    waits = until(slurm, run, monkeypatch, "pending")
    assert job in waits.why
    slurm.until(job, "RUNNING")
    done = until(slurm, run, monkeypatch, "finished")
    assert (done.attempt, done.job) == (2, job)
    # A shell that is ended in its nap may say so between the steps.
    lines = (run / "train.log").read_text().splitlines()
    steps = [int(line.split()[1].split("/")[0]) for line in lines if line.startswith("step ")]
    assert (steps[0], steps[-1]) == (1, 80)
    assert 80 <= len(steps) <= 81  # it went on where it was: at most the step that was under way came twice
    assert slurm.run("squeue", "-h", "-t", "PENDING,RUNNING", "-o", "%A") == ""
    assert len(list((run / ".rgt" / "attempts").iterdir())) == 2


def test_job_forgotten_what_the_run_wrote_counts_and_without_a_word_it_is_lost(
    slurm: Slurm,
    where: Paths,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """JOB-FORGOTTEN: Slurm knows nothing of a job that is over for a while; that is no end by itself."""
    done = launched(capsys, job_file(tmp_path, 3, 0.1, name="ends"))["folder"]
    killed = launched(capsys, job_file(tmp_path, 900, 0.1, name="killed"))["folder"]
    truth = until(slurm, killed, monkeypatch, "running")
    assert truth.child is not None
    for pid in (int(truth.start["pid"]), truth.child[0]):
        os.kill(pid, signal.SIGKILL)
    (Path(str(killed)) / "ckpt").write_text("899\n")
    deadline = time.monotonic() + 40
    while "not known to the scheduler" not in (truth := truth_of(slurm, killed, monkeypatch)).why:
        assert time.monotonic() < deadline, truth
        time.sleep(0.5)
    assert truth.state == "lost"
    while (
        truth_of(slurm, done, monkeypatch).job in slurm.run("squeue", "-h", "-t", "all", "-o", "%A").split()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert truth_of(slurm, done, monkeypatch).state == "finished"
    # What the handbook says for who has no rgt submits it once more, and it goes on.
    assert main(["handbook", Path(str(killed)).name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    made = subprocess.run(["bash", "-c", told["by hand"]], check=True, timeout=20, capture_output=True)
    assert b"Submitted batch job" in made.stdout
    shown = subprocess.run(["bash", "-c", told["session"]], check=True, timeout=20, capture_output=True)
    assert b"rgt-kill" in shown.stdout
    assert until(slurm, killed, monkeypatch, "finished").attempt == 2


def test_why_it_waits_is_the_answer_and_it_is_submitted_once(
    slurm: Slurm,
    where: Paths,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "PENDING_S", 3.0)
    blocker = slurm.submit("sleep 300", "--gres=gpu:2")
    slurm.until(blocker, "RUNNING")
    file = job_file(tmp_path, 3, 0.1, gpus=2, name="waits")
    told = launched(capsys, file)
    assert told["kind"] == "pending"
    assert "Resources" in str(told["why"]) or "Priority" in str(told["why"])
    assert launched(capsys, file)["kind"] == "pending"
    jobs = slurm.run("squeue", "-h", "-t", "PENDING", "-o", "%A").split()
    assert len(jobs) == 1
    slurm.run("scancel", jobs[0])
    ended = until(slurm, told["folder"], monkeypatch, "lost")
    assert "CANCELLED" in ended.why or "not known" in ended.why
    slurm.run("scancel", blocker)


def test_an_answer_that_was_lost_makes_no_second_job(
    slurm: Slurm, where: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = load(where.fleet_file).instances[0]
    task = worked_out(job_file(tmp_path, 100, 0.5, name="once"), instance, where, folder=str(tmp_path / "d"))
    what = task.launch(None)

    async def twice() -> list[tuple[str, bool]]:
        box = LocalTransport()
        await lay_down(box, what.run, what.files)
        return [await submit(box, what.run, what.session) for _ in range(2)]

    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    (first, new), (second, again) = asyncio.run(twice())
    assert (first, new, again) == (second, True, False)


def test_what_the_site_would_refuse_is_told_before_anything_is_laid_down(
    slurm: Slurm, where: Paths, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = job_file(tmp_path, 3, 0.1, gpus=7, name="greedy")
    assert main(["launch", str(file), "--on", "hpc"]) == 1
    shown = capsys.readouterr().out
    assert "stop     scheduler: Slurm would refuse it" in shown
    assert "Nothing was started." in shown


def test_a_run_is_not_started_inside_a_job(where: Paths, tmp_path: Path) -> None:
    inside = Instance("j", "slurm", None, "1", via=SlurmStep("1", "hpc"))
    with pytest.raises(Failure, match="runs already"):
        errand(job_file(tmp_path, 1, 0.1, name="in"), inside, None)
