"""How often a run that begins should save: by what it, or a run before it, wrote on the same box."""

from __future__ import annotations

import asyncio

from tui.fleet.paths import Paths
from tui.model.failure import Failure
from tui.runs.book import Page, book
from tui.runs.cadence import Pace, Seen, pace, see
from tui.runs.launch import Dial
from tui.setup import state

LOOK_S = 8.0
"""What it may take beside an answer that is waited for."""
_PAGES = 200


async def pace_of(dial: Dial, page: Page, where: Paths) -> Pace | None:
    """What can be told; None where nothing is known, or the box does not tell it now."""
    try:
        async with asyncio.timeout(LOOK_S):
            box = await dial()
            own, before, named = await see(box, page), Seen(), ""
            earlier = None if own.saves else await asyncio.to_thread(run_before, page, where)
            if earlier is not None:
                before, named = await see(box, earlier), earlier.run
    except (Failure, TimeoutError):
        return None
    return pace(own, before, named, _rate(page.box, where), page.job.env.get("RGT_CHECKPOINT_EVERY_S"))


def run_before(page: Page, where: Paths) -> Page | None:
    """The newest other run of the same job on the same machine."""
    kept = book(where)
    for run in kept.names()[:_PAGES]:
        try:
            one = kept.page(run)
        except Failure:
            continue  # a damaged page takes no other from sight
        same = (one.box, one.instance_id, one.job.name, one.job.project)
        if one.run != page.run and same == (page.box, page.instance_id, page.job.name, page.job.project):
            return one
    return None


def _rate(box: str, where: Paths) -> float | None:
    """Bytes a second of its disk, while the setup that measured it is kept."""
    setup = state.load(where)
    told = setup.told("audit", "rate") if setup.box == box else None
    return float(told) if told and told.isdecimal() and int(told) else None
