"""One client that watches many boxes, in a process of its own: ours, or one of its peers.

    python -m tests.bench.many_child SIDE PLAN

prints one JSON object, an `Outcome`. SIDE is a key of `SIDES`, PLAN a JSON object.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path

from tests.bench import many_peers as peers
from tests.bench import measure
from tests.bench.many_plan import PERIOD_S, Outcome, Plan, Spent, gather, window
from tui.box.backoff import Backoff
from tui.box.connect import Connector
from tui.box.probe.loop import Probe
from tui.box.probe.plan import ProbeRequest
from tui.box.session import SshTransport
from tui.box.transport import Script
from tui.box.trust import TrustStore
from tui.fleet.store import Store
from tui.model.event import FleetChanged
from tui.model.instance import Endpoint, Instance
from tui.workers.box import BoxTransport, BoxWorker, Pace

UP = Script("echo up", why="is it up?")


async def ours(plan: Plan) -> Outcome:
    """The product's own workers, and a store that folds what they find. No screen."""
    transports, spent, base = await _connected(plan)
    cpu_pct, looks = await _watch(plan, Pace(PERIOD_S), lambda box: asyncio.sleep(0, transports[box.name]))
    grown = measure.pss_bytes([os.getpid()]) - base
    await _close(transports)
    return Outcome(spent.seconds, spent.cpu_s, cpu_pct, grown, looks)


async def ours_unread(plan: Plan) -> Outcome:
    """Our connections alone: the same conversation on the same beat, its answers thrown away."""
    transports, spent, base = await _connected(plan)
    asked = await peers.rehearse(plan)
    lines = await gather(peers.start_unread(transport.open) for transport in transports.values())
    cpu_pct, looks = await peers.watch_unread(plan, Pace(PERIOD_S), lines, asked)
    grown = measure.pss_bytes([os.getpid()]) - base
    await _close(transports)
    return Outcome(spent.seconds, spent.cpu_s, cpu_pct, grown, looks)


async def ssh_read(plan: Plan) -> Outcome:
    """A loop for each `ssh` process, that asks, and reads the answers as we do."""
    return await _over_ssh(plan, peers.OwnTime(PERIOD_S))


async def ssh_on_beat(plan: Plan) -> Outcome:
    """The product as it is, over `ssh` processes instead of our connections."""
    return await _over_ssh(plan, Pace(PERIOD_S))


async def _over_ssh(plan: Plan, pace: Pace) -> Outcome:
    gate = asyncio.Semaphore(peers.AT_ONCE)
    transports = {box.name: peers.SshProcesses(Path(plan.ssh_config), gate) for box in _boxes(plan)}
    cpu_pct, looks = await _watch(plan, pace, lambda box: asyncio.sleep(0, transports[box.name]))
    memory = measure.pss_bytes(measure.tree(os.getpid())[1:])
    await gather(transport.close() for transport in transports.values())
    return Outcome(0.0, 0.0, cpu_pct, memory, looks)


def _boxes(plan: Plan, more: int = 0) -> list[Instance]:
    endpoint = Endpoint(plan.host, plan.port, plan.user, plan.key)
    return [
        Instance(f"box-{number:03d}", "ssh", endpoint, host_key=plan.host_key)
        for number in range(plan.boxes + more)
    ]


async def _connected(plan: Plan) -> tuple[dict[str, SshTransport], Spent, int]:
    """Transports by name, what connecting took, and the memory of the base in bytes.

    One box more is connected and probed first: then everything is imported, and the rest is what boxes add.
    """
    transports: dict[str, SshTransport] = {}
    with tempfile.TemporaryDirectory() as folder:
        connector = Connector(TrustStore(Path(folder) / "keys", Path(folder) / "receipts"))

        async def connect(box: Instance) -> None:
            transport = transports[box.name] = await connector.connect(box)
            assert (await transport.run(UP)).stdout == b"up\n"

        *boxes, extra = _boxes(plan, 1)
        await connect(extra)
        probe = Probe(transports[extra.name])
        await probe.tick(ProbeRequest(), candidates=True, xid=True)
        gc.freeze()  # as rgt does once everything is imported
        base = measure.pss_bytes([os.getpid()])
        spent = Spent.begin()
        await gather(map(connect, boxes))
        spent.end()
        await probe.close()
        await transports.pop(extra.name).close()
    return transports, spent, base


async def _close(transports: dict[str, SshTransport]) -> None:
    await gather(transport.close() for transport in transports.values())


async def _watch(
    plan: Plan, pace: Pace, dial: Callable[[Instance], Awaitable[BoxTransport]]
) -> tuple[float, int]:
    """Give every box its worker, all of which report to one store. Per cent of a core, and looks taken."""
    store, looks, seen = Store(), 0, 0
    boxes = _boxes(plan)
    await store.put(FleetChanged(tuple(boxes), ()))

    async def work(number: int, box: Instance) -> None:
        await asyncio.sleep(PERIOD_S * number / plan.boxes)
        await BoxWorker(box, dial, store, runs=tuple, pace=pace, backoff=Backoff()).run()

    def published(*_: object) -> None:
        nonlocal looks, seen
        ticks = [view.telemetry.tick for view in store.snapshot.boxes if view.telemetry]
        looks, seen = sum(ticks), len(ticks)

    tasks = [asyncio.create_task(work(n, box)) for n, box in enumerate(boxes)]
    tasks.append(asyncio.create_task(store.pump(published)))
    watched = await window(plan, lambda: looks, lambda: seen == plan.boxes)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=20)
    return watched


SIDES: dict[str, Callable[[Plan], Awaitable[Outcome]]] = {
    "ours": ours,
    "ours-unread": ours_unread,
    "ssh-read": ssh_read,
    "ssh-on-beat": ssh_on_beat,
    "ssh-unread": peers.ssh_unread,
    "master": peers.control_masters,
}


async def _run(side: str, plan: Plan) -> Outcome:
    return await SIDES[side](plan)


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(_run(sys.argv[1], Plan(**json.loads(sys.argv[2])))))))
