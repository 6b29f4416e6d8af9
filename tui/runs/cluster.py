"""What a login node can say before a run is submitted: whether the scheduler would take it, and when."""

from __future__ import annotations

import json

from tui.box.kubectl import PodBox
from tui.box.transport import Script, Transport
from tui.model.failure import Failure
from tui.model.job import Job
from tui.model.text import safe
from tui.runs.errand import Errand
from tui.runs.kube_job import WANTED, manifest, wanted
from tui.runs.preflight import Check, Verdict
from tui.runs.scheduler import words

_TRY = r"""
LC_ALL=C; export LC_ALL
command -v sbatch >/dev/null 2>&1 || { echo none; exit 0; }
printf '#!/bin/sh\nexit 0\n' | sbatch --test-only "$@" 2>&1
echo "status $?"
"""
"""Its words. Nothing is submitted by ``--test-only``: the controller says whether and when it could start."""


async def home_of(box: Transport) -> str:
    """The login's home. Raises LinkLost, TimeoutError."""
    done = await box.run(Script("cd && pwd", why="where is home?"))
    return done.stdout.decode("utf-8", "surrogateescape").strip() or "/root"


async def schedulable(box: Transport, task: Errand) -> Check:
    """Whether the scheduler would take this run. Raises LinkLost, TimeoutError."""
    return await _by_claim(box, task) if task.how == "job" else await _by_slurm(box, task.job)


async def _by_claim(box: Transport, task: Errand) -> Check:
    """A Job's pods find what lies on a claim, and nothing else."""
    if not isinstance(box, PodBox):
        return _check("stop", "A Job is made through a pod that mounts its claim: --on a box with pod:….")
    try:
        made = manifest(await box.about(), json.loads(wanted(task.job)[WANTED]), "r", task.run)
    except Failure as failure:
        return _check("stop", str(failure.line))
    image = made["spec"]["template"]["spec"]["containers"][0].get("image")
    return _check("ok", f"Its pods run {image} and mount the claim that the run lies on.")


async def _by_slurm(box: Transport, job: Job) -> Check:
    """Ask the controller, which submits nothing."""
    done = await box.run(Script(_TRY, words(job), why="would Slurm take it?"), timeout=30)
    *said, last = done.stdout.decode("utf-8", "replace").strip().split("\n")
    told = safe((said or [""])[-1].removeprefix("sbatch: "), 300)
    if last == "none":
        return _check("stop", "There is no sbatch here: this is no login node of Slurm.")
    if last == "status 0":
        return _check("ok", f"Slurm would take it: {told}.")
    if "allocation failure" in told or "error" in told or "invalid" in told.lower():
        return _check("stop", f"Slurm would refuse it: {told}.")
    return _check("unknown", f"Whether Slurm would take it is not told: {told or last}.")


def _check(verdict: Verdict, said: str) -> Check:
    return Check("scheduler", verdict, safe(said, 400))
