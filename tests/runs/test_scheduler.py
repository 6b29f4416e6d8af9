"""A job file's constraint in sbatch's words, and what a scheduler adds to what a run wrote itself."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from tests.real import find
from tui.box.local import LocalTransport
from tui.model.failure import Failure
from tui.model.job import Job
from tui.runs.kube_job import name_of
from tui.runs.scheduler import WORDS, batch, batch_name, job_name, over, submit, waits, words
from tui.runs.truth import judge

HERE = "now 100\nhere login b1\n"
ELSEWHERE = "attempt 1\nholder 7 1 b2 node9 42\n"


def job(**more: object) -> Job:
    return Job.model_validate({"name": "r", "project": "p", "run": ["true"], **more})


def test_the_constraint_and_the_sites_own_words() -> None:
    told = words(
        job(
            resources={"gpu": "A100:2, ≥40 GB", "cores": 8, "memory": "64 GiB"},
            checkpoints="ckpt",
            slurm={"partition": "gpu", "account": "a b", "time": "90 m"},
        )
    )
    assert {"--gres=gpu:a100:2", "--cpus-per-task=8", "--mem=65536M", "--time=90"} <= set(told)
    assert {"--partition=gpu", "--account=a b", "--requeue", "--signal=B:TERM@120"} <= set(told)


def test_what_can_not_go_on_is_not_requeued_and_the_sites_gres_wins() -> None:
    told = words(job(resources={"gpu": ":2"}, slurm={"gres": "gpu:x:2"}))
    assert "--no-requeue" in told
    assert [word for word in told if "gres" in word] == ["--gres=gpu:x:2"]


def test_an_array_has_a_task_for_each_cell_and_a_log_for_each_task() -> None:
    told = words(job(), tasks=16, at_once=4)
    assert "--array=0-15%4" in told
    assert any(word.endswith("%A_%a.out") for word in told)


@pytest.mark.parametrize(
    ("told", "state", "word"),
    [
        (HERE + "job 42\nslurm PENDING|Priority|\n", "pending", "Priority"),
        (HERE + "job 42\nslurm RUNNING|None|node9\n", "running", "node9"),
        (HERE + "job 42\nslurm CANCELLED|None|\n", "lost", "CANCELLED"),
        (HERE + "job 42\nnoslurm slurm_load_jobs error: Invalid job id specified\n", "lost", "not known"),
        (HERE + "job 42\nnoslurm slurm_load_jobs error: Unable to contact slurm controller\n", "placed", ""),
        (HERE + ELSEWHERE + "job 42\nslurm RUNNING|None|node9\n", "running", "node9"),
        (HERE + ELSEWHERE + "job 42\nslurm TIMEOUT|TimeLimit|node9\n", "lost", "TIMEOUT"),
        (HERE + ELSEWHERE + "job 42\nslurm PENDING|BeginTime|\n", "pending", "BeginTime"),
        (HERE + ELSEWHERE + "job 42\nslurm NEW_WORD|x|node9\n", "running", "NEW_WORD"),
        (HERE + ELSEWHERE + "job 42\nnoslurm Unable to contact slurm controller\n", "unknown", "node9"),
        (HERE + ELSEWHERE + "end reason finished\njob 42\nslurm PENDING|x|\n", "finished", ""),
        (HERE + ELSEWHERE + "end reason stopped\njob 42\nslurm PENDING|BeginTime|\n", "pending", "BeginTime"),
        (HERE + ELSEWHERE + "end reason failed\nend status 3\njob 42\nslurm FAILED|x|\n", "failed", "3"),
    ],
)
def test_what_the_scheduler_adds(told: str, state: str, word: str) -> None:
    truth = judge(told)
    assert truth.state == state
    assert word in truth.why
    assert truth.job == "42"


def test_no_two_runs_have_one_job() -> None:
    """By its name a job is found instead of submitted, and one that is over is deleted."""
    folders = ("/d/p/active/a.b", "/d/p/active/a_b", "/d/q/active/a_b", "/d/p/active/A_b")
    long = f"rgt-{'x' * 90}"
    sessions = [(f"rgt-{folder.rpartition('/')[2].replace('.', '_')}", folder) for folder in folders]
    sessions += [(long + end, f"/d/p/active/{end}") for end in ("1", "2")]
    for named in (job_name, name_of):
        names = [named(session, folder) for session, folder in sessions]
        assert len(set(names)) == len(names)
        assert names == [named(session, folder) for session, folder in sessions]
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name_of(*one)) for one in sessions)


def test_a_word_that_nobody_knows_neither_waits_nor_is_over() -> None:
    assert not waits("NEW_WORD")
    assert not over("NEW_WORD")
    assert not over("COMPLETING")
    assert not over("PREEMPTED")


def slurm(tmp_path: Path, squeue: str, sbatch: str) -> None:
    """A run's folder, and tools that answer as they are told and write down that they were asked."""
    (tmp_path / ".rgt").mkdir()
    (tmp_path / WORDS).parent.mkdir()
    (tmp_path / WORDS).write_text("--nodes=1\n")
    (tmp_path / batch_name()).write_text("")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("squeue", squeue), ("sbatch", sbatch)):
        (tools / name).write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/asked\n{text}\n")
        (tools / name).chmod(0o755)


