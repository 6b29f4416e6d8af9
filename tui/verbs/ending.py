"""What `stop`, `down` and `hold` share: the machine as it is known, its platform's facts, and the words."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui.box.trust import TrustStore
from tui.custody.by_hand import IN_BOX
from tui.custody.proof import Money
from tui.fleet import profiles, settings
from tui.fleet.money import spent
from tui.fleet.paths import Paths, paths, shipped
from tui.fleet.platform_facts import next_clock
from tui.fleet.profile_schema import Action, Facts, product_of
from tui.fleet.profiles import plain_facts
from tui.model.custody import Outcome, Refusal, Verb, Victim
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.text import safe
from tui.platforms.control import ControlPlane, NoControlPlane
from tui.platforms.find import Wanted, plane_for

Out = Callable[[str], None]


def changing(args: argparse.Namespace) -> Paths:
    """The operator's files, for a verb that changes something. Raises Failure in read-only mode."""
    where = paths()
    if getattr(args, "read_only", False) or settings.load(where.fleet_file).settings.read_only:
        raise Failure(
            "This is read-only mode.",
            means="Nothing was done.",
            do=f"Leave --read-only out, or take read_only out of {where.fleet_file}.",
            code="read-only",
        )
    return where


def instance_named(name: str, where: Paths) -> Instance:
    """The box of this name, or the box of the run of this name. Raises Failure."""
    loaded = settings.load(where.fleet_file)
    boxes = {one.name: one for one in loaded.instances}
    box = name if name in boxes else next((run.box for run in loaded.runs if run.name == name), None)
    if box not in boxes:
        raise Failure(
            f"No box or run is named {safe(name, 80)!r} in {where.fleet_file}.",
            do="See `rgt status`.",
            exit=Exit.USAGE,
            code="unknown-name",
        )
    return boxes[box]


def known_victim(instance: Instance, where: Paths) -> Victim:
    """The machine by everything on record, without asking it. Raises Failure: the record is damaged."""
    pin = TrustStore(where.state / "hostkeys", where.receipts).pinned(instance.name)
    end = instance.endpoint
    user = f"{end.user}@" if end and end.user else ""
    port = f":{end.port}" if end and end.port else ""
    return Victim(
        name=instance.name,
        platform=instance.platform,
        instance_id=instance.instance_id,
        account=instance.account,
        endpoint=f"{user}{end.host}{port}" if end else "",
        host_key=pin.fingerprint if pin else instance.host_key,
    )


@dataclass(frozen=True, slots=True)
class Platform:
    """What the profile says about one verb on one machine; None where there is no profile or no such verb."""

    instance: Instance
    verb: Verb
    facts: Facts | None
    action: Action | None

    @property
    def loses(self) -> bool:
        """Whether the verb may lose data. Where nobody says that it does not, it does."""
        return self.verb == "destroy" or self.action is None or self.action.level >= 3

    @property
    def in_box(self) -> str | None:
        """The command on the box that does it, where rgt runs it itself."""
        return next((call for call in self._calls("in-box") if call in IN_BOX), None)

    def _calls(self, kind: str) -> Iterator[str]:
        product = product_of(self.facts, self.instance.instance_id) if self.facts else None
        for way in self.action.ways if self.action else ():
            if way.kind == kind and (not way.products or product is None or product.id in way.products):
                yield way.call

    def console(self) -> str:
        """What to do by hand, in words."""
        call = next(self._calls("console"), None) or "the provider's own console"
        word = self.action.verb if self.action else self.verb
        return f"{word} {self.instance.name} by hand: {call}."

    def bills_afterwards(self) -> str:
        """What goes on billing, in words; what nobody knows says ``?``."""
        currency = self.instance.currency
        if self.action is None:
            return f"? {currency}/h"
        if not self.action.keeps_billing:
            return f"0.00 {currency}/h" if self.action.stops_billing else f"? {currency}/h"
        return "; ".join(
            f"{one.what}: {'?' if one.amount is None else f'{one.amount:g}'} {one.currency} per {one.per}"
            for one in self.action.keeps_billing
        )

    def clock(self, now: float) -> str | None:
        """The deletion clock that a stop starts."""
        if self.verb != "stop" or self.facts is None:
            return None
        clock = next_clock(plain_facts(self.facts), self.instance, stopped_at=now)
        if clock is None or clock.at is None:
            return None
        days = max(0.0, clock.at - now) / 86400
        takes = f" and takes with it: {clock.destroys}" if clock.destroys else ""
        return f"{clock.text}, in {days:.0f} days{takes}"

    def stop_plan(self, now: float) -> Iterator[str]:
        """What a stop is and what follows from it, safe to print."""
        yield safe(f"stop {self.instance.name} ({self.action.verb if self.action else 'stop'})")
        yield safe(f"  bills afterwards: {self.bills_afterwards()}")
        clock = self.clock(now)
        if clock is not None:
            yield safe(f"  clock: {clock}")
        for trap in self.action.traps if self.action else ():
            yield safe(f"  mind: {trap}")


