"""`rgt demo --selftest`: the embedded fleet watched by the real workers, without a screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import asyncssh

from tui.demo.fleet import DemoBox, DemoFleet
from tui.fleet.store import Store
from tui.model.failure import Exit
from tui.model.snapshot import FleetSnapshot
from tui.workers.supervisor import Supervisor

DEADLINE_S = 120.0
REFUSAL_S = 10.0


async def selftest(fleet: DemoFleet, store: Store, workers: Supervisor, say: Callable[[str], None]) -> Exit:
    """Watch until a log line, a probe and a checkpoint of every box have come through.

    Returns:
        FINE, or UNKNOWN when something did not come in time, or ATTENTION when a box let a stranger in.
    """
    for box in fleet.boxes:
        refused = await refuses_strangers(box)
        say(f"{box.name}: a login without the key is {'refused' if refused else 'LET IN'}")
        if not refused:
            return Exit.ATTENTION
    watching = asyncio.create_task(workers.run())
    complete: asyncio.Future[FleetSnapshot] = asyncio.get_running_loop().create_future()

    def look(snapshot: FleetSnapshot, _runs: frozenset[str]) -> None:
        if not complete.done() and all(_complete(snapshot, store, box) for box in fleet.boxes):
            complete.set_result(snapshot)  # one box loses its link now and then, and what is known with it

    drawing = asyncio.create_task(store.pump(look))
    try:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.shield(complete)
    except TimeoutError:
        say(f"Not everything came through within {DEADLINE_S:.0f} s.")
    finally:
        for task in (drawing, watching):
            task.cancel()
        await asyncio.wait([drawing, watching], timeout=2)
    for line in seen(complete.result() if complete.done() else store.snapshot, store, fleet.boxes):
        say(line)
    return Exit.FINE if complete.done() else Exit.UNKNOWN


def _complete(snapshot: FleetSnapshot, store: Store, box: DemoBox) -> bool:
    view, run = snapshot.box(box.name), snapshot.run(box.run)
    if view is None or run is None or view.telemetry is None or run.truth is None:
        return False
    return bool(store.log(box.run).lines) and bool(run.truth.checkpoints.value)


def seen(snapshot: FleetSnapshot, store: Store, boxes: tuple[DemoBox, ...]) -> list[str]:
    """What was observed of each box, in lines; what was not is said as such."""
    lines = []
    for box in boxes:
        view, run = snapshot.box(box.name), snapshot.run(box.run)
        telemetry = view.telemetry if view else None
        if view is None or telemetry is None:
            link = view.link if view else None
            lines.append(f"{box.name}: no probe came through ({link.state.value if link else 'not watched'})")
            continue
        gpus = telemetry.gpus.value
        cards = telemetry.gpus.reason if gpus is None else ", ".join(f"{g.name} {g.util_pct} %" for g in gpus)
        lines.append(
            f"{box.name}: probe {telemetry.tick} in {telemetry.took_s * 1000:.0f} ms; {cards} (simulated)"
        )
        log = store.log(box.run)
        lines.append(f"{box.name}: log {log.end} lines, newest: {log.lines[-1] if log.lines else 'none'}")
        newest = run.truth.checkpoints.value if run and run.truth else None
        name = newest[0].path.rsplit("/", 1)[-1] if newest else "none"
        size = f", {newest[0].size_bytes:,} bytes" if newest else ""
        state = f"{run.state.value}: {run.why}" if run else "not watched"
        lines.append(f"{box.name}: newest checkpoint {name}{size}; run {state}")
    return lines


async def refuses_strangers(box: DemoBox) -> bool:
    """Whether a login with no key, and one with a key made on the spot, are both turned away."""
    stranger = asyncssh.generate_private_key("ssh-ed25519")
    for keys in ([], [stranger]):
        with suppress(asyncssh.PermissionDenied):
            connection = await asyncssh.connect(
                "127.0.0.1",
                box.port,
                username="demo",
                client_keys=keys or None,
                agent_path=None,
                known_hosts=None,
                config=[],
                connect_timeout=REFUSAL_S,
            )
            connection.abort()
            return False
    return True
