"""What a text shows beside the faults: worth knowing, and nothing that is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tui.model.text import SafeText, safe
from tui.triage.view import View

_CORRUPT = re.compile(r"\b(?P<count>[1-9]\d*) corrupt\b")
_MOST = 6


def remarks(views: Iterable[View]) -> tuple[SafeText, ...]:
    """One short sentence each, without doubles."""
    found: list[SafeText] = []
    for view in views:
        if view.kind not in ("log", "shell"):
            continue
        for one in view.rows:
            match = _CORRUPT.search(one.text) if "corrupt" in one.low else None
            if match and ("image" in one.low or "scanning" in one.low):
                found.append(safe(f"{match['count']} corrupt images ignored"))
    return tuple(dict.fromkeys(found))[:_MOST]
