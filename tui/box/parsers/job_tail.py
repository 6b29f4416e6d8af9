"""What the last output of a job says about its end beside the exit status: limits hit, Slurm's own lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui.box.parsers.command import CommandLine
from tui.box.parsers.exits import Ending, find_ending, from_status
from tui.model.text import SafeText, safe

_MAX_ROW = 4096  # characters of the last state of a line
_NOFILE = re.compile(
    r"Too many open files|received 0 items of ancdata|\bEMFILE\b|\[Errno 24\]", re.IGNORECASE
)
_PIDS = re.compile(
    r"\bfork: (?:retry: )?.*Resource temporarily unavailable|can't start new thread|Cannot fork\b"
    r"|pthread_create[^\n]{0,80}(?:failed|Resource temporarily unavailable)|Thread creation failed"
    r"|unable to create (?:new )?native thread|fork failed|failed to fork|fork: .*资源暂时不可用"
    r"|\[Errno 11\] Resource temporarily unavailable",
    re.IGNORECASE,
)
_MEMLOCK = re.compile(r"RLIMIT_MEMLOCK|memlock limit|ulimit -l\b", re.IGNORECASE)
_NO_SPACE = re.compile(r"No space left on device|\[Errno 28\]|设备上没有空间", re.IGNORECASE)
_SHM = re.compile(r"SemLock|/torch_\d|/dev/shm|\bshm\b|shared memory|nccl-", re.IGNORECASE)
_INOTIFY = re.compile(r"inotify", re.IGNORECASE)
_CRLF = re.compile(
    r"\$'\\r': |\\r': No such file|: \^M|bad interpreter: [^\n]*\^M|/usr/bin/env: ['‘]\w+\\r['’]"
)

_SLURM_OOM = re.compile(
    r"slurmstepd: error: (?:Detected \d+ oom[-_]kill event|(?:Step|Job) \S+ exceeded (?:memory"
    r"|virtual memory) limit"
    r"|Exceeded (?:job|step) (?:memory|virtual memory) limit"
    r"|Some of your processes may have been killed by the "
    r"cgroup out-of-memory handler)|srun: error: \S+: tasks? [\d,-]+: Out Of Memory"
    r"|exceeded memory limit \(\d+ > \d+\), being killed|oom_kill event in StepId"
)
_NODE = re.compile(
    r"srun: error: (?P<task>[\w.-]+): tasks? |\*\*\* (?:JOB|STEP) \S+ ON (?P<on>[\w.-]+) CANCELLED"
)
_CANCELLED = re.compile(
    r"\*\*\* (?:JOB"
    r"|STEP) (?P<id>\S+) ON (?P<node>[\w.-]+) CANCELLED AT \S+(?: DUE TO (?P<why>[A-Z ,]+?))? \*\*\*"
)


@dataclass(frozen=True, slots=True)
class JobEnd:
    """What is known of a job's end from the command that ran it and what it printed last.

    Attributes:
        finished: True only where status 0 is the job's own; False where the end is bad or not known.
        note: why the status says nothing about the job.
        limit: a limit of the operating system that was hit: ``nofile``, ``pids``, ``memlock``, ``inotify``.
        resource: what ran out where ENOSPC was printed; ``unknown`` until bytes and inodes are looked at.
        scope: ``slurm`` where Slurm itself reports a kill for memory.
        script_fault: ``crlf_script`` for a shell script with Windows line ends.
    """

    ending: Ending
    finished: bool
    note: SafeText = SafeText("")
    limit: str | None = None
    resource: str | None = None
    scope: str | None = None
    node: SafeText | None = None
    due_to: SafeText | None = None
    script_fault: str | None = None


def read_end(command: CommandLine, text: str, status: int | None) -> JobEnd:
    """Put together what is known of a job's end.

    Args:
        command: the line that ran it; in a pipe the status belongs to the last program.
        text: the last output.
        status: exit status of the line; None when not known.
    """
    text = "\n".join(row.rstrip("\r").rpartition("\r")[2][:_MAX_ROW] for row in text.split("\n"))
    told = find_ending(text)
    own = from_status(status) if status is not None else Ending()
    signal = own.signal or (told.signal if told else None)
    code = status if status is not None else told.code if told else None
    ending = Ending(code, signal, told.pid if told else None, told.line if told else None)
    masked = _masking(command) if status == 0 else ""
    return JobEnd(
        ending=ending,
        finished=status == 0 and not masked and signal is None,
        note=safe(f"rc belongs to {masked}; no end marker") if masked else SafeText(""),
        limit=limit_hit(text),
        resource=out_of_space(text),
        scope="slurm" if _SLURM_OOM.search(text) else None,
        node=_node(text),
        due_to=_due_to(text),
        script_fault="crlf_script" if _CRLF.search(text) else None,
    )


def _masking(command: CommandLine) -> str:
    """The program whose status a pipe reported in place of the job's."""
    programs: Sequence[str] = [one.tool for one in command.invocations]
    return programs[-1] if command.piped and len(programs) > 1 else ""


def limit_hit(text: str) -> str | None:
    """The limit of the operating system whose error text stands first; None when there is none."""
    forms = (("nofile", _NOFILE), ("pids", _PIDS), ("memlock", _MEMLOCK))
    found = [(match.start(), name) for name, form in forms if (match := form.search(text))]
    if _NO_SPACE.search(text) and _INOTIFY.search(text):
        return "inotify"
    return min(found)[1] if found else None


def out_of_space(text: str) -> str | None:
    """``unknown`` where ENOSPC was printed about a file; bytes or inodes can only be told on the box.

    ENOSPC about shared memory or inotify is no disk, and gives None like no ENOSPC at all.
    """
    if not _NO_SPACE.search(text) or _INOTIFY.search(text):
        return None
    return None if _SHM.search(text) else "unknown"


def _node(text: str) -> SafeText | None:
    match = _NODE.search(text)
    return safe(match.group("task") or match.group("on"), 64) if match else None


def _due_to(text: str) -> SafeText | None:
    match = _CANCELLED.search(text)
    return safe(match.group("why"), 64) if match and match.group("why") else None
