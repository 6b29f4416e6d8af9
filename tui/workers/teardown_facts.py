"""What profile and ledger say of a teardown before anything was looked at: the head of its view."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tui.custody import hold
from tui.custody.machine import known_victim
from tui.custody.provider import Platform
from tui.custody.receipts import Ledger
from tui.custody.tiers import tiers_of
from tui.fleet.paths import Paths
from tui.model.custody import Tier
from tui.model.text import SafeText, safe


def facts(platform: Platform, where: Paths, now: float) -> dict[str, Any]:
    """Fields of a `TeardownView`. It blocks.

    Raises:
        Failure: ledger or host key record can't be read.
    """
    instance, action = platform.instance, platform.action
    held = hold.held(Ledger(where.receipts).report(), known_victim(instance, where))
    old = platform.old(datetime.fromtimestamp(now, UTC).date())
    clock = platform.clock(now) if platform.loses else None  # a stop that loses nothing tells it in its plan
    warnings = [old, clock, *(action.traps if action else ())]
    why = f"held by you since {held.since} (receipt {held.receipt}): {held.reason}" if held else ""
    return {
        "act": safe(action.verb if action else platform.verb, 60),
        "machine": safe(f"{instance.platform} {instance.instance_id or 'no id known'}", 120),
        "reversible": action.reversible if action else None,
        "bills": safe(platform.bills_afterwards(), 300),
        "warnings": tuple(safe(one, 400) for one in warnings if one),
        "held": safe(why, 400),
        **_fates(tiers_of(platform.facts, platform.verb, instance)),
    }


def _fates(tiers: Sequence[Tier]) -> dict[str, tuple[SafeText, ...]]:
    """What is lost and what survives; what nobody can tell counts as lost."""
    lost = [
        f"{t.path}{'' if t.survives is False else ' (nobody can tell)'}"
        for t in tiers
        if t.survives is not True
    ]
    kept = [f"{t.path}{' (bills on)' if t.bills_on else ''}" for t in tiers if t.survives is True]
    return {"lost": tuple(safe(one) for one in lost), "survives": tuple(safe(one) for one in kept)}
