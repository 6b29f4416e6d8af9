"""GPU messages of the kernel log, in every dress: dmesg, dmesg -T, journal, syslog and /dev/kmsg."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tui.box.parsers.lines import lines
from tui.box.parsers.report import GpuEvent
from tui.model.text import SafeText, safe

_BUS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}"
_XID = re.compile(
    rf"NVRM: (?:GPU at [^:]*: )?Xid \((?:PCI:)?(?P<bus>{_BUS})(?:\.[0-7])?[^)]*\): "
    r"(?P<code>\d{1,4})\b,? ?(?P<rest>.*)"
)
_SXID = re.compile(rf"SXid \((?:PCI:)?(?P<bus>{_BUS})(?:\.[0-7])?\): (?P<code>\d{{1,6}}), ?(?P<rest>.*)")
_OFF_BUS = re.compile(r"fallen off the bus")
_NVRM = re.compile(r"NVRM: |nvidia[ -]")
_FULL_BUS = r"(?<![0-9A-Fa-f:])[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}"  # a time of day is none
_ANY_BUS = re.compile(_FULL_BUS)
_AMD = re.compile(
    r"amdgpu.*(?:GPU reset|ring \S+ timeout|page fault|RAS|uncorrectable|hang|VM_L2_PROTECTION_FAULT|wedged)"
    r"|amdgpu_job_timedout"
)
_AMD_BUS = re.compile(rf"amdgpu ({_BUS})\.[0-7]")
_AMD_PROCESS = re.compile(r"process (?P<name>\S+) pid (?P<pid>\d{1,10})")
_PID = re.compile(r"pid='?(\d{1,10})\b")
_NAME = re.compile(r"name='?(.+?)'?, (?=\S)")
_CARD = re.compile(r"\bGPU ?(\d{1,3})\b(?!:)")
_LINK = re.compile(r"\b[Ll]ink (?:ID )?(\d{1,3})\b")
_PENDING = re.compile(r"marked for remapping|reset gpu to activate|remapping pending", re.IGNORECASE)
_REMAP_FAILED = re.compile(r"Row Remapper.*(?:fail|unable|error)|failed to (?:record|remap)", re.IGNORECASE)
_DRIVER = re.compile(
    r"NVRM:? (?:loading|version:?) ?NVIDIA UNIX (?:Open )?(?:\S+ )?Kernel Module(?: for \S+)?\s+(\d[\d.]*)"
)
_CONSEQUENCE = frozenset({45, 154})
_NEAR = 3  # lines one sentence of the driver spreads over


def gpu_events(text: str) -> tuple[GpuEvent, ...]:
    """Every GPU message, in order. A sentence spread over lines is one event at the line that says it."""
    rows = lines(text)
    return tuple(event for at in range(len(rows)) for event in _events_at(rows, at))


def loaded_driver(text: str) -> SafeText | None:
    """The version of the NVIDIA module that was loaded last, as it names itself in the log."""
    found = _DRIVER.findall(text)
    return safe(found[-1]) if found else None


def first_cause(events: Sequence[GpuEvent]) -> GpuEvent | None:
    """The event that came first and follows from no other: 45 and 154 are printed in the wake of others."""
    return next((event for event in events if event.code not in _CONSEQUENCE), events[0] if events else None)


def _events_at(rows: Sequence[str], at: int) -> Iterator[GpuEvent]:
    line = rows[at]
    xid, sxid = _XID.search(line), _SXID.search(line)
    if xid:
        yield _numbered("xid", xid, at)
    elif sxid:
        if re.match(r"(?:Non-f|F)atal\b", sxid["rest"]):  # the lines after it repeat the code with raw data
            yield _numbered("sxid", sxid, at)
    elif _OFF_BUS.search(line) and _NVRM.search(line):
        yield GpuEvent("lost", None, _bus_near(rows, at), safe(line.strip()), at + 1)
    elif _AMD.search(line):
        bus, process = _AMD_BUS.search(line), _AMD_PROCESS.search(line)
        yield GpuEvent(
            "amdgpu",
            None,
            safe(bus[1].lower()) if bus else None,
            safe(line[line.find("amdgpu") :].strip()),
            at + 1,
            pid=int(process["pid"]) if process else None,
            process=safe(process["name"]) if process else None,
        )


def _numbered(family: str, match: re.Match[str], at: int) -> GpuEvent:
    rest = match["rest"]
    pid, name, card, link = _PID.search(rest), _NAME.search(rest), _CARD.search(rest), _LINK.search(rest)
    unknown = name is None or name[1].strip("<>") == "unknown"
    fatal = None
    if family == "sxid":
        fatal = rest.startswith("Fatal")
    return GpuEvent(
        family=family,
        code=int(match["code"]),
        bus=safe(match["bus"].lower()),
        text=safe(rest.strip()),
        line=at + 1,
        pid=int(pid[1]) if pid else None,
        process=None if unknown or name is None else safe(name[1]),
        gpu=int(card[1]) if card else None,
        link=int(link[1]) if link else None,
        fatal=fatal,
        remap=_remap(rest),
    )


def _remap(text: str) -> str:
    if _REMAP_FAILED.search(text):
        return "failed"
    return "pending" if _PENDING.search(text) else ""


def _bus_near(rows: Sequence[str], at: int) -> SafeText | None:
    """The bus address in this line or in the few before it."""
    for place in range(at, max(-1, at - _NEAR - 1), -1):
        match = _ANY_BUS.search(rows[place])
        if match:
            return safe(match[0].lower())
    return None
