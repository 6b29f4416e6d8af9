"""What process listings mean: who is there, who only looks so, and what ``/proc/PID`` says of one process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui.box.parsers.lines import lines
from tui.box.parsers.ps_table import Proc, program_name
from tui.model.telemetry import ProcessInfo
from tui.model.text import SafeText, safe

_SEARCHERS = frozenset(
    {"grep", "egrep", "fgrep", "rg", "ag", "ack", "pgrep", "pidof", "awk", "gawk", "mawk", "sed"}
)
_LISTERS = frozenset({"ps", "top", "htop"})
# Programs that are there in every container and session and are nobody's training run.
_BACKGROUND = frozenset(
    {"sleep", "tail", "init", "tini", "dumb-init", "systemd", "bash", "sh", "dash", "ash", "zsh", "fish",
     "login",
     "sshd", "dbus-daemon", "cron", "crond", "agetty", "getty", "supervisord", "s6-svscan", "catatonit",
     "pause",
     "docker-init", "(sd-pam)", "sd-pam", "tmux", "screen", "sftp-server", "rsyslogd"}
)  # fmt: skip
_INITS = frozenset({"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runit"})
_JOB_LIKE = re.compile(
    r"python|torch|pt_|ray::|accelerate|deepspeed|jax|julia|java|node|train|mpirun", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a process listing says.

    Attributes:
        procs: without the tools that made the listing; None when it could not be read.
        running: whether something that may be a job is alive; None when others are hidden from us.
        others_hidden: PID 1 is missing from a full listing (hidepid): absence proves nothing.
        zombies_of_init: ended processes that PID 1 does not reap, harmless leftovers of a container.
        notable: the process that is in trouble (D or Z), the likeliest job of them first.
    """

    procs: tuple[Proc, ...] | None
    running: bool | None = None
    others_hidden: bool = False
    zombies_of_init: bool = False
    notable: Proc | None = None


def read_listing(procs: tuple[Proc, ...] | None, *, all_asked: bool, searched: bool) -> Listing:
    """Judge a listing.

    Args:
        procs: its rows; None when it could not be read.
        all_asked: every process of the box was asked for (``-e``, ``-A``, ``aux``).
        searched: the rows went through grep or the like, which finds itself.
    """
    if procs is None:
        return Listing(None)
    kept = tuple(one for one in procs if not (searched and _is_searcher(one)))
    listed_itself = any(one.name in _LISTERS for one in procs)
    hidden = all_asked and not searched and listed_itself and all(one.pid != 1 for one in procs)
    zombies = [one for one in kept if one.zombie]
    orphans = [one for one in zombies if one.ppid == 1]
    init = next((one for one in kept if one.pid == 1), None)
    idle_init = bool(orphans) and len(orphans) == len(zombies) and (init is None or init.name not in _INITS)
    alive = any(not one.zombie and not _is_background(one, searched) for one in kept)
    return Listing(
        procs=kept,
        running=None if hidden and not alive else alive,
        others_hidden=hidden,
        zombies_of_init=idle_init,
        notable=_notable(kept),
    )


def _is_searcher(one: Proc) -> bool:
    if one.name in _SEARCHERS:
        return True
    return one.name in {"sh", "bash", "dash", "ash", "zsh"} and bool(
        re.search(r"\b(?:p?grep|pidof)\b", one.args)
    )


def _is_background(one: Proc, searched: bool) -> bool:
    kernel_thread = one.args.startswith("[") and one.args.endswith("]")
    return kernel_thread or one.name in _LISTERS or (not searched and one.name in _BACKGROUND)


def _notable(procs: Sequence[Proc]) -> Proc | None:
    troubled = [one for one in procs if one.zombie or (one.stat or " ")[0] == "D"]
    if not troubled:
        return procs[0] if len(procs) == 1 and procs[0].stat else None
    return max(troubled, key=lambda one: (bool(_JOB_LIKE.search(one.args)), one.zombie, one.cpu_s or 0))


@dataclass(frozen=True, slots=True)
class ProcStat:
    """``/proc/PID/stat``: times in clock ticks, `rss_pages` in pages."""

    pid: int
    comm: SafeText
    state: str
    ppid: int
    user_ticks: int
    system_ticks: int
    threads: int
    start_ticks: int
    rss_pages: int


