"""What shows only over time or beside what was known: silence, a new boot, counters that rose."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui.model.incident import Fact
from tui.triage.finding import Hit
from tui.triage.view import View


def silent(view: View, cls: str) -> Iterator[Hit]:
    """A living process whose log has not grown for long."""
    age, alive = view.known.log_age_s, view.known.alive
    if (
        view.kind != "log"
        or age is None
        or not alive
        or age < view.known.quiet_s
        or view.finished_at is not None
    ):
        return
    yield Hit(
        None, f"no new line for {_span(age)} while the process is alive", {"quiet_s": age}, settled=True
    )


def _span(seconds: float) -> str:
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86400:.0f} days"


_UP = re.compile(
    r"\bup\s+(?:(?P<weeks>\d+) weeks?,\s*)?(?:(?P<days>\d+) days?,\s*)?(?:(?P<hours>\d+):(?P<minutes>"
    r"\d\d)|(?:(?P<h>\d+) hours?(?:,\s*)?)?(?:(?P<min>\d+) min(?:ute)?s?)?)"
)
_BOOT_ID = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_INIT = re.compile(r"/proc/1 start (?P<at>\d{9,11})")


def rebooted(view: View, cls: str) -> Iterator[Hit]:
    """The box or the container began to run after the job did."""
    known = view.known
    for index, one in enumerate(view.rows[:50]):
        text = one.text.strip()
        init = _INIT.search(text)
        if _BOOT_ID.match(text) and known.boot_id and text != known.boot_id:
            yield Hit(index, facts={"boot_id": text})
        elif init and known.started_at is not None and int(init["at"]) > known.started_at + 5:
            yield Hit(index, facts={"detail": "container_restart"})
        elif "uptime" in view.command or "load average" in text:
            up = _seconds(text) if "/proc/uptime" in view.command else _uptime(text)
            if up is None or known.started_at is None or known.now is None:
                continue
            if up + 60 < known.now - known.started_at:
                yield Hit(index, facts={"uptime_s": up})


def _seconds(text: str) -> float | None:
    """The first figure of /proc/uptime."""
    match = re.fullmatch(r"(\d+\.\d\d)(?: \d+\.\d\d)?", text)
    return float(match[1]) if match else None


def _uptime(text: str) -> float | None:
    match = _UP.search(text)
    if match is None or not any(match.groups()):
        return None
    part = {name: int(value or 0) for name, value in match.groupdict().items()}
    return float(
        604_800 * part["weeks"] + 86_400 * part["days"] + 3600 * (part["hours"] + part["h"])
        + 60 * (part["minutes"] + part["min"])
    )  # fmt: skip


_OOM_KILL = re.compile(r"^(?:memory\.\S+:\s*)?oom_kill\s+(?P<count>\d+)\s*$")


def oom_counter(view: View, cls: str) -> Iterator[Hit]:
    """The cgroup's count of kills rose since the run began, or stands beside a kill."""
    before = view.known.oom_kills
    killed = any(re.search(r"\bKilled\b|已杀死", one.text) for one in view.rows)
    for index, one in enumerate(view.rows):
        match = _OOM_KILL.match(one.text.strip())
        if match is None:
            continue
        count = int(match["count"])
        if (before is not None and count > before) or (before is None and killed and count > 0):
            facts: dict[str, Fact] = {"scope": "cgroup", "oom_kill": count}
            yield Hit(index, facts=facts, confidence=0.95 if before is not None else 0.7)


_PIDS = re.compile(r"^(?P<name>pids\.max|pids\.current|max)\s+(?P<value>\d+)\s*$")


def pids_exhausted(view: View, cls: str) -> Iterator[Hit]:
    """The cgroup has about as many processes as it may, or refused to make one."""
    told: dict[str, tuple[int, int]] = {}
    for index, one in enumerate(view.rows):
        match = _PIDS.match(one.text.strip())
        if match:
            told.setdefault(match["name"], (index, int(match["value"])))
    if "pids.max" not in told or "pids.current" not in told:
        return
    most, now, refused = told["pids.max"][1], told["pids.current"], told.get("max", (0, 0))[1]
    if most > 0 and (now[1] >= 0.95 * most or (refused > 0 and now[1] >= 0.9 * most)):
        yield Hit(now[0], facts={"limit": "pids"})
