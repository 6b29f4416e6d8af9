"""What a machine's provider does at a verb: from its profile, and who there can be asked about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from tui.custody.by_hand import IN_BOX
from tui.custody.outcome import Pace
from tui.custody.proof import Money
from tui.fleet import profiles
from tui.fleet.money import spent
from tui.fleet.paths import Paths, shipped
from tui.fleet.platform_facts import next_clock
from tui.fleet.profile_schema import Action, Facts, product_of
from tui.fleet.profiles import STALE_MONTHS, plain_facts
from tui.model.custody import Verb
from tui.model.instance import Instance
from tui.model.text import safe
from tui.platforms import simulated
from tui.platforms.control import ControlPlane, NoControlPlane
from tui.platforms.find import Wanted, plane_for
from tui.platforms.slurm import Reach


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

    def old(self, today: date) -> str | None:
        """What to look at before believing the facts of this verb, where nobody looked for long."""
        if self.facts is None or self.action is None:
            return f"No profile tells what {self.verb} does at {self.instance.platform}; ask its vendor."
        names = {*self.action.evidence, *(name for tier in self.facts.tiers for name in tier.evidence)}
        oldest = min((self.facts.sources[name] for name in names), key=lambda source: source.verified)
        year, month = map(int, oldest.verified.split("-"))
        age = (today.year - year) * 12 + today.month - month
        if age <= STALE_MONTHS:
            return None
        return (
            f"What {self.action.verb} does at {self.facts.title} was last looked at in {oldest.verified}, "
            f"{age} months ago. Look at the vendor's page first: {oldest.url or oldest.from_}."
        )

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


def control_of(platform: Platform, where: Paths, reach: Reach | None = None) -> ControlPlane | NoControlPlane:
    """Who can be asked about a machine; where nobody can, the operator looks.

    Args:
        reach: connects to a box, where that is where the platform is asked.
    """
    title = platform.facts.title if platform.facts else platform.instance.platform
    by_hand = NoControlPlane(
        platform=platform.instance.platform,
        why=f"rgt has no way to ask {title}",
        console=platform.console(),
        in_box=platform.in_box,
    )
    return plane_for(Wanted(platform.instance, platform.facts, where, reach), by_hand)


def pace_of(control: ControlPlane) -> Pace:
    """How patiently the truth is read there. What is simulated shows it in seconds, in as many looks."""
    return Pace(every_s=1.0) if control.platform == simulated.PLATFORM else Pace()


def money_of(platform: Platform, now: float) -> Money:
    """What the machine cost and what goes on billing."""
    cost = spent(platform.instance, now)
    currency = platform.instance.currency
    return Money(
        spent=f"? {currency}" if cost is None else f"{cost:,.2f} {currency}",
        bills_afterwards=platform.bills_afterwards(),
    )
