"""This computer as a box of the fleet: it has no login, only a name."""

from __future__ import annotations

from tui.fleet import fleet_file, settings
from tui.fleet.paths import Paths
from tui.model.failure import Failure
from tui.verbs.naming import unused

PLATFORM = "local"


def is_here(text: str) -> bool:
    """Whether this computer is meant, as `rgt probe` calls it."""
    return text.strip() == PLATFORM


def written(where: Paths, name: str | None) -> str:
    """Write it as a box; the name it got. Raises Failure."""
    chosen = understood(where, name)
    fleet_file.add_instance(where.fleet_file, chosen, {"platform": PLATFORM})
    return chosen


def understood(where: Paths, name: str | None) -> str:
    """What it is called as a box. Raises Failure: it is one already."""
    known = settings.load(where.fleet_file).instances
    there = next((one.name for one in known if one.platform == PLATFORM), None)
    if there is not None:
        raise Failure(f"This computer is already in the fleet as {there}.", means="Nothing was added.")
    return name or unused(PLATFORM, fleet_file.names(where.fleet_file).instances)
