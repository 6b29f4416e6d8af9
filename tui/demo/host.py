"""The process that carries the embedded fleet: ``python -m tui.demo.host ROOT``.

It runs beside the screen, never inside it: jobs and servers go on while the screen is busy, and torch stays
out of the screen's process. When its stdin closes, because `rgt demo` ended in whatever way, it ends every
process of the fleet and removes the directory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import asyncssh

from tui.demo.boxes import INCIDENTS, PLANS, PROVIDER, Box, Plan
from tui.demo.provider import Provider, Rental
from tui.demo.server import BoxServer
from tui.demo.worn_disk import NAME, WornDisk
from tui.platforms.simulated import CREDENTIAL

MARKER = "RGT_DEMO_ROOT"


class Host:
    """The servers and jobs of one demo.

    Args:
        root: an existing directory that becomes the demo's own; it is removed by `close`.
        speed: 2 trains, and runs out of inodes, twice as fast.
    """

    def __init__(
        self, root: Path, *, seed: int = 0, speed: float = 1.0, plans: Sequence[Plan] = PLANS
    ) -> None:
        self.root = root
        self._random = random.Random(seed)
        self._boxes = [Box(plan, root, seed=seed + n, speed=speed) for n, plan in enumerate(plans)]
        self._servers: dict[str, BoxServer] = {}
        self._provider: Provider | None = None
        self._worn_disk = WornDisk(root / "home" / NAME)

    async def run(self) -> None:
        """Serve until stdin closes."""
        key = self._make_key()
        self._worn_disk.make()
        for number, box in enumerate(self._boxes):
            box.furnish()
            sockets = self.root / f"tmux{number}"
            server = BoxServer(box.plan.name, box.home, sockets, key, {MARKER: str(self.root)})
            await server.start()
            self._servers[box.plan.name] = server
            box.start_job(server.environment)
        rentals = {box.plan.name: self._rental(box) for box in self._boxes if box.plan.platform == PROVIDER}
        self._provider = Provider(rentals.values())
        state = self.root / "home" / "state"
        state.mkdir(parents=True)
        await self._provider.start(state / CREDENTIAL)
        print(json.dumps(self._describe(rentals)), flush=True)
        async with asyncio.TaskGroup() as group:
            chores = [group.create_task(self._collect_jobs()), group.create_task(self._wear())]
            chores += [group.create_task(self._cut(box)) for box in self._boxes if box.plan.cut_every_s]
            chores += [group.create_task(self._trouble(box)) for box in self._boxes]
            await _stdin_closed()
            for chore in chores:
                chore.cancel()

    def _make_key(self) -> asyncssh.SSHKey:
        """The key of this run, readable by its owner alone."""
        key = asyncssh.generate_private_key("ssh-ed25519")
        path = self.root / "key"
        path.touch(mode=0o600)
        path.write_bytes(key.export_private_key())
        return key

    def _rental(self, box: Box) -> Rental:
        """A box as its provider has it. Its verbs reach this box's processes and directory and no others."""
        plan, server = box.plan, self._servers[box.plan.name]

        async def halt() -> None:
            await server.stop()
            box.stop_job()
            end_marked(self.root, box.home)

        async def erase() -> None:
            await halt()
            await asyncio.to_thread(box.erase)

        made = datetime.fromtimestamp(_rented_at(plan), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        id_ = f"sim-{secrets.token_hex(4)}"
        return Rental(id_, plan.name, made, plan.price, plan.currency, halt, server.start, erase)

    def _describe(self, rentals: Mapping[str, Rental]) -> list[dict[str, object]]:
        described: list[dict[str, object]] = []
        for box in self._boxes:
            plan, server = box.plan, self._servers[box.plan.name]
            fingerprint = server.host_key.get_fingerprint()
            rental = rentals.get(plan.name)
            described.append(
                {
                    "name": plan.name,
                    "platform": plan.platform,
                    "port": server.port,
                    "host_key": fingerprint,
                    "price": plan.price,
                    "currency": plan.currency,
                    "rented_at": _rented_at(plan),
                    "instance_id": rental.id if rental else None,
                    "account": self._provider.account if rental and self._provider else None,
                    "simulated": list(plan.simulated),
                    "data": str(box.data),
                    "run": plan.run,
                    "out": str(box.export if plan.finished else box.out),
                    "pid": box.pid,
                }
            )
        return described

    async def _collect_jobs(self) -> None:
        while True:
            for box in self._boxes:
                box.collect()
                box.seal()
            await asyncio.sleep(0.2)

    async def _wear(self) -> None:
        while True:
            await asyncio.to_thread(self._worn_disk.rot)
            await asyncio.sleep(0.05)

    async def _cut(self, box: Box) -> None:
        """Break the link now and then, and stay deaf for a few seconds."""
        server, plan = self._servers[box.plan.name], box.plan
        await self._about(plan.first_cut_s)
        while True:
            server.deaf = True
            server.cut()
            await self._about(plan.deaf_s)
            server.deaf = False
            await self._about(plan.cut_every_s)

    async def _trouble(self, box: Box) -> None:
        """What happens to a box's job, once: it is stopped and forgotten, or outgrows its memory."""
        if box.plan.stopped_after_s:
            while not box.at_work:  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(0.1)
            await self._about(box.plan.stopped_after_s)
            box.freeze()
        while box.plan.ram_mib and not box.out_of_memory():  # noqa: ASYNC110 - memory tells nobody
            await asyncio.sleep(0.1)

    async def _about(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self._random.uniform(0.75, 1.25))

    async def close(self) -> None:
        """End servers, jobs and whatever was started on a box, then remove the directory."""
        if self._provider is not None:
            await self._provider.close()
        for server in self._servers.values():
            await server.stop()
        for box in self._boxes:
            box.stop_job()
        end_marked(self.root)
        shutil.rmtree(self.root, ignore_errors=True)


def _rented_at(plan: Plan) -> float:
    return time.time() - plan.rented_hours * 3600


def end_marked(root: Path, home: Path | None = None) -> None:
    """End every process that was started on a box of this demo, detached ones included.

    Args:
        home: of one box; None for all of them.
    """
    marks = {f"{MARKER}={root}".encode()} | ({f"HOME={home}".encode()} if home else set())
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and marks <= set((entry / "environ").read_bytes().split(b"\0")):
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue  # it ended meanwhile, or belongs to somebody else


async def _stdin_closed() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass


async def _serve(root: Path, seed: int, speed: float, plans: Sequence[Plan]) -> None:
    host = Host(root, seed=seed, speed=speed, plans=plans)
    loop = asyncio.get_running_loop()
    me = asyncio.current_task()
    assert me is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, me.cancel)
    try:
        await host.run()
    except asyncio.CancelledError:
        pass  # asked to end by a signal: the clean-up below is the answer
    finally:
        await host.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--incident", action="append", default=[], choices=INCIDENTS)
    parser.add_argument("--alone", action="store_true", help="only the boxes of the incidents")
    args = parser.parse_args()
    plans = (*(() if args.alone else PLANS), *(INCIDENTS[name] for name in dict.fromkeys(args.incident)))
    asyncio.run(_serve(Path(args.root), args.seed, args.speed, plans))
    return 0


if __name__ == "__main__":
    sys.exit(main())
