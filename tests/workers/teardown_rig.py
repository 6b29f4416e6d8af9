"""A teardown on a box that is this computer, with a finished run, and what the operator sees of it."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tui.custody.outcome import Pace
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.ending import Ending
from tui.model.instance import Instance
from tui.model.teardown import StepId, StepView, TeardownView
from tui.workers.box import BoxTransport
from tui.workers.local_box import LocalBox
from tui.workers.patience import Patience
from tui.workers.teardowns import Teardowns

QUICK = Patience(pauses=(0.05, 0.05), in_box_s=0.0, pace=Pace(rounds=2, every_s=0.01, looks=4, call_s=5.0))
OLD_S = 3600.0


def safetensors(values: tuple[float, ...] = (1.0, 2.0, 3.0)) -> bytes:
    """A checkpoint of one tensor."""
    data = struct.pack(f"<{len(values)}f", *values)
    header = json.dumps(
        {"w": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(data)]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + data


@dataclass
class Rig:
    """One installation of rgt, and its box.

    Attributes:
        top: the run's folder on the box; `beside` lies next to it on a tier that goes with the box.
        dials: connections so far; `cut` makes so many next ones fail.
    """

    home: Path
    top: Path
    store: Store
    teardowns: Teardowns
    dials: int = 0

    @property
    def where(self) -> Paths:
        return Paths(self.home / "config", self.home / "state")

    @property
    def view(self) -> TeardownView:
        self.store.fold()
        view = self.store.snapshot.teardown("box")
        assert view is not None
        return view

    def step(self, name: StepId) -> StepView:
        found = self.view.step(name)
        assert found is not None
        return found

    async def do(self, command: Ending) -> TeardownView:
        """A command, and the view once nothing runs any more."""
        await self.teardowns.handle(command)
        return await self.rest()

    async def rest(self) -> TeardownView:
        return await self.until(lambda view: not view.working)

    async def until(self, holds: Callable[[TeardownView], bool], seconds: float = 40.0) -> TeardownView:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.store.fold()
            view = self.store.snapshot.teardown("box")
            if view is not None and holds(view):
                await asyncio.sleep(0)
                return view
            await asyncio.sleep(0.01)
        raise AssertionError(f"never came: {self.view}")


def furnish(tmp_path: Path) -> tuple[Path, Path]:
    """A home of rgt that knows one box and its run; returns both folders."""
    top, home = tmp_path / "disk" / "run1", tmp_path / "home"
    put(top / "ckpt" / "best.safetensors", safetensors())
    put(top / "train.log", b"epoch 1 loss 0.5\n" * 100)
    put(tmp_path / "disk" / "notes" / "todo.txt", b"think\n")
    put(tmp_path / "disk" / "older" / "last.safetensors", safetensors((5.0,) * 300_000))
    (home / "config").mkdir(parents=True)
    (home / "config" / "fleet.toml").write_text(
        f'[instances.box]\nplatform = "ssh"\nhost = "box.example"\ninstance_id = "abc-1"\n'
        f'mounts = ["{tmp_path / "disk"}"]\n'
        f'price_per_hour = 2.0\n\n[runs.exp]\nbox = "box"\nlog = "{top}/train.log"\n'
        f'checkpoints = "{top}/ckpt/*"\n'
    )
    return home, top


def put(path: Path, data: bytes) -> None:
    """A file that nobody wrote to for an hour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (time.time() - OLD_S,) * 2)


Dialled = Callable[[Instance], BoxTransport | Awaitable[BoxTransport]]


@asynccontextmanager
async def running(
    home: Path,
    top: Path,
    *,
    patience: Patience = QUICK,
    clock: Callable[[], float] = time.time,
    dialled: Dialled = lambda instance: LocalBox(instance.name),
) -> AsyncIterator[Rig]:
    """One rgt process from its start to its end."""
    where = Paths(home / "config", home / "state")
    store = Store(clock=clock)

    async def dial(instance: Instance) -> BoxTransport:
        rig.dials += 1
        there = dialled(instance)
        return await there if inspect.isawaitable(there) else there

    rig = Rig(home, top, store, Teardowns(store, dial, where, clock=clock, patience=patience))
    try:
        yield rig
    finally:
        await rig.teardowns.close()
