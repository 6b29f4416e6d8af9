"""Host, memory and CPU from what a Linux box's shell read out of /proc and /sys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tui.box.parsers.boot import parse_boot_epoch, parse_boot_id, parse_loadavg, parse_proc_uptime
from tui.box.parsers.cgroup import count_cpuset, cpu_of, memory_of, parse_keyed, parse_number
from tui.box.parsers.lines import decode
from tui.box.parsers.memory import parse_meminfo
from tui.box.parsers.process import parse_proc_stat
from tui.box.probe.origin import source
from tui.model.reading import Reading, known
from tui.model.telemetry import Cpu, Filesystem, Host, Memory
from tui.model.text import SafeText, safe

_DATE = re.compile(r"(\d{9,11})(?:\.(\d{1,9}))?")
NO_GROUP = "/sys/fs/cgroup: no control group of ours"
_INSIDE = 30.0
"""Seconds after boot from which a first process must be a container's."""

# Keys that the shell picks out of files with many, and the files they stand in.
_FILE_OF = {
    "inactive_file": "memory.stat",
    "total_inactive_file": "memory.stat",
    "nr_throttled": "cpu.stat",
}


@dataclass(frozen=True, slots=True)
class Identity:
    """What a box said when the probe's shell started there; it does not change while that shell lives.

    Attributes:
        system: ``Linux`` or ``Darwin``.
        booted_at, first_process_at: seconds since the epoch, by the box's clock.
        shell_pid: the probe's own process.
        hides: other users' processes cannot be seen, so *not there* proves nothing.
        job: id and name of the Slurm job this shell runs in.
    """

    system: SafeText
    user: SafeText | None = None
    root: bool = False
    home: str = "/"
    hostname: SafeText | None = None
    kernel: SafeText | None = None
    boot_id: SafeText | None = None
    booted_at: float | None = None
    first_process_at: float | None = None
    page_bytes: int = 4096
    hertz: int = 100
    cores: int | None = None
    memory_bytes: int | None = None
    hides: bool = False
    job: tuple[SafeText, SafeText] | None = None
    shell_pid: int | None = None
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Moment:
    """When an answer was asked for and taken, by the operator's clock, and how long the box worked on it.

    Attributes:
        took_s: the round trip.
        tick: the answer's number.
    """

    sent_at: float
    taken_at: float
    worked_s: float = 0.0
    sections: Mapping[str, bytes] = field(default_factory=dict)
    took_s: float = 0.0
    tick: int = 0

    def text(self, name: str) -> str:
        return decode(self.sections.get(name, b""))


def labelled(text: str) -> dict[str, str]:
    """``name rest of the line`` lines; of several with one name the first."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, blank, rest = line.partition(" ")
        if blank:
            found.setdefault(name, rest)
    return found


def read_who(text: str) -> tuple[bool, SafeText | None, str]:
    """(is root, user name, home folder)."""
    first, _, home = text.partition("\n")
    uid, _, user = first.partition(" ")
    return uid == "0", safe(user, 64) if user else None, home.rstrip("\n") or "/"


def linux_identity(sections: Mapping[str, bytes]) -> Identity:
    """The identity of a Linux box from the probe's first answer."""
    raw = sections.get("identity", b"")
    said = labelled(decode(raw))
    root, user, home = read_who(decode(sections.get("who", b"")))
    booted = parse_boot_epoch(f"btime {said.get('btime', '')}")
    hertz = parse_number(said.get("tick", "")) or 100
    first = parse_proc_stat(said.get("stat", ""))
    job = said.get("slurm", "").split(" ", 1)
    return Identity(
        system=safe(decode(sections.get("os", b"")).strip() or "unknown", 32),
        user=user,
        root=root,
        home=home,
        hostname=_word(said, "hostname"),
        kernel=_word(said, "osrelease"),
        boot_id=parse_boot_id(said.get("boot_id", "")),
        booted_at=None if booted is None else float(booted),
        first_process_at=booted + first.start_ticks / hertz if booted and first and hertz else None,
        page_bytes=parse_number(said.get("page", "")) or 4096,
        hertz=hertz,
        cores=count_cpuset(said.get("cpus", "")),
        hides=not root and _hides_processes(decode(sections.get("mounts", b""))),
        job=(safe(job[0], 32), safe(job[1] if len(job) > 1 else "", 128)) if job[0] else None,
        shell_pid=parse_number(said.get("shell", "")),
        raw=raw,
    )


def _word(said: Mapping[str, str], name: str) -> SafeText | None:
    return safe(said[name].strip(), 256) if said.get(name, "").strip() else None


def _hides_processes(mounts: str) -> bool:
    match = re.search(r"^\S+ /proc proc (\S+)", mounts, re.MULTILINE)
    return bool(match and re.search(r"hidepid=(?:[124]|noaccess|invisible|ptraceable)", match[1]))


def read_host(identity: Identity, moment: Moment) -> Reading[Host]:
    """Who the box is and how far its clock is off."""
    inside = (
        identity.first_process_at
        if identity.booted_at is not None
        and identity.first_process_at is not None
        and identity.first_process_at - identity.booted_at > _INSIDE
        else None
    )
    host = Host(
        system=identity.system,
        hostname=identity.hostname,
        kernel=identity.kernel,
        boot_id=identity.boot_id,
        booted_at=identity.booted_at,
        container_started_at=inside,
        clock_offset_s=clock_offset(moment),
        user=identity.user,
        home=safe(identity.home),
    )
    return known(host, source("uname; id; /proc/sys/kernel; date +%s.%N", moment.taken_at, identity.raw))


