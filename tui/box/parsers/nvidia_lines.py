"""The line-by-line forms of nvidia-smi: ``-L``, ``--version``, ``dmon``, ``pmon`` and ``topo -m``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui.box.parsers import cells
from tui.box.parsers.gpu_card import build_gpu
from tui.box.parsers.lines import lines
from tui.box.parsers.report import MigSlice
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import SafeText, safe

_CARD = re.compile(r"\s*GPU (\d{1,3}): (.+?)(?: \((?:UUID: ((?:GPU|MIG)-[^)\s]+)|S/N: [^)]*)\))?\s*\Z")
_SLICE = re.compile(r"\s*MIG (\S+)\s+Device\s+(\d{1,3}): \(UUID: (MIG-[^)\s]+)\)\s*\Z")
_VERSION = re.compile(r"\s*(KMD|DRIVER|CUDA UMD|CUDA) version\s*:\s*(\d[\w.]*)\s*\Z", re.IGNORECASE)
_TOPOLOGY = re.compile(r"\s*(?:GPU\d+\s+)+.*(?:CPU Affinity|NIC|mlx)|\s*(?:GPU\d+\s+){2,}\Z")

# dmon and pmon column -> cell name.
_DMON = {
    "gpu": "index",
    "pwr": "power_w",
    "gtemp": "temp_c",
    "temp": "temp_c",
    "sm": "util_pct",
    "fb": "mem_used_mib",
    "pclk": "sm_clock_mhz",
}


def list_gpus(text: str) -> tuple[tuple[Gpu, ...] | None, tuple[MigSlice, ...] | None]:
    """Cards and MIG devices of ``nvidia-smi -L`` (and of the ``GPU n: …`` headlines of other reports)."""
    gpus: dict[int, Gpu] = {}
    slices: list[MigSlice] = []
    for line in lines(text):
        card, part = _CARD.match(line), _SLICE.match(line)
        if card:
            gpu = build_gpu({"index": card[1], "name": card[2], "uuid": card[3] or ""}, 0)
            gpus[gpu.index] = gpu
        elif part and gpus:
            slices.append(MigSlice(list(gpus)[-1], int(part[2]), profile=safe(part[1]), uuid=safe(part[3])))
    return (tuple(gpus.values()) or None), (tuple(slices) or None)


def version_lines(text: str) -> tuple[SafeText | None, SafeText | None]:
    """(driver, CUDA) of ``--version``. The newer keys win where both are there."""
    found = {match[1].upper(): match[2] for match in map(_VERSION.match, lines(text)) if match}
    driver = found.get("KMD") or found.get("DRIVER")
    cuda = found.get("CUDA UMD") or found.get("CUDA")
    return (safe(driver) if driver else None), (safe(cuda) if cuda else None)


def _monitored(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """(column names, cells) of every row of a dmon or pmon report; the last column may hold blanks."""
    columns: list[str] = []
    for line in lines(text):
        if line.lstrip().startswith("#"):
            words = line.lstrip("# \t").lower().split()
            if "gpu" in words:
                columns = words
            continue
        row = line.split(None, max(0, len(columns) - 1))
        if columns and len(row) == len(columns) and cells.integer(row[columns.index("gpu")]) is not None:
            yield columns, [cell.strip() for cell in row]


def dmon_gpus(text: str) -> tuple[Gpu, ...] | None:
    """The last sample of every card of ``nvidia-smi dmon``; None if there is none."""
    found: dict[int, Gpu] = {}
    for columns, row in _monitored(text):
        if "pid" in columns:
            continue  # pmon: shares of single processes
        raw = {_DMON[name]: cell for name, cell in zip(columns, row, strict=True) if name in _DMON}
        gpu = build_gpu(raw, 0)
        found[gpu.index] = gpu
    return tuple(found.values()) or None


def pmon_processes(text: str) -> tuple[GpuProcess, ...] | None:
    """The processes of ``nvidia-smi pmon``; () if only idle rows are there, None if it is no such report."""
    found: dict[tuple[int | None, int], GpuProcess] = {}
    seen = False
    for columns, row in _monitored(text):
        raw = dict(zip(columns, row, strict=True))
        seen = seen or "pid" in raw
        pid = cells.integer(raw.get("pid", ""))
        if pid is None:
            continue
        card = cells.integer(raw["gpu"])
        found[card, pid] = GpuProcess(
            pid=pid,
            gpu_uuid=None,
            mem_used_mib=cells.number(raw.get("fb", ""), "mib"),
            command=safe(cells.words_or_none(raw.get("command") or raw.get("name") or "") or ""),
            gpu_index=card,
            kind=safe(raw.get("type", "")),
        )
    return tuple(found.values()) if seen else None


def topology_gpus(text: str) -> tuple[Gpu, ...] | None:
    """The cards named by the matrix of ``nvidia-smi topo -m``: their numbers only."""
    for line in lines(text):
        plain = re.sub(r"\x1b\[[\d;]*m", "", line)  # the headline is underlined also on a pipe
        if _TOPOLOGY.match(plain):
            return tuple(build_gpu({"index": number}, 0) for number in re.findall(r"\bGPU(\d{1,3})\b", plain))
    return None
