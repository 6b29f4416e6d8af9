"""What a look costs the box, beside a new `ssh` for each look. The box has no GPU tools."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from tests.bench import measure
from tests.bench.measure import median
from tests.bench.place import Bench, ssh_config
from tests.bench.report import Row, beside
from tests.rig import Sshd
from tui.box.connect import Connector
from tui.box.probe.loop import Probe
from tui.box.probe.plan import ProbeRequest
from tui.box.trust import TrustStore
from tui.model.instance import Endpoint, Instance
from tui.workers.box import Pace
from tui.workers.rhythm import LEARNING, Rhythm

COMMAND = (
    "df -P /; df -iP /; cat /proc/loadavg /proc/meminfo /sys/fs/cgroup/memory.max "
    "/sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; ps -o pid,stat,rss,time,args -p 1"
)
"""What people put behind `ssh` to see how a box does."""

SETTLE_S = 0.3

Looks = Callable[[int], Awaitable[None]]


def rows(bench: Bench) -> Iterator[Row]:
    rounds, looks = (1, 30) if bench.quick else (4, 60)
    with bench.sshd() as server:
        taken = asyncio.run(_measured(server, bench.new_folder(), rounds, looks))
    new, plain, usual, urgent = (1000 * median(taken[name]) for name in ("new", "plain", "usual", "urgent"))
    yield beside(
        "box CPU of a plain tick (peer: new ssh per look)", plain, new, "ms", most=1 / 15, digits=2,
        note="CPU of sshd and all its descendants; the peer runs df twice, cat and ps",
    )  # fmt: skip
    yield beside(
        "box CPU of a tick, average of the usual cadence", usual, new, "ms", most=1 / 15, digits=2,
        note="every 20th tick looks at mounts, files, sessions; every 60th at processes and runs to adopt",
    )  # fmt: skip
    yield beside(
        "the same where a disk is near its limit or the operator looks", urgent, new, "ms", digits=2,
        note="every 5th tick and every 15th",
    )  # fmt: skip


async def _measured(server: Sshd, folder: Path, rounds: int, looks: int) -> dict[str, list[float]]:
    """CPU seconds on the box for one look, by kind, interleaved."""
    config = ssh_config(server)
    connector = Connector(TrustStore(folder / "keys", folder / "receipts"))
    endpoint = Endpoint(server.host, server.port, server.user, str(server.client_key))
    transport = await connector.connect(
        Instance("box", "ssh", endpoint, host_key=server.host_key_fingerprint)
    )
    probe = Probe(transport)
    await probe.tick(ProbeRequest(), candidates=True, xid=True)

    async def new(count: int) -> None:
        for _ in range(count):
            command = ("ssh", "-F", str(config), "box", COMMAND)
            process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.DEVNULL)
            assert await process.wait() == 0

    async def plain(count: int) -> None:
        for _ in range(count):
            await probe.tick(ProbeRequest(), gpus=False, filesystems=False)

    def in_rhythm(*, urgent: bool) -> Looks:
        rhythm = Rhythm(Pace())
        for _ in range(LEARNING * Pace().filesystems_quiet):
            rhythm.next(urgent=urgent, viewed=False, cards=False)

        async def usual(count: int) -> None:
            for _ in range(count):
                parts, _cadence = rhythm.next(urgent=urgent, viewed=False, cards=False)
                await probe.tick(
                    ProbeRequest(),
                    gpus=parts.gpus,
                    filesystems=parts.filesystems,
                    candidates=parts.candidates,
                    xid=parts.xid,
                    processes=parts.processes,
                )

        return usual

    kinds: dict[str, tuple[Looks, int]] = {
        "new": (new, looks // 6),
        "plain": (plain, 5 * looks),
        "usual": (in_rhythm(urgent=False), looks),
        "urgent": (in_rhythm(urgent=True), looks),  # 60 looks are a whole round of either
    }
    taken: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, (work, count) in kinds.items():
            before = await _settled(server)
            await work(count)
            taken[name].append((await _settled(server) - before) / count)
    await probe.close()
    await transport.close()
    return taken


async def _settled(server: Sshd) -> float:
    """CPU of the box once it has reaped what ended."""
    await asyncio.sleep(SETTLE_S)
    return measure.tree_cpu_s(server.pid)