def clock_offset(moment: Moment) -> float | None:
    """Seconds the box's clock is ahead. It was read when the request arrived: half a round trip later."""
    match = _DATE.match(moment.text("date").strip())
    if match is None:
        return None
    # A box that prints whole seconds is on average half a second further on.
    box = int(match[1]) + (float(f"0.{match[2]}") if match[2] else 0.5)
    there = max(0.0, moment.taken_at - moment.sent_at - moment.worked_s) / 2
    return round(box - (moment.sent_at + there), 3)


def worked(text: str) -> float:
    """Seconds between the two uptimes of an ``up`` section."""
    first, _, last = text.strip().partition(" ")
    start, end = parse_proc_uptime(first), parse_proc_uptime(last)
    return max(0.0, end - start) if start is not None and end is not None else 0.0


def read_memory(identity: Identity, moment: Moment, shm: Filesystem | None) -> Reading[Memory]:
    """Memory against the control group's limit. `shm` is the last known state of /dev/shm."""
    group, host = moment.sections.get("memory", b""), moment.sections.get("meminfo", b"")
    size, used = (shm.size_bytes, shm.used_bytes) if shm else (None, None)
    memory, command = _memory(group, host, size, used)
    return known(memory, source(command, moment.taken_at, group + host))


# The figures that differ from one tick to the next, between what stays for hours.
_FIGURE = re.compile(
    rb"\n(memory\.current|memory\.usage_in_bytes|inactive_file|total_inactive_file) (\d{1,18})(?=\n)"
)
_AVAILABLE = re.compile(rb"(MemTotal: +\d{1,15} kB\nMemAvailable: +)(\d{1,15})( kB\n?)")


def _memory(group: bytes, host: bytes, shm_size: int | None, shm_used: int | None) -> tuple[Memory, str]:
    """Memory and where it stands; what did not change since some earlier tick is not read again."""
    parts, available = _FIGURE.split(group), _AVAILABLE.fullmatch(host)
    match parts:
        case [head, use, used, between, cache, inactive, tail] if (
            available and use.startswith(b"memory") and not cache.startswith(b"memory")
        ):
            pass
        case _:
            return _whole_memory(group, host, shm_size, shm_used)
    steady = b"%s\n%s 0%s\n%s 0%s" % (head, use, between, cache, tail)
    like, command = _steady_memory(steady, b"%s0%s" % available.group(1, 3))
    memory = Memory(
        limit_bytes=like.limit_bytes,
        used_bytes=max(0, int(used) - int(inactive)),
        oom_kills=like.oom_kills,
        version=like.version,
        host_total_bytes=like.host_total_bytes,
        host_available_bytes=int(available[2]) * 1024,
        shm_size_bytes=shm_size,
        shm_used_bytes=shm_used,
    )
    return memory, command


def _whole_memory(
    group: bytes, host: bytes, shm_size: int | None = None, shm_used: int | None = None
) -> tuple[Memory, str]:
    said = labelled(decode(group))
    table = parse_meminfo(decode(host))
    figures = table.memory if table is not None else {}
    memory = memory_of(
        _files(said, "memory."),
        version=parse_number(said.get("version", "")) or 0,
        host_total_bytes=_kib(figures.get("total")),
        host_available_bytes=_kib(figures.get("available")),
        shm_size_bytes=shm_size,
        shm_used_bytes=shm_used,
    )
    return memory, f"{said.get('at', NO_GROUP)}/memory.*; /proc/meminfo"


_steady_memory = lru_cache(512)(_whole_memory)


def read_cpu(identity: Identity, moment: Moment) -> Reading[Cpu]:
    """CPU quota and throttling of the control group; the load is the whole host's."""
    group, said = moment.sections.get("cpu", b""), moment.sections.get("load", b"")
    load = parse_loadavg(decode(said))
    cpu, command = _cpu(group, identity.cores, load[0] if load else None)
    return known(cpu, source(command, moment.taken_at, group + said))


@lru_cache(512)  # the load is an average that is taken every five seconds, the rest changes still less
def _cpu(group: bytes, cores: int | None, load1: float | None) -> tuple[Cpu, str]:
    said = labelled(decode(group))
    cpu = cpu_of(_files(said, "cpu."), cores=cores, load1=load1)
    return cpu, f"{said.get('at', NO_GROUP)}/cpu.*; /proc/loadavg"


def _files(said: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The control group files that the picked lines come from, as far as they were picked."""
    files = {name: text for name, text in said.items() if name.startswith(prefix)}
    for key, text in said.items():
        name = _FILE_OF.get(key)
        if key == "oom_kill":
            name = "memory.events" if "memory.max" in said else "memory.oom_control"
        if name is not None and name.startswith(prefix):
            files[name] = files.get(name, "") + f"{key} {text}\n"
    # Version 1 tells here what limits above set, also those that cannot be seen from inside.
    above = parse_keyed(f"x {said.get('hierarchical_memory_limit', '')}").get("x")
    own = parse_number(said.get("memory.limit_in_bytes", ""))
    if prefix == "memory." and above is not None and own is not None and above < own:
        files["memory.limit_in_bytes"] = str(above)
    return files


def _kib(figure: int | str | None) -> int | None:
    return figure * 1024 if isinstance(figure, int) else None
