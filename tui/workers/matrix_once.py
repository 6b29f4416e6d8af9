"""One look at every cell of a queue: what `rgt matrix` and the view of it have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tui.custody.receipts import Ledger
from tui.fleet.paths import Paths
from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.runs.matrix import Row, Verdicts, rows, verdicts
from tui.runs.queue import Seen
from tui.runs.queue_book import QueuePage, Share, queue_book

ASK_S = 60.0

Asked = tuple[Sequence[Seen], str]
"""What a box says of its cells, or why it says nothing."""


def page_of(name: str | None, where: Paths) -> QueuePage:
    """The page of a queue; of the newest one where none is named. Raises Failure: there is none."""
    book = queue_book(where)
    names = book.names()
    chosen = name or (names[0] if names else None)
    page = book.find(chosen) if chosen else None
    if page is None:
        raise Failure(
            f"There is no queue {safe(name or '', 100)!r}." if name else "No queue was started from here.",
            do="Start one: rgt queue JOB --on BOX,BOX.",
            exit=Exit.USAGE,
        )
    return page


async def ask_all(page: QueuePage, ask: Callable[[Share], Awaitable[Sequence[Seen]]]) -> dict[str, Asked]:
    """What every box of a queue says, all asked at the same time; failures are answers.

    Args:
        ask: asks one box; raises Failure, TimeoutError.
    """

    async def asked(share: Share) -> Asked:
        try:
            async with asyncio.timeout(ASK_S):
                return await ask(share), ""
        except TimeoutError:
            return (), f"{share.box} did not answer within {ASK_S:.0f} s."
        except Failure as failure:
            return (), failure.what

    answers = await asyncio.gather(*map(asked, page.shares))
    return {share.box: answer for share, answer in zip(page.shares, answers, strict=True)}


def table(page: QueuePage, answers: dict[str, Asked], held: dict[str, Verdicts]) -> tuple[Row, ...]:
    """One row a cell. Of a cell that two boxes know, the newer attempt counts."""
    seen: dict[str, Seen] = {}
    for told, _ in answers.values():
        for one in told:
            before = seen.get(one.name)
            if before is None or one.attempt >= before.attempt:
                seen[one.name] = one
    unreached = {box: why for box, (_, why) in answers.items() if why}
    boxes = {name: share.box for share in page.shares for name in share.folders}
    return rows(page.values, boxes, seen, unreached, held)


def held_of(where: Paths) -> dict[str, Verdicts]:
    """What the ledger holds of every run. Raises Failure."""
    receipts = Ledger(where.receipts).report().receipts
    return verdicts((one.receipt.run, one.receipt.act, one.receipt.result) for one in receipts)
