"""What is laid down on a box before a run starts: the wrapper and its plan, one value or word a line.

No shell text is made from data. The wrapper is constant and its name holds its own hash, so that one that
runs is never written over; everything that differs between runs is read by it from plain files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType

from tui.model.failure import Exit, Failure
from tui.model.job import Job, Stage

RGT = ".rgt"
PLAN = f"{RGT}/plan"

_PLACE = re.compile(r"\{(data|durable|scratch|run|project|seed|attempt|cell\.[a-z0-9._-]+)\}")
_SOURCED = re.compile(r"(?:source|\.)\s+(/\S+)")


@dataclass(frozen=True, slots=True)
class Where:
    """The places of one run on one box.

    Attributes:
        run: its folder, absolute.
        values: the profile's script values that are known, such as ``DATA_DIR``.
        cell: the matrix values of this cell.
    """

    run: str
    values: Mapping[str, str] = field(default_factory=dict)
    cell: Mapping[str, str] = field(default_factory=dict)


def wrapper() -> bytes:
    """The wrapper's text; no shell reads one with the line ends that a Windows checkout gives it."""
    return resources.files("tui.runs").joinpath("wrapper.sh").read_bytes().replace(b"\r\n", b"\n")


def wrapper_name() -> str:
    return f"{RGT}/wrapper-{hashlib.sha256(wrapper()).hexdigest()[:16]}.sh"


SOURCE = "src"
"""The run's own copy of the code, where its stages begin."""


def plan_files(
    job: Job,
    where: Where,
    *,
    code: str | None = None,
    secrets_file: str | None = None,
    more: Mapping[str, bytes] = MappingProxyType({}),
) -> dict[str, bytes]:
    """Every file of the plan, by its path below the run's folder.

    Args:
        code: digest of the tree that lies in `SOURCE`; None: the job brings no code and begins in the folder.
        secrets_file: where on the box the job's secrets lie, absolute; their values are no part of a plan.
        more: further files of the plan, for the scheduler that starts it.

    Raises:
        Failure: a word names a place that this box or cell does not have.
    """
    files = {**more, f"{PLAN}/wrapper": _line(wrapper_name()), f"{PLAN}/env": _environment(job, where)}
    hook = _SOURCED.match(where.values.get("PROXY_HOOK", ""))
    if hook:
        files[f"{PLAN}/hook"] = _line(hook[1])
    if secrets_file:
        files[f"{PLAN}/secrets"] = _line(secrets_file)
    if code:
        files[f"{PLAN}/code"] = _line(code)
    if job.notify:
        files[f"{PLAN}/tell.sh"] = resources.files("tui.runs").joinpath("tell.sh").read_bytes()
        told = ("sh", f"{PLAN}/tell.sh", job.notify.url_env, job.notify.kind)
        files[f"{PLAN}/after"] = "".join(f"{word}\n" for word in told).encode()
    for number, stage in enumerate(job.chain(), start=1):
        files |= _stage(f"{PLAN}/stages/{number:02}-{stage.name}", stage, job, where, SOURCE if code else ".")
    # Which wrapper carries it is no part of what it does: after an update the same command goes on with it.
    files[f"{PLAN}/id"] = _line(digest({n: body for n, body in files.items() if n != f"{PLAN}/wrapper"}))
    return {wrapper_name(): wrapper(), **files}


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 over names and contents; two plans of one digest do the same."""
    whole = hashlib.sha256()
    for name in sorted(files):
        whole.update(f"{name}\0{len(files[name])}\0".encode())
        whole.update(files[name])
    return whole.hexdigest()


def filled(word: str, job: Job, where: Where) -> str:
    """A word with its places filled in; other braces, such as those of JSON, stay as they are.

    Raises:
        Failure: this box or cell has no such place.
    """
    known = {
        "run": where.run,
        "project": job.project,
        "seed": None if job.seeds.seed is None else str(job.seeds.seed),
        "data": where.values.get("DATA_DIR"),
        "durable": where.values.get("DURABLE_DIR"),
        "scratch": where.values.get("SCRATCH"),
        **{f"cell.{name}": value for name, value in where.cell.items()},
    }

    def put(found: re.Match[str]) -> str:
        value = known.get(found[1])
        if value is None:
            raise Failure(
                f"The job names {found[0]}, which is not known here.",
                means="Nothing was run.",
                do="Give the value in the job file, or an absolute path in its place.",
                exit=Exit.USAGE,
                code="unknown-place",
            )
        return value

    return _PLACE.sub(put, word)


def _environment(job: Job, where: Where) -> bytes:
    """The profile's values first, then what the seeds ask for, then the job's own words, which win."""
    told = {
        name: where.values[name]
        for name in ("DATA_DIR", "DURABLE_DIR", "SCRATCH", "HF_HOME", "HF_ENDPOINT", "TB_LOGDIR", "PY")
        if where.values.get(name)
    }
    seeds = job.seeds
    if seeds.seed is not None:
        told |= {"RGT_SEED": str(seeds.seed), "PYTHONHASHSEED": str(seeds.seed % (1 << 32))}
    if seeds.deterministic:
        told["CUBLAS_WORKSPACE_CONFIG"] = seeds.cublas_workspace or ":4096:8"
    told |= {name: filled(value, job, where) for name, value in job.env.items()}
    return "".join(f"{name}={value}\n" for name, value in told.items()).encode()


def _stage(folder: str, stage: Stage, job: Job, where: Where, begins: str) -> dict[str, bytes]:
    files = {
        f"{folder}/argv": "".join(f"{filled(word, job, where)}\n" for word in stage.run).encode(),
        f"{folder}/log": _line(job.log),
        f"{folder}/kib": _line(str(-(-max(stage.disk, job.resources.disk) // 1024))),
        f"{folder}/inodes": _line(str(max(stage.inodes, job.resources.inodes))),
        f"{folder}/workdir": _line(begins),
    }
    if stage.artifact:
        files[f"{folder}/artifact"] = _line(stage.artifact)
    if stage.timeout:
        files[f"{folder}/timeout"] = _line(str(stage.timeout))
    return files


def _line(value: str) -> bytes:
    return f"{value}\n".encode()
