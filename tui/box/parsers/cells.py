"""One cell of a GPU tool's answer: a number with or without its unit, or a word in place of a number."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"([-+]?\d{1,20}(?:\.\d{1,20})?)\s*([A-Za-z%°/]{0,6})\Z")
_INTEGER = re.compile(r"[-+]?\d{1,20}\Z")

# Factor to the unit the model keeps: MiB, W, MHz, °C, percent. nvidia-smi's and amd-smi's "MB" are MiB.
_MEMORY = {
    "": 1.0, "b": 1 / 2**20, "kib": 1 / 1024, "kb": 1 / 1024, "mib": 1.0, "mb": 1.0, "m": 1.0,
    "gib": 1024.0, "gb": 1024.0, "g": 1024.0, "tib": 1024.0**2, "tb": 1024.0**2,
}  # fmt: skip
_POWER = {"": 1.0, "w": 1.0, "mw": 1e-3, "uw": 1e-6, "kw": 1e3}
_CLOCK = {"": 1.0, "mhz": 1.0, "ghz": 1e3, "khz": 1e-3, "hz": 1e-6}
_DEGREES = {"": 1.0, "c": 1.0, "°c": 1.0}
_SHARE = {"": 1.0, "%": 1.0}
_COUNT = {"": 1.0}

UNITS: dict[str, dict[str, float]] = {
    "mib": _MEMORY,
    "w": _POWER,
    "mhz": _CLOCK,
    "c": _DEGREES,
    "pct": _SHARE,
    "count": _COUNT,
}

_WORDS = frozenset(
    {
        "n/a", "na", "none", "-", "", "unknown", "unsupported", "not supported", "not available", "not found",
        "err!", "error", "unknown error", "gpu is lost", "gpu requires reset", "insufficient permissions",
        "requested functionality has been deprecated", "no data", "<unknown>", "null",
    }
)  # fmt: skip

LOST, REQUIRES_RESET, UNREADABLE = "lost", "requires_reset", "unreadable"
_HEALTH = (
    (re.compile(r"\bis lost\b|fallen off the bus"), LOST),
    (re.compile(r"requires reset|reset required"), REQUIRES_RESET),
    (re.compile(r"^err!$|unknown error|^error$"), UNREADABLE),
)


def number(text: str, kind: str) -> float | None:
    """The number in `text`, in the unit of `kind` (a key of `UNITS`); None when it is no such number."""
    match = _NUMBER.match(text.strip())
    factor = UNITS[kind].get(match[2].lower()) if match else None
    if match is None or factor is None:
        return None
    return float(match[1]) if factor == 1.0 else float(match[1]) * factor


def integer(text: str) -> int | None:
    """A plain whole number, else None."""
    return int(text) if _INTEGER.match(text.strip()) else None


def is_word(text: str) -> bool:
    """Whether `text` is one of the words tools print where they have no value."""
    return _bare(text) in _WORDS or (text.startswith("[") and text.endswith("]"))


def health_of(text: str) -> str:
    """What a word in place of a number says about the card; ``""`` where it says nothing bad."""
    bare = _bare(text)
    return next((health for pattern, health in _HEALTH if pattern.search(bare)), "")


def truth(text: str) -> bool | None:
    """A switch: Enabled/Disabled, Active/Not Active, Yes/No, On/Off, 1/0. None for anything else."""
    bare = _bare(text)
    if bare in {"enabled", "active", "yes", "on", "1", "true", "pending"}:
        return True
    if bare in {"disabled", "not active", "no", "off", "0", "false", "inactive"}:
        return False
    return None


def words_or_none(text: str) -> str | None:
    """Free text, or None where the tool printed a word for "not known"."""
    stripped = text.strip()
    return None if is_word(stripped) else stripped


def _bare(text: str) -> str:
    return text.strip().strip("[]").strip().lower()
