"""The one look at a box just before a verb, over a connection of its own: an old one proves no new login."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tui.box.local import on_this_computer
from tui.box.transport import Transport
from tui.custody.box_looks import open_files, real_folders
from tui.custody.by_hand import run_in_box
from tui.custody.decisions import decided
from tui.custody.errand import Errand, results_folder
from tui.custody.machine import victim_of
from tui.custody.moments import moment
from tui.custody.order import Before
from tui.custody.preflight import changed_bytes, compared, idle, unreached
from tui.custody.roster import Wanted, take_roster
from tui.custody.writers import told
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.model.custody import DigestReport, Roster, Writer
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.run import RunSpec
from tui.workers.box import Dial
from tui.workers.once import take
from tui.workers.steps import digests_now


@dataclass(frozen=True, slots=True)
class BoxLook:
    """Looks at one box.

    Attributes:
        errand, proven, hashed: the run, and the roster and the sums that its proof was made from; None where
            nothing is compared.
    """

    where: Paths
    instance: Instance
    dial: Dial
    errand: Errand | None = None
    proven: Roster | None = None
    hashed: DigestReport | None = None

    async def __call__(self) -> Before:
        """Is it idle, and still what was proven? Whatever goes wrong means that nobody knows."""
        try:
            transport = await self.dial(self.instance)
        except (Failure, TimeoutError) as error:
            return unreached(error if isinstance(error, Failure) else f"{self.instance.name}: {error}")
        try:
            return await self._look(transport)
        except (Failure, TimeoutError) as error:
            return unreached(error if isinstance(error, Failure) else f"{self.instance.name}: {error}")
        finally:
            await transport.close()

    async def in_box(self, command: str) -> str:
        """Send the verb on the box itself; what came of it, in words. Raises Failure: it was not reached."""
        transport = await self.dial(self.instance)
        try:
            return await run_in_box(transport, command)
        finally:
            await transport.close()

    async def _look(self, transport: Transport) -> Before:
        runs = tuple(r for r in settings.load(self.where.fleet_file).runs if r.box == self.instance.name)
        telemetry = await take(transport, self.instance.mounts, runs, time.time)
        before = idle(telemetry, getattr(transport, "host_key", None) or None)
        before = replace(before, own_computer=await on_this_computer(transport))
        if self.errand is None or self.proven is None:
            return replace(before, busy=(*before.busy, *await self._writing(transport, runs)))
        proven = self.proven
        now = await take_roster(
            transport,
            Wanted(proven.run, proven.root, self.errand.table),
            await victim_of(self.instance, transport),
            proven.verb,
            proven.tiers,
            decided(self.errand.folder, proven),
            moment(time.time()),
        )
        before = compared(before, proven, now)
        if self.hashed is None or before.changes:
            return before
        digests, _ = await digests_now(self.errand, transport, proven, lambda _: None)
        return replace(before, changes=tuple(changed_bytes(self.hashed, digests)))

    async def _writing(self, transport: Transport, runs: Sequence[RunSpec]) -> tuple[Writer, ...]:
        """Who has files open for writing where the runs and the disks that are watched have theirs."""
        below = {*(results_folder(run) for run in runs), *self.instance.mounts} - {None, "/"}
        real = await real_folders(transport, sorted(path for path in below if path))
        tops = sorted({path for path in real.values() if path and path != "/"})
        if not tops:
            return ()
        held = await open_files(transport, tops)
        return told(
            Writer(path=one.path, evidence=f"open for writing by {one.program or 'a process'}", pid=one.pid)
            for one in held.held
        )
