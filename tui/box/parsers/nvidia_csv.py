"""``nvidia-smi --query-…=COLUMNS --format=csv[,noheader][,nounits]``, whatever the columns.

A line is a row only if every cell fits its column; so banners, warnings and error sentences fall away by
themselves. A row that was cut short is no row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui.box.parsers import cells
from tui.box.parsers.command import Invocation
from tui.box.parsers.gpu_card import NUMBERS, THROTTLE, THROTTLE_MASK, build_gpu
from tui.box.parsers.lines import lines
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import SafeText, safe

# Query column -> cell name. Where two columns give one cell, the earlier line wins.
_GPU_COLUMNS = {
    "index": "index",
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "bus_id",
    "gpu_bus_id": "bus_id",
    "utilization.gpu": "util_pct",
    "memory.used": "mem_used_mib",
    "memory.total": "mem_total_mib",
    "memory.free": "mem_free_mib",
    "temperature.gpu": "temp_c",
    "power.draw": "power_w",
    "power.draw.instant": "power_w",
    "power.draw.average": "power_w",
    "power.limit": "power_limit_w",
    "enforced.power.limit": "power_limit_w",
    "power.default_limit": "power_default_limit_w",
    "fan.speed": "fan_pct",
    "clocks.sm": "sm_clock_mhz",
    "clocks.current.sm": "sm_clock_mhz",
    "clocks.gr": "sm_clock_mhz",
    "clocks.current.graphics": "sm_clock_mhz",
    "pstate": "pstate",
    "mig.mode.current": "mig",
    "ecc.mode.current": "ecc_enabled",
    "ecc.errors.uncorrected.volatile.total": "ecc_uncorrected",
    "ecc.errors.uncorrected.volatile.dram": "ecc_uncorrected",
    "ecc.errors.uncorrected.volatile.device_memory": "ecc_uncorrected",
    "ecc.errors.uncorrected.aggregate.total": "ecc_uncorrected_ever",
    "ecc.errors.uncorrected.aggregate.dram": "ecc_uncorrected_ever",
    "ecc.errors.uncorrected.aggregate.device_memory": "ecc_uncorrected_ever",
    "remapped_rows.pending": "remap_pending",
    "remapped_rows.failure": "remap_failed",
    "clocks_event_reasons.active": THROTTLE_MASK,
    "clocks_throttle_reasons.active": THROTTLE_MASK,
    "driver_version": "driver",
}
_PROCESS_COLUMNS = {
    "pid": "pid",
    "process_name": "command",
    "name": "command",
    "used_gpu_memory": "mem_used_mib",
    "used_memory": "mem_used_mib",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "bus_id",
    "gpu_name": "name",
    "max_memory_usage": "mem_used_mib",
}
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.([a-z_]+)\Z")
_NOT_REASONS = frozenset({"active", "supported"})
_FREE_TEXT = frozenset({"name", "command"})
_HEADER_CELL = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*\Z")
_FITS = {
    "uuid": re.compile(r"(?:GPU|MIG)-[0-9A-Fa-f][\w/-]*\Z"),
    "bus_id": re.compile(r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]\Z"),
    "driver": re.compile(r"\d+(?:\.\d+)+\Z"),
    "pstate": re.compile(r"P\d{1,2}\Z"),
    THROTTLE_MASK: re.compile(r"0x[0-9A-Fa-f]+\Z"),
}
_SPARSE = 2  # this many unchecked cells in a row do not make a banner a row
_DRAWING = re.compile(r"[-+=|*#\s]*\Z")


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a command line: what it lists, and its columns in order."""

    lists: str  # "gpus", "processes", or what has no place in a report
    columns: tuple[str, ...]
    only: tuple[int, ...] = ()  # the cards that -i asked for


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one query: cell name -> text."""

    query: Query
    rows: tuple[dict[str, str], ...]
    header: bool


def queries(invocation: Invocation) -> tuple[Query, ...]:
    """The ``--query-…`` options of one nvidia-smi call."""
    found: list[Query] = []
    for option, lists in (
        ("--query-gpu", "gpus"),
        ("--query-remapped-rows", "gpus"),
        ("--query-compute-apps", "processes"),
        ("--query-accounted-apps", "processes"),
        ("--query-retired-pages", "pages"),
        ("--query-supported-clocks", "clocks"),
    ):
        columns = invocation.value(option)
        if columns:
            names = tuple(name.strip().lower() for name in columns.split(",") if name.strip())
            found.append(Query(lists, names, _chosen(invocation)))
    return tuple(found)


def _chosen(invocation: Invocation) -> tuple[int, ...]:
    chosen = invocation.value("-i", "--id") or ""
    numbers = [cells.integer(part) for part in chosen.split(",")]
    return tuple(number for number in numbers if number is not None) if None not in numbers else ()


def read_tables(text: str, asked: Sequence[Query]) -> tuple[Table, ...]:
    """The rows of each query. Several queries in one output follow each other in the order asked."""
    if not asked:
        return ()
    rows: list[list[dict[str, str]]] = [[] for _ in asked]
    current = list(asked)
    headers = [False] * len(asked)
    place = 0
    for line in lines(text):
        parts = line.split(",")
        header = _header(parts)
        if header is not None:
            place = _place_of(header, current, place, rows, headers)
            current[place] = Query(current[place].lists, header, current[place].only)
            headers[place] = True
            continue
        fit = _first_fit(parts, current, place)
        if fit is not None:
            place, row = fit
            rows[place].append(row)
        elif rows[place] and place + 1 < len(current):
            place += 1  # whatever stands between two answers ends the first
    return tuple(
        Table(query, tuple(found), headed)
        for query, found, headed in zip(current, rows, headers, strict=True)
    )


def guess_query(text: str) -> Query | None:
    """The query whose header stands in `text`, for output of a script that does not tell its query."""
    for line in lines(text)[:50]:
        header = _header(line.split(","))
        if header is not None:
            return Query("processes" if "pid" in header else "gpus", header)
    return None


def _header(parts: list[str]) -> tuple[str, ...] | None:
    names = tuple(_without_unit(part.strip()) for part in parts)
    if not all(_HEADER_CELL.match(name) for name in names):
        return None
    known = [name for name in names if name in _GPU_COLUMNS or name in _PROCESS_COLUMNS or "." in name]
    return names if len(known) * 2 >= len(names) and len(known) > 0 else None


def _without_unit(cell: str) -> str:
    """``memory.used [MiB]`` without its bracket."""
    return cell[: cell.rfind("[")].rstrip() if cell.endswith("]") and "[" in cell else cell


def _place_of(
    header: tuple[str, ...],
    current: Sequence[Query],
    place: int,
    rows: list[list[dict[str, str]]],
    headers: list[bool],
) -> int:
    """Which query a header line begins."""
    for later in range(place, len(current)):
        if current[later].columns == header and not headers[later]:
            return later
    if (rows[place] or headers[place]) and place + 1 < len(current) and current[place].columns != header:
        return place + 1
    return place


def _first_fit(parts: list[str], current: Sequence[Query], place: int) -> tuple[int, dict[str, str]] | None:
    for later in range(place, len(current)):
        row = _row(parts, current[later])
        if row is not None:
            return later, row
    return None


def _cell_name(column: str, lists: str) -> str | None:
    if lists == "processes":
        return _PROCESS_COLUMNS.get(column)
    reason = _REASON.match(column)
    if reason and reason[1] not in _NOT_REASONS:
        return THROTTLE + reason[1]
    return _GPU_COLUMNS.get(column)


def _row(parts: list[str], query: Query) -> dict[str, str] | None:
    names = [_cell_name(column, query.lists) for column in query.columns]
    parts = [part.strip() for part in _rejoined(parts, names)]
    if len(parts) != len(names) or not any(parts):
        return None
    checked = 0
    for name, part in zip(names, parts, strict=True):
        verdict = _fits(name, part)
        if verdict is False:
            return None
        checked += verdict is True
    if not checked and not _plausible(parts):
        return None
    named: dict[str, str] = {}
    for column in sorted(range(len(parts)), key=lambda at: _rank(query.columns[at])):
        name = names[column]
        if name is not None and name not in named:
            named[name] = parts[column]
    return named


def _rank(column: str) -> int:
    order = list(_GPU_COLUMNS)
    return order.index(column) if column in order else len(order)


def _rejoined(parts: list[str], names: list[str | None]) -> list[str]:
    """Put a name that has commas in it together again, where only one column can hold such a name."""
    surplus = len(parts) - len(names)
    wide = [place for place, name in enumerate(names) if name in _FREE_TEXT]
    if surplus <= 0 or len(wide) != 1:
        return parts
    at = wide[0]
    return [*parts[:at], ",".join(parts[at : at + surplus + 1]), *parts[at + surplus + 1 :]]


def _fits(name: str | None, part: str) -> bool | None:
    """True or False where the column can be checked, None where anything may stand in it."""
    if name in _FREE_TEXT or name is None:
        return None
    if cells.is_word(part):
        return True
    if name in {"index", "pid"} or name.startswith("ecc_uncorrected"):
        return cells.integer(part) is not None
    if name in NUMBERS:
        return cells.number(part, NUMBERS[name]) is not None
    if name in _FITS:
        return _FITS[name].match(part) is not None
    return cells.truth(part) is not None


def _plausible(parts: list[str]) -> bool:
    """Whether a row that no column could check may be one: a list of names, not a sentence or a drawing."""
    line = ", ".join(parts)
    sentence = re.search(r"[.!:]\s|[.!:]\Z|\bhas failed\b", line)
    return bool(line) and not _DRAWING.match(line) and not (len(parts) < _SPARSE and sentence)


def gpus_of(table: Table) -> tuple[Gpu, ...]:
    """Cards of a table; of several samples of one card the last."""
    found: dict[object, Gpu] = {}
    for number, row in enumerate(table.rows):
        place = table.query.only[number] if number < len(table.query.only) else number
        gpu = build_gpu(row, place)
        key = row.get("uuid") or row.get("index")
        found[key if key and not cells.is_word(key) else ("row", number)] = gpu
    return tuple(found.values())


def driver_of(table: Table) -> SafeText | None:
    """The driver version, where it is one of the columns."""
    return next(
        (safe(row["driver"]) for row in table.rows if not cells.is_word(row.get("driver", "-"))), None
    )


def processes_of(table: Table) -> tuple[GpuProcess, ...]:
    """Processes of a table. A row whose pid cannot be read is left out."""
    found: list[GpuProcess] = []
    for row in table.rows:
        pid = cells.integer(row.get("pid", ""))
        if pid is None:
            continue
        uuid = cells.words_or_none(row.get("uuid", ""))
        found.append(
            GpuProcess(
                pid=pid,
                gpu_uuid=None if uuid is None else safe(uuid),
                mem_used_mib=cells.number(row.get("mem_used_mib", ""), "mib"),
                command=safe(cells.words_or_none(row.get("command", "")) or ""),
            )
        )
    return tuple(found)
