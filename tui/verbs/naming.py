"""Names for boxes and runs that were given none: valid, not taken, and from what tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from tui.box.address import Address
from tui.fleet.toml_edit import Value

_COMMON_LOGS = ("train", "log", "output", "nohup", "stdout", "run", "out")
_GATES = ("connect", "ssh", "login", "gateway", "gate", "proxy", "jump")


def unused_name(address: Address, taken: Iterable[str]) -> str:
    """A name for a box: its host's first label, or platform with port where many boxes share one host."""
    first = address.host.split(".")[0].split("-")[0] if ":" not in address.host else ""
    if address.host.replace(".", "").isdigit() or ":" in address.host:
        base = f"{_platform_word(address)}-{address.host.replace(':', '-').replace('.', '-').strip('-')}"
    elif first in _GATES or first.startswith("region"):
        told = address.user.split("-")[0] if address.proxied and address.user else str(address.port or "1")
        base = f"{_platform_word(address)}-{told}"
    else:
        base = address.host.split(".")[0]
    return unused(base, taken)


def _platform_word(address: Address) -> str:
    return "box" if address.platform == "ssh" else address.platform


def unused(base: str, taken: Iterable[str]) -> str:
    """`base` as a valid name that nobody has, with a number where needed."""
    fit = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in base)
    word = fit[:56].strip("._-") or "box"
    names = set(taken)
    if word not in names:
        return word
    number = 2
    while f"{word}-{number}" in names:
        number += 1
    return f"{word}-{number}"


def run_word(values: Mapping[str, Value]) -> str:
    """The word that tells a run from others: its log's name, or the folder where all logs are named alike."""
    log = values.get("log")
    if isinstance(log, str):
        path = PurePosixPath(log)
        common = path.stem in _COMMON_LOGS
        return path.parent.name if common and path.parent.name not in ("", "~") else path.stem
    return str(values.get("session") or values.get("pid") or "run")
