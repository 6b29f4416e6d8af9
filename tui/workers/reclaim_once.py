"""A survey of one mount without a standing worker, and its ladder: what `rgt reclaim` begins with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tui.box.survey import survey
from tui.box.transport import Transport
from tui.fleet.judge import fullest
from tui.fleet.reducer import Rules, reduce
from tui.fleet.thresholds import Thresholds
from tui.model.event import Event, FleetChanged, LinkChanged, TelemetryTaken
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance, Link, LinkState
from tui.model.run import RunSpec
from tui.model.snapshot import BoxView, FleetSnapshot, RunView
from tui.model.storage import Ladder
from tui.triage.ladder import Survey
from tui.workers.once import take
from tui.workers.triage import worked_out


@dataclass(frozen=True, slots=True)
class Looked:
    """A box whose mount was surveyed, and its runs, which need some of what lies there."""

    box: BoxView
    runs: tuple[RunView, ...]
    ladder: Ladder

    def anew(self, found: Survey, now: float) -> Ladder:
        """The ladder of a newer survey of the same mount."""
        return worked_out(found, self.box, self.runs, self.ladder.mount, now)


async def look(
    transport: Transport,
    instance: Instance,
    specs: tuple[RunSpec, ...],
    mount: str | None,
    clock: Callable[[], float],
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
) -> Looked:
    """Probe a box, and survey a mount of it.

    Args:
        specs: all watched runs of the box.
        mount: a path on it; None: the mount that is nearest to its end.

    Raises:
        Failure: no mount is known, or there is no such folder.
        LinkLost, SessionsExhausted, TimeoutError.
    """
    telemetry = await take(transport, instance.mounts, specs, clock)
    events: tuple[Event, ...] = (
        FleetChanged((instance,), specs),
        LinkChanged(instance.name, Link(LinkState.LIVE, clock())),
        TelemetryTaken(instance.name, telemetry),
    )
    picture = reduce(FleetSnapshot(), list(events), clock(), Rules(thresholds, period_s=60.0))
    box = picture.box(instance.name)
    assert box is not None, "the picture holds the one box it was made of"
    worst = fullest(box)
    if mount is None and worst is None:
        raise Failure(
            f"No mount of {instance.name} tells how full it is.",
            do="Name one with --mount.",
            exit=Exit.UNKNOWN,
            code="no-mount",
        )
    where = mount if mount is not None or worst is None else str(worst.mount)
    found = await survey(transport, str(where))
    return Looked(box, picture.runs, worked_out(found, box, picture.runs, str(where), clock()))
