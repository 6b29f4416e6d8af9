"""`rgt gather`: a sealed export goes to the shared file system, on the box. Level 2: a new folder there."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.runs.book import Page
    from tui.runs.gather import Gathered


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    gather = sub.add_parser(
        "gather", help="copy a sealed export to the shared file system, proven by its hashes"
    )
    gather.add_argument("name", metavar="RUN", help="a run that rgt launched and closed")
    gather.add_argument("--to", metavar="FOLDER", help="on the box; else the platform's durable folder")
    gather.add_argument("--json", action="store_true", help="print JSON")
    gather.set_defaults(run=lambda args: asyncio.run(_gather(args)))


async def _gather(args: argparse.Namespace) -> int:
    from tui.runs.book import book
    from tui.runs.gather import gather
    from tui.verbs.ending import changing, instance_named
    from tui.verbs.line import line_to

    where = changing(args)
    page = book(where).page(args.name)
    box = instance_named(page.box, where)
    to = args.to or _durable(page, where)
    async with line_to(box, where) as line:
        done = await gather(await line(), page.root, page.run, to, _say)
    _receipt(where, page, box, done)
    if args.json:
        told = {"run": page.run, "folder": done.folder, "files": done.files, "was_there": done.was_there}
        print(json.dumps({**told, "same_disk": done.same_disk}, indent=1))
        return Exit.FINE
    if done.same_disk:
        _say("warn: it is the same file system; a copy there ends with the export")
    how = "was there already" if done.was_there else "is there"
    print(
        safe(
            f"{page.run} {how}: {done.folder}, {done.files} files, every SHA-256 the same on both sides", 400
        )
    )
    return Exit.FINE


def _durable(page: Page, where: Paths) -> str:
    """Where the platform keeps what outlives a box. Raises Failure: it is not known."""
    from tui.fleet import profiles
    from tui.fleet.paths import shipped

    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(page.platform)
    durable = profile.facts.script.DURABLE_DIR if profile else None
    if not durable:
        raise Failure(
            f"No durable folder is known for {page.platform}.", do="Give one with --to.", exit=Exit.USAGE
        )
    return f"{durable.rstrip('/')}/rgt/{page.job.project}"


def _receipt(where: Paths, page: Page, box: Instance, done: Gathered) -> None:
    from tui.custody.machine import known_victim
    from tui.custody.moments import moment
    from tui.custody.receipts import Ledger
    from tui.custody.statement import Receipt, Subject, about

    victim = known_victim(box, where)
    listed = "".join(f"{digest} {path}\n" for path, digest in done.digests)
    whole = hashlib.sha256(listed.encode("utf-8", "surrogateescape"))
    Ledger(where.receipts).append(
        Receipt(
            act="gather",
            result="passed",
            at=moment(time.time()),
            subjects=(
                about(victim, victim.name),
                Subject(name="files", sha256=f"sha256:{whole.hexdigest()}"),
            ),
            victim=victim,
            run=page.run,
            detail=f"{done.files} files in {done.folder}",
        )
    )


def _say(line: str) -> None:
    print(safe(line, 400), file=sys.stderr, flush=True)
