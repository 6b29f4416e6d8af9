"""What of a box a verb destroys: the platform's survival matrix, as the custody chain takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui.box.parsers.mounts import read_mounts
from tui.box.transport import Script, Transport
from tui.fleet.profile_schema import Evident, Facts
from tui.fleet.profile_schema import Tier as TierFact
from tui.model.custody import Tier, Verb
from tui.model.instance import Instance

_SURVIVES = {"yes": True, "no": False}
_HOME = "~"
_MOUNTS = Script("cat /proc/self/mounts 2>/dev/null || :", why="what is mounted")


async def mounts_of(transport: Transport) -> tuple[str, ...]:
    """Where file systems are mounted on a box; nothing where it does not tell.

    Raises:
        LinkLost, SessionsExhausted, TimeoutError.
    """
    done = await transport.run(_MOUNTS, timeout=60)
    found = read_mounts(done.stdout.decode("utf-8", "surrogateescape")).mounts or ()
    return tuple(mount.path for mount in found)


def tiers_of(
    facts: Facts | None, verb: Verb, instance: Instance, mounted: Sequence[str] | None = None
) -> tuple[Tier, ...]:
    """The storage tiers of an instance and whether each survives `verb`; None where nobody can say.

    Two tiers that can be mounted at one path and disagree are one whose survival nobody can say. A tier that
    a box may lack survives only where something is mounted: a directory of that name goes with the disk it
    lies on. Where the profile names no path, the instance's mounts stand for it, and without those the home
    of the login.

    Args:
        mounted: where file systems are mounted on the box, None when nobody looked.
    """
    found: dict[str, Tier] = {}
    for fact in facts.tiers if facts is not None else ():
        for path, sure in _paths(fact, instance, mounted):
            tier = _tier(facts, fact, verb, path, sure=sure)
            found[path] = _both(found[path], tier) if path in found else tier
    for path in instance.mounts if found else (instance.mounts or (_HOME,)):
        unsaid = Tier(path=path, survives=None, told_by="no profile speaks of it")
        found.setdefault(path, unsaid)
    return tuple(found[path] for path in sorted(found))


def _paths(fact: TierFact, instance: Instance, mounted: Sequence[str] | None) -> Iterator[tuple[str, bool]]:
    """Where a tier lies, and whether what lies there is surely it."""
    for path in fact.paths or instance.mounts or (_HOME,):
        inside = path.rstrip("/") + "/"
        here = [one for one in mounted or () if one == path or one.startswith(inside)]
        yield path, not fact.optional or path in here
        if fact.optional:
            yield from ((one, True) for one in here if one != path)


def _tier(facts: Facts | None, fact: TierFact, verb: Verb, path: str, *, sure: bool) -> Tier:
    assert facts is not None
    said = fact.survives_stop if verb == "stop" else fact.survives_destroy
    survives = _SURVIVES.get(said)
    if survives and not sure:
        survives = None
    bills_on = None
    if survives is False:
        bills_on = False
    elif survives and fact.charges:
        bills_on = True
    only = "" if sure else ", only where it is mounted"
    told_by = f"profile {facts.id}, {fact.name}{only} ({_evidence(facts, fact)})"
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
