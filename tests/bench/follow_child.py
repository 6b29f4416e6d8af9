"""One client that follows a log for a while, in a process of its own. Prints one JSON object.

    python -m tests.bench.follow_child ours|ssh PLAN SECONDS

PLAN is a JSON object of `tests.bench.many_plan.Plan`; the log is named in the environment as RGT_BENCH_LOG.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.many_plan import Plan, Spent
from tests.bench.ssh_program import open_ssh
from tui.box.connect import Connector
from tui.box.tail.follower import Follower
from tui.box.tail.spool import Spool
from tui.box.trust import TrustStore
from tui.fleet.store import Store
from tui.model.event import LogRead
from tui.model.instance import Endpoint, Instance

SETTLE_S = 2.0


async def _watched(seconds: float, lines: Callable[[], int]) -> dict[str, float]:
    await asyncio.sleep(SETTLE_S)
    before, spent = lines(), Spent.begin()
    await asyncio.sleep(seconds)
    spent.end()
    return {"cpu_pct": 100 * spent.cpu_s / spent.seconds, "lines_s": (lines() - before) / spent.seconds}


async def ours(plan: Plan, log: str, seconds: float) -> dict[str, float]:
    """Our connection, reader, gate, spool on disk, store and buffer. No screen."""
    store = Store()

    async def folded(folder: Path) -> dict[str, float]:
        connector = Connector(TrustStore(folder / "keys", folder / "receipts"))
        endpoint = Endpoint(plan.host, plan.port, plan.user, plan.key)
        transport = await connector.connect(Instance("box", "ssh", endpoint, host_key=plan.host_key))
        with contextlib.closing(Spool(folder / "spool")) as spool:
            follower = Follower("run", log, spool)
            tasks = [
                asyncio.create_task(
                    follower.follow(transport, lambda batch: store.put(LogRead(batch)), lambda _state: None)
                ),
                asyncio.create_task(store.pump(lambda _snapshot, _runs: None)),
            ]
            seen = await _watched(seconds, lambda: store.log("run").end)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=10)
        await transport.close()
        return seen

    with tempfile.TemporaryDirectory() as folder:
        return await folded(Path(folder))


async def ssh(plan: Plan, log: str, seconds: float) -> dict[str, float]:
    """`ssh box tail -F`, and a reader that does nothing but split lines."""
    lines = 0

    async def read() -> None:
        nonlocal lines
        rest = b""
        while part := await process.read(262_144):
            whole = (rest + part).split(b"\n")
            rest = whole.pop()
            lines += len(whole)

    process = await open_ssh(Path(plan.ssh_config), f"exec tail -n 0 -F {shlex.quote(log)}")
    task = asyncio.create_task(read())
    seen = await _watched(seconds, lambda: lines)
    task.cancel()
    await process.close()
    return seen


SIDES = {"ours": ours, "ssh": ssh}


async def _run(side: str, plan: Plan, seconds: float) -> dict[str, float]:
    return await SIDES[side](plan, os.environ["RGT_BENCH_LOG"], seconds)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run(sys.argv[1], Plan(**json.loads(sys.argv[2])), float(sys.argv[3])))))
