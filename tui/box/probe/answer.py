"""One answer of the probe as telemetry, together with what earlier ones told."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui.box.parsers.boot import parse_proc_uptime
from tui.box.probe import darwin
from tui.box.probe.adopt import find_candidates, named_below, panes_of, without_us
from tui.box.probe.cards import read_apps, read_cards, read_xid
from tui.box.probe.disks import read_filesystems, resolved
from tui.box.probe.frame import Batch
from tui.box.probe.memo import Memo
from tui.box.probe.origin import reason, source
from tui.box.probe.plan import Plan
from tui.box.probe.system import Identity, Moment, read_cpu, read_host, read_memory
from tui.box.probe.tasks import Task, as_process, read_processes, read_sessions, read_slurm, read_tasks
from tui.box.probe.watched import (
    Files,
    files_of,
    life_of,
    pid_lines,
    read_checkpoints,
    session_alive,
    truth_of,
)
from tui.model.reading import Reading, known, unknown
from tui.model.telemetry import Candidate, Cpu, Filesystem, Memory, RunTruth, Telemetry

_MOST_COMMANDS = 200
_SHM = "/dev/shm"  # noqa: S108


@dataclass(frozen=True, slots=True)
class Looked:
    """Telemetry, and the candidates whose folders are still to be searched."""

    telemetry: Telemetry
    nearby: tuple[Task, ...] = ()


def read_answer(
    plan: Plan,
    flags: str,
    identity: Identity,
    memo: Memo,
    moment: Moment,
    batch: Batch,
    before: Telemetry | None,
) -> Looked:
    """Telemetry from one answer. Parts that `flags` did not ask for are those of `before`."""
    memo.listed = moment.sections.get("mounts", memo.listed)
    telemetry = before or Telemetry(moment.taken_at)
    if not flags:
        return Looked(_plain(telemetry, plan, identity, memo, moment, batch))
    telemetry = replace(telemetry, taken_at=moment.taken_at, took_s=moment.took_s, tick=moment.tick)
    if "date" in moment.sections:
        telemetry = replace(telemetry, host=read_host(identity, moment))
    elif not telemetry.host.known:
        telemetry = replace(telemetry, host=read_host(identity, _greeting(memo, moment)))
    if "g" in flags:
        cards = read_cards(batch, moment.taken_at)
        telemetry = replace(telemetry, gpus=cards.gpus, gpu_processes=cards.processes)
    if "m" in flags:
        _remember_paths(plan, batch, memo)
        telemetry = replace(telemetry, filesystems=read_filesystems(plan.disks, batch, moment.taken_at))
    if "x" in flags:
        telemetry = replace(telemetry, xid=read_xid(batch, moment.taken_at))
    if "s" in flags:
        told = read_slurm(batch)
        memo.slurm = memo.slurm if told is None else told
        screens = moment.text("screens") or _greeting(memo, moment).text("screens")
        telemetry = replace(
            telemetry, sessions=read_sessions(batch, screens, identity, memo.slurm, moment.taken_at)
        )
    telemetry = _with_load(telemetry, identity, moment)
    nearby: tuple[Task, ...] = ()
    if "p" in flags or "c" in flags:
        telemetry, nearby = _with_processes(telemetry, flags, identity, memo, moment, batch)
    runs = _truths(plan, flags, identity, memo, moment, batch, telemetry)
    return Looked(replace(telemetry, runs=runs), nearby)


def _plain(
    telemetry: Telemetry, plan: Plan, identity: Identity, memo: Memo, moment: Moment, batch: Batch
) -> Telemetry:
    """What a plain tick tells; most are plain, so it is put together in one go."""
    host = telemetry.host if telemetry.host.known else read_host(identity, _greeting(memo, moment))
    memory, cpu = _load(telemetry.filesystems, identity, moment)
    runs = _truths(plan, "", identity, memo, moment, batch, telemetry) if plan.runs else ()
    return replace(
        telemetry,
        taken_at=moment.taken_at,
        took_s=moment.took_s,
        tick=moment.tick,
        host=host,
        memory=memory,
        cpu=cpu,
        runs=runs,
    )


def _with_load(telemetry: Telemetry, identity: Identity, moment: Moment) -> Telemetry:
    """Memory and CPU, which every answer has."""
    memory, cpu = _load(telemetry.filesystems, identity, moment)
    return replace(telemetry, memory=memory, cpu=cpu)


def _load(
    filesystems: Reading[tuple[Filesystem, ...]], identity: Identity, moment: Moment
) -> tuple[Reading[Memory], Reading[Cpu]]:
    if _is_mac(identity):
        return darwin.memory(identity, moment), darwin.cpu(identity, moment)
    return read_memory(identity, moment, _shm(filesystems)), read_cpu(identity, moment)


def _is_mac(identity: Identity) -> bool:
    return str(identity.system) == "Darwin"


def _greeting(memo: Memo, moment: Moment) -> Moment:
    """The first answer, whose clock says nothing: nobody asked for it at a known time."""
    said = {name: text for name, text in memo.hello.items() if name != "date"}
    return Moment(moment.sent_at, moment.taken_at, 0.0, said)


def _remember_paths(plan: Plan, batch: Batch, memo: Memo) -> None:
    for disk in plan.disks:
        if disk.mount is None:
            found = resolved(disk, batch)
            if found is not None:
                memo.resolved[disk.path] = found


def _shm(filesystems: Reading[tuple[Filesystem, ...]]) -> Filesystem | None:
    return next((one for one in filesystems.value or () if one.mount == _SHM and not one.error), None)


def _with_processes(
    telemetry: Telemetry, flags: str, identity: Identity, memo: Memo, moment: Moment, batch: Batch
) -> tuple[Telemetry, tuple[Task, ...]]:
    now = _box_now(telemetry, moment)
    if _is_mac(identity):
        telemetry = replace(telemetry, processes=darwin.processes(batch, moment.taken_at))
        if "c" in flags:
            why = reason("runs to adopt are not looked for on macOS; name the log and the pid yourself")
            telemetry = replace(telemetry, candidates=unknown(why))
        return telemetry, ()
    tasks = read_tasks(batch, identity)
    processes = read_processes(tasks, batch, identity, now, moment.taken_at)
    telemetry = replace(telemetry, processes=processes)
    told = {(one.pid, one.start_ticks): one for one in processes.value or ()}
    for task in tasks or ():
        key = task.pid, task.start_ticks
        memo.commands[key] = told.get(key) or as_process(task, identity, now)
    while len(memo.commands) > _MOST_COMMANDS:
        memo.commands.pop(next(iter(memo.commands)))
    if "c" not in flags:
        return telemetry, ()
    if tasks is None:
        return replace(telemetry, candidates=unknown(processes.reason, processes.source)), ()
    apps = batch.messages.get("apps")
    holders = read_apps(apps, moment.taken_at).value or () if apps else ()
    others = without_us(tasks, identity)
    found = find_candidates(others, holders, panes_of(batch), telemetry.sessions.value or ())
    origin = source("/proc/PID/{stat,cmdline,cwd,fd}; nvidia-smi --query-compute-apps", moment.taken_at)
    candidates = known(tuple(candidate for _, candidate in found), origin)
    return replace(telemetry, candidates=candidates), tuple(task for task, _ in found)


def _box_now(telemetry: Telemetry, moment: Moment) -> float | None:
    host = telemetry.host.value
    return moment.taken_at + host.clock_offset_s if host and host.clock_offset_s is not None else None


def _truths(
    plan: Plan,
    flags: str,
    identity: Identity,
    memo: Memo,
    moment: Moment,
    batch: Batch,
    telemetry: Telemetry,
) -> tuple[RunTruth, ...]:
    uptime = parse_proc_uptime(moment.text("up").strip().partition(" ")[0])
    stats = pid_lines(moment.text("pids"))
    truths: list[RunTruth] = []
    for run in plan.runs:
        key = plan.files.get(run.name)
        files = memo.files.get(key, Files()) if key else Files()
        if key and "r" in flags:
            files = memo.files[key] = files_of(run, key, batch, moment.taken_at, files)
        if _is_mac(identity):
            life = darwin.life_of(run, stats, identity)
        else:
            life = life_of(run, stats, identity, memo.commands, uptime)
        truths.append(truth_of(run, life, session_alive(run, telemetry.sessions), files))
    return tuple(truths)


def newly_gone(before: Telemetry | None, now: Telemetry) -> bool:
    """Whether a run's process has gone since the look before: what it left in its files is not read yet."""
    known = {run.run: run.alive for run in before.runs} if before else {}
    return any(run.alive is False and known.get(run.run, False) is not False for run in now.runs)


def with_nearby(looked: Looked, batch: Batch, taken_at: float) -> Looked:
    """Candidates with the checkpoints found below their folders."""
    below: dict[str, tuple[int, str]] = {}
    for task in looked.nearby:
        if task.cwd and f"k{task.pid}" in batch.messages:
            below[task.cwd] = (task.pid, f"k{task.pid}")
    tasks = {task.pid: task for task in looked.nearby}

    def completed(candidate: Candidate) -> Candidate:
        task = tasks.get(candidate.pid) if candidate.pid is not None else None
        place = below.get(task.cwd) if task is not None and task.cwd else None
        if task is None or place is None:
            return candidate
        pid, key = place
        files, _ = read_checkpoints("", batch.messages[key], taken_at)
        return replace(candidate, checkpoints=named_below(files.value or (), pid, task.cwd))

    reading = looked.telemetry.candidates
    found = tuple(completed(candidate) for candidate in reading.value or ())
    return Looked(replace(looked.telemetry, candidates=replace(reading, value=found)))
