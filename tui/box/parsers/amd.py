"""rocm-smi and amd-smi, told apart by the answer: JSON, CSV, ``GPU[n] : key: value`` lines, indented text.

All forms come down to key → value per card; the keys are those of the tools, their unit often in brackets.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping

from tui.box.parsers import cells
from tui.box.parsers.gpu_card import build_gpu
from tui.box.parsers.lines import first_json, lines
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import safe

_MAX_DEPTH = 16

# rocm-smi key (unit taken off, lower case) -> cell name; earlier wins. The junction is the hottest spot.
_ROCM = {
    "card series": "name",
    "card model": "name",
    "device name": "name",
    "market_name": "name",
    "gpu use": "util_pct",
    "vram total memory": "mem_total_mib",
    "vram total used memory": "mem_used_mib",
    "gpu memory allocated": "mem_used_pct",
    "gpu memory use": "mem_used_pct",
    "temperature sensor junction": "temp_c",
    "temperature sensor hotspot": "temp_c",
    "temperature sensor edge": "temp_c",
    "average graphics package power": "power_w",
    "current socket graphics package power": "power_w",
    "current graphics package power": "power_w",
    "max graphics package power": "power_limit_w",
    "fan speed": "fan_pct",
    "unique id": "uuid",
    "pci bus": "bus_id",
}
_ROCM_UNITS = {"b": " B", "kib": " KiB", "mib": " MiB", "w": " W", "c": " C", "%": " %", "vram%": " %"}

# amd-smi leaf -> cell name, by its last words, upper and lower case alike; earlier wins.
_AMD = {
    ("market_name",): "name",
    ("usage", "gfx_activity"): "util_pct",
    ("gfx_activity",): "util_pct",
    ("gfx_util",): "util_pct",
    ("gfx",): "util_pct",
    ("mem_usage", "used_vram"): "mem_used_mib",
    ("used_vram",): "mem_used_mib",
    ("vram_used",): "mem_used_mib",
    ("vram", "vram_used"): "mem_used_mib",
    ("mem_usage", "total_vram"): "mem_total_mib",
    ("total_vram",): "mem_total_mib",
    ("vram_total",): "mem_total_mib",
    ("vram", "size"): "mem_total_mib",
    ("mem_usage", "free_vram"): "mem_free_mib",
    ("free_vram",): "mem_free_mib",
    ("temperature", "hotspot"): "temp_c",
    ("hotspot",): "temp_c",
    ("hotspot_temperature",): "temp_c",
    ("hotspot_temp",): "temp_c",
    ("temperature", "edge"): "temp_c",
    ("edge",): "temp_c",
    ("power", "socket_power"): "power_w",
    ("socket_power",): "power_w",
    ("power", "average_socket_power"): "power_w",
    ("average_socket_power",): "power_w",
    ("current_socket_power",): "power_w",
    ("power_usage",): "power_w",
    ("power",): "power_w",
    ("power_cap",): "power_limit_w",
    ("max_power",): "power_limit_w",
    ("fan", "usage"): "fan_pct",
    ("ecc", "total_uncorrectable_count"): "ecc_uncorrected",
    ("total_uncorrectable_count",): "ecc_uncorrected",
    ("uuid",): "uuid",
    ("bus", "bdf"): "bus_id",
    ("bdf",): "bus_id",
}
_NOT_OF_ONE_CARD = frozenset({"clock", "limit", "process_list", "process_info", "partition"})
_CARD_KEY = re.compile(r"card(\d{1,3})\Z")
_KEY_UNIT = re.compile(r"\s*\((?P<unit>%|B|KiB|MiB|W|C|VRAM%|V|Mhz|percentage|level)\)\Z", re.IGNORECASE)
_LONG_LINE = re.compile(r"GPU\[(\d{1,3})\]\s*: (.+?)\s*:\s*(\S.*?)\s*\Z")
_TEXT_CARD = re.compile(r"GPU: (\d{1,3})\s*\Z")
_TEXT_PAIR = re.compile(r"([A-Z][\w ()/-]*?):(?: (.*))?\Z")

Leaves = dict[tuple[str, ...], str]


def amd_gpus(text: str) -> tuple[Gpu, ...] | None:
    """The cards in an answer of rocm-smi or amd-smi in any of the forms; None if no card can be read."""
    document = first_json(text)
    if document is not None:
        return _json_gpus(document)
    for reader in (_long_gpus, _csv_gpus, _text_gpus):
        found = reader(text)
        if found is not None:
            return found
    return None


def amd_processes(text: str) -> tuple[GpuProcess, ...] | None:
    """The processes of ``amd-smi process --json``; () where every list is empty, None if there is no list."""
    document = first_json(text)
    if document is None:
        return None
    found: list[GpuProcess] = []
    seen = False
    for place, card in enumerate(_cards_of(document)):
        listed = card.get("process_list")
        if not isinstance(listed, list):
            continue
        seen = True
        index = cells.integer(_scalar(card.get("gpu"))) if "gpu" in card else place
        for entry in listed:
            inner = entry.get("process_info", entry) if isinstance(entry, dict) else None
            process = _process(inner, index) if isinstance(inner, dict) else None
            if process is not None:
                found.append(process)
    return tuple(found) if seen else None


def _json_gpus(document: object) -> tuple[Gpu, ...] | None:
    if isinstance(document, dict):
        named = {
            key: value
            for key, value in document.items()
            if _CARD_KEY.match(str(key)) and isinstance(value, dict)
        }
        if named:
            return tuple(
                _rocm_card(key, {str(k): _scalar(v) for k, v in card.items()}) for key, card in named.items()
            )
        if not any(key in document for key in ("gpu_data", "gpu")):
            return None
    cards = _cards_of(document)
    return tuple(_amd_card(dict(_leaves(card, ())), place) for place, card in enumerate(cards))


def _cards_of(document: object) -> list[dict[str, object]]:
    if isinstance(document, dict):
        document = document.get("gpu_data", [document])
    return [card for card in document if isinstance(card, dict)] if isinstance(document, list) else []


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every leaf with its path; ``{"value": 42, "unit": "%"}`` is one leaf."""
    if isinstance(value, dict) and "value" in value:
        yield path, f"{_scalar(value['value'])} {_scalar(value.get('unit'))}".strip()
    elif isinstance(value, dict) and len(path) < _MAX_DEPTH:
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key).lower()))
    elif not isinstance(value, list | dict):
        yield path, _scalar(value)


