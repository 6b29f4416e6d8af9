"""The tables of plain ``rocm-smi`` (two generations), ``amd-smi monitor`` and plain ``amd-smi``."""

from __future__ import annotations

import re
from dataclasses import replace

from tui.box.parsers.gpu_card import build_gpu
from tui.box.parsers.lines import lines
from tui.model.telemetry import Gpu
from tui.model.text import safe

_TEMPERATURE = re.compile(r"(\d+(?:\.\d+)?)\s*°?[cC]\b")
_POWER = re.compile(r"(\d+(?:\.\d+)?)\s*W\b")
_CONCISE = {"Fan": "fan_pct", "PwrCap": "power_limit_w", "VRAM%": "mem_used_pct", "GPU%": "util_pct"}
_PAIR = re.compile(
    r"\|\s*(?P<bdf>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\s+(?P<name>.+?)\s*\|\s*(?:\d+\s*%|N/A)\s+"
    r"(?P<temp>\d+(?:\.\d+)?\s*°C|N/A)\s+(?P<ecc>\d+|N/A)\s+"
    r"(?P<power>\d+|N/A)(?:/(?P<limit>\d+|N/A))?\s*W?\s*\|"
)
_PAIR_BELOW = re.compile(
    r"\|\s*(?P<index>\d{1,3})\s.*\|\s*(?P<util>\d+\s*%|N/A)\s+(?P<fan>\d+(?:\.\d+)?\s*%|N/A)\s+"
    r"(?P<used>\d+|N/A)/(?P<total>\d+|N/A)\s*MB\s*\|"
)
# Heading of ``amd-smi monitor`` -> cell name.
_MONITOR = {
    "GPU": "index",
    "POWER": "power_w",
    "PWR_CAP": "power_limit_w",
    "GPU_T": "temp_c",
    "GPU_TEMP": "temp_c",
    "HOTSPOT_TEMP": "temp_c",
    "GFX%": "util_pct",
    "GFX_UTIL": "util_pct",
    "GFX": "util_pct",
    "VRAM_USED": "mem_used_mib",
    "VRAM_FREE": "mem_free_mib",
    "VRAM_TOTAL": "mem_total_mib",
    "DOUBLE_ECC": "ecc_uncorrected",
}


def amd_table_gpus(text: str) -> tuple[Gpu, ...] | None:
    """The cards of whichever of the tables `text` holds; None if it holds none."""
    return _concise(text) or _boxed(text) or _monitor(text)


def _concise(text: str) -> tuple[Gpu, ...] | None:
    """rocm-smi's *Concise Info*. Only its columns on the right are one word each: counted from there.

    A heading may be two words (``SCLK OD``, in the releases before there were ``VRAM%`` and ``GPU%``).
    """
    found: list[Gpu] = []
    header: list[str] = []
    for line in lines(text):
        words = line.split()
        if words[:1] in (["GPU"], ["Device"]) and {"SCLK", "Perf"} <= set(words):
            header = re.split(r"\s{2,}", line.strip())
        elif header and len(words) >= 6 and re.match(r"\d{1,3}\Z", words[0]):
            raw = {"index": words[0]}
            for heading, name in _CONCISE.items():
                place = header.index(heading) - len(header) if heading in header else 0
                if place and -place < len(words):
                    raw[name] = words[place]
            left = " ".join(words[1 : header.index("SCLK") - len(header)] if "SCLK" in header else words[1:])
            temperature, power = _TEMPERATURE.search(left), _POWER.search(left)
            raw |= {
                "temp_c": temperature[1] if temperature else "N/A",
                "power_w": power[1] if power else "N/A",
            }
            found.append(build_gpu(raw, len(found), "amd"))
        elif (
            any(title.startswith("[Model") for title in header)
            and found
            and not found[-1].name
            and re.match(r"\s+[A-Za-z]", line)
        ):
            found[-1] = replace(found[-1], name=safe(line.strip()))  # below its card in some releases
    return tuple(found) or None


def _boxed(text: str) -> tuple[Gpu, ...] | None:
    """Plain amd-smi: two lines a card."""
    found: list[Gpu] = []
    upper: re.Match[str] | None = None
    for line in lines(text):
        first, second = _PAIR.search(line), _PAIR_BELOW.search(line)
        if first:
            upper = first
        elif second and upper:
            raw = {
                "index": second["index"],
                "name": upper["name"],
                "bus_id": upper["bdf"],
                "temp_c": upper["temp"],
                "ecc_uncorrected": upper["ecc"],
                "power_w": upper["power"],
                "power_limit_w": upper["limit"] or "N/A",
                "util_pct": second["util"],
                "fan_pct": second["fan"],
                "mem_used_mib": second["used"],
                "mem_total_mib": second["total"],
            }
            found.append(build_gpu(raw, len(found), "amd"))
            upper = None
    return tuple(found) or None


def _monitor(text: str) -> tuple[Gpu, ...] | None:
    """amd-smi monitor: right-aligned columns at least two blanks apart, units in the cells.

    With ``-w`` a time comes first and every card again: the last sample counts. A card in partitions has a
    row for each (``XCP``), and only the first tells of the whole card.
    """
    found: dict[int, Gpu] = {}
    header: list[str] = []
    for line in lines(text):
        parts = re.split(r"\s{2,}", line.strip())
        if "GPU" in parts[:2] and len(parts) > 2:
            header = parts
        elif header and len(parts) == len(header) and re.match(r"\d{1,3}\Z", parts[header.index("GPU")]):
            raw: dict[str, str] = {}
            if "XCP" in header and parts[header.index("XCP")] not in {"0", "N/A"}:
                continue
            for name, cell in zip(header, parts, strict=True):
                if name in _MONITOR:
                    raw.setdefault(_MONITOR[name], cell)
                elif name == "VRAM_USAGE" and "/" in cell:
                    used, _, total = cell.partition("/")
                    unit = total.split()[-1] if total.split()[1:] else ""
                    raw |= {"mem_used_mib": f"{used.strip()} {unit}", "mem_total_mib": total.strip()}
            gpu = build_gpu(raw, len(found), "amd")
            found[gpu.index] = gpu
    return tuple(found.values()) or None
