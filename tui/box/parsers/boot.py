"""When the machine and its container started, and how its clock stands against ours."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.box.parsers.lines import lines
from tui.model.text import SafeText, safe

_UP = re.compile(r"\bup\s+(?P<span>.+?)(?=,?\s+\d+\s+users?\b|,?\s+load averages?|,\s*$|$)", re.IGNORECASE)
_PART = re.compile(
    r"(?<!\d)(?P<count>\d{1,9})\s*(?P<unit>years?|weeks?|days?|hours?|hrs?|hr|minutes?|mins?|min|seconds?|secs?|sec|s|天|小时|分钟)\b"
)
_CLOCK = re.compile(r"(?<![\d:])(?P<hours>\d{1,3}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}))?(?![\d:])")
_UNITS = {
    "y": 31_536_000,
    "w": 604_800,
    "d": 86_400,
    "h": 3600,
    "m": 60,
    "s": 1,
    "天": 86_400,
    "小": 3600,
    "分": 60,
}
_LOAD = re.compile(r"load averages?:\s*(\d+[.,]\d+),?\s+(\d+[.,]\d+),?\s+(\d+[.,]\d+)", re.IGNORECASE)
_USERS = re.compile(r"(\d+)\s+users?\b")
_BOOT_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_BTIME = re.compile(r"^[ \t]*btime[ \t]+(\d{1,12})[ \t\r]*$", re.MULTILINE)
_BOOTTIME = re.compile(r"\{\s*sec = (\d{1,12})\b")  # macOS: sysctl kern.boottime
_WHO = re.compile(
    r"(?:system boot|系统引导|reboot\s+~|Systemstart|démarrage système)\s+(?P<when>\S.*?)[ \t\r]*$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Uptime:
    """One ``uptime`` line. `load` belongs to the whole machine; `users` is None where it is not printed."""

    seconds: float
    load: tuple[float, float, float] | None = None
    users: int | None = None


def parse_uptime(text: str) -> Uptime | None:
    """``uptime`` of procps, busybox, BSD and macOS, and ``uptime -p``; None for anything else."""
    for line in lines(text):
        match = _UP.search(line)
        seconds = _span(match.group("span")) if match else None
        if seconds is None:
            continue
        load, users = _LOAD.search(line), _USERS.search(line)
        return Uptime(
            seconds, _load(load.groups()) if load else None, int(users.group(1)[:9]) if users else None
        )
    return None


def _span(text: str) -> float | None:
    """Seconds of ``12 days,  2:03``, ``3 min``, ``1 hr, 5 secs`` or ``1 week, 2 hours``."""
    total, found = 0, False
    for part in _PART.finditer(text):
        total += int(part.group("count")) * _UNITS[part.group("unit")[0].lower()]
        found = True
    clock = _CLOCK.search(text)
    if clock:
        total += int(clock.group("hours")) * 3600 + int(clock.group("minutes")) * 60
        total += int(clock.group("seconds") or 0)
        found = True
    return float(total) if found else None


def _load(shares: tuple[str, ...]) -> tuple[float, float, float]:
    one, five, fifteen = (float(share.replace(",", ".")) for share in shares)
    return one, five, fifteen


def _last(text: str) -> str:
    """The last line that says something: what a login prints stands before it."""
    return text.rstrip().rpartition("\n")[2]


def parse_proc_uptime(text: str) -> float | None:
    """Seconds since boot of ``/proc/uptime``; of the host also inside containers without lxcfs."""
    match = re.match(r"\s*(\d{1,12}(?:\.\d+)?)(?:\s+\d{1,15}(?:\.\d+)?)?\s*$", _last(text))
    return float(match.group(1)) if match else None


def parse_loadavg(text: str) -> tuple[float, float, float] | None:
    """The three figures of ``/proc/loadavg``."""
    match = re.match(r"\s*(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) \d+/\d+ \d+", _last(text))
    return _load(match.groups()) if match else None


def parse_boot_id(text: str) -> SafeText | None:
    """The kernel's random id of this boot, in lower case."""
    match = _BOOT_ID.search(text)
    return safe(match.group().lower()) if match else None


def parse_boot_epoch(text: str) -> int | None:
    """Seconds since the epoch from ``btime`` of /proc/stat or from macOS's ``kern.boottime``."""
    match = _BTIME.search(text) or _BOOTTIME.search(text)
    return int(match.group(1)) if match else None


def parse_who_boot(text: str) -> SafeText | None:
    """Box-local time of the last boot as ``who -b`` or ``last reboot`` prints it: it names no time zone."""
    match = _WHO.search(text)
    return safe(match.group("when"), 64) if match else None


def parse_since(text: str) -> SafeText | None:
    """Box-local time of the last boot from ``uptime -s``."""
    match = re.match(r"\s*(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$", _last(text))
    return safe(match.group(1)) if match else None


def parse_epoch(text: str) -> float | None:
    """Seconds since the epoch, as ``date +%s`` or ``stat -c %Y`` print them."""
    match = re.match(r"\s*(\d{9,11}(?:\.\d+)?)\s*$", _last(text))
    return float(match.group(1)) if match else None


def same_boot(stored: str | None, now: str | None) -> bool | None:
    """Whether two boot ids name the same boot; None where either is not known."""
    if not stored or not now:
        return None
    return stored.strip().lower() == now.strip().lower()


def clock_offset(box: float, ours: float) -> float:
    """Seconds the box's clock is ahead of ours."""
    return box - ours


def restarted_since(job_started: float | None, started: float | None, slack_s: float = 60.0) -> bool | None:
    """Whether machine or container started after the job; all times by the box's clock."""
    if job_started is None or started is None:
        return None
    return started > job_started + slack_s


def container_restarted(init_started: float | None, uptime_s: float | None, now: float | None) -> bool | None:
    """Whether PID 1 is much younger than the machine: the container was started again, the host was not."""
    if init_started is None or uptime_s is None or now is None:
        return None
    return now - init_started < uptime_s - 600
