"""What telemetry and known facts say, as rows that a rule's predicates are asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tui.model.incident import Evidence
from tui.model.telemetry import Filesystem, RunTruth, Telemetry, unowned_vram_mib
from tui.model.text import SafeText, safe
from tui.triage.inputs import Known
from tui.triage.readers.tables import SHM, nothing_left
from tui.triage.schema import PREDICATE
from tui.triage.view import View

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Ask:
    """One predicate, taken apart."""

    subject: str
    field: str
    op: str
    value: Value


@dataclass(frozen=True, slots=True)
class Subject:
    """One row of one subject: a card, a mount, the run. `label` names it in evidence."""

    name: str
    values: Mapping[str, Value]
    label: str
    source: str


def parse(text: str) -> Ask:
    """Take a predicate apart. Raises ValueError for what the schema would not let pass."""
    match = PREDICATE.match(text)
    if match is None:
        raise ValueError(text)
    return Ask(match["subject"], match["field"], match["op"], _value(match["value"].strip()))


def _value(text: str) -> Value:
    words: dict[str, Value] = {"true": True, "false": False, "null": None, "unknown": None}
    if text in words:
        return words[text]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text.strip("'\"")


def holds(ask: Ask, row: Mapping[str, Value]) -> bool:
    """Whether a row fulfils a predicate. What is not known fulfils only ``!=`` and a comparison with null."""
    got = row.get(ask.field)
    if ask.op in ("==", "is"):
        return got == ask.value and isinstance(got, bool) == isinstance(ask.value, bool)
    if ask.op == "!=":
        return got != ask.value
    if ask.op == "in":
        return got is not None and str(got) in [part.strip() for part in str(ask.value).split(",")]
    if got is None or isinstance(got, str | bool) or not isinstance(ask.value, int | float):
        return False
    return {"<": got < ask.value, "<=": got <= ask.value, ">": got > ask.value, ">=": got >= ask.value}[
        ask.op
    ]


def matching(asks: tuple[Ask, ...], subjects: list[Subject]) -> list[Subject]:
    """Rows that fulfil all predicates of their subject, where every subject that is asked about has one."""
    found: list[Subject] = []
    for name in dict.fromkeys(ask.subject for ask in asks):
        mine = [ask for ask in asks if ask.subject == name]
        rows = [s for s in subjects if s.name == name and all(holds(ask, s.values) for ask in mine)]
        if not rows:
            return []
        found += rows
    return found


def evidence(subject: Subject, asks: tuple[Ask, ...], at: float | None) -> Evidence:
    """The values that fulfilled the predicates."""
    told = [
        f"{ask.field.replace('_', ' ')} {subject.values.get(ask.field)}"
        for ask in asks
        if ask.subject == subject.name
    ]
    label = f"{subject.label}: " if subject.label else ""
    return Evidence(safe(subject.source), safe(label + ", ".join(told)), None, at)


def subjects(telemetry: Telemetry | None, known: Known) -> list[Subject]:
    """Everything that predicates can ask about."""
    found = [Subject("known", _known(known), "", "what was known")]
    if telemetry is None:
        found.append(
            Subject("run", {"alive": known.alive, "session_alive": known.session_alive}, "run", "process")
        )
        return found
    truth = next((one for one in telemetry.runs if one.run == known.run), None)
    found.append(Subject("run", _run(truth, known), known.run or "run", "process"))
    found += _cards(telemetry)
    found += _mounts(telemetry)
    found += _machine(telemetry, known)
    return found


def of_view(view: View) -> Subject:
    """What can be asked about one text: the exit status, what ran, and whether it shows training at work."""
    tool = view.command.split()[:1]
    values: dict[str, Value] = {
        "rc": view.rc, "empty": not any(row.text.strip() for row in view.rows), "kind": view.kind,
        "tool": tool[0] if tool else None,
        "trained": view.kind in ("log", "shell") and any(pulse.strong for pulse in view.pulses),
    }  # fmt: skip
    return Subject("said", values, "", str(view.source))


def _known(known: Known) -> dict[str, Value]:
    return {
        "without_gpu": known.without_gpu, "alive": known.alive, "session_alive": known.session_alive,
        "log_age_s": known.log_age_s, "rc": known.rc, "reachable": known.reachable,
        "host_pids": known.host_pids, "platform": known.platform,
    }  # fmt: skip


def _run(truth: RunTruth | None, known: Known) -> dict[str, Value]:
    alive = truth.alive if truth and truth.alive is not None else known.alive
    session = truth.session_alive if truth and truth.session_alive is not None else known.session_alive
    process = truth.process if truth else None
    return {"alive": alive, "session_alive": session, "state": process.state if process else None,
            "watched": truth is not None}  # fmt: skip


def _cards(telemetry: Telemetry) -> Iterator[Subject]:
    processes = telemetry.gpu_processes.value
    for gpu in telemetry.gpus.value or ():
        unowned = unowned_vram_mib(gpu, processes) if processes is not None else None
        owners = None if processes is None else len([p for p in processes if p.gpu_uuid == gpu.uuid])
        values: dict[str, Value] = {
            "health": gpu.health, "ecc_uncorrected": gpu.ecc_uncorrected, "remap_pending": gpu.remap_pending,
            "remap_failed": gpu.remap_failed, "mem_used_mib": gpu.mem_used_mib, "util_pct": gpu.util_pct,
            "temp_c": gpu.temp_c, "unowned_mib": unowned, "owners": owners, "index": gpu.index,
        }  # fmt: skip
        yield Subject("gpu", values, f"GPU {gpu.index}", _source(telemetry.gpus.source, "GPU tool"))


def _mounts(telemetry: Telemetry) -> Iterator[Subject]:
    for fs in telemetry.filesystems.value or ():
        values: dict[str, Value] = {
            "avail_bytes": fs.avail_bytes, "size_bytes": fs.size_bytes, "use_pct": fs.use_pct,
            "inodes": fs.inodes, "inodes_free": fs.inodes_free, "inode_use_pct": fs.inode_use_pct,
            "read_only": fs.read_only, "error": str(fs.error), "mount": str(fs.mount),
            "shm": fs.mount == SHM, "by_design": fs.capacity_meaningless,
            "full": nothing_left(fs.size_bytes, fs.avail_bytes), "image": _image(fs),
        }  # fmt: skip
        yield Subject("fs", values, str(fs.mount), _source(telemetry.filesystems.source, "df"))


_IMAGES = frozenset({"squashfs", "iso9660", "erofs", "cramfs", "udf", "cvmfs2", "fuse.cvmfs2"})


def _image(fs: Filesystem) -> bool:
    """Whether no run writes there: an image that was made full, or what the machine boots from."""
    if fs.mount == "/boot" or fs.mount.startswith("/boot/"):
        return True
    return str(fs.source).startswith(("/dev/loop", "/dev/sr", "cvmfs")) or str(fs.fstype) in _IMAGES


def _machine(telemetry: Telemetry, known: Known) -> Iterator[Subject]:
    memory, host = telemetry.memory.value, telemetry.host.value
    if memory is not None:
        new = None
        if memory.oom_kills is not None and known.oom_kills is not None:
            new = memory.oom_kills - known.oom_kills
        share = None
        if memory.limit_bytes and memory.used_bytes is not None:
            share = 100 * memory.used_bytes / memory.limit_bytes
        values: dict[str, Value] = {"oom_kills": memory.oom_kills, "new_kills": new, "use_pct": share}
        yield Subject("memory", values, "", _source(telemetry.memory.source, "cgroup"))
    if host is not None:
        since = max((t for t in (host.booted_at, host.container_started_at) if t is not None), default=None)
        other = host.boot_id is not None and known.boot_id is not None and host.boot_id != known.boot_id
        later = since is not None and known.started_at is not None and since > known.started_at + 5
        told = host.boot_id is not None and known.boot_id is not None
        rebooted = True if other or later else False if told or since is not None else None
        yield Subject(
            "host", {"rebooted": rebooted, "booted_at": since}, "", _source(telemetry.host.source, "boot id")
        )


def _source(source: object, otherwise: str) -> SafeText:
    command = getattr(source, "command", None)
    return safe(command) if command else SafeText(otherwise)
