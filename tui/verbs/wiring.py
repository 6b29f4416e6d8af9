"""Puts the parts together: one place that knows which connector, store and workers an `rgt` runs with."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui.box.connect import Connector
from tui.box.errors import unreachable
from tui.box.kubectl import enter_job, enter_pod
from tui.box.secrets import Asker, NoAsker
from tui.box.slurm_step import enter
from tui.custody.host_keys import trust_store
from tui.fleet import settings
from tui.fleet.fleet_source import FleetFile
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import CommandRecord
from tui.model.event import CommandRan
from tui.model.instance import Instance
from tui.model.via import JobExec, PodExec, SlurmStep, Via
from tui.verbs.accounting import sources
from tui.workers.accounts import AccountsWatch
from tui.workers.box import BoxTransport, Pace
from tui.workers.local_box import LocalBox
from tui.workers.secrets import StoreAsker
from tui.workers.supervisor import Supervisor

if TYPE_CHECKING:
    from tui.workers.setup import Setup


@dataclass(slots=True)
class Dialer:
    """Opens a transport to any instance: over ssh, beside a job, into a pod, or on this computer."""

    connector: Connector
    on_command: Callable[[CommandRecord], None]

    async def __call__(self, instance: Instance) -> BoxTransport:
        if instance.via is not None:
            return await self._via(instance, instance.via)
        if instance.endpoint is None:
            return LocalBox(instance.name, on_command=self.on_command)
        return await self.connector.connect(instance)

    async def _via(self, instance: Instance, via: Via) -> BoxTransport:
        """Into a job or a pod; where there is no way, that is said and never tried again by itself."""
        if isinstance(via, SlurmStep):
            return await enter(instance, via, self.connector.connect, self.on_command)
        if isinstance(via, PodExec):
            return await enter_pod(instance, via, self.on_command)
        if isinstance(via, JobExec):
            return await enter_job(instance, via, self.on_command)
        raise unreachable(
            f"{instance.name} can't be looked into: {via.why}.", retry=False, code="no-transport"
        )


def dialer(
    where: Paths, *, asker: Asker | None = None, on_command: Callable[[CommandRecord], None] | None = None
) -> Dialer:
    """A dialer of its own, for verbs without workers."""
    told = on_command or (lambda _record: None)
    return Dialer(Connector(trust_store(where), asker or NoAsker(), on_command=told), told)


def supervisor(store: Store, where: Paths) -> Supervisor:
    """The workers of one `rgt`."""
    asker = StoreAsker(store)
    trust = trust_store(where)
    fleet = FleetFile(where)

    def told(record: CommandRecord) -> None:
        store.offer(CommandRan(record))

    def accept(box: str, fingerprint: str) -> None:
        trust.accept(box, fingerprint, store.clock())
        fleet.repin(box, fingerprint)

    dial = Dialer(Connector(trust, asker, on_command=told), told)
    return Supervisor(
        store,
        dial,
        fleet=fleet,
        accept_key=accept,
        asker=asker,
        paths=where,
        pace=Pace(period_s=settings.load(where.fleet_file).settings.period_s),
        accounts=AccountsWatch(store, sources(where), time.monotonic, fleet.stamp).run,
        new_setup=lambda reload: new_setup(store, where, dial, reload),
    )


def new_setup(store: Store, where: Paths, dial: Dialer, reload: Callable[[], Awaitable[None]]) -> Setup:
    """The guided setup. What it imports is loaded with the first one."""
    from tui.verbs.setup import tools
    from tui.workers.setup import Setup

    return Setup(store, tools(where, dial, reload, store.clock))


async def until_cancelled(work: Supervisor) -> None:
    """Run the workers; on the way out they get their moment to close."""
    give_memory_back()
    # Everything is imported by then and stays: to walk it again and again held the screen for 60 to 110 ms.
    asyncio.get_running_loop().call_later(5.0, gc.freeze)
    task = asyncio.create_task(work.run())
    try:
        await asyncio.shield(task)
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=1.0)


def give_memory_back() -> None:
    """Large buffers go back to the system as soon as they are free. Does nothing without glibc.

    By itself glibc keeps what is freed once buffers of that size were seen (mallopt(3), M_MMAP_THRESHOLD,
    number -3): twenty logs that came in at once left the app at 220 MB instead of 160. And each thread that
    ever loads or parses something has a heap of its own, with holes of its own (M_ARENA_MAX, number -8).
    """
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 128 * 1024)
        libc.mallopt(-8, 1)
    except (OSError, AttributeError, TypeError):
        pass
