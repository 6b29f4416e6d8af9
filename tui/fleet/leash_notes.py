"""What this computer remembers of leashes it has armed: a date to show, no proof that the box keeps it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tui.fleet.paths import Paths
from tui.model.text import SafeText, safe

_CAP = 64 << 10


def note(where: Paths, box: str, at: float | None) -> None:
    """Remember when a box stops itself; None: it does not any more. Raises OSError."""
    notes = noted(where)
    if at is None:
        notes.pop(box, None)
    else:
        notes[box] = at
    file = _file(where)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_suffix(f".part{os.getpid()}")
    part.write_text(json.dumps(notes, indent=1), encoding="utf-8")
    part.replace(file)


def noted(where: Paths) -> dict[str, float]:
    """Dates by box, in seconds since the epoch; none where the file cannot be read: `rgt leash BOX` asks."""
    try:
        with _file(where).open("rb") as file:
            read: Any = json.loads(file.read(_CAP))
    except (OSError, ValueError):
        return {}
    if not isinstance(read, dict):
        return {}
    return {name: float(at) for name, at in read.items() if isinstance(at, int | float) and 0 < at < 1e11}


def lines(where: Paths, now: float, boxes: Iterable[str]) -> list[SafeText]:
    """What to say of the leashes of these boxes, one line each."""
    found, notes = [], noted(where)
    for box in boxes:
        if box in notes:
            past = "its time is over" if notes[box] <= now else "stops itself then, unless it is renewed"
            found.append(safe(f"leash  {box}  {date(notes[box])}: {past}. Ask it: rgt leash {box}", 200))
    return found


def date(at: float) -> str:
    """A date with its offset, by the operator's clock."""
    return time.strftime("%Y-%m-%d %H:%M %z", time.localtime(at))


def _file(where: Paths) -> Path:
    return where.state / "leashes.json"
