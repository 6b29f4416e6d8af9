"""Cells of nvidia-smi's CSV answers that tell of bad memory, by the fields that were asked for."""

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
_TRUE = re.compile(r"(?i)yes\Z|[1-9]\d*\Z")


def bad_memory(view: View, cls: str) -> Iterator[Hit]:
    """Cards with volatile errors that ECC could not correct, and rows whose remapping waits or failed."""
    asked = _ASKED.search(view.command)
    if asked is None:
        return
    names = asked["fields"].lower().split(",")
    for index, one in enumerate(view.rows):
        cells = [cell.strip() for cell in one.text.split(",")]
        if len(cells) != len(names):
            continue
        told = [name for name, cell in zip(names, cells, strict=True) if _TRUE.match(cell)]
        if any(map(_FAILED.search, told)):
            yield _hit(index, "remap_failed", "fatal", 89)
        elif any(map(_PENDING.search, told)):
            yield _hit(index, "remap_pending", "warning", 71)
        elif any(map(_COUNTED.search, told)):
            yield _hit(index, None, "warning", None)


def _hit(index: int, detail: str | None, severity: Severity, rank: int | None) -> Hit:
    facts: dict[str, Fact] = {"detail": detail} if detail else {}
    return Hit(index, facts=facts, severity=severity, rank=rank)
