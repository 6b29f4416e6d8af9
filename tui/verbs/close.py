"""`rgt close`: what a run made becomes a sealed export on its box, or goes into quarantine."""

from __future__ import annotations

import argparse
import asyncio
import json
import time

from tui.model.failure import Exit
from tui.model.text import safe


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    close = sub.add_parser("close", help="make a sealed export of a run that is over")
    close.add_argument("name", metavar="RUN", help="a run that rgt launched")
    close.add_argument("--json", action="store_true", help="print JSON")
    close.set_defaults(run=lambda args: asyncio.run(_close(args)))


async def _close(args: argparse.Namespace) -> int:
    from tui.custody.machine import known_victim
    from tui.custody.moments import moment
    from tui.custody.receipts import Ledger
    from tui.custody.statement import Receipt, Subject, about
    from tui.runs.book import book
    from tui.runs.close import close_out
    from tui.runs.truth import look
    from tui.verbs.ending import changing, instance_named
    from tui.verbs.line import line_to

    where = changing(args)
    page = book(where).page(args.name)
    instance = instance_named(page.box, where)
    async with line_to(instance, where) as line:
        box = await line()
        closed = await close_out(box, page, await look(box, page.folder))
    victim = known_victim(instance, where)
    Ledger(where.receipts).append(
        Receipt(
            act="close",
            result="passed" if closed.kind != "quarantined" else "refused",
            at=moment(time.time()),
            subjects=(about(victim, victim.name), Subject(name="plan", sha256=f"sha256:{page.plan}")),
            victim=victim,
            run=page.run,
            detail=f"{closed.kind} in {closed.folder}",
        )
    )
    if args.json:
        told = {
            "run": page.run,
            "kind": closed.kind,
            "folder": closed.folder,
            "files": closed.files,
            "reasons": list(closed.reasons),
            "notes": list(closed.notes),
        }
        print(json.dumps(told, indent=1))
    else:
        words = {"sealed": "sealed", "sealed-before": "was sealed before", "quarantined": "in quarantine"}
        print(safe(f"{page.run}: {words[closed.kind]}, {closed.folder}"))
        for reason in closed.reasons:
            print(f"  {reason}")
        for note in closed.notes:
            print(f"  note: {note}")
    return Exit.ATTENTION if closed.kind == "quarantined" else Exit.FINE
