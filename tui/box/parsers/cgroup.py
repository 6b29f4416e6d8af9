"""Control group files, version 1 and 2: what the job may use, as the kernel keeps it.

Forms are those of Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and accounting/psi.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tui.box.parsers.lines import lines
from tui.model.telemetry import Cpu, Memory

# "No limit" in version 1 is LONG_MAX rounded down to a page, and pages differ; no machine has an exbibyte.
_UNLIMITED = 1 << 60
_KEYED = re.compile(r"^[ \t]*([A-Za-z_][\w.:()/-]{0,127})[ \t]+(-?\d{1,20})[ \t\r]*$", re.MULTILINE)
_PSI = re.compile(
    r"^[ \t]*(some|full)[ \t]+avg10=([\d.]{1,9}) avg60=([\d.]{1,9}) avg300=([\d.]{1,9})", re.MULTILINE
)

SINGLE_VALUES = frozenset(
    {
        *(
            "memory.max",
            "memory.high",
            "memory.peak",
            "memory.current",
            "memory.swap.max",
            "memory.swap.current",
        ),
        *("memory.limit_in_bytes", "memory.soft_limit_in_bytes", "memory.usage_in_bytes", "memory.failcnt"),
        *("memory.max_usage_in_bytes", "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"),
        *("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "pids.max", "pids.current"),
        *("cpuset.cpus", "cpuset.cpus.effective", "cpuset.effective_cpus"),
    }
)
TABLES = frozenset(
    {
        *(
            "memory.events",
            "memory.events.local",
            "memory.oom_control",
            "memory.stat",
            "cpu.stat",
            "pids.events",
        ),
        *("pressure/memory", "pressure/cpu", "pressure/io", "memory.pressure", "cpu.pressure", "io.pressure"),
    }
)
_NAMES = "|".join(sorted(map(re.escape, SINGLE_VALUES | TABLES), key=len, reverse=True))
_HEADED = re.compile(rf"^[=#>*\s-]*(?:\S*/)?(?P<name>{_NAMES})[=#<*\s:-]*$")
_PREFIXED = re.compile(rf"^[=#>*\s-]*(?:\S*/)?(?P<name>{_NAMES})\s*[:= \t]\s*(?P<rest>\S.*)$")
MEMORY_LIMITS = frozenset({"memory.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"})
MEMORY_USES = frozenset({"memory.current", "memory.usage_in_bytes", "memory.memsw.usage_in_bytes"})


@dataclass(frozen=True, slots=True)
class Pressure:
    """Stall shares in percent of the last 10, 60 and 300 seconds. `full` is None for CPU on old kernels."""

    some: tuple[float, float, float]
    full: tuple[float, float, float] | None = None

    @property
    def thrashing(self) -> bool:
        """Everything in the group stood still for a tenth of the time or more."""
        return self.full is not None and self.full[0] >= 10.0


@dataclass(frozen=True, slots=True)
class Pids:
    """Tasks of the group. `limit` None: no limit. `hits`: forks refused since the group was made."""

    limit: int | None = None
    current: int | None = None
    hits: int | None = None

    @property
    def exhausted(self) -> bool:
        """Forks fail now or nearly so."""
        return self.limit is not None and self.current is not None and self.current >= self.limit * 0.99


@dataclass(frozen=True, slots=True)
class Cgroup:
    """What a set of control group files said.

    Attributes:
        answered: which parts were in the files; a limit that is None *and* answered means "no limit".
        asked: the same, and the parts of files that were empty or not there.
        used_bytes: as the kernel counts it, page cache included.
        cache_bytes: the inactive file pages in it, which the kernel drops before it kills.
    """

    answered: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    limit_bytes: int | None = None
    high_bytes: int | None = None
    used_bytes: int | None = None
    peak_bytes: int | None = None
    cache_bytes: int | None = None
    swap_limit_bytes: int | None = None
    swap_used_bytes: int | None = None
    fail_count: int | None = None
    oom_kills: int | None = None
    under_oom: bool | None = None
    events: Mapping[str, int] | None = None
    stat: Mapping[str, int] | None = None
    cpus: float | None = None
    cpuset: int | None = None
    cpu_stat: Mapping[str, int] | None = None
    pressure: Mapping[str, Pressure] | None = None
    pids: Pids | None = None

    @property
    def working_bytes(self) -> int | None:
        """Use less what the kernel can drop; None where use is not known."""
        if self.used_bytes is None:
            return None
        return max(0, self.used_bytes - (self.cache_bytes or 0))

    @property
    def available_bytes(self) -> int | None:
        """What is left below the limit; None without a limit or without use."""
        if self.limit_bytes is None or self.working_bytes is None:
            return None
        return max(0, self.limit_bytes - self.working_bytes)


def parse_number(text: str) -> int | None:
    """The one whole number of a single-value file, else None."""
    word = text.strip()
    return int(word) if re.fullmatch(r"-?\d{1,20}", word) else None


def parse_limit(text: str) -> int | None:
    """Bytes (or tasks) of a limit file; None for ``max``, -1, version 1's huge number and for no number."""
    number = parse_number(text)
    return None if number is None or not 0 <= number < _UNLIMITED else number


