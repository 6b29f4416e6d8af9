"""Messages of GPU drivers in a kernel log, by number where they have one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui.model.incident import Fact
from tui.triage import xid as numbers
from tui.triage.finding import Hit
from tui.triage.view import View

WORDS = ("xid (", "sxid (", "fallen off the bus", "amdgpu")
_BUS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}"
_XID = re.compile(
    rf"\bXid \((?:PCI:)?(?P<bus>{_BUS})(?:\.[0-7])?[^)]*\): (?P<code>\d{{1,4}})\b,? ?(?P<rest>.*)"
)
_SXID = re.compile(
    rf"SXid \((?:PCI:)?(?P<bus>{_BUS})(?:\.[0-7])?\): (?P<code>\d{{4,6}}), ?(?P<rest>(?:Non-f|F)atal.*)"
)
_OFF_BUS = re.compile(r"fallen off the bus")
_AMD = (
    (r"uncorrectable|poison|RAS (?:error|fatal)|deferred hardware error", "gpu_ecc", "fatal"),
    (r"page fault|VM_L2_PROTECTION_FAULT|no-retry fault", "gpu_app_fault", "warning"),
    (
        r"ring \S+ timeout|GPU reset (?:begin|\(\d+\) failed)|GPU hang|wedged|SMU (?:is )?(?:in )?hang"
        r"|amdgpu_job_timedout",
        "gpu_hung",
        "fatal",
    ),
    (r"device lost|lost from bus|PCIe link lost|device is gone", "gpu_lost", "fatal"),
)
_AMD_FORMS = tuple((re.compile(f"(?i)amdgpu.*(?:{form})|{form}"), cls, level) for form, cls, level in _AMD)
_CAUSED = re.compile(r"caused by previous Xid (\d{1,4})")
_ACTION = re.compile(r"to 0x[0-9a-f]+ \((?P<action>[^)]+)\)")
_REMAP_FAILED = re.compile(r"(?i)row remapper.*(?:fail|unable|error)|failed to (?:record|remap)")
_REMAP_PENDING = re.compile(r"(?i)marked for remapping|reset gpu to activate|remapping pending")
_FIELDS = {
    "pid": re.compile(r"pid='?(\d{1,10})\b"),
    "gpu": re.compile(r"\bGPU ?(\d{1,3})\b(?!:)"),
    "link": re.compile(r"\b[Ll]ink (?:ID )?(\d{1,3})\b"),
}


@dataclass(frozen=True, slots=True)
class Event:
    """One message with what it means."""

    at: int
    cls: str | None
    severity: str
    code: int | None
    facts: dict[str, Fact]
    follows: bool = False


def events(view: View) -> list[Event]:
    """Every message of a GPU driver, in order."""
    if "kernel" not in view.cache:
        view.cache["kernel"] = list(_events(view))
    found: list[Event] = view.cache["kernel"]
    return found


def _events(view: View) -> Iterator[Event]:
    for index, one in enumerate(view.rows):
        xid, sxid = _XID.search(one.text), _SXID.search(one.text)
        if xid and not view.quoted(index, xid.start()):
            yield _numbered(index, int(xid["code"]), xid["bus"], xid["rest"])
        elif sxid:
            fatal = sxid["rest"].startswith("Fatal")
            facts: dict[str, Fact] = {
                "sxid": int(sxid["code"]),
                "bus": sxid["bus"].lower(),
                **_fields(sxid["rest"]),
            }
            yield Event(index, "gpu_nvlink", "fatal" if fatal else "warning", int(sxid["code"]), facts)
        elif (
            _OFF_BUS.search(one.text)
            and ("NVRM" in one.text or "nvidia" in one.low or "GPU has fallen off" in one.text)
            and not view.quoted(index, 0)
        ):
            yield Event(index, "gpu_lost", "fatal", None, {})
        elif "amdgpu" in one.low:
            for form, cls, severity in _AMD_FORMS:
                if form.search(one.text):
                    yield Event(index, cls, severity, None, _fields(one.text))
                    break


def _numbered(index: int, code: int, bus: str, rest: str) -> Event:
    known = numbers.meaning(code)
    facts: dict[str, Fact] = {"xid": code, "bus": bus.lower(), **_fields(rest)}
    if known:
        facts["meaning"] = known.meaning
    if known and known.cls == "gpu_ecc":
        failed, pending = _REMAP_FAILED.search(rest), _REMAP_PENDING.search(rest)
        if failed or pending:
            facts["detail"] = "remap_failed" if failed else "remap_pending"
    cls, severity = (known.cls, known.severity) if known else (None, "info")
    if "Nonfatal" in rest and cls == "gpu_nvlink":
        severity = "warning"
    earlier = _CAUSED.search(rest)
    before = numbers.meaning(int(earlier[1])) if earlier else None
    if before is not None and before.cls is not None:  # the line that named it is lost
        cls, severity = before.cls, before.severity
    if code == 154:
        action = _ACTION.search(rest)
        if action is None or action["action"].lower() == "none":
            cls = None
        else:
            facts["action"] = action["action"]
    return Event(index, cls, severity, code, facts, bool(earlier) or code in numbers.CONSEQUENCES)


def _fields(rest: str) -> dict[str, Fact]:
    return {name: int(match[1]) for name, form in _FIELDS.items() if (match := form.search(rest))}


def of_class(view: View, cls: str) -> Iterator[Hit]:
    """Messages that mean this class. All numbers of the log come along."""
    found = events(view)
    codes = tuple(dict.fromkeys(one.code for one in found if "xid" in one.facts and one.code is not None))
    details = {str(one.facts["detail"]) for one in found if "detail" in one.facts}
    for one in found:
        if one.cls != cls:
            continue
        facts = dict(one.facts)
        if codes:
            facts["xids"] = codes
        if details:
            facts["detail"] = "remap_failed" if "remap_failed" in details else "remap_pending"
        if "pid" not in facts:
            pid = next((other.facts["pid"] for other in found if "pid" in other.facts), None)
            facts |= {"pid": pid} if pid is not None else {}
        fatal = one.severity == "fatal"
        yield Hit(
            one.at, facts=facts, severity="fatal" if fatal else "warning", rank=30 if one.follows else None
        )