@pytest.mark.parametrize(
    ("squeue", "sbatch", "means"),
    [
        ("exit 1", "echo 7", "not known"),
        (": none", "exit 1", "Nothing was submitted"),
        ("[ ! -e asked.once ] && >asked.once && exit 0; exit 1", "exit 1", "not known"),
    ],
)
async def test_what_is_not_known_of_a_submission_is_not_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, squeue: str, sbatch: str, means: str
) -> None:
    slurm(tmp_path, squeue, sbatch)
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:/usr/bin:/bin")
    with pytest.raises(Failure) as failed:
        await submit(LocalTransport(), str(tmp_path), "rgt-r")
    assert means in (failed.value.means or "")
    assert not (tmp_path / ".rgt/submitting").exists()


async def test_of_two_submissions_at_once_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm(tmp_path, "cat jobs 2>/dev/null; exit 0", "sleep 1; echo 7 >>jobs; echo 7")
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:/usr/bin:/bin")
    made = await asyncio.gather(
        *(submit(LocalTransport(), str(tmp_path), "rgt-r") for _ in range(2)), return_exceptions=True
    )
    assert min(map(str, made)) == "('7', True)"
    assert sum(isinstance(one, Failure) for one in made) == 1
    assert await submit(LocalTransport(), str(tmp_path), "rgt-r") == ("7", False)
    assert (tmp_path / "asked").read_text().split().count("sbatch") == 1


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_a_task_of_an_array_takes_its_line(tmp_path: Path, shell: str) -> None:
    program = find(shell)
    if program is None:
        pytest.skip(f"no {shell}")
    runs = [tmp_path / "a", tmp_path / "b c"]
    for run in runs:
        (run / ".rgt" / "plan").mkdir(parents=True)
        (run / ".rgt" / "plan" / "wrapper").write_text(".rgt/w.sh\n")
        (run / ".rgt" / "w.sh").write_text('echo "$1" >"$1/ran"\n')
    (tmp_path / "cells").write_text(f"a {runs[0]}\nbc {runs[1]}\n")
    file = tmp_path / "batch.sh"
    file.write_bytes(batch())
    argv = [program, *(["sh"] if shell == "busybox" else []), str(file), str(tmp_path)]
    told = {"PATH": "/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": "1", "SLURM_JOB_ID": "9"}
    assert subprocess.run(argv, env=told, timeout=10).returncode == 0
    assert (runs[1] / "ran").read_text().strip() == str(runs[1])
    assert (runs[1] / ".rgt" / "job").read_text() == "9\n"
    assert not (runs[0] / "ran").exists()
    beyond = subprocess.run(argv, env={**told, "SLURM_ARRAY_TASK_ID": "2"}, timeout=10, capture_output=True)
    assert beyond.returncode == 76
