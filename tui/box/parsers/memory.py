"""``free`` of every procps and busybox, in any language, and ``/proc/meminfo``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui.box.parsers.lines import lines

Figure = int | str | None
"""A count in the table's unit, a human figure such as ``2.8Gi``, or None where the tool gives none."""

_VALUE = re.compile(r"-?\d+(?:[.,]\d+)?[KMGTPE]?i?B?\Z", re.IGNORECASE)
_LABEL = re.compile(r"\s*(?P<label>[^\s\d:：][^:：\d]*|-/\+[^:：]*)\s*[:：]\s*(?P<values>.*)$")
_SWAP = re.compile(r"swap|交换|交換|スワップ|échange|auslager|intercambio|подкачка|스왑", re.IGNORECASE)
_COLUMNS = {
    7: ("total", "used", "free", "shared", "buffers", "cache", "available"),
    6: ("total", "used", "free", "shared", "buff_cache", "available"),
    5: ("total", "used", "free", "shared", "buffers"),
    3: ("total", "used", "free"),
}
_OLD = ("total", "used", "free", "shared", "buffers", "cached")


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Memory of the whole machine, not of the job.

    Attributes:
        unit: ``kb``, ``mb``, ``gb``, ``b`` of every count, ``""`` for human figures.
        memory: total, used, free, available, shared, buffers, … A missing ``available`` is None.
        swap: total, used, free; None when the table has no such row.
    """

    unit: str
    memory: dict[str, Figure]
    swap: dict[str, Figure] | None = None


def free_unit(args: Sequence[str]) -> str:
    """The unit that options of ``free`` ask for; a human one is ``""``."""
    unit = "kb"
    letters = {"b": "b", "k": "kb", "m": "mb", "g": "gb", "h": ""}
    words = {"bytes": "b", "kibi": "kb", "kilo": "kb", "mebi": "mb", "mega": "mb", "gibi": "gb", "giga": "gb"}
    for arg in args:
        if arg.startswith("--"):
            unit = "" if arg == "--human" else words.get(arg[2:], unit)
        elif arg.startswith("-"):
            unit = next((letters[letter] for letter in arg[1:] if letter in letters), unit)
    return unit


def parse_free(text: str, unit: str = "kb") -> MemoryTable | None:
    """A table of ``free``; None when there is none. Row names may be in any language, headers too.

    Args:
        unit: of the counts, from the options (`free_unit`).
    """
    header, rows = "", list[tuple[str, list[str]]]()
    for line in lines(text):
        match = _LABEL.match(line)
        values = match.group("values").split() if match else []
        if match and 2 <= len(values) <= 7 and all(_VALUE.match(value) for value in values):
            rows.append((match.group("label").strip(), values))
        elif not rows:
            header = line
    memory_row = next((values for _, values in rows if len(values) >= 3), None)
    if memory_row is None:
        return None
    without_available = "cached" in header.split() and "available" not in header.split()
    memory = _named(memory_row, _OLD if without_available else _COLUMNS.get(len(memory_row), _OLD))
    memory.setdefault("available", None)
    corrected = next((values for label, values in rows if label.startswith("-/+") and len(values) == 2), None)
    if corrected:  # procps before 3.3.10: the first row counts the page cache as used
        memory["used"], memory["available"] = _figure(corrected[0]), _figure(corrected[1])
    return MemoryTable(unit, memory, _swap_row(rows))


def _swap_row(rows: list[tuple[str, list[str]]]) -> dict[str, Figure] | None:
    named = [values for label, values in rows[1:] if _SWAP.search(label) and len(values) == 3]
    others = [
        values
        for label, values in rows[1:]
        if len(values) == 3 and not re.match(r"low|high|total|comm|-/\+", label, re.IGNORECASE)
    ]
    row = (named or others)[:1]
    return _named(row[0], _COLUMNS[3]) if row else None


def _named(values: list[str], columns: Sequence[str]) -> dict[str, Figure]:
    return {name: _figure(value) for name, value in zip(columns, values, strict=False)}


def _figure(value: str) -> Figure:
    return int(value) if re.fullmatch(r"-?\d{1,20}", value) else value.replace(",", ".")


def parse_meminfo(text: str) -> MemoryTable | None:
    """``/proc/meminfo`` in KiB; None when it is none. Kernels before 3.14 have no MemAvailable."""
    found: dict[str, int] = {}
    for name, number in re.findall(
        r"^[ \t]*([A-Za-z]\w{0,63}(?:\(\w+\))?):[ \t]+(\d{1,19})(?: kB)?[ \t\r]*$", text, re.MULTILINE
    ):
        found.setdefault(name, int(number))
    if not any(name in found for name in ("MemTotal", "MemFree", "MemAvailable", "SwapTotal")):
        return None
    memory: dict[str, Figure] = {
        "total": found.get("MemTotal"),
        "free": found.get("MemFree"),
        "available": found.get("MemAvailable"),
        "buffers": found.get("Buffers"),
        "cached": found.get("Cached"),
        "shared": found.get("Shmem"),
    }
    total, free = found.get("SwapTotal"), found.get("SwapFree")
    swap: dict[str, Figure] | None = None
    if total is not None:
        used = total - free if free is not None else 0 if total == 0 else None
        swap = {"total": total, "free": free if free is not None else 0 if total == 0 else None, "used": used}
    return MemoryTable("kb", memory, swap)
