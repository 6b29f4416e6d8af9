"""What this computer remembers of leashes it has armed: a date to show, no proof that the box keeps it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tui.durable import write_whole
from tui.fleet.paths import Paths
from tui.model.text import SafeText, safe

_CAP = 64 << 10


def note(where: Paths, box: str, at: float | None) -> None:
    """Remember when a box stops itself; None: it does not any more. Raises OSError: nothing changed."""
    try:
        notes = _read(where)
    except ValueError:  # nothing in it can be told any more
        notes = {}
    if at is None:
        notes.pop(box, None)
    else:
        notes[box] = at
    write_whole(_file(where), json.dumps(notes, indent=1))


def noted(where: Paths) -> dict[str, float]:
    """Dates by box, in seconds since the epoch; none where the file cannot be read: `rgt leash BOX` asks."""
    try:
        return _read(where)
    except (OSError, ValueError):
        return {}


def _read(where: Paths) -> dict[str, float]:
    """Raises OSError: it is there and cannot be read; ValueError: it is no such file."""
    try:
        with _file(where).open("rb") as file:
            read: Any = json.loads(file.read(_CAP))
    except FileNotFoundError:
        return {}
    except RecursionError:
        raise ValueError("nested too deeply") from None
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
