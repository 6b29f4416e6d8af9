"""``nvidia-smi -q`` as text and as XML: two spellings of one tree."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml  # the log has no entities; a text that declares one is refused
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tui.box.parsers import cells
from tui.box.parsers.gpu_card import THROTTLE, build_gpu
from tui.box.parsers.lines import lines
from tui.box.parsers.report import MigSlice
from tui.model.telemetry import Gpu, GpuProcess
from tui.model.text import SafeText, safe

Path = tuple[str, ...]
_MAX_XML = 16 << 20
_MAX_DEPTH = 12

_POWER_LIMITS: tuple[Path, ...] = (
    ("power_readings",),
    ("gpu_power_readings",),
    ("gpu_power_readings", "gpu_ceiling_power_limit"),  # since R610
)

# Cell name -> where it stands below a card; the first that is there with a value wins.
_PLACES: dict[str, tuple[Path, ...]] = {
    "name": (("product_name",),),
    "uuid": (("gpu_uuid",), ("uuid",)),
    "fan_pct": (("fan_speed",),),
    "pstate": (("performance_state",),),
    "util_pct": (("utilization", "gpu"), ("utilization", "gpu_util")),
    "mem_used_mib": (("fb_memory_usage", "used"), ("memory_usage", "used")),
    "mem_total_mib": (("fb_memory_usage", "total"), ("memory_usage", "total")),
    "mem_free_mib": (("fb_memory_usage", "free"), ("memory_usage", "free")),
    "temp_c": (("temperature", "gpu_current_temp"), ("temperature", "gpu_temp"), ("temperature", "gpu")),
    "power_w": tuple(
        (parent, leaf)
        for parent in ("power_readings", "gpu_power_readings")
        for leaf in ("power_draw", "instantaneous_power_draw", "instant_power_draw", "average_power_draw")
    ),
    "power_limit_w": tuple(
        (*parent, leaf)
        for parent in _POWER_LIMITS
        for leaf in ("current_power_limit", "power_limit", "enforced_power_limit")
    ),
    "power_default_limit_w": tuple((*parent, "default_power_limit") for parent in _POWER_LIMITS),
    "sm_clock_mhz": (("clocks", "sm"), ("clocks", "sm_clock")),
    "mig": (("mig_mode", "current"), ("mig_mode", "current_mig")),
    "ecc_enabled": (("ecc_mode", "current"), ("ecc_mode", "current_ecc")),
    "remap_pending": (("remapped_rows", "pending"), ("remapped_rows", "remapped_row_pending")),
    "remap_failed": (
        ("remapped_rows", "remapping_failure_occurred"),
        ("remapped_rows", "remapped_row_failure"),
    ),
}
_SLICE_MEMORY = frozenset({"fb_memory_usage", "shared_fb_memory_usage"})
_REASONS = frozenset({"clocks_throttle_reasons", "clocks_event_reasons"})
_REASON_PREFIX = re.compile(r"clocks_(?:throttle|event)_reason_")
_REASON_NAMES = {"idle": "gpu_idle", "hw_power_braking": "hw_power_brake_slowdown"}
_CARD_LINE = re.compile(r"GPU\s+((?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*\Z")
_PAIR = re.compile(r"(\s*)(\S.*?)\s*:(?: (.*))?\Z")
_NEW_PROCESS = frozenset({"process_id", "pid"})


@dataclass(slots=True)
class _Card:
    """A card while it is read: leaves in order, and each MIG device and process on its own."""

    bus: str
    leaves: list[tuple[Path, str]] = field(default_factory=list)
    devices: list[dict[Path, str]] = field(default_factory=list)
    processes: list[dict[str, str]] = field(default_factory=list)

    def put(self, path: Path, value: str) -> None:
        """One leaf, sorted to the card itself, its newest MIG device or its newest process."""
        if any(part in {"processes", "process_info"} for part in path):
            if path[-1] in _NEW_PROCESS:
                self.processes.append({})
            if self.processes:
                self.processes[-1][path[-1]] = value
            elif path == ("processes",) and value.strip().lower() == "none":
                self.leaves.append((path, value))
        elif any(part in {"mig_device", "mig_devices"} for part in path):
            below = path[max(place for place, part in enumerate(path) if part.startswith("mig_device")) + 1 :]
            if below == ("index",):
                self.devices.append({})
            if self.devices and below:
                self.devices[-1][below] = value
        else:
            self.leaves.append((path, value))


@dataclass(frozen=True, slots=True)
class Tree:
    """What a ``-q`` answer says. `processes` None: it has no part about processes."""

    gpus: tuple[Gpu, ...]
    processes: tuple[GpuProcess, ...] | None
    slices: tuple[MigSlice, ...] | None
    driver: SafeText | None
    cuda: SafeText | None


def read_query_text(text: str) -> Tree | None:
    """The text form; None if `text` holds no ``GPU BUS-ID`` section and no version."""
    cards: list[_Card] = []
    top: dict[str, str] = {}
    stack: list[tuple[int, str]] = []
    for line in lines(text.expandtabs(8)):
        card = _CARD_LINE.match(line.strip())
        if card:
            cards.append(_Card(card[1]))
            stack = []
            continue
        indent = len(line) - len(line.lstrip())
        pair = _PAIR.match(line)
        name = _key(pair[2] if pair else line)
        if not name:
            continue
        stack = [(depth, part) for depth, part in stack if depth < indent]
        if pair is None or not (pair[3] or "").strip():
            stack.append((indent, name))
            continue
        path = (*(part for _, part in stack), name)
        if cards:
            cards[-1].put(path, pair[3].strip())
        else:
            top.setdefault(name, pair[3].strip())
        stack.append((indent, name))  # "HW Slowdown : Active" has children of its own
    return _tree(cards, top) if cards or "driver_version" in top else None


def read_query_xml(text: str) -> Tree | None:
    """The XML form. Of an answer that was cut off, the cards that are whole; None if there is no XML log."""
    start = text.find("<nvidia_smi_log")
    if start < 0 or len(text) > _MAX_XML or "<!ENTITY" in text:
        return None
    parser: Xml.XMLPullParser[Any] = Xml.XMLPullParser(["end"])
    cards: list[_Card] = []
    top: dict[str, str] = {}
    try:
        parser.feed(text[start:].encode("utf-8", "replace"))
        events: Iterator[Any] = parser.read_events()
        for _, element in events:
            if element.tag == "gpu":
                card = _Card(element.get("id") or "")
                _walk(element, (), card)
                cards.append(card)
            elif element.tag in {"driver_version", "cuda_version"}:
                top.setdefault(element.tag, (element.text or "").strip())
    except Xml.ParseError:
        pass  # the rest is missing or garbled; what was whole before it counts
    return _tree(cards, top) if cards or top else None


def _walk(element: Xml.Element, path: Path, card: _Card) -> None:
    for child in element:
        below = (*path, child.tag)
        if len(child) and len(path) < _MAX_DEPTH:
            _walk(child, below, card)
        elif (child.text or "").strip() or child.tag == "processes":
            card.put(below, (child.text or "None").strip() or "None")


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _tree(cards: list[_Card], top: dict[str, str]) -> Tree:
    gpus = tuple(_gpu(card, place) for place, card in enumerate(cards))
    told = any(card.processes or (("processes",), "None") in card.leaves for card in cards)
    slices = tuple(_slice(place, device) for place, card in enumerate(cards) for device in card.devices)
    return Tree(
        gpus=gpus,
        processes=tuple(
            process
            for gpu, card in zip(gpus, cards, strict=True)
            for process in (_process(gpu, raw) for raw in card.processes)
            if process is not None
        )
        if told
        else None,
        slices=slices or None,
        driver=_version(top.get("kmd_version") or top.get("driver_version")),
        cuda=_version(top.get("cuda_umd_version") or top.get("cuda_version")),
    )


def _version(text: str | None) -> SafeText | None:
    return safe(text) if text and re.match(r"\d", text) else None


def _gpu(card: _Card, place: int) -> Gpu:
    leaves: dict[Path, str] = {}
    for path, value in card.leaves:
        leaves.setdefault(path, value)
    raw = {"bus_id": card.bus}
    for name, places in _PLACES.items():
        found = [leaves[path] for path in places if path in leaves]
        if found:
            raw[name] = next((value for value in found if not cells.is_word(value)), found[0])
    for cell, era in (("ecc_uncorrected", "volatile"), ("ecc_uncorrected_ever", "aggregate")):
        count = _uncorrected(leaves, era)
        if count is not None:
            raw[cell] = count
    for path, value in leaves.items():
        if path[0] in _REASONS and len(path) > 1:
            name = _REASON_PREFIX.sub("", path[-1])
            raw[THROTTLE + _REASON_NAMES.get(name, name)] = value
    return build_gpu(raw, place)


def _uncorrected(leaves: dict[Path, str], era: str) -> str | None:
    """The count of uncorrected errors: a given total, or the sum of the kinds of memory."""
    below = [(path, value) for path, value in leaves.items() if path[:2] == ("ecc_errors", era)]
    total = next((value for path, value in below if path[2:] == ("double_bit", "total")), None)
    if total is not None:
        return total
    counts = [value for path, value in below if "uncorrectable" in path[-1] and "threshold" not in path[-1]]
    numbers = [number for number in map(cells.integer, counts) if number is not None]
    if numbers:
        return str(sum(numbers))
    return counts[0] if counts else None


def _slice(gpu: int, raw: dict[Path, str]) -> MigSlice:
    memory = {path[-1]: value for path, value in raw.items() if path[0] in _SLICE_MEMORY}
    ecc = [value for path, value in raw.items() if "uncorrectable" in path[-1]]
    return MigSlice(
        gpu=gpu,
        device=cells.integer(raw.get(("index",), "")) or 0,
        gpu_instance=cells.integer(raw.get(("gpu_instance_id",), "")),
        compute_instance=cells.integer(raw.get(("compute_instance_id",), "")),
        mem_used_mib=cells.number(memory.get("used", ""), "mib"),
        mem_total_mib=cells.number(memory.get("total", ""), "mib"),
        ecc_uncorrected=cells.integer(ecc[0]) if ecc else None,
    )


def _process(gpu: Gpu, raw: dict[str, str]) -> GpuProcess | None:
    pid = cells.integer(raw.get("process_id") or raw.get("pid") or "")
    if pid is None:
        return None
    return GpuProcess(
        pid=pid,
        gpu_uuid=gpu.uuid,
        mem_used_mib=cells.number(raw.get("used_gpu_memory") or raw.get("used_memory") or "", "mib"),
        command=safe(cells.words_or_none(raw.get("name") or raw.get("process_name") or "") or ""),
        gpu_index=gpu.index,
        kind=safe(raw.get("type", "")),
    )
