"""What of a box a verb destroys: the platform's survival matrix, as the custody chain takes it."""

from __future__ import annotations

from tui.fleet.profile_schema import Evident, Facts
from tui.fleet.profile_schema import Tier as TierFact
from tui.model.custody import Tier, Verb
from tui.model.instance import Instance

_SURVIVES = {"yes": True, "no": False}
_HOME = "~"


def tiers_of(facts: Facts | None, verb: Verb, instance: Instance) -> tuple[Tier, ...]:
    """The storage tiers of an instance and whether each survives `verb`; None where nobody can say.

    Two tiers that can be mounted at one path and disagree are one whose survival nobody can say. Where the
    profile names no path, the instance's mounts stand for it, and without those the home of the login.
    """
    found: dict[str, Tier] = {}
    for fact in facts.tiers if facts is not None else ():
        for path in fact.paths or instance.mounts or (_HOME,):
            tier = _tier(facts, fact, verb, path)
            found[path] = _both(found[path], tier) if path in found else tier
    for path in instance.mounts if found else (instance.mounts or (_HOME,)):
        unsaid = Tier(path=path, survives=None, told_by="no profile speaks of it")
        found.setdefault(path, unsaid)
    return tuple(found[path] for path in sorted(found))


def _tier(facts: Facts | None, fact: TierFact, verb: Verb, path: str) -> Tier:
    assert facts is not None
    said = fact.survives_stop if verb == "stop" else fact.survives_destroy
    survives = _SURVIVES.get(said)
    bills_on = None
    if survives is False:
        bills_on = False
    elif survives and fact.charges:
        bills_on = True
    told_by = f"profile {facts.id}, {fact.name} ({_evidence(facts, fact)})"
    return Tier(path=path, survives=survives, told_by=told_by, bills_on=bills_on)


def _evidence(facts: Facts, fact: Evident) -> str:
    sources = [facts.sources[name] for name in fact.evidence]
    newest = max(sources, key=lambda source: source.verified)
    return f"{newest.confidence}, {newest.verified}"


def _both(one: Tier, other: Tier) -> Tier:
    same = one.survives == other.survives
    return Tier(
        path=one.path,
        survives=one.survives if same else None,
        told_by=f"{one.told_by}; {other.told_by}",
        bills_on=one.bills_on if one.bills_on == other.bills_on else None,
    )
