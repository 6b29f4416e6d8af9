"""The table that plain ``nvidia-smi`` draws, of all generations: cards, MIG devices, processes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tui.box.parsers import cells
from tui.box.parsers.gpu_card import build_gpu
from tui.box.parsers.lines import lines
from tui.box.parsers.report import MigSlice
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import SafeText, safe

_BUS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_CARD = re.compile(
    r"(?P<index>\d{1,3})\.?\s+(?P<name>.+?)\s*(?:\s(?P<mode>On|Off|N/A|ERR!|WDDM|TCC|MCDM))?\Z"
)
_BUS_CELL = re.compile(rf"(?P<bus>{_BUS}|N/A|ERR!)\s+(?:On|Off|N/A|ERR!)\Z|(?P<alone>{_BUS})\Z")
_SENSORS = re.compile(
    r"(?P<fan>\d+\s*%|N/A|ERR!|\[?Unknown Error\]?)\s+(?P<temp>\d+\s*C|N/A|ERR!)\s+"
    r"(?P<perf>P\d+|N/A|ERR!|Unknown)\s+"
    r"(?P<power>\d+(?:\.\d+)?\s*W|N/A|ERR!|Unknown Error)\s*/\s*(?P<limit>\d+(?:\.\d+)?\s*W|N/A|ERR!)\Z"
)
_MEMORY = re.compile(
    r"(?:\d+%\s+)?(?P<used>\d+\s*[KMG]i?B|N/A|ERR!)\s*/\s*(?P<total>\d+\s*[KMG]i?B|N/A|ERR!)\Z"
)
_LOAD = re.compile(r"(?P<util>\d+\s*%|N/A|ERR!|\[?Unknown Error\]?)\s+(?P<mode>.+)\Z")
_MIG_ID = re.compile(r"(\d+)\s+(\d+|N/A)\s+(\d+|N/A)\s+(\d+)\Z")
_MIG_LOAD = re.compile(r"\d+\s+(?P<ecc>\d+|N/A|ERR!)\Z")
_PROCESS = re.compile(
    r"(?P<gpu>\d{1,3})\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+)?(?P<pid>\d{1,10})\s+(?:(?P<kind>[CGM+]+)\s+)?"
    r"(?P<name>.*?)\s*(?P<mem>\d+\s*[KMG]i?B|N/A|\[N/A\]|\[Insufficient Permissions\]|Function Not Found)?\Z"
)
_MAX_WIDTH = 512  # the widest table has 104 columns
_DRIVER = re.compile(r"\b(?:Driver|KMD) Version:\s*(\d[\w.]*)")
_CUDA = re.compile(r"\bCUDA(?: UMD)? Version:\s*(\d[\w.]*)")


def table_versions(text: str) -> tuple[SafeText | None, SafeText | None]:
    """(driver, CUDA) of the headline; None where it is not there or shows N/A or ERR!."""
    driver, cuda = _DRIVER.search(text), _CUDA.search(text)
    return (safe(driver[1]) if driver else None), (safe(cuda[1]) if cuda else None)


def _boxes(line: str) -> list[str] | None:
    """The cells of a table line, or None if it is a rule or no table line."""
    stripped = line.strip()
    if not 2 <= len(stripped) <= _MAX_WIDTH or not (stripped.startswith("|") and stripped.endswith("|")):
        return None
    inner = stripped[1:-1]
    if not inner.strip("-=+| "):
        return [] if not inner.strip() else None
    return [part.strip() for part in inner.split("|")]


def table_gpus(text: str) -> tuple[Gpu, ...] | None:
    """The cards of every table in `text`, the last sample of each; None if there is no table of cards."""
    found: dict[int, Gpu] = {}
    raw: dict[str, str] | None = None
    for line in lines(text):
        boxes = _boxes(line)
        if boxes is None or len(boxes) < 2:
            continue
        start = _first_line(boxes)
        if start is not None:
            raw = start
        elif raw is not None:
            _next_line(boxes, raw)
        if raw is not None:
            gpu = build_gpu(raw, len(found))
            found[gpu.index] = gpu
    return tuple(found.values()) if found else None


def _first_line(boxes: Sequence[str]) -> dict[str, str] | None:
    """``0  NAME  Off | BUS Off | ECC``: the first line of a card."""
    if len(boxes) != 3:
        return None
    card, bus = _CARD.match(boxes[0]), _BUS_CELL.match(boxes[1])
    if card is None or bus is None:
        return None
    raw = {"index": card["index"], "name": card["name"], "bus_id": bus["bus"] or bus["alone"] or "N/A"}
    ecc = boxes[2].split()[-1] if boxes[2].split() else "N/A"
    if ecc in {"On", "Off"}:  # MIG: the counts are in the table of devices
        raw["ecc_enabled"] = ecc
        ecc = "N/A"
    raw["ecc_uncorrected"] = ecc
    return raw


def _next_line(boxes: Sequence[str], raw: dict[str, str]) -> None:
    """The second (sensors, memory, load) or third (MIG mode) line of a card, added to `raw`."""
    if len(boxes) != 3:
        return
    sensors, memory, load = _SENSORS.match(boxes[0]), _MEMORY.match(boxes[1]), _LOAD.match(boxes[2])
    if sensors:
        raw |= {
            "fan_pct": sensors["fan"],
            "temp_c": sensors["temp"],
            "pstate": sensors["perf"],
            "power_w": sensors["power"],
            "power_limit_w": sensors["limit"],
        }
    if memory:
        raw |= {"mem_used_mib": memory["used"], "mem_total_mib": memory["total"]}
    elif cells.health_of(boxes[1]):
        raw |= {"mem_used_mib": boxes[1], "mem_total_mib": boxes[1]}
    if load:
        raw["util_pct"] = load["util"]
    elif not boxes[0] and not boxes[1] and boxes[2]:
        raw["mig"] = boxes[2].rstrip("*")


def table_slices(text: str) -> tuple[MigSlice, ...] | None:
    """The MIG devices; () where the table says there are none, None where it has no such part."""
    found: list[MigSlice] = []
    inside = False
    for line in lines(text):
        boxes = _boxes(line)
        if not boxes:
            continue
        if boxes[0].startswith("MIG devices"):
            inside = True
        elif boxes[0].startswith("Processes"):
            inside = False
        elif inside and len(boxes) >= 3:
            ids, memory = _MIG_ID.match(boxes[0]), _MEMORY.match(boxes[1])
            if ids and memory:
                load = _MIG_LOAD.match(boxes[2])
                found.append(
                    MigSlice(
                        gpu=int(ids[1][:9]),
                        device=int(ids[4][:9]),
                        gpu_instance=cells.integer(ids[2]),
                        compute_instance=cells.integer(ids[3]),
                        mem_used_mib=cells.number(memory["used"], "mib"),
                        mem_total_mib=cells.number(memory["total"], "mib"),
                        ecc_uncorrected=cells.integer(load["ecc"]) if load else None,
                    )
                )
    if found:
        return tuple(found)
    return () if "No MIG devices found" in text else None


def table_processes(text: str) -> tuple[GpuProcess, ...] | None:
    """The processes; () where the list is empty, None where the table has no such list."""
    found: list[GpuProcess] = []
    inside = seen = False
    for line in lines(text):
        boxes = _boxes(line)
        if not boxes:
            continue
        if re.match(r"(?:Compute p|P)rocesses:", boxes[0]):
            inside = seen = True
            found = []  # a later table is a later sample
        elif inside:
            process = _PROCESS.match(" | ".join(boxes))
            if process:
                found.append(
                    GpuProcess(
                        pid=int(process["pid"]),
                        gpu_uuid=None,
                        mem_used_mib=cells.number(process["mem"] or "", "mib"),
                        command=safe(cells.words_or_none(process["name"]) or ""),
                        gpu_index=int(process["gpu"]),
                        kind=safe(process["kind"] or ""),
                    )
                )
    return tuple(found) if seen else None
