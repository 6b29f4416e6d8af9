"""Which accounts an `rgt` asks by itself: made of the fleet file, the profiles and this computer's keys."""

from __future__ import annotations

import time

from tui.fleet import profiles, settings
from tui.fleet.paths import Paths, shipped
from tui.platforms.configured import configured
from tui.workers.accounts import FleetSources, Plan


def sources(where: Paths, *, call_s: float | None = None) -> FleetSources:
    """Accounts of the operator's fleet file."""
    return FleetSources(lambda: plan(where), time.time, call_s)


def plan(where: Paths) -> Plan:
    """What is to be asked now. Nothing is, where the operator wants none of it or no key is found."""
    loaded = settings.load(where.fleet_file)
    specs = configured(loaded.accounts, loaded.instances, asking=loaded.settings.ask_platforms)
    if not specs:
        return Plan((), {})
    return Plan(specs, profiles.load(shipped("profiles"), where.profiles).plain())
