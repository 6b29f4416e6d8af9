"""What the facts of one profile must have in common: ids that exist, and one story of what is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui.fleet.profile_schema import Facts

LASTING_H = 48.0
"""What is wiped sooner than this after a stop does not count as surviving it."""


def agree(facts: Facts) -> None:
    """Raises ValueError with the first contradiction."""
    for check in (
        _ids_are_unique,
        _references_exist,
        _losses_agree,
        _levels_agree,
        _clocks_agree,
        _reachable,
    ):
        check(facts)


def _ids_are_unique(facts: Facts) -> None:
    for what in ("products", "tiers", "actions", "clocks"):
        ids = [item.id for item in getattr(facts, what)]
        doubled = {id_ for id_ in ids if ids.count(id_) > 1}
        if doubled:
            raise ValueError(f"{what} has two entries {', '.join(sorted(doubled))}")


def _references_exist(facts: Facts) -> None:
    known = {
        "evidence": set(facts.sources),
        "destroys": {tier.id for tier in facts.tiers},
        "keeps": {tier.id for tier in facts.tiers},
        "products": {product.id for product in facts.products},
    }
    for where, key, names in _references(facts.model_dump(exclude={"sources", "products"}), ""):
        missing = sorted(set(names) - known[key])
        if missing:
            raise ValueError(f"{where}{key} names {', '.join(missing)}, which is not defined")
    if facts.meter_stop is not None and facts.action(facts.meter_stop) is None:
        raise ValueError(f"meter_stop names {facts.meter_stop}, which is not an action")
    for mode in facts.cheap_modes:
        if facts.action(mode.action) is None:
            raise ValueError(f"cheap_modes names {mode.action}, which is not an action")


def _references(value: Any, where: str) -> list[tuple[str, str, list[str]]]:
    found: list[tuple[str, str, list[str]]] = []
    if isinstance(value, dict):
        here = f"{where}{value['id']}." if isinstance(value.get("id"), str) and where else where
        for key, inner in value.items():
            if key in ("evidence", "destroys", "keeps", "products"):
                found.append((here, key, inner))
            else:
                found += _references(inner, here if here != where else f"{where}{key}.")
    elif isinstance(value, list):
        for inner in value:
            found += _references(inner, where)
    return found


def _losses_agree(facts: Facts) -> None:
    """What a tier says it survives and what an action says it destroys must be one story."""
    for verb, survives in (("stop", "survives_stop"), ("destroy", "survives_destroy")):
        action = facts.action(verb)
        if action is None:
            continue
        for tier in facts.tiers:
            says = getattr(tier, survives)
            if says == "no" and tier.id not in action.destroys:
                raise ValueError(
                    f"{tier.id} does not survive {verb}, but {verb} does not list it in destroys"
                )
            if says == "yes" and (tier.id in action.destroys or tier.id not in action.keeps):
                raise ValueError(f"{tier.id} survives {verb}, but {verb} does not list it in keeps alone")


def _levels_agree(facts: Facts) -> None:
    for action in facts.actions:
        if (action.destroys or not action.reversible) and action.level < 3:
            raise ValueError(f"{action.id} destroys something or cannot be undone, so its level is 3")
        if set(action.destroys) & set(action.keeps):
            raise ValueError(f"{action.id} both destroys and keeps a tier")


def _clocks_agree(facts: Facts) -> None:
    """A tier that a stopped machine loses within two days does not survive the stop."""
    survives = {tier.id: tier.survives_stop for tier in facts.tiers}
    for clock in facts.clocks:
        if clock.trigger != "stopped" or clock.products or clock.after_h is None or clock.after_h > LASTING_H:
            continue
        kept = [tier for tier in clock.destroys if survives[tier] == "yes"]
        if kept:
            raise ValueError(
                f"{clock.id} destroys {', '.join(kept)} {clock.after_h:g} h after a stop, so it survives none"
            )


def _reachable(facts: Facts) -> None:
    if facts.transport in ("ssh", "slurm-step") and not facts.network.ssh:
        raise ValueError(f"transport {facts.transport} needs an entry of network.ssh")
