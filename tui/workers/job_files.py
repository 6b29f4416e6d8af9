"""Job files that can be launched: those launched before, one's own, and those near the working directory."""

from __future__ import annotations

import math
import os
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tui.fleet.paths import Paths
from tui.model.failure import Failure
from tui.model.job import Job
from tui.model.launch import JobFile
from tui.model.text import safe
from tui.runs.book import book
from tui.runs.job_file import read_job

DEPTH = 2
"""Folders below the working directory that are looked into."""
MOST = 40
EARLIER = 10
_PAGES = 200  # a queue has a page for each cell, all of one file
_ENTRIES = 5_000
_LOOK_S = 1.0
_CAP = 256 << 10
_SKIPPED = frozenset(("node_modules", "__pycache__", "site-packages", "wandb", "runs", "outputs"))


def job_files(where: Paths, folder: Path) -> tuple[JobFile, ...]:
    """What can be chosen: launched ones first, the newest at the top, then one's own, then those near by."""
    earlier = list(_earlier(where))
    found = {path.resolve(): path for path in (*near(where.jobs), *near(folder))}
    for path in earlier:
        found.pop(path, None)
    bases = ((where.config, ""), (folder, ""), (Path.home(), "~/"))
    told = [replace(told_of(path, bases), earlier=True) for path in earlier]
    return (*told, *(told_of(path, bases) for path in list(found.values())[:MOST]))


def job_named(text: str, where: Paths, folder: Path) -> Path:
    """The file that a word means: a path from `folder`, else one of one's own jobs by its name."""
    path = folder / Path(text).expanduser()
    own = where.jobs / text / "job.toml"
    return own if "/" not in text and not path.is_file() and own.is_file() else path


def near(folder: Path) -> Iterator[Path]:
    """Files in `folder`, and a little below, that say what a job file says; bounded in time and number."""
    ends, seen = time.monotonic() + _LOOK_S, 0
    for here, folders, files in os.walk(folder):
        depth = len(Path(here).relative_to(folder).parts)
        folders[:] = sorted(n for n in folders if n not in _SKIPPED and n[0] != ".") if depth < DEPTH else []
        for name in sorted(files):
            if name.endswith(".toml") and looks_like_a_job(path := Path(here) / name):
                yield path
        seen += len(files) + len(folders)
        if seen > _ENTRIES or time.monotonic() > ends:
            return


def looks_like_a_job(path: Path) -> bool:
    """A TOML file that names a project and something to run; one that is called so even when it is broken."""
    try:
        if not path.is_file() or path.stat().st_size > _CAP:
            return False
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError:
        return False
    except ValueError:
        return path.name == "job.toml"
    return "name" in data and isinstance(data.get("project"), str) and ("run" in data or "stages" in data)


def told_of(path: Path, bases: Sequence[tuple[Path, str]]) -> JobFile:
    """A file as a choice; what is wrong with it stands beside it."""
    title = safe(_short(path, bases), 200)
    try:
        return JobFile(str(path), title, safe(described(read_job(path)), 200))
    except Failure as failure:
        return JobFile(str(path), title, safe(failure.what, 200), fits=False)


def described(job: Job) -> str:
    """A job in a few words."""
    stages = [stage.name for stage in job.chain()]
    many = f"{len(stages)} stages" if len(stages) > 1 else "1 stage"
    matrix = f", a matrix of {cells_of(job)} cells (rgt queue runs them)" if job.matrix else ""
    return f"{job.name} of {job.project}, {many}{matrix}"


def cells_of(job: Job) -> int:
    """How many cells a job's matrix has; 1 without one."""
    return math.prod(len(values) for values in job.matrix.values())


def needs(job: Job) -> str:
    """The hardware a job asks for, in a few words; empty where it asks for none."""
    gpu = job.resources.gpu
    if not gpu.count:
        return ""
    memory = f" of {gpu.memory / 1e9:.0f} GB" if gpu.memory else ""
    model = f"{gpu.model} " if gpu.model else ""
    return f"{gpu.count} {model}{'card' if gpu.count == 1 else 'cards'}{memory}"


def _earlier(where: Paths) -> Iterator[Path]:
    """Files of launched runs that are still there, newest first, each once."""
    kept = book(where)
    seen: dict[str, None] = {}
    for run in kept.names()[:_PAGES]:
        try:
            seen.setdefault(kept.page(run).file)
        except Failure:
            continue  # a damaged page takes no other from sight
        if len(seen) >= EARLIER:
            break
    return (path for name in seen if (path := Path(name)).is_file())


def _short(path: Path, bases: Sequence[tuple[Path, str]]) -> str:
    for base, sign in bases:
        if path.is_relative_to(base):
            return f"{sign}{path.relative_to(base)}"
    return str(path)
