"""What the operator typed after ``--to``: a path, ``box:path`` or ``rclone:remote:path``."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui.custody.stores.rclone import REMOTE
from tui.model.custody import Place
from tui.model.failure import Exit, Failure
from tui.model.text import safe

_BOX = re.compile(r"([A-Za-z0-9._-]{1,64}):(.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Destination:
    """A folder that bags are put into.

    Attributes:
        path: for ``rclone`` with its remote before it.
        box: the instance, for ``box``.
    """

    kind: Literal["path", "box", "rclone"]
    path: str
    box: str = ""


def destination(text: str, boxes: Collection[str], here: Path) -> Destination:
    """Read what was typed.

    Args:
        boxes: names of the fleet.
        here: what a relative path is relative to.

    Raises:
        Failure: it is none of the three.
    """
    if not text or "\0" in text:
        raise _wrong("There is no place to copy to.")
    if text.startswith("rclone:"):
        remote = text.removeprefix("rclone:")
        if not REMOTE.match(remote):
            raise _wrong(f"{safe(text, 80)} names no rclone remote.")
        return Destination("rclone", remote)
    named = _BOX.match(text)
    if named is not None and named[1] in boxes:
        if not named[2]:
            raise _wrong(f"{named[1]}: names no folder on that box.")
        return Destination("box", named[2], named[1])
    if named is not None and not (here / text).exists():
        raise _wrong(f"No box is named {named[1]!r}.", "For a folder of that name write ./ before it.")
    return Destination("path", str(here / Path(text).expanduser()))


def bag_of(place: Place) -> tuple[Destination, str]:
    """Where a copy's folder lies, and its name there."""
    base, _, name = place.path.rstrip("/").rpartition("/")
    if place.kind == "rclone" and not base:
        remote, _, name = place.path.rpartition(":")
        return Destination("rclone", f"{remote}:"), name
    return Destination(place.kind, base or "/", place.box or ""), name


def _wrong(what: str, do: str = "Write a folder, BOX:FOLDER, or rclone:REMOTE:FOLDER after --to.") -> Failure:
    return Failure(what, do=do, exit=Exit.USAGE, code="no-such-store")
