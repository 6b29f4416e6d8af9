"""The real app over a store that is fed here instead of by boxes. Runs on a terminal:

    python -m tests.bench.fed_app quiet|busy BOXES

`quiet` takes fresh telemetry of the same values every two seconds, `busy` new values every second.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tui import terminal

terminal.prepare_colour("256", os.environ)  # before Textual is imported, as rgt itself does

from tests.fixtures.fleet_fixture import disk, gpu, progress, telemetry, truth  # noqa: E402
from tui.app import RgtApp  # noqa: E402
from tui.fleet import themes  # noqa: E402
from tui.fleet.paths import shipped  # noqa: E402
from tui.fleet.store import Store  # noqa: E402
from tui.leaving import run  # noqa: E402
from tui.model.event import FleetChanged, LinkChanged, ProgressRead, TelemetryTaken  # noqa: E402
from tui.model.instance import Endpoint, Instance, Link, LinkState  # noqa: E402
from tui.model.run import RunSpec  # noqa: E402
from tui.model.telemetry import CheckpointFile, Telemetry  # noqa: E402
from tui.model.text import safe  # noqa: E402

HOURS = 3.5 * 3600
"""Ages of what does not change: their words hold for more than a minute."""


def early_in_the_minute() -> Callable[[], float]:
    """The real clock, shifted so that a minute has just begun: the clock in the header stands for 58 s."""
    shift = 2 - time.time() % 60
    return lambda: time.time() + shift


def look(box: int, at: float, draw: random.Random | None) -> Telemetry:
    """Telemetry of one box; `draw` moves its figures."""
    spread = draw.uniform if draw else lambda low, high: (low + high) / 2
    cards = (gpu(0, round(spread(80, 100)), round(spread(60, 79), 1)),)
    disks = (disk("/", round(spread(30, 60), 1), 100, round(spread(5, 20), 1)),)
    base = telemetry(cards, disks, taken_at=at, runs=(truth(f"run-{box:02d}", 4000 + box),))
    host = base.host.value
    assert host is not None
    checkpoint = CheckpointFile(safe("ckpt/epoch_40.pth"), 412_000_000, at - HOURS)
    runs = tuple(replace(r, checkpoints=replace(r.checkpoints, value=(checkpoint,))) for r in base.runs)
    booted = replace(host, booted_at=at - 10 * HOURS)
    return replace(base, host=replace(base.host, value=booted), runs=runs)


async def feed(store: Store, boxes: int, *, busy: bool) -> None:
    """Everything the workers of a healthy fleet would say."""
    names = [f"box-{n:02d}" for n in range(boxes)]
    instances = tuple(
        Instance(name, "ssh", Endpoint("127.0.0.1", 22, "root"), price_per_hour=1.98) for name in names
    )
    runs = tuple(RunSpec(f"run-{n:02d}", name, "train.log", pid=4000 + n) for n, name in enumerate(names))
    await store.put(FleetChanged(instances, runs))
    for name in names:
        await store.put(LinkChanged(name, Link(LinkState.LIVE, store.clock() - HOURS)))
    draw = random.Random(7) if busy else None
    for step in _for_ever():
        for n, name in enumerate(names):
            await store.put(TelemetryTaken(name, look(n, store.clock(), draw)))
            if busy or step == 0:
                await store.put(ProgressRead(runs[n].name, progress(1000 + step, 60_000, "step")))
        await asyncio.sleep(1.0 if busy else 2.0)


def _for_ever() -> Iterator[int]:
    step = 0
    while True:
        yield step
        step += 1


def main() -> int:
    mode, boxes = sys.argv[1], int(sys.argv[2])
    store = Store(clock=early_in_the_minute())
    found = themes.load([shipped("themes")])
    return run(
        RgtApp(
            store,
            themes=found.by_name,
            start=lambda app: feed(app.store, boxes, busy=mode == "busy"),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
