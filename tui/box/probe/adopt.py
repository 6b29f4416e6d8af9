"""Which processes look like training runs that nobody watches yet, and where they write."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from tui.box.parsers.lines import decode
from tui.box.probe.frame import Batch
from tui.box.probe.ours import ours, this_process
from tui.box.probe.system import Identity
from tui.box.probe.tasks import OpenFile, Task, by_args
from tui.model.telemetry import Candidate, CheckpointFile, GpuProcess, Session
from tui.model.text import SafeText, safe

MOST = 12
_LOGS = 8

_INTERPRETER = re.compile(r"(?:python|pypy|ipython)[\d.]*\Z|pt_main_thread\Z")
_LAUNCHER = re.compile(
    r"(?:torchrun|deepspeed|accelerate|lightning|fabric|llamafactory-cli|xtuner|swift|axolotl|colossalai|"
    r"composer|horovodrun|torchpack|paddle|nemo|julia|mpirun|mpiexec)\Z"
)
_SCRIPT = re.compile(r"[^-].*\.(?:py|pyz|ipynb|jl)\Z", re.DOTALL)
# Python programs of systems, editors and platforms that are no runs of anybody's.
_HOUSEKEEPING = re.compile(
    r"jupyter|ipykernel|pytest|tensorboard|visdom|http\.server|(?:^|[ /])(?:conda|mamba|pip[\d.]*)(?: |\Z)|"
    r"supervisord|unattended|networkd|fail2ban|cloud-init|wandb[-_]|gpustat|nvitop|glances|code-server|"
    r"\.vscode|pylsp|pyright|jedi|debugpy/adapter|gunicorn|uvicorn|multiprocessing\.(?:spawn|forkserver|"
    r"resource_tracker|semaphore_tracker)|\bfilebrowser\b|/(?:autopanel|autodl-proxy)",
    re.IGNORECASE,
)
_OF_THE_SYSTEM = re.compile(r"/usr/(?:s?bin|lib|share)/|/snap/")
_SHELL = re.compile(r"-?(?:ba|da|z|fi|k|tc|c|a)?sh\Z")
_CARD = re.compile(r"/dev/(?:nvidia\d+|kfd|dri/renderD\d+)\Z")
_NO_FILE = re.compile(r"/(?:dev|proc|sys|run|memfd:)|.* \(deleted\)\Z", re.DOTALL)
_NO_LOG = re.compile(
    r"\.(?:pt|pth|ckpt|safetensors|bin|h5|keras|npy|npz|pkl|db|sqlite3?|lock|mdb|wandb|so|parquet|arrow|zip|tar|"
    r"gz|png|jpe?g|mp4|pid|tmp|db-wal|db-shm|journal|swp)(?:-journal)?\Z|tfevents|/\.nv/|/\.cache/|/__pycache__/",
    re.IGNORECASE,
)


def uses_card(task: Task) -> bool:
    """Whether it has a card's device open; true inside containers too, where the driver tells host pids."""
    return any(_CARD.match(file.target) for file in task.files)


def card_memory(task: Task, processes: Sequence[GpuProcess]) -> float | None:
    """MiB that the driver counts for this very process.

    Inside a container the driver's pids are the host's, and may be another process's here: the program's name
    must fit as well.
    """
    names = {posixpath.basename(task.comm), posixpath.basename(task.args[0]) if task.args else ""}
    sizes = [
        one.mem_used_mib
        for one in processes
        if one.pid == task.pid and posixpath.basename(one.command.split(" ")[0]) in names
    ]
    known = [size for size in sizes if size is not None]
    return sum(known) if known else None


def looks_like_run(task: Task) -> bool:
    """Whether its command line is a program of somebody's own, and no housekeeping."""
    return bool(task.args) and task.state not in "ZX" and by_args(_is_run, task.args)


def _is_run(args: tuple[str, ...]) -> bool:
    program, *rest = args
    name = posixpath.basename(program)
    if _HOUSEKEEPING.search(" ".join((name, *rest[:5]))):
        return False
    if not _INTERPRETER.match(name):
        return bool(_LAUNCHER.match(name) or _SCRIPT.match(program))
    rest = _without_options(rest)
    if not rest:
        return False
    if _LAUNCHER.match(posixpath.basename(rest[0])):
        return True
    return rest[0] == "-m" or bool(_SCRIPT.match(rest[0]) and not _OF_THE_SYSTEM.match(rest[0]))


def _without_options(args: list[str]) -> list[str]:
    """The interpreter's arguments from its program on: ``-u`` and its like left out, ``-X``'s value too."""
    at = 0
    while at < len(args) and args[at].startswith("-") and args[at] != "-m":
        at += 2 if args[at] in ("-X", "-W") else 1
    return args[at:]


