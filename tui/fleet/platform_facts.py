"""What the screen needs of a profile, as plain values: nothing here imports the profile loader."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.model.instance import DangerClock, Instance
from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class ClockFact:
    """Something that the platform does by itself.

    Attributes:
        trigger: ``stopped``, ``created``, ``started``, ``ends_at``, ``balance``, ``idle`` or
            ``disconnected``.
        after_s: seconds from the trigger; None when it cannot be computed.
        products: patterns of instance ids that it holds for; empty when it holds for all.
    """

    text: SafeText
    trigger: str
    after_s: float | None
    destroys: SafeText
    products: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """Facts of one platform.

    Attributes:
        watch_mounts: paths whose filesystems are always shown.
        inode_caps: hard limits of files by path.
        clocks: danger clocks.
    """

    platform: str
    watch_mounts: tuple[str, ...] = ()
    inode_caps: tuple[tuple[str, int], ...] = ()
    clocks: tuple[ClockFact, ...] = ()


def next_clock(
    facts: PlatformFacts | None,
    instance: Instance,
    *,
    stopped_at: float | None = None,
    now: float | None = None,
) -> DangerClock | None:
    """The next date on which the platform acts on this box by itself, as far as dates are known.

    Args:
        facts: of the instance's platform, None when there is no profile.
        stopped_at: when the box was stopped, seconds since the epoch; None when not stopped or not known.
        now: dates before it are over, unless nothing is still to come; None: the earliest of all.
    """
    starts = {"created": instance.rented_at, "ends_at": instance.ends_at, "stopped": stopped_at}
    dated = [
        DangerClock(clock.text, start + clock.after_s, clock.destroys)
        for clock in (facts.clocks if facts else ())
        if clock.after_s is not None
        and (start := starts.get(clock.trigger)) is not None
        and _holds(clock, instance)
    ]
    if instance.ends_at is not None and not any(c.at == instance.ends_at for c in dated):
        dated.append(DangerClock(SafeText("contract ends"), instance.ends_at))
    ahead = [clock for clock in dated if now is None or (clock.at or 0.0) >= now]
    if not ahead:
        return max(dated, key=lambda clock: clock.at or 0.0, default=None)
    return min(ahead, key=lambda clock: clock.at or 0.0)


def _holds(clock: ClockFact, instance: Instance) -> bool:
    """A clock of one product line holds unless the instance's id shows that it belongs to another."""
    if not clock.products or instance.instance_id is None:
        return True
    return any(re.fullmatch(pattern, instance.instance_id) for pattern in clock.products)