def _scalar(value: object) -> str:
    return "" if value is None else str(value).strip()[:512]


def _amd_card(leaves: Mapping[tuple[str, ...], str], place: int) -> Gpu:
    raw: dict[str, str] = {}
    for wanted, name in _AMD.items():
        for path, value in leaves.items():
            fits = path[-len(wanted) :] == wanted and not _NOT_OF_ONE_CARD & set(path)
            if fits and (name not in raw or cells.is_word(raw[name])):
                raw[name] = value
    raw["index"] = next((value for path, value in leaves.items() if path == ("gpu",)), "")
    return build_gpu(raw, place, "amd")


def _rocm_card(key: str, values: Mapping[str, str]) -> Gpu:
    """A card from rocm-smi's keys, such as ``VRAM Total Memory (B)``."""
    match = re.search(r"\d{1,3}\Z", key)
    named: dict[str, str] = {}
    for label, value in values.items():
        unit = _KEY_UNIT.search(label)
        bare = re.sub(r"[()]", "", _KEY_UNIT.sub("", label)).strip().lower()
        suffix = _ROCM_UNITS.get(unit["unit"].lower(), "") if unit else ""
        named.setdefault(bare, value if not suffix or not re.match(r"[\d.+-]+\Z", value) else value + suffix)
    raw = {"index": match[0] if match else ""}
    for label, name in _ROCM.items():
        value = named.get(label, "")
        if label in named and (name not in raw or cells.is_word(raw[name])):
            raw[name] = value
    return build_gpu(raw, 0, "amd")


def _long_gpus(text: str) -> tuple[Gpu, ...] | None:
    """``GPU[0]<tab>: GPU use (%): 97`` lines."""
    cards: dict[str, dict[str, str]] = {}
    for match in map(_LONG_LINE.match, lines(text)):
        if match:
            cards.setdefault(match[1], {}).setdefault(match[2], match[3])
    return tuple(_rocm_card(number, values) for number, values in cards.items()) or None


def _csv_gpus(text: str) -> tuple[Gpu, ...] | None:
    """``device,GPU use (%),…`` of rocm-smi or ``gpu,gfx_activity,…`` of amd-smi."""
    rows = [line for line in lines(text) if "," in line]
    start = next((at for at, line in enumerate(rows) if re.match(r"(?:device|gpu),", line)), None)
    if start is None:
        return None
    try:
        table = list(csv.reader(rows[start:]))
    except csv.Error:
        return None
    header = table[0]
    found = []
    for row in table[1:]:
        if len(row) != len(header):
            continue
        values = dict(zip(header, (cell.strip() for cell in row), strict=True))
        if header[0] == "device" and _CARD_KEY.match(row[0]):
            found.append(_rocm_card(row[0], values))
        elif header[0] == "gpu" and cells.integer(row[0]) is not None:
            found.append(_amd_card({(key.lower(),): value for key, value in values.items()}, len(found)))
    return tuple(found)


def _text_gpus(text: str) -> tuple[Gpu, ...] | None:
    """amd-smi's indented text: ``GPU: 0`` and below it ``USAGE:``, ``GFX_ACTIVITY: 42 %``."""
    cards: list[Leaves] = []
    stack: list[tuple[int, str]] = []
    for line in lines(text):
        card = _TEXT_CARD.match(line)
        pair = _TEXT_PAIR.match(line.strip())
        if card:
            cards.append({("gpu",): card[1]})
            stack = []
        elif pair and cards:
            indent = len(line) - len(line.lstrip())
            stack = [(depth, name) for depth, name in stack if depth < indent]
            name = pair[1].lower().replace(" ", "_")
            if pair[2]:
                cards[-1].setdefault((*(part for _, part in stack), name), pair[2].strip())
            else:
                stack.append((indent, name))
    return tuple(_amd_card(leaves, place) for place, leaves in enumerate(cards)) or None


def _process(raw: Mapping[str, object], index: int | None) -> GpuProcess | None:
    pid = cells.integer(_scalar(raw.get("pid")))
    if pid is None:
        return None
    leaves = dict(_leaves(raw, ()))
    memory = (
        leaves.get(("memory_usage", "vram_mem")) or leaves.get(("mem_usage",)) or leaves.get(("mem",)) or ""
    )
    return GpuProcess(
        pid=pid,
        gpu_uuid=None,
        mem_used_mib=cells.number(memory, "mib"),
        command=safe(cells.words_or_none(_scalar(raw.get("name"))) or ""),
        gpu_index=index,
        kind=safe("C"),
    )