def parse_keyed(text: str) -> dict[str, int]:
    """``name number`` per line, as in memory.events, memory.stat, cpu.stat. Other lines are passed over."""
    return {name: int(number) for name, number in _KEYED.findall(text)}


def parse_cpu_max(text: str) -> float | None:
    """CPUs of a ``quota period`` pair; None for ``max``, -1 and for no such pair."""
    match = re.match(r"\s*(-?\d{1,18}|max)\s+(\d{1,18})\s*$", text)
    if match is None or match.group(1) == "max":
        return None
    return cpu_quota(int(match.group(1)), int(match.group(2)))


def cpu_quota(quota_us: int | None, period_us: int | None) -> float | None:
    """CPUs of version 1's two files; None without a quota (-1) or a period."""
    if quota_us is None or not period_us or quota_us < 0:
        return None
    return quota_us / period_us


def count_cpuset(text: str) -> int | None:
    """CPUs in a list such as ``0-3,8,10-11:2/4``; None for anything else or an empty list."""
    total = 0
    for part in text.strip().split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6})/(\d{1,6}))?)?\s*", part)
        if match is None:
            return None
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if last < first:
            return None
        size, used, group = last - first + 1, int(match.group(3) or 1), int(match.group(4) or 1)
        if not 0 < used <= group:
            return None
        total += size // group * used + min(size % group, used)
    return total


def parse_pressure(text: str) -> Pressure | None:
    """A pressure stall file; None when it is none (kernels with ``psi=0``)."""
    rows: dict[str, tuple[float, float, float]] = {}
    for kind, *shares in _PSI.findall(text):
        try:
            ten, sixty, long = (float(share) for share in shares)
        except ValueError:
            continue
        rows[kind] = (ten, sixty, long)
    return Pressure(rows["some"], rows.get("full")) if "some" in rows else None


def oom_kills_risen(before: int | None, now: int | None) -> bool | None:
    """Whether the kernel killed in this group since `before`; None where either count is not known.

    A smaller count means a new group (the container was made again), whose kills are all new.
    """
    if before is None or now is None:
        return None
    return now > before if now >= before else now > 0


def read_files(files: Mapping[str, str]) -> Cgroup:
    """Everything that the given files say.

    Args:
        files: contents by base name, such as ``memory.max`` or ``cpu.cfs_quota_us``; pressure files by
            ``pressure/memory`` or ``memory.pressure``.
    """
    said: dict[str, object] = {}
    empty: dict[str, object] = {}
    for name, text in files.items():
        target = said if text.strip() else empty
        _read_memory(name, text, target)
        _read_cpu(name, text, target)
    quota, period = _number_in(files, "cpu.cfs_quota_us"), _number_in(files, "cpu.cfs_period_us")
    if "cpu.cfs_quota_us" in files:
        said["cpus"] = cpu_quota(quota, period if period is not None else 100_000)
    if any(name.startswith("pids.") for name in files):
        said["pids"] = _pids(files)
    pressure = {
        _pressure_of(name): found
        for name, text in files.items()
        if _pressure_of(name) and (found := parse_pressure(text))
    }
    if any(_pressure_of(name) for name in files):
        empty["pressure"] = None
    if pressure:
        said["pressure"] = pressure
    return Cgroup(answered=frozenset(said), asked=frozenset(said) | frozenset(empty), **said)  # type: ignore[arg-type]


def named_blocks(text: str) -> dict[str, str]:
    """Contents by file name where the output itself names the files: ``==> memory.max <==`` above a block,
    or ``…/memory.max:`` before each line, as head, ``grep .`` and loops with echo print them.
    """
    blocks: dict[str, str] = {}
    current = ""
    for line in lines(text):
        if len(line) > 512:
            continue  # no such file has lines that long
        headed, prefixed = _HEADED.match(line), _PREFIXED.match(line)
        if headed:
            current = headed.group("name")
            blocks.setdefault(current, "")
        elif prefixed:
            name = prefixed.group("name")
            blocks[name] = blocks.get(name, "") + prefixed.group("rest") + "\n"
        elif current and line.strip():
            blocks[current] += line + "\n"
    return blocks


