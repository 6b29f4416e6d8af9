"""Which accounts an `rgt` asks by itself: made of the fleet file, the profiles and this computer's keys."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tui.fleet import profiles, settings
from tui.fleet.paths import Paths, shipped
from tui.model.account import AccountSpec
from tui.model.failure import Failure
from tui.model.text import safe
from tui.platforms.configured import configured
from tui.workers.accounts import FleetSources, Plan

if TYPE_CHECKING:
    from tui.platforms.credentials import Missing
    from tui.platforms.vendors import Account


def sources(where: Paths, *, call_s: float | None = None) -> FleetSources:
    """Accounts of the operator's fleet file."""
    return FleetSources(lambda: plan(where), time.time, call_s)


def account_of(where: Paths, platform: str, name: str | None = None) -> Account | Missing:
    """The account to ask at a platform: the fleet file's, else the one of a key that is found.

    Args:
        name: of an entry of the fleet file, where it has several of this platform.

    Raises:
        Failure: there is none of this name; another one's key would ask, and pay, for somebody else.
    """
    from tui.platforms.vendors import account, finder  # the HTTP client, which most looks never need

    named = [one for one in settings.load(where.fleet_file).accounts if one.platform == platform]
    chosen = next((one for one in named if name in (None, one.name)), None)
    if chosen is None and name is not None:
        raise Failure(
            f"The fleet file names no account {safe(name, 80)} of {safe(platform, 40)}.",
            means="Nobody was asked.",
            do="Add it under [accounts], or name another one in the box's account.",
            code="no-account",
        )
    return account(chosen or AccountSpec(platform, platform, found=True), finder())


def plan(where: Paths) -> Plan:
    """What is to be asked now. Nothing is, where the operator wants none of it or no key is found."""
    loaded = settings.load(where.fleet_file)
    specs = configured(loaded.accounts, loaded.instances, asking=loaded.settings.ask_platforms)
    if not specs:
        return Plan((), {})
    return Plan(specs, profiles.load(shipped("profiles"), where.profiles).plain())
