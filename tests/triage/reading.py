"""Cases of our own: what programs print, and what triage must make of it.

A file is a list of cases. ``+ class · name`` begins one that must be found, ``- class · name`` one that looks
like the class and must give nothing, ``= other · name`` one that must give another class instead. ``@ key
value`` lines set what else is known (``kind``, ``rc``, ``command``, ``stderr``, ``telemetry``, and fields of
`Known`) or wanted (``severity``, ``facts``, ``also``); lines indented by four blanks are the text. ``\\r``,
``\\e`` and ``\\0`` stand for those signs.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui.model.incident import Diagnosis
from tui.model.reading import known as is_known
from tui.model.telemetry import Filesystem, Gpu, GpuProcess, Host, Memory, ProcessInfo, RunTruth, Telemetry
from tui.model.text import SafeText
from tui.triage.catalog import load
from tui.triage.engine import diagnose
from tui.triage.inputs import Known, Said
from tui.triage.rules import Rules, compiled
from tui.triage.scan import scan

FOLDER = Path(__file__).parent / "cases"
_BEGIN = re.compile(r"(?P<sign>[+=-]) (?P<cls>[a-z_]+) · (?P<name>.+)")
_ABOUT_TEXT = ("kind", "rc", "command", "stderr", "telemetry")
_WANTED = ("severity", "facts", "also")


@dataclass(slots=True)
class Case:
    """One case. `sign`: ``+`` must be found, ``-`` must give nothing, ``=`` gives `cls` and no other."""

    sign: str
    cls: str
    name: str
    lines: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        joined = "\n".join(self.lines)
        return joined.replace("\\r", "\r").replace("\\e", "\x1b").replace("\\0", "\0") + (
            "\n" if joined else ""
        )

    @property
    def wanted(self) -> str | None:
        return None if self.sign == "-" else self.cls


@functools.cache
def rules() -> Rules:
    return compiled(load())


def cases() -> Iterator[Case]:
    """All cases of all files."""
    for path in sorted(FOLDER.glob("*.txt")):
        yield from read(path.read_text("utf-8"))


def read(text: str) -> Iterator[Case]:
    case: Case | None = None
    for line in text.split("\n"):
        begin = _BEGIN.fullmatch(line)
        if begin:
            if case:
                yield case
            case = Case(begin["sign"], begin["cls"], begin["name"])
        elif case and line.startswith("@ "):
            key, _, value = line[2:].partition(" ")
            case.about[key] = json.loads(value) if key != "kind" else value
        elif case and line.startswith("    "):
            case.lines.append(line[4:])
        elif line.strip() and not line.startswith("#"):
            raise ValueError(line)
    if case:
        yield case


def judged(case: Case, with_rules: Rules | None = None) -> Diagnosis:
    """What triage makes of a case."""
    about = case.about
    known = Known(**{key: value for key, value in about.items() if key not in (*_ABOUT_TEXT, *_WANTED)})
    used = with_rules or rules()
    probe = telemetry(about["telemetry"]) if "telemetry" in about else None
    if about.get("kind", "log") == "log":
        log = scan([case.text.encode()], used.finder) if case.lines else None
        return diagnose(used, log, (), probe, known)
    said = Said(
        about["kind"], SafeText("case"), case.text, about.get("stderr", ""), about.get("rc"),
        about.get("command", ""),
    )  # fmt: skip
    return diagnose(used, None, (said,), probe, known)


def telemetry(parts: dict[str, Any]) -> Telemetry:
    """A probe from JSON: `gpus`, `gpu_processes`, `filesystems`, `memory`, `host` and `runs`."""
    rows: dict[str, Any] = {
        "gpus": tuple(Gpu(**one) for one in parts.get("gpus", ())),
        "gpu_processes": tuple(GpuProcess(**one) for one in parts.get("gpu_processes", ())),
        "filesystems": tuple(Filesystem(**one) for one in parts.get("filesystems", ())),
        "memory": Memory(**parts["memory"]) if "memory" in parts else None,
        "host": Host(**parts["host"]) if "host" in parts else None,
    }
    runs = tuple(
        RunTruth(
            one["run"], one.get("alive"), process=ProcessInfo(1, 1, one.get("state", "S"), SafeText("x"))
        )
        for one in parts.get("runs", ())
    )
    read: dict[str, Any] = {name: is_known(value) for name, value in rows.items() if value is not None}
    return Telemetry(1e9, runs=runs, **read)


def first(found: Diagnosis) -> str | None:
    return found.incidents[0].cls if found.incidents else None
