"""What a Mac's tools say, as the same telemetry. Times of processes are UTC, asked for so."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Mapping

from tui.box.parsers.boot import parse_boot_epoch, parse_boot_id, same_boot
from tui.box.parsers.cgroup import parse_number
from tui.box.parsers.lines import decode
from tui.box.probe.frame import Batch
from tui.box.probe.origin import reason, source
from tui.box.probe.system import Identity, Moment, read_who
from tui.box.probe.tasks import MOST, shown_command
from tui.box.probe.watched import Life
from tui.model.reading import Reading, known, unknown
from tui.model.run import RunSpec
from tui.model.telemetry import Cpu, Memory, ProcessInfo
from tui.model.text import SafeText, safe

_SYSCTL = re.compile(r"^([a-z]\w*(?:\.\w+)+)(?::| =) (.*)$", re.MULTILINE)
_PAGES = re.compile(r'^"?Pages ([a-z -]+)"?:\s+(\d{1,18})\.?$', re.MULTILINE)
_PAGE_SIZE = re.compile(r"page size of (\d{1,8}) bytes")
_PS = re.compile(
    r"\s*(?P<pid>\d+)\s+(?P<ppid>\d+)\s+(?P<state>[A-Z]\S*)\s+(?P<rss>\d+)\s+(?P<cpu>[\d:.-]+)\s+"
    r"(?P<age>[\d:-]+)\s+(?P<start>[A-Z][a-z]{2}\s+[A-Z][a-z]{2}\s+\d{1,2}\s+[\d:]{8}\s+\d{4})\s+(?P<command>.*)\Z"
)


def identity(sections: Mapping[str, bytes]) -> Identity:
    """The identity of a Mac from ``sysctl``."""
    raw = sections.get("identity", b"")
    said = dict(_SYSCTL.findall(decode(raw)))
    root, user, home = read_who(decode(sections.get("who", b"")))
    booted = parse_boot_epoch(said.get("kern.boottime", ""))
    return Identity(
        system=SafeText("Darwin"),
        user=user,
        root=root,
        home=home,
        hostname=safe(said["kern.hostname"], 256) if said.get("kern.hostname") else None,
        kernel=safe(said["kern.osrelease"], 64) if said.get("kern.osrelease") else None,
        boot_id=parse_boot_id(said.get("kern.bootsessionuuid", "")),
        booted_at=None if booted is None else float(booted),
        page_bytes=parse_number(said.get("hw.pagesize", "")) or 4096,
        cores=parse_number(said.get("hw.ncpu", "")),
        memory_bytes=parse_number(said.get("hw.memsize", "")),
        raw=raw,
    )


def memory(identity: Identity, moment: Moment) -> Reading[Memory]:
    """The machine's memory; macOS has no control groups, so there is no limit of ours to read.

    What can be had is what ``vm_stat`` calls free, inactive, speculative and purgeable.
    """
    text = moment.text("meminfo")
    pages = {name: int(count) for name, count in _PAGES.findall(text)}
    size = _PAGE_SIZE.search(text)
    page = int(size[1]) if size else identity.page_bytes
    names = ("free", "inactive", "speculative", "purgeable")
    room = sum(pages.get(name, 0) for name in names) * page if "free" in pages else None
    origin = source("vm_stat; sysctl hw.memsize", moment.taken_at, text)
    return known(Memory(version=0, host_total_bytes=identity.memory_bytes, host_available_bytes=room), origin)


def cpu(identity: Identity, moment: Moment) -> Reading[Cpu]:
    """Cores and load."""
    text = moment.text("load")
    match = re.search(r"\{ (\d+[.,]\d+) ", text)
    load = float(match[1].replace(",", ".")) if match else None
    return known(
        Cpu(cores_visible=identity.cores, load1=load), source("sysctl vm.loadavg", moment.taken_at, text)
    )


def read_ps(line: str) -> ProcessInfo | None:
    """A line of ``ps`` with pid, ppid, stat, rss, time, etime, lstart and command.

    `start_ticks` is the start in seconds since the epoch here: with the pid it names the process.
    """
    match = _PS.match(line)
    if match is None:
        return None
    try:
        started = calendar.timegm(time.strptime(" ".join(match["start"].split()), "%a %b %d %H:%M:%S %Y"))
    except ValueError:
        return None
    return ProcessInfo(
        pid=int(match["pid"]),
        start_ticks=started,
        state={"U": "D", "I": "S"}.get(match["state"][0], match["state"][0]),
        command=shown_command(match["command"].split(" ")),
        ppid=int(match["ppid"]),
        rss_bytes=int(match["rss"]) * 1024,
        cpu_s=_span(match["cpu"]),
        elapsed_s=_span(match["age"]),
    )


def _span(text: str) -> float | None:
    """Seconds of ``2-03:04:05``, ``03:04`` or ``1:02.34``."""
    days, dash, clock = text.rpartition("-")
    try:
        parts = [float(part) for part in clock.split(":")]
        total = float(days) * 86_400 if dash else 0.0
    except ValueError:
        return None
    for at, part in enumerate(reversed(parts)):
        total += part * 60**at
    return total


def processes(batch: Batch, taken_at: float) -> Reading[tuple[ProcessInfo, ...]]:
    """The heaviest processes by memory."""
    message = batch.messages.get("ps")
    if message is None:
        return unknown(reason("the process list does not answer"), source("ps -A", taken_at))
    text = decode(message.text)
    found = [info for line in text.split("\n") if (info := read_ps(line))]
    return known(tuple(found[:MOST]), source("ps -A", taken_at, text))


def life_of(spec: RunSpec, lines: Mapping[int, str], identity: Identity) -> Life:
    """Whether the run's process lives, by pid and start time."""
    if spec.pid is None:
        return Life(None)
    if same_boot(spec.boot_id, identity.boot_id) is False:
        return Life(False, reason("the Mac has been restarted since; no process of then is left"))
    line = lines.get(spec.pid)
    if line is None:
        return Life(None, reason("the process was not asked for yet"))
    if line == "-":
        return Life(False, reason(f"there is no process {spec.pid} on the Mac"))
    info = read_ps(line)
    if info is None:
        return Life(None, reason(f"ps says nothing usable about process {spec.pid}"))
    if spec.pid_start is not None and info.start_ticks != spec.pid_start:
        return Life(False, reason(f"pid {spec.pid} now belongs to another process ({info.command[:40]})"))
    if info.state == "Z":
        return Life(
            False, reason(f"process {spec.pid} has ended; only its exit status remains (zombie)"), info
        )
    return Life(True, SafeText(""), info)
