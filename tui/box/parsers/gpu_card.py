"""One card from named cells. All parsers name their cells in one vocabulary; only this file reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tui.box.parsers import cells
from tui.model.telemetry import Gpu
from tui.model.text import SafeText, safe

THROTTLE = "throttle."
"""Prefix of a cell that says whether one throttle reason is active."""

THROTTLE_MASK = "throttle_mask"
"""A hexadecimal mask of all active reasons."""

# Cell name -> kind of number. The names are those of `Gpu`'s fields.
NUMBERS = {
    "util_pct": "pct",
    "mem_used_mib": "mib",
    "mem_total_mib": "mib",
    "mem_free_mib": "mib",
    "mem_used_pct": "pct",
    "temp_c": "c",
    "power_w": "w",
    "power_limit_w": "w",
    "power_default_limit_w": "w",
    "sm_clock_mhz": "mhz",
    "fan_pct": "pct",
}
COUNTS = frozenset({"ecc_uncorrected", "ecc_uncorrected_ever"})
SWITCHES = frozenset({"mig", "ecc_enabled", "remap_pending", "remap_failed"})
WORDS = frozenset({"uuid", "bus_id", "pstate"})

# Bits of nvmlClocksEventReasons (nvml.h), in the spelling of nvidia-smi's query fields.
_REASON_BITS = (
    (0x1, "gpu_idle"),
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
)
_NOT_A_BRAKE = frozenset({"gpu_idle"})
_HEALTH_ORDER = (cells.LOST, cells.REQUIRES_RESET, cells.UNREADABLE)
_CAPACITY_IN_NAME = re.compile(r"\b(\d{1,3}) ?GB\b")
_SLICE_SHARE = 0.8  # ECC on GDDR takes 1/16, firmware a little: less than this is a part of a card


def build_gpu(raw: Mapping[str, str], place: int, vendor: str = "nvidia") -> Gpu:
    """A card from cells as printed.

    Args:
        raw: cell name -> text. Unknown names are not looked at.
        place: its index where no ``index`` cell says it.
    """
    numbers = {name: cells.number(raw[name], kind) for name, kind in NUMBERS.items() if name in raw}
    counts = {name: cells.integer(raw[name]) for name in COUNTS if name in raw}
    switches = {name: cells.truth(raw[name]) for name in SWITCHES if name in raw}
    words = {name: _word(raw[name]) for name in WORDS if name in raw}
    values: dict[str, object] = {**numbers, **counts, **switches, **words}
    asked, active = _throttle(raw)
    index = cells.integer(raw.get("index", ""))
    return Gpu(
        index=place if index is None else index,
        name=safe(cells.words_or_none(raw.get("name", "")) or ""),
        vendor=vendor,
        uuid=words.get("uuid"),
        util_pct=numbers.get("util_pct"),
        mem_used_mib=numbers.get("mem_used_mib"),
        mem_total_mib=numbers.get("mem_total_mib"),
        mem_free_mib=numbers.get("mem_free_mib"),
        mem_used_pct=numbers.get("mem_used_pct"),
        temp_c=numbers.get("temp_c"),
        power_w=numbers.get("power_w"),
        power_limit_w=numbers.get("power_limit_w"),
        power_default_limit_w=numbers.get("power_default_limit_w"),
        sm_clock_mhz=numbers.get("sm_clock_mhz"),
        fan_pct=numbers.get("fan_pct"),
        pstate=words.get("pstate"),
        bus_id=words.get("bus_id"),
        mig=switches.get("mig"),
        ecc_enabled=switches.get("ecc_enabled"),
        ecc_uncorrected=counts.get("ecc_uncorrected"),
        ecc_uncorrected_ever=counts.get("ecc_uncorrected_ever"),
        remap_pending=switches.get("remap_pending"),
        remap_failed=switches.get("remap_failed"),
        throttle=active if asked else None,
        throttle_asked=asked,
        health=_health(raw),
        missing=tuple((name, safe(raw[name].strip())) for name, value in values.items() if value is None),
    )


def is_slice(gpu: Gpu) -> bool:
    """Whether the card shows less memory than its name has: a vGPU slice, whose utilisation is no measure."""
    match = _CAPACITY_IN_NAME.search(gpu.name)
    if match is None or gpu.mem_total_mib is None or gpu.mig:
        return False
    return gpu.mem_total_mib < _SLICE_SHARE * 1024 * int(match[1])


def slowed_by_heat(gpu: Gpu) -> bool:
    """Whether the card runs slower because it is too hot."""
    return any("thermal" in reason for reason in gpu.throttle or ())


def _word(text: str) -> SafeText | None:
    word = cells.words_or_none(text)
    return None if word is None else safe(word)


def _health(raw: Mapping[str, str]) -> str:
    seen = {cells.health_of(text) for text in raw.values()}
    return next((health for health in _HEALTH_ORDER if health in seen), "")


def _throttle(raw: Mapping[str, str]) -> tuple[tuple[SafeText, ...], tuple[SafeText, ...]]:
    """(reasons that were read, those of them that are active)."""
    states = {
        name[len(THROTTLE) :]: cells.truth(text) for name, text in raw.items() if name.startswith(THROTTLE)
    }
    mask = _mask(raw.get(THROTTLE_MASK, ""))
    if mask is not None:
        decoded: dict[str, bool | None] = {name: bool(mask & bit) for bit, name in _REASON_BITS}
        states = decoded | states
    known = {
        safe(name): state for name, state in states.items() if state is not None and name not in _NOT_A_BRAKE
    }
    return tuple(known), tuple(name for name, state in known.items() if state)


def _mask(text: str) -> int | None:
    match = re.match(r"0x([0-9a-fA-F]{1,16})\Z", text.strip())
    return int(match[1], 16) if match else None
