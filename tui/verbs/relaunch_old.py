"""What became of the machine a run is to leave: asked before anything is started, and before any money."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.runs.book import Page
    from tui.runs.fate import Fate

_ASK_S = 25.0


async def fate_of(page: Page, where: Paths) -> Fate:
    """What became of the old machine: by its own word, else by its provider's."""
    from tui.fleet import profiles, settings
    from tui.fleet.paths import shipped
    from tui.runs.fate import fate
    from tui.runs.truth import look
    from tui.verbs.line import line_to

    old = next((one for one in settings.load(where.fleet_file).instances if one.name == page.box), None)
    seen, unreached = None, f"{page.box} is no longer in the fleet file"
    if old is not None and page.instance_id and old.instance_id != page.instance_id:
        unreached = f"{page.box} is another machine now"
    elif old is not None:
        try:
            async with asyncio.timeout(_ASK_S), line_to(old, where) as line:
                seen = await look(await line(), page.folder)
        except TimeoutError:
            unreached = f"{page.box} did not answer within {_ASK_S:.0f} s"
        except Failure as failure:
            unreached = failure.what
    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(page.platform)
    spot = bool(profile and profile.facts.spot.available)
    told = None if seen is not None else await _provider(page, where)
    return fate(seen, unreached, told, spot=spot)


async def _provider(page: Page, where: Paths) -> str | None:
    """What the provider's newest complete list says of the old machine; None: nobody could be asked."""
    from tui.verbs.accounting import sources
    from tui.workers.accounts import look_once

    if page.instance_id is None:
        return None
    for account in await look_once(sources(where), _ASK_S):
        if account.platform == page.platform and account.complete:
            for machine in account.machines:
                if machine.id == page.instance_id:
                    return machine.state
    return None


def certain(old: Fate, page: Page, *, sworn: bool) -> None:
    """Nothing of the run is at work any more. Raises Failure: it is, or nobody knows."""
    if old.certain or (old.kind in ("unknown", "unbegun") and sworn):
        return
    if old.kind == "over":
        raise Failure(f"{page.run} is finished: {old.why}", do=f"rgt close {page.run}", code="run-over")
    if old.kind == "runs":
        raise Failure(
            f"{page.run} may be at work on {page.box}. {old.why}",
            means="A second one would do it twice; nothing was started.",
            do=f"Stop it there first, or leave it: rgt handbook {page.run}",
            code="runs-there",
        )
    raise Failure(
        f"Whether {page.run} still runs on {page.box} is not known. {old.why}",
        means="Nothing was started.",
        do="Look at the provider's console; where the machine is gone, say so with --old-is-gone.",
        exit=Exit.UNREACHABLE,
        code="fate-unknown",
    )