def parse_proc_stat(data: bytes | str) -> ProcStat | None:
    """One process; None for anything else. The name may hold blanks, brackets and line breaks (proc(5))."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    head, bracket, tail = text.rpartition(")")
    opened = re.match(r"\s*(\d{1,10}) \(", head)
    fields = tail.split()
    if not bracket or opened is None or len(fields) < 22 or len(fields[0]) != 1:
        return None
    if not all(re.fullmatch(r"-?\d{1,20}", field) for field in fields[1:22]):
        return None
    return ProcStat(
        pid=int(opened.group(1)),
        comm=safe(head[opened.end() :], 64),
        state=fields[0] if fields[0].isalpha() else "?",
        ppid=int(fields[1]),
        user_ticks=int(fields[11]),
        system_ticks=int(fields[12]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        rss_pages=int(fields[21]),
    )


def process_info(
    stat: ProcStat,
    *,
    command: SafeText | None = None,
    cwd: SafeText | None = None,
    hertz: int = 100,
    page_bytes: int = 4096,
    uptime_s: float | None = None,
) -> ProcessInfo:
    """The model's process. Without `uptime_s` its age is not known."""
    age = uptime_s - stat.start_ticks / hertz if uptime_s is not None and hertz > 0 else None
    return ProcessInfo(
        pid=stat.pid,
        start_ticks=stat.start_ticks,
        state=stat.state,
        command=command or stat.comm,
        ppid=stat.ppid,
        cwd=cwd,
        rss_bytes=stat.rss_pages * page_bytes if stat.rss_pages >= 0 else None,
        cpu_s=(stat.user_ticks + stat.system_ticks) / hertz if hertz > 0 else None,
        elapsed_s=max(0.0, age) if age is not None else None,
    )


def parse_proc_status(text: str) -> Proc | None:
    """``/proc/PID/status``; None when it is none."""
    found = dict(re.findall(r"^(\w{1,64}):[ \t]*([^\n]{0,4096}?)[ \t\r]*$", text, re.MULTILINE))
    if not re.fullmatch(r"\d{1,10}", found.get("Pid", "")):
        return None
    rss = re.match(r"(\d{1,18}) kB", found.get("VmRSS", ""))
    return Proc(
        pid=int(found["Pid"]),
        args=safe(found.get("Name", ""), 64),
        name=safe(found.get("Name", ""), 64),
        ppid=_number(found.get("PPid")),
        stat=safe(found.get("State", "")[:1]) or None,
        rss_kb=int(rss.group(1)) if rss else None,
        threads=_number(found.get("Threads")),
    )


def parse_cmdline(data: bytes) -> SafeText:
    """``/proc/PID/cmdline`` with blanks between the arguments; ``""`` for kernel threads and zombies."""
    return safe(data.rstrip(b"\0").replace(b"\0", b" "), 4096)


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,18}", text) else None


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that has a device or file open. `access` is fuser's letters or lsof's descriptor."""

    pid: int
    cmd: SafeText | None = None
    user: SafeText | None = None
    access: SafeText | None = None


def parse_fuser(text: str) -> tuple[Holder, ...]:
    """``fuser``, plain and ``-v``, with or without the device names it prints on stderr. Each pid once."""
    found: dict[int, Holder] = {}
    for line in lines(text):
        row = re.match(r"(?:/\S{0,255}:)?\s*(\S+)\s+(\d{1,10})\s+([A-Za-z.]{2,8})\s+(\S.*?)\s*$", line)
        if row:
            user, pid, access, cmd = row.groups()
            found.setdefault(int(pid), Holder(int(pid), program_name(cmd), safe(user, 64), safe(access, 16)))
            continue
        plain = re.sub(r"^/\S+:", "", line)
        if re.fullmatch(r"(?:\s*[1-9]\d{0,9}[cefFrm]{0,6}(?=\s|$))+\s*", plain):
            for pid, access in re.findall(r"(\d{1,10})([cefFrm]{0,6})", plain):
                found.setdefault(int(pid), Holder(int(pid), access=safe(access) or None))
    return tuple(found.values())


def parse_lsof(text: str) -> tuple[Holder, ...]:
    """``lsof FILE``: the processes that have it open, each once."""
    found: dict[int, Holder] = {}
    for line in lines(text):
        row = re.match(
            r"(\S.{0,63}?)\s+(\d{1,10})\s+(?:\d{1,10}\s+)?(\S+)\s+(\w+|\d+[rwu-]?\w?)\s+[A-Z]{3,4}\s", line
        )
        if row:
            cmd, pid, user, descriptor = row.groups()
            found.setdefault(int(pid), Holder(int(pid), safe(cmd, 64), safe(user, 64), safe(descriptor, 16)))
    return tuple(found.values())
