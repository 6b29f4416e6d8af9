"""Kernel messages about killed and stuck processes.

Wordings follow mm/oom_kill.c from kernel 2.6.32 to 6.x, kernel/hung_task.c and kernel/watchdog.c, and the
user-space killers systemd-oomd and earlyoom.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tui.box.parsers.lines import lines
from tui.model.text import SafeText, safe

HOST, CGROUP, OOMD = "host", "cgroup", "oomd"

_COMM = r"\((?P<name>.{0,64}?)\)"
_KILL = re.compile(
    r"(?P<scope>Memory cgroup out of memory|Out of memory)\b[^:\n]{0,60}: Kill(?:ed)? process (?P<pid>\d+)"
    r"(?:, UID (?P<uid1>\d+))?,? " + _COMM + r"(?=,? (?:total-vm|score|UID)|,|\s*$)"
)
_KILLED = re.compile(
    r"\bKilled process (?P<pid>\d+)(?:, UID \d+)?,? " + _COMM + r"(?=,? (?:total-vm|UID|vsz))"
)
_SUMMARY = re.compile(
    r"oom-kill:constraint=(?P<constraint>\w+),.*?(?:oom_memcg=(?P<memcg>[^,\n]*),)?"
    r"(?:task_memcg=[^\n]*?,)?task=(?P<name>.{0,64}?),pid=(?P<pid>\d+),uid=(?P<uid>\d+)"
)
_LIMIT_OF = re.compile(r"Task in (?P<task>\S+) killed as a result of limit of (?P<memcg>\S+)")
_RSS = {
    "anon_rss_kb": re.compile(r"anon-rss:(\d+)\s*kB"),
    "total_vm_kb": re.compile(r"(?:total-vm|vsz):(\d+)\s*kB"),
    "file_rss_kb": re.compile(r"file-rss:(\d+)\s*kB"),
    "shmem_rss_kb": re.compile(r"shmem-rss:(\d+)\s*kB"),
}
_EARLYOOM = re.compile(
    r'sending SIG(?:TERM|KILL) to process (?P<pid>\d+)(?: uid \d+)? "(?P<name>[^"\n]{0,64})"'
)
_OOMD = re.compile(r"systemd-oomd.*?Killed (?P<unit>/\S+) due to|oomd.*?Killed (?P<unit2>/\S+)")
_BLOCKED = re.compile(
    r"INFO: task (?P<name>.{1,64}?):(?P<pid>\d+) blocked for more than (?P<seconds>\d+) seconds"
)
_STATE = re.compile(r"task:(?P<name>.{1,64}?)\s+state:(?P<state>D)\S*\s+stack:\s*\d+\s+pid:\s*(?P<pid>\d+)")
_LOCKUP = re.compile(
    r"soft lockup - CPU#\d+ stuck for (?P<seconds>\d+)s! \[(?P<name>.{1,64}?):(?P<pid>\d+)\]"
)
_FRAME = re.compile(r"\b\w+\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?\s+\[(?P<module>[a-z_][\w-]*)")


@dataclass(frozen=True, slots=True)
class Kill:
    """One process the kernel or a user-space killer ended for memory.

    Attributes:
        scope: ``host`` for the whole machine, ``cgroup`` for the limit of a group (container, job), ``oomd``
            for a group that systemd-oomd ended before the kernel had to.
        line: 1-based line of the input.
        anon_rss_kb: what it held in its own pages, KiB; None where the kernel did not say.
    """

    pid: int | None
    name: SafeText
    scope: str
    line: int
    anon_rss_kb: int | None = None
    total_vm_kb: int | None = None
    file_rss_kb: int | None = None
    shmem_rss_kb: int | None = None
    cgroup: SafeText | None = None


@dataclass(frozen=True, slots=True)
class Stuck:
    """One task the kernel reports as not getting on. `module`: the driver its stack stands in."""

    pid: int
    name: SafeText
    line: int
    state: str = "D"
    seconds: int | None = None
    module: SafeText | None = None


def parse_kills(text: str) -> tuple[Kill, ...]:
    """Killed processes, in the order of the log; several lines about one of them are put together."""
    kills: list[Kill] = []
    memcg: SafeText | None = None
    for number, line in enumerate(lines(text), start=1):
        limit = _LIMIT_OF.search(line)
        if limit:
            memcg = safe(limit.group("memcg"), 400)
            continue
        found = _kill_of(line, number, memcg)
        if found is None:
            continue
        memcg = None
        earlier = next((i for i, one in enumerate(kills) if one.pid == found.pid and found.pid), None)
        if earlier is None:
            kills.append(found)
        else:
            kills[earlier] = _joined(kills[earlier], found)
    return tuple(kills)


def _kill_of(line: str, number: int, memcg: SafeText | None) -> Kill | None:
    summary = _SUMMARY.search(line)
    if summary:
        scope = CGROUP if summary.group("constraint") == "CONSTRAINT_MEMCG" else HOST
        group = summary.group("memcg")
        name = safe(summary.group("name"), 64)
        return Kill(_pid(summary), name, scope, number, cgroup=safe(group, 400) if group else None)
    match = _KILL.search(line)
    scoped = match is not None and match.group("scope").startswith("Memory cgroup")
    match = match or _KILLED.search(line) or _EARLYOOM.search(line)
    if match:
        scope = CGROUP if scoped or memcg not in {None, "/"} else HOST
        return Kill(_pid(match), safe(match.group("name"), 64), scope, number, cgroup=memcg, **_sizes(line))
    unit = _OOMD.search(line)
    if unit:
        name = safe(unit.group("unit") or unit.group("unit2"), 400)
        return Kill(None, name, OOMD, number, cgroup=name)
    return None


def _pid(match: re.Match[str]) -> int | None:
    digits = match.group("pid")
    return int(digits) if len(digits) <= 10 else None


def _sizes(line: str) -> dict[str, int]:
    found = {name: form.search(line) for name, form in _RSS.items()}
    return {name: int(match.group(1)) for name, match in found.items() if match and len(match.group(1)) < 20}


def _joined(first: Kill, more: Kill) -> Kill:
    return replace(
        first,
        scope=CGROUP if CGROUP in {first.scope, more.scope} else HOST,
        anon_rss_kb=first.anon_rss_kb if first.anon_rss_kb is not None else more.anon_rss_kb,
        total_vm_kb=first.total_vm_kb if first.total_vm_kb is not None else more.total_vm_kb,
        file_rss_kb=first.file_rss_kb if first.file_rss_kb is not None else more.file_rss_kb,
        shmem_rss_kb=first.shmem_rss_kb if first.shmem_rss_kb is not None else more.shmem_rss_kb,
        cgroup=first.cgroup or more.cgroup,
    )


def parse_stuck(text: str) -> tuple[Stuck, ...]:
    """Tasks the kernel calls hung, with the driver in their stack where one is printed."""
    found: list[Stuck] = []
    for number, line in enumerate(lines(text), start=1):
        match = _BLOCKED.search(line) or _LOCKUP.search(line) or _STATE.search(line)
        if match and len(match.group("pid")) <= 10:
            known = match.groupdict()
            seconds = int(known["seconds"]) if known.get("seconds") and len(known["seconds"]) < 10 else None
            state = known.get("state") or ("R" if "lockup" in line else "D")
            one = Stuck(int(known["pid"]), safe(known["name"], 64), number, state, seconds)
            if one.pid not in {earlier.pid for earlier in found}:
                found.append(one)
            continue
        frame = _FRAME.search(line)
        if frame and found and found[-1].module is None:
            found[-1] = replace(found[-1], module=safe(frame.group("module"), 64))
    return tuple(found)


def stack_module(text: str) -> SafeText | None:
    """The kernel module of the topmost frame that has one, as in ``/proc/PID/stack``."""
    frame = _FRAME.search(text)
    return safe(frame.group("module"), 64) if frame else None
