"""`rgt cadence`: how long a run's saves take, and how far apart they should be."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict

from tui.model.failure import Exit, Failure

_MOST_H = 24 * 365.0


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    cadence = sub.add_parser("cadence", help="how long a run's saves take, and how often it should save")
    cadence.add_argument("name", metavar="RUN", help="a run that rgt launched")
    cadence.add_argument("--failures", type=float, default=24.0, metavar="H", help="hours between two (24)")
    cadence.add_argument(
        "--measure", action="store_true", help="write at most 256 MiB beside the run, and remove it"
    )
    cadence.add_argument("--json", action="store_true", help="print JSON")
    cadence.set_defaults(run=lambda args: asyncio.run(_cadence(args)))


async def _cadence(args: argparse.Namespace) -> int:
    from tui.fleet.paths import paths
    from tui.runs.book import book
    from tui.runs.cadence import advise, disk_rate, lines, see
    from tui.verbs.ending import changing, instance_named
    from tui.verbs.line import line_to

    if not 0 < args.failures <= _MOST_H:
        raise Failure("--failures is a number of hours above 0.", exit=Exit.USAGE)
    where = changing(args) if args.measure else paths()
    page = book(where).page(args.name)
    async with line_to(instance_named(page.box, where), where) as line:
        seen = await see(await line(), page)
        rate = None
        if args.measure and not seen.saves and seen.sizes:
            rate = await disk_rate(await line(), page, max(seen.sizes))
    advice = advise(seen, args.failures * 3600, rate)
    if args.json:
        print(json.dumps(asdict(advice), indent=1))
    else:
        print("\n".join(lines(advice, args.failures * 3600)))
    return Exit.FINE if advice.every_s is not None else Exit.UNKNOWN