def _read_memory(name: str, text: str, said: dict[str, object]) -> None:
    if name in MEMORY_LIMITS and not ("memsw" in name and "limit_bytes" in said):
        said["limit_bytes"] = parse_limit(text)
    elif name in MEMORY_USES and not ("memsw" in name and "used_bytes" in said):
        said["used_bytes"] = parse_number(text)
    elif name in {"memory.high", "memory.soft_limit_in_bytes"}:
        said["high_bytes"] = parse_limit(text)
    elif name in {"memory.peak", "memory.max_usage_in_bytes"}:
        said["peak_bytes"] = parse_number(text)
    elif name == "memory.swap.max":
        said["swap_limit_bytes"] = parse_limit(text)
    elif name == "memory.swap.current":
        said["swap_used_bytes"] = parse_number(text)
    elif name in {"memory.failcnt", "memory.memsw.failcnt"}:
        said["fail_count"] = parse_number(text)
    elif name in {"memory.events", "memory.events.local"}:
        said["events"] = events = parse_keyed(text)
        said["oom_kills"] = events.get("oom_kill")
    elif name == "memory.oom_control":
        control = parse_keyed(text)
        said["oom_kills"] = control.get("oom_kill")  # kept by version 1 since kernel 4.13
        said["under_oom"] = control["under_oom"] > 0 if "under_oom" in control else None
    elif name == "memory.stat":
        said["stat"] = stat = parse_keyed(text)
        if "hierarchical_memory_limit" in stat:  # version 1: the tightest limit up to the root
            said.setdefault("limit_bytes", parse_limit(str(stat["hierarchical_memory_limit"])))
        said["cache_bytes"] = stat.get("total_inactive_file", stat.get("inactive_file"))


def _read_cpu(name: str, text: str, said: dict[str, object]) -> None:
    if name == "cpu.max":
        said["cpus"] = parse_cpu_max(text)
    elif name in {"cpuset.cpus", "cpuset.cpus.effective", "cpuset.effective_cpus"}:
        said["cpuset"] = count_cpuset(text)
    elif name == "cpu.stat":
        said["cpu_stat"] = parse_keyed(text)


def _pids(files: Mapping[str, str]) -> Pids:
    events = parse_keyed(files.get("pids.events", ""))
    return Pids(
        limit=parse_limit(files.get("pids.max", "")),
        current=_number_in(files, "pids.current"),
        hits=events.get("max"),
    )


def _pressure_of(name: str) -> str:
    match = re.fullmatch(r"(?:pressure/(cpu|memory|io))|(?:(cpu|memory|io)\.pressure)", name)
    return (match.group(1) or match.group(2)) if match else ""


def _number_in(files: Mapping[str, str], name: str) -> int | None:
    return parse_number(files[name]) if name in files else None


def memory_of(
    files: Mapping[str, str],
    *,
    version: int,
    host_total_bytes: int | None = None,
    host_available_bytes: int | None = None,
    shm_size_bytes: int | None = None,
    shm_used_bytes: int | None = None,
) -> Memory:
    """The model's memory from control group files. A limit above the machine's memory is no limit."""
    group = read_files(files)
    limit = group.limit_bytes
    if limit is not None and host_total_bytes is not None and limit >= host_total_bytes:
        limit = None
    return Memory(
        limit_bytes=limit,
        used_bytes=group.working_bytes,
        oom_kills=group.oom_kills,
        version=version,
        host_total_bytes=host_total_bytes,
        host_available_bytes=host_available_bytes,
        shm_size_bytes=shm_size_bytes,
        shm_used_bytes=shm_used_bytes,
    )


def cpu_of(files: Mapping[str, str], *, cores: int | None = None, load1: float | None = None) -> Cpu:
    """The model's CPU from control group files; `cores` is what the box shows where no cpuset says less."""
    group = read_files(files)
    visible = [count for count in (group.cpuset, cores) if count is not None]
    return Cpu(
        quota_cores=group.cpus,
        cores_visible=min(visible) if visible else None,
        throttled_periods=(group.cpu_stat or {}).get("nr_throttled"),
        load1=load1,
    )