def without_us(tasks: Sequence[Task], identity: Identity) -> tuple[Task, ...]:
    """The processes without the probe's own shell and those above it, and without rgt where it runs there."""
    shell = next((task for task in tasks if task.pid == identity.shell_pid), None)
    above = {shell.pid, shell.ppid, *shell.ancestors} if shell else set()
    own = above | ours(tasks, identity.boot_id, this_process())
    return tuple(task for task in tasks if task.pid not in own)


def find_candidates(
    tasks: Sequence[Task], processes: Sequence[GpuProcess], panes: str, sessions: Iterable[Session]
) -> tuple[tuple[Task, Candidate], ...]:
    """What could be watched, most telling first: what holds a card, then what has a log, then the rest.

    Only the first process of a family is proposed: workers and ranks are part of its run.
    """
    memory = {task.pid: card_memory(task, processes) for task in tasks}
    hot = {task.pid for task in tasks if memory[task.pid] is not None or uses_card(task)}
    chosen = {
        task.pid: task for task in tasks if looks_like_run(task) or (task.pid in hot and not _is_shell(task))
    }
    screens = {one.name for one in sessions if one.kind == "screen"}
    found: list[tuple[tuple[bool, bool, int], Task, Candidate]] = []
    for task in chosen.values():
        if any(above in chosen for above in (task.ppid, *task.ancestors)):
            continue
        family = [one for one in tasks if one.pid == task.pid or task.pid in (one.ppid, *one.ancestors)]
        held = [size for one in family if (size := memory[one.pid]) is not None]
        logs = logs_of(family, tasks)
        candidate = Candidate(
            command=task.command,
            pid=task.pid,
            start_ticks=task.start_ticks,
            cwd=safe(task.cwd) if task.cwd else None,
            logs=tuple(safe(log) for log in logs),
            session=session_of(task, panes, tasks, screens),
            gpu_mem_mib=sum(held) if held else None,
        )
        warm = any(one.pid in hot for one in family)
        found.append(((not warm, not logs, -sum(one.pages for one in family)), task, candidate))
    found.sort(key=lambda entry: entry[0])
    return tuple((task, candidate) for _, task, candidate in found[:MOST])


def _is_shell(task: Task) -> bool:
    return bool(task.args) and bool(_SHELL.match(posixpath.basename(task.args[0])))


def logs_of(family: Sequence[Task], tasks: Sequence[Task]) -> list[str]:
    """Files of a run that may be its log, stdout first. ``| tee FILE`` counts as stdout."""
    found: list[str] = []
    for task in family:
        streams = [file for number in (1, 2) for file in task.files if file.number == number]
        for stream in streams:
            found += _written([stream])
            if stream.target.startswith("pipe:"):
                found += _behind(stream.target, task, tasks)
    for task in family:
        found += [path for path in _written(task.files) if not _NO_LOG.search(path)]
    return list(dict.fromkeys(found))[:_LOGS]


def _behind(pipe: str, writer: Task, tasks: Sequence[Task]) -> list[str]:
    """What the process that reads this pipe writes."""
    readers = [
        task
        for task in tasks
        if task.pid != writer.pid and any(file.number == 0 and file.target == pipe for file in task.files)
    ]
    return [path for reader in readers for path in _written(reader.files)]


def _written(files: Iterable[OpenFile]) -> list[str]:
    return [
        file.target
        for file in files
        if file.writes and file.target.startswith("/") and not _NO_FILE.match(file.target)
    ]


def session_of(task: Task, panes: str, tasks: Sequence[Task], screens: Iterable[str]) -> SafeText | None:
    """The tmux session whose pane the process sits in, by its terminal or by the pane's shell above it."""
    above = {task.pid, task.ppid, *task.ancestors}
    for line in panes.split("\n"):
        pid, _, rest = line.partition(" ")
        tty, _, name = rest.partition(" ")
        if pid.isdigit() and name and (int(pid) in above or (task.terminal and tty == task.terminal)):
            return safe(name, 256)
    names = set(screens)
    for one in tasks:
        if one.pid in above and one.comm.lower() == "screen" and len(names) == 1:
            return SafeText(next(iter(names)))
    return None


def panes_of(batch: Batch) -> str:
    """The panes of all tmux sessions as they were listed."""
    message = batch.messages.get("panes")
    return decode(message.text) if message is not None and message.status in ("0", "cut") else ""


def named_below(files: Sequence[CheckpointFile], pid: int, cwd: str | None) -> tuple[CheckpointFile, ...]:
    """Files found below ``/proc/PID/cwd`` under the names they have for everybody else."""
    here = f"/proc/{pid}/cwd/"
    return tuple(
        CheckpointFile(
            safe(posixpath.join(cwd or "/", one.path.removeprefix(here).lstrip("/"))),
            one.size_bytes,
            one.modified_at,
        )
        for one in files
    )