def platform_of(instance: Instance, verb: Verb, where: Paths) -> Platform:
    """What the profiles know of a verb on a machine."""
    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(instance.platform)
    facts = profile.facts if profile else None
    return Platform(instance, verb, facts, facts.action(verb) if facts else None)


def control_of(platform: Platform, where: Paths) -> ControlPlane | NoControlPlane:
    """Who can be asked about a machine; where nobody can, the operator looks."""
    title = platform.facts.title if platform.facts else platform.instance.platform
    by_hand = NoControlPlane(
        platform=platform.instance.platform,
        why=f"rgt has no way to ask {title}",
        console=platform.console(),
        in_box=platform.in_box,
    )
    return plane_for(Wanted(platform.instance, platform.facts, where), by_hand)


def money_of(platform: Platform, now: float) -> Money:
    """What the machine cost and what goes on billing."""
    cost = spent(platform.instance, now)
    currency = platform.instance.currency
    return Money(
        spent=f"? {currency}" if cost is None else f"{cost:,.2f} {currency}",
        bills_afterwards=platform.bills_afterwards(),
    )


def refusal_lines(refusals: tuple[Refusal, ...]) -> Iterator[str]:
    """Refusals with what clears each, safe to print."""
    for one in refusals[:20]:
        path = f" {one.path}" if one.path else ""
        yield safe(f"refused: {one.code}{path}: {one.detail} {one.clears}")
    if len(refusals) > 20:
        yield f"refused: and {len(refusals) - 20} more"


_WORDS = {
    "proven": "PROVEN by two witnesses",
    "unproven": "UNPROVEN",
    "attested": "ATTESTED by your word, not proven",
    "already-gone": "ALREADY GONE; nothing was sent",
    "already-stopped": "ALREADY STOPPED; nothing was sent",
    "refused": "REFUSED",
}


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """An outcome in a few lines, safe to print."""
    yield safe(f"{outcome.verb} {outcome.victim.name}: {_WORDS[outcome.kind]}")
    if outcome.detail:
        yield safe(f"  {outcome.detail}")
    yield from (f"  {line}" for line in refusal_lines(outcome.refusals))
    for one in outcome.gaps:
        yield safe(f"  gap: {one.code}: {one.detail} {one.reason}".rstrip())
    for witness in outcome.witnesses[-2:]:
        yield safe(f"  {witness.who} at {witness.at}: {witness.said}, {witness.detail}")
    if outcome.check_by_hand:
        yield safe(f"  by hand: {outcome.check_by_hand}")


def exit_of(outcome: Outcome) -> Exit:
    """0 where it is settled, 1 where it was refused, 4 where nobody knows."""
    if outcome.kind == "refused":
        return Exit.ATTENTION
    return Exit.UNKNOWN if outcome.kind == "unproven" else Exit.FINE
