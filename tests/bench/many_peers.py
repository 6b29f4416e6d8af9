"""The peers of a hundred connections: `ssh` processes that stay, and commands through a ControlMaster."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.bench import measure
from tests.bench.many_plan import PERIOD_S, Outcome, Plan, Spent, gather, window
from tests.bench.ssh_program import SshProcess, open_ssh, plain_line
from tui.box.probe.loop import Probe
from tui.box.probe.plan import ProbeRequest
from tui.box.probe.script import script
from tui.box.transport import Channel, Completed, LinkLost, Script
from tui.model.failure import Failure
from tui.workers.box import Forward, Pace
from tui.workers.rhythm import Rhythm

AT_ONCE = 16
"""`ssh` processes that connect at the same time; ours are the product's own 8."""

PLAIN_LOOK = "exec cat /proc/loadavg /proc/uptime /proc/meminfo"
"""What is asked through a ControlMaster in each tick: less than the probe's plainest tick."""


class OwnTime(Pace):
    """Each box is asked at a time of its own, as by a loop for each; ours are asked on one beat."""

    def next_at(self, started: float, now: float) -> float:
        return max(started + self.period_s, now)


@dataclass(slots=True)
class SshProcesses:
    """A box behind `ssh` processes, one per channel. Implements `tui.workers.box.BoxTransport`."""

    config: Path
    gate: asyncio.Semaphore
    name: str = "ssh"
    opened: list[SshProcess] = field(default_factory=list)

    async def open(self, script: Script, *, timeout: float = 15.0) -> Channel:
        async with self.gate:
            process = await open_ssh(self.config, "echo up; " + plain_line(script))
            self.opened.append(process)
            assert await process.read(3) == b"up\n"
            return process

    async def run(
        self, script: Script, *, stdin: bytes = b"", timeout: float = 15.0, limit: int = 1 << 20
    ) -> Completed:
        raise Failure("Not needed here.")

    async def wait_closed(self) -> LinkLost | None:
        return None

    async def alive(self, timeout: float = 3.0) -> bool:
        return True

    async def forward_local(self, port: int, local_port: int = 0) -> Forward:
        raise Failure("Not needed here.")

    async def close(self) -> None:
        for process in self.opened:
            await process.close()


# --- the probe's conversation without the probe ---


@dataclass(slots=True)
class Unread:
    """A probe's shell on a box whose answers nobody looks at."""

    channel: Channel
    nonce: bytes
    rest: bytes = b""

    async def answer(self, number: int) -> None:
        """Read up to the end of this answer."""
        end = b"@end %s %d\n" % (self.nonce, number)
        while end not in self.rest:
            part = await self.channel.read()
            assert part, "the shell on the box has ended"
            self.rest = self.rest[-len(end) :] + part
        self.rest = b""


async def start_unread(open: Callable[[Script], Awaitable[Channel]]) -> Unread:
    nonce = secrets.token_hex(8)
    return Unread(await open(script(nonce)), nonce.encode())


@dataclass(slots=True)
class _Recorder:
    """A channel that notes what is written to it."""

    channel: Channel
    written: bytearray

    async def read(self, size: int = 65536) -> bytes:
        return await self.channel.read(size)

    async def write(self, data: bytes) -> None:
        self.written += data
        await self.channel.write(data)

    async def close(self) -> None:
        await self.channel.close()

    @property
    def exit(self) -> int | None:
        return self.channel.exit


@dataclass(slots=True)
class _Rehearsal(SshProcesses):
    written: bytearray = field(default_factory=bytearray)

    async def open(self, script: Script, *, timeout: float = 15.0) -> Channel:
        return _Recorder(await SshProcesses.open(self, script), self.written)


async def rehearse(plan: Plan) -> list[bytes]:
    """What our probe asks of a box, tick by tick, at the product's own cadence."""
    stage = _Rehearsal(Path(plan.ssh_config), asyncio.Semaphore(1))
    probe, rhythm, asked = Probe(stage), Rhythm(Pace(PERIOD_S)), []
    for _ in range(int((plan.settle_s + plan.window_s) / PERIOD_S) + 3):
        stage.written.clear()
        parts, _ = rhythm.next(urgent=False, viewed=False, cards=False)
        await probe.tick(ProbeRequest(), **asdict(parts))
        asked.append(bytes(stage.written))
    await probe.close()
    return asked


async def watch_unread(
    plan: Plan, pace: Pace, lines: Sequence[Unread], asked: Sequence[bytes]
) -> tuple[float, int]:
    """Ask every box the same, and throw the answers away."""
    loop = asyncio.get_running_loop()
    looks = ready = 0

    async def watch(number: int, line: Unread) -> None:
        nonlocal looks, ready
        await asyncio.sleep(PERIOD_S * number / len(lines))
        await line.answer(0)
        for requests in asked:
            started = loop.time()
            await line.channel.write(requests)
            await line.answer(int((b"\n" + requests).rpartition(b"\nt ")[2].split()[0]))
            looks += 1
            if requests is asked[0]:
                ready += 1
            await asyncio.sleep(pace.next_at(started, loop.time()) - loop.time())

    tasks = [asyncio.create_task(watch(n, line)) for n, line in enumerate(lines)]
    watched = await window(plan, lambda: looks, lambda: ready == len(lines))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=20)
    return watched


async def ssh_unread(plan: Plan) -> Outcome:
    """A shell loop behind each `ssh`."""
    box = SshProcesses(Path(plan.ssh_config), asyncio.Semaphore(AT_ONCE))
    asked = await rehearse(plan)
    spent = Spent.begin()
    lines = await gather(start_unread(box.open) for _ in range(plan.boxes))
    spent.end()
    cpu_pct, looks = await watch_unread(plan, OwnTime(PERIOD_S), lines, asked)
    memory = measure.pss_bytes(process.pid for process in box.opened)
    await box.close()
    return Outcome(spent.seconds, spent.cpu_s, cpu_pct, memory, looks)


# --- one command per tick through a ControlMaster ---


async def control_masters(plan: Plan) -> Outcome:
    gate = asyncio.Semaphore(AT_ONCE)
    with tempfile.TemporaryDirectory() as folder:
        sockets = [f"{folder}/{number}" for number in range(plan.boxes)]

        async def start(socket: str) -> SshProcess:
            async with gate:
                process = await open_ssh(Path(plan.ssh_config), "echo up; exec cat", "-M", "-S", socket)
                assert await process.read(3) == b"up\n"
                return process

        spent = Spent.begin()
        masters = await gather(map(start, sockets))
        spent.end()
        cpu_pct, looks = await _commands(plan, sockets)
        memory = measure.pss_bytes(master.pid for master in masters)
        await gather(master.close() for master in masters)
    return Outcome(spent.seconds, spent.cpu_s, cpu_pct, memory, looks)


async def _commands(plan: Plan, sockets: Sequence[str]) -> tuple[float, int]:
    looks = 0

    async def watch(number: int, socket: str) -> None:
        nonlocal looks
        await asyncio.sleep(PERIOD_S * number / len(sockets))
        due = time.monotonic()
        while True:
            look = await asyncio.create_subprocess_exec(
                "ssh", "-F", plan.ssh_config, "-S", socket, "box", PLAIN_LOOK,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            out, _ = await look.communicate()
            assert out, "a look came back empty"
            looks += 1
            due += PERIOD_S
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    tasks = [asyncio.create_task(watch(n, socket)) for n, socket in enumerate(sockets)]
    watched = await window(plan, lambda: looks, lambda: looks >= len(sockets))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=20)
    return watched
