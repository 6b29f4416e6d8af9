"""What every step of the custody chain begins with: the run, its box, its folder, its records."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path

from tui.box.transport import Transport
from tui.custody.box_looks import real_folders
from tui.custody.records import Records, custody_folder, records, write_file
from tui.custody.table import read_table
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.model.custody import Roster
from tui.model.custody_table import CustodyTable
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec

JOB = "job.toml"
"""The job file that a run's custody was last taken with, kept in its custody folder."""

_GLOB_SIGNS = frozenset("*?[")
_TOO_HIGH = ("", "/", "/root", "/home", "/mnt", "/data", "/workspace", "~")


@dataclass(frozen=True, slots=True)
class Errand:
    """One run whose custody is taken.

    Attributes:
        table: the job file's ``[custody]`` table, None where there is none.
    """

    where: Paths
    instance: Instance
    spec: RunSpec
    table: CustodyTable | None

    @property
    def records(self) -> Records:
        return records(self.where, self.spec.name)

    @property
    def folder(self) -> Path:
        return custody_folder(self.where, self.spec.name)


def errand(name: str, where: Paths, job: str | None = None) -> Errand:
    """The run of this name, or the one run of a box of this name.

    Args:
        job: a job file given on the command line; by default the one used before.

    Raises:
        Failure: there is no such run, or the job file is broken.
    """
    loaded = settings.load(where.fleet_file)
    runs = loaded.runs
    named = [run for run in runs if run.name == name] or [run for run in runs if run.box == name]
    if len(named) != 1:
        several = f"{name} has {len(named)} runs: {', '.join(run.name for run in named)}."
        raise Failure(
            several if named else f"No run is named {name!r}.",
            do="Name one." if named else "See `rgt status`, or adopt one: rgt watch BOX.",
            exit=Exit.USAGE,
        )
    spec = named[0]
    instance = next((one for one in loaded.instances if one.name == spec.box), None)
    if instance is None:
        raise Failure(f"{spec.name} runs on {spec.box}, which is not in {where.fleet_file}.", exit=Exit.USAGE)
    return Errand(where, instance, spec, _table(where, spec.name, job))


def _table(where: Paths, run: str, job: str | None) -> CustodyTable | None:
    kept = custody_folder(where, run) / JOB
    if job is not None:
        path = Path(job).expanduser()
        table = read_table(path)
        if table is None:
            raise Failure(f"{path.name} has no [custody] table.", do="Add one.", exit=Exit.USAGE)
        write_file(kept, path.read_bytes())
        return table
    return read_table(kept) if kept.exists() else None


async def folder_of(transport: Transport, errand: Errand, given: str | None) -> str:
    """The folder that artifacts are relative to.

    In this order: the one given, the job file's, the sealed export of the run, the folder the last roster was
    taken of, and the one that the watched checkpoints and the log have in common.

    Raises:
        Failure: none is known.
        LinkLost, SessionsExhausted, TimeoutError.
    """
    last = errand.records.newest(Roster)
    told = given or (errand.table.root if errand.table is not None else None)
    guessed = [*_exports(errand.spec), last.root if last else None, results_folder(errand.spec)]
    known = [path for path in ([told] if told else guessed) if path]
    if not known:
        raise Failure(
            f"Nothing tells where the results of {errand.spec.name} lie.",
            do="Give the folder with --root, or write root into the job file's [custody] table.",
            exit=Exit.USAGE,
            code="root-unknown",
        )
    real = await real_folders(transport, known)
    return next((path for path in known if real[path]), known[0])


def _exports(spec: RunSpec) -> list[str]:
    """Where the close-out puts a run whose files lie under ``…/active/RUN-ID/``."""
    for path in (spec.log, spec.checkpoints):
        before, active, after = (path or "").rpartition("/active/")
        if active and "/" in after:
            return [f"{before}/export/{after.partition('/')[0]}"]
    return []


def results_folder(spec: RunSpec) -> str | None:
    """The folder of checkpoints and log; of the checkpoints alone where the common one is too high up."""
    checkpoints = _fixed_folder(spec.checkpoints) if spec.checkpoints else None
    log = posixpath.dirname(spec.log) if spec.log else None
    if checkpoints is None or log is None or checkpoints.startswith("/") != log.startswith("/"):
        return checkpoints if checkpoints is not None else log
    common = posixpath.commonpath([checkpoints, log]) if checkpoints and log else ""
    return checkpoints if common in _TOO_HIGH else common


def _fixed_folder(pattern: str) -> str:
    """The folder of a glob before its first sign."""
    parts: list[str] = []
    for part in pattern.split("/")[:-1]:
        if _GLOB_SIGNS & set(part):
            break
        parts.append(part)
    return "/".join(parts) or ("/" if pattern.startswith("/") else ".")
