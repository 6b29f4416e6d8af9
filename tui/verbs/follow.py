"""`rgt logs -f`: one run's log on standard output, through cuts and rotation."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from tui.box.backoff import Backoff
from tui.box.errors import ConnectFailure
from tui.box.tail.follower import Follower
from tui.box.tail.spool import Spool
from tui.box.transport import LinkLost
from tui.model.failure import Exit
from tui.model.log import LogBatch, LogState
from tui.model.text import SafeText

if TYPE_CHECKING:
    from tui.model.instance import Instance
    from tui.model.run import RunSpec
    from tui.verbs.look import Printer
    from tui.workers.box import Dial


async def follow_log(instance: Instance, spec: RunSpec, dial: Dial, printer: Printer, lines: int) -> Exit:
    """Print the last `lines` lines and all that come after, until interrupted.

    Raises:
        Failure: the box refuses the login, or shows another identity.
    """
    with (
        tempfile.TemporaryDirectory(prefix="rgt-spool-") as folder,
        closing(Spool(Path(folder))) as spool,
    ):
        follower = Follower(spec.name, spec.log or "", spool)
        first = True

        async def emit(batch: LogBatch) -> None:
            nonlocal first
            printer.batch(batch, max(0, len(batch.lines) - lines) if first else 0)
            first = False

        backoff = Backoff()
        while True:
            try:
                transport = await dial(instance)
            except ConnectFailure as failure:
                if not failure.retry:
                    raise
                await _wait(printer, spec, failure.line, backoff)
                continue
            backoff.connected()
            try:
                await follower.follow(transport, emit, printer.state)
            except LinkLost as lost:
                await _wait(printer, spec, lost.line, backoff)
            finally:
                await transport.close()


async def _wait(printer: Printer, spec: RunSpec, why: SafeText, backoff: Backoff) -> None:
    printer.state(LogState(spec.name, SafeText("link lost;"), why))
    await asyncio.sleep(backoff.failed() or 1.0)
