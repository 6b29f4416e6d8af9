"""Cells of nvidia-smi's CSV answers that tell of a bad card, by the fields that were asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui.model.incident import Fact, Severity
from tui.triage.finding import Hit
from tui.triage.view import View

_ASKED = re.compile(r"--query-(?:gpu|remapped-rows|retired-pages)=(?P<fields>[\w.,]+)")
_COUNTED = re.compile(r"ecc\.errors\.uncorrected\.volatile\.total\Z")
_PENDING = re.compile(r"(?:remapped_rows|retired_pages)\.pending(?:_retirement)?\Z")
_FAILED = re.compile(r"remapped_rows\.failure\Z")
_ACTION = re.compile(r"(?i)(?:gpu )?(?:reset|reboot|node reboot|drain)")
_TRUE = re.compile(r"(?i)yes\Z|[1-9]\d*\Z")


def bad_memory(view: View, cls: str) -> Iterator[Hit]:
    """Cards with volatile errors that ECC could not correct, and rows whose remapping waits or failed."""
    for index, cells in _rows(view):
        told = [name for name, cell in cells if _TRUE.match(cell)]
        if any(map(_FAILED.search, told)):
            yield _hit(index, "remap_failed", "fatal", 89)
        elif any(map(_PENDING.search, told)):
            yield _hit(index, "remap_pending", "warning", 71)
        elif any(map(_COUNTED.search, told)):
            yield _hit(index, None, "warning", None)


def recovery(view: View, cls: str) -> Iterator[Hit]:
    """Cards whose driver asks for a reset or a reboot."""
    for index, cells in _rows(view):
        if any(name == "gpu_recovery_action" and _ACTION.match(cell) for name, cell in cells):
            yield Hit(index)


def _rows(view: View) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """(row, its cells by the name of their field)."""
    asked = _ASKED.search(view.command)
    names = asked["fields"].lower().split(",") if asked else []
    for index, one in enumerate(view.rows if names else ()):
        cells = [cell.strip() for cell in one.text.split(",")]
        if len(cells) == len(names):
            yield index, list(zip(names, cells, strict=True))


def _hit(index: int, detail: str | None, severity: Severity, rank: int | None) -> Hit:
    facts: dict[str, Fact] = {"detail": detail} if detail else {}
    return Hit(index, facts=facts, severity=severity, rank=rank)
