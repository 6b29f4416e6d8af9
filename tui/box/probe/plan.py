"""What to ask of a box: entries of the probe for runs and mounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tui.box.parsers.lines import decode
from tui.box.parsers.mounts import read_mounts
from tui.box.parsers.report import Mount
from tui.box.probe.choose import absolute, choose, mount_of
from tui.box.probe.disks import Asked
from tui.box.probe.memo import Memo
from tui.box.probe.script import Entry
from tui.box.probe.system import Identity
from tui.box.probe.tasks import Task
from tui.box.probe.watched import find_arguments
from tui.model.run import RunSpec

_MOST_RUNS = 32
_MOST_NEARBY = 8


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """What to look at besides the box itself.

    Attributes:
        runs: the watched runs of this box.
        mounts: paths whose filesystems are always read.
    """

    runs: tuple[RunSpec, ...] = ()
    mounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The probe's entries, and what their keys mean.

    Attributes:
        disks: mounts and paths asked for, most wanted first.
        files: run name -> key of its files.
    """

    entries: tuple[Entry, ...] = ()
    disks: tuple[Asked, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[RunSpec, ...] = ()

    def flags_for_new(self, before: Plan | None) -> str:
        """``r`` where some run's files were never asked for: they are not made to wait for the slow look."""
        known = set(before.files.values()) if before else set()
        return "r" if set(self.files.values()) - known else ""


def make_plan(request: ProbeRequest, identity: Identity, memo: Memo) -> Plan:
    """The entries for one request. Keys stay the same for the same thing as long as the shell lives."""
    runs = request.runs[:_MOST_RUNS]
    pids = sorted({run.pid for run in runs if run.pid is not None and run.pid > 0})
    entries = [Entry("p", f"p{pid}", (str(pid),)) for pid in pids]
    files: dict[str, str] = {}
    asked: dict[str, Entry] = {}
    for run in runs:
        texts = _file_texts(run)
        if texts is not None:
            key = memo.key("r", *texts)
            files[run.name] = key
            asked[key] = Entry("r", key, texts)
    disks = _disks(request, identity, memo)
    entries += asked.values()
    entries += [Entry("m", disk.key, (disk.path,)) for disk in disks]
    return Plan(tuple(entries), disks, files, runs)


def nearby_entries(tasks: Iterable[Task]) -> tuple[Entry, ...]:
    """Entries that look for checkpoints below these processes' folders; each folder once."""
    first = {task.cwd: task for task in reversed(list(tasks)) if task.cwd}
    return tuple(Entry("k", f"k{task.pid}", (str(task.pid),)) for task in first.values())[:_MOST_NEARBY]


def _file_texts(run: RunSpec) -> tuple[str, str, str] | None:
    log, pattern, base = _from_home(run.log), _from_home(run.checkpoints), ""
    if "**" in pattern:
        base, pattern = find_arguments(pattern)
    return (log, pattern, base) if log or pattern else None


def _from_home(path: str | None) -> str:
    """The probe's shell stands in the login folder, so ``~/`` is nothing."""
    return (path or "").removeprefix("~/")


@lru_cache(256)  # asked at every tick, and it changes about never
def _mounts(table: bytes) -> tuple[Mount, ...]:
    return read_mounts(decode(table)).mounts or ()


def _disks(request: ProbeRequest, identity: Identity, memo: Memo) -> tuple[Asked, ...]:
    mounts = _mounts(memo.mounts)
    folders = [absolute(path, identity.home) for path in request.mounts]
    folders += [absolute(run.log, identity.home).rpartition("/")[0] or "/" for run in request.runs if run.log]
    wanted = [memo.resolved.get(path) or path for path in folders]
    disks = [
        Asked(memo.key("m", mount.path), mount.path, mount) for mount in choose(mounts, wanted, identity.home)
    ]
    listed = {mount.path for mount in mounts}
    for path in dict.fromkeys(folders):
        # A path that by its spelling lies on / may lead elsewhere through a symbolic link: df tells once.
        # Where it tells of a mount that the table lacks, df is asked on: the table can't speak for it.
        mount = mount_of(path, mounts)
        if path != "/" and memo.resolved.get(path) not in listed and (mount is None or mount.path == "/"):
            disks.append(Asked(memo.key("m", path), path))
    return tuple(disks)
