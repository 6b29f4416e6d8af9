"""Runs as Jobs of Kubernetes. The box is a pod of the operator's that mounts the claim and stays: code and
plans are brought through it, and each Job's pods are made like it, with the cards that the job file asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tui.box.kubectl import PodBox
from tui.box.transport import Script, Transport
from tui.model.failure import Exit, Failure
from tui.model.job import Job
from tui.model.text import safe
from tui.runs.plan_files import PLAN
from tui.runs.scheduler import batch, batch_name, job_name

WANTED = f"{PLAN}/kube"
"""What a Job's pods need besides the operator's own pod, as JSON."""
GRACE_S = 120
TRIES = 6

_KEPT = (
    "serviceAccountName",
    "imagePullSecrets",
    "securityContext",
    "tolerations",
    "nodeSelector",
    "affinity",
)
_KEPT_INSIDE = ("image", "imagePullPolicy", "env", "envFrom", "securityContext", "workingDir")


def wanted(job: Job, *, tasks: int = 0) -> dict[str, bytes]:
    """The files that a Job is made from: the batch script and its needs.

    Args:
        tasks: of an indexed Job, 0: one run.
    """
    need = job.resources
    limits = {"nvidia.com/gpu": str(need.gpu.count)} if need.gpu.count else {}
    asks: dict[str, str] = {"cpu": str(need.cores)} if need.cores else {}
    if need.memory:
        asks["memory"] = limits["memory"] = f"{-(-need.memory // (1 << 20))}Mi"
    told = {
        "limits": limits,
        "requests": asks,
        "tries": TRIES if job.checkpoints or job.resume else 0,
        "tasks": tasks,
        "at_once": job.slurm.at_once,
    }
    return {batch_name(): batch(), WANTED: json.dumps(told, sort_keys=True).encode() + b"\n"}


def name_of(session: str, folder: str) -> str:
    """A run's session as a name that Kubernetes takes, and that no other run's folder has."""
    whole = job_name(session, folder)
    plain, mark = re.sub(r"[^a-z0-9-]+", "-", whole[:-9].lower()), whole[-8:]
    return f"{plain[:54].strip('-')}-{mark}"


def manifest(pod: Mapping[str, Any], need: Mapping[str, Any], name: str, folder: str) -> dict[str, Any]:
    """The Job that runs what lies in `folder`, in pods like `pod`.

    Args:
        pod: the operator's, as the API server tells it.
        need: as `wanted` wrote it.

    Raises:
        Failure: the folder lies on no claim of the pod, so no other pod would find it.
    """
    spec = pod.get("spec") or {}
    containers = [one for one in spec.get("containers") or () if isinstance(one, dict)]
    box = containers[0] if containers else {}
    claims = {one.get("name") for one in spec.get("volumes") or () if "persistentVolumeClaim" in one}
    mounts = [one for one in box.get("volumeMounts") or () if one.get("name") in claims]
    if not any(_below(folder, str(one.get("mountPath") or "/nowhere")) for one in mounts):
        raise Failure(
            f"{safe(folder, 200)} lies on no persistent volume claim of this pod.",
            means="No other pod would find it, and it is lost with this one; nothing was started.",
            do="Give the claim's mount with --dir.",
            exit=Exit.USAGE,
            code="no-claim",
        )
    used = {one.get("name") for one in mounts}
    container = {key: box[key] for key in _KEPT_INSIDE if key in box} | {
        "name": "run",
        "command": ["/bin/sh", f"{folder}/{batch_name()}", folder],
        "volumeMounts": mounts,
        "resources": {"limits": need.get("limits") or {}, "requests": need.get("requests") or {}},
    }
    template = {key: spec[key] for key in _KEPT if key in spec} | {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "containers": [container],
        "volumes": [one for one in spec.get("volumes") or () if one.get("name") in used],
    }
    job: dict[str, Any] = {"backoffLimit": need.get("tries") or 0, "template": {"spec": template}}
    if tasks := need.get("tasks"):
        job |= {
            "completionMode": "Indexed",
            "completions": tasks,
            "parallelism": need.get("at_once") or tasks,
        }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}


def _below(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip("/") + "/")


async def submit(transport: Transport, folder: str, session: str) -> tuple[str, bool]:
    """Create the Job of a run or queue; its name, and whether it was made now. By its name it is made once.

    Raises:
        Failure: the cluster refused. LinkLost, TimeoutError: unknown; asking again makes no second one.
    """
    if not isinstance(transport, PodBox):
        raise Failure("A Job is made through a pod that mounts its claim.", means="Nothing was started.")
    done = await transport.run(Script('cat -- "$1"', (f"{folder}/{WANTED}",), why="what does the Job need?"))
    if done.exit != 0:
        raise Failure("The run's plan asks for no Job.", means="Nothing was started.", code="no-plan")
    name = name_of(session, folder)
    job = manifest(await transport.about(), json.loads(done.stdout), name, folder)
    made = await transport.create(job)
    if not made and (word := await transport.standing(name)) is not None:
        if word.startswith(("COMPLETED", "FAILED")):
            await transport.forget_job(name)  # the record of an attempt that is over; its run keeps its own
            word = ""
        made = not word and await transport.create(job)
    text = 'cd -- "$1" && printf "%s\\n" "$2" >.rgt/job.part && mv -f .rgt/job.part .rgt/job'
    await transport.run(Script(text, (folder, name), why="keep the Job's name with the run"))
    return name, made
