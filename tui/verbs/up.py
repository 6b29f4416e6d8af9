"""`rgt up`: a machine that fits is rented by its platform's API and put into the fleet. Level 2: it costs."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.verbs.job_word import job_word

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.model.job import Job, Resources
    from tui.verbs.renting import Order, Want


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    from tui.verbs.renting import arguments

    up = sub.add_parser("up", help="rent a machine that fits, by its platform's API")
    up.add_argument(
        "platform", nargs="?", metavar="PLATFORM", help="such as runpod; the job's candidates when not given"
    )
    up.add_argument(
        "--for", dest="file", type=job_word, metavar="JOB", help="a job.toml: what it needs is asked for"
    )
    up.add_argument("--gpu", metavar="WORDS", help="such as 'A100:1, ≥40 GB', in place of the job's")
    up.add_argument("--name", metavar="WORD", help="what the machine is for; its name begins with it")
    up.add_argument("--key", metavar="FILE", help="the private key that opens it, where ssh has another one")
    arguments(up)
    up.add_argument("--dry-run", action="store_true", help="offers that fit and the request, nothing else")
    up.add_argument("--json", action="store_true", help="print JSON")
    up.set_defaults(run=lambda args: asyncio.run(_up(args)))


async def _up(args: argparse.Namespace) -> int:
    from tui.verbs.ending import changing
    from tui.verbs.line import line_to
    from tui.verbs.renting import consents, plan_of, reached, rent

    where = changing(args)
    wants = tuple(_wants(args))
    box = None if args.dry_run else await _begun(wants, where, not_there=args.not_there)
    if box is None:
        want, made = await _first(wants, where)
        for title, text in plan_of(made):
            _say(f"  {title:<8} {text}")
        if args.dry_run:
            _say("Nothing was rented.")
            _print(args, {"offer": made.wish.offer.id, "name": made.wish.name, "request": made.request.body})
            return Exit.FINE
        if not await asyncio.to_thread(consents, made):
            _say("Nothing was rented.")
            return Exit.ATTENTION
        box = await rent(made, want, where, _say)
    _say(f"{box.name} is in the fleet, and bills: {_price(box)}.")
    _print(args, {"box": box.name, "platform": box.platform, "instance_id": box.instance_id})
    async with line_to(box, where) as line:
        await reached(line, _say)
    job = safe(args.file or "JOB", 200)
    _say(f"Next: rgt launch {job} --on {box.name}. The bill ends with rgt stop or rgt down {box.name}.")
    return Exit.FINE


def _wants(args: argparse.Namespace) -> Iterator[Want]:
    """What is wanted, at each platform that comes into question, in order. Raises Failure."""
    from tui.platforms.sent import Terms
    from tui.runs.job_file import read_job
    from tui.verbs.renting import Want, pairs, with_words

    job = read_job(Path(args.file)) if args.file else None
    platforms = (args.platform,) if args.platform else job.platforms if job else ()
    if not platforms:
        raise Failure(
            "No platform was named.",
            do="rgt up PLATFORM, or --for a job whose file names platforms; rgt profiles lists them.",
            exit=Exit.USAGE,
        )
    key = Path(args.key).expanduser().absolute() if args.key else None
    if key is not None and not key.is_file():
        raise Failure(
            f"There is no key at {safe(str(key), 200)}.", means="Nothing was rented.", exit=Exit.USAGE
        )
    more = pairs(args.set)
    for platform in platforms:
        yield Want(
            platform=platform,
            stem=args.name or (job.name if job else "box"),
            resources=_needs(args.gpu, job),
            terms=with_words(Terms(), more),
            key=str(key) if key else None,
            offer=args.offer,
            region=more.get("region"),
        )


def _needs(gpu: str | None, job: Job | None) -> Resources:
    """The constraint. Raises Failure: it can't be read."""
    from pydantic import ValidationError

    from tui.model.job import Gpu, Resources

    needs = job.resources if job else Resources()
    if gpu is None:
        return needs
    try:
        return needs.model_copy(update={"gpu": Gpu.model_validate(gpu)})
    except ValidationError:
        raise Failure("--gpu takes words such as 'A100:1, ≥40 GB' or ':2'.", exit=Exit.USAGE) from None


async def _begun(wants: tuple[Want, ...], where: Paths, *, not_there: bool) -> Instance | None:
    """The box of a request that is open at one of the platforms; None: none is. Raises Failure."""
    from tui.verbs.renting import settled

    if not_there and len(wants) > 1:
        raise Failure(
            "--not-there is your word about one platform.",
            means="Nothing was rented.",
            do="Name it: rgt up PLATFORM --not-there.",
            exit=Exit.USAGE,
        )
    for want in wants:
        if (box := await settled(want, where, _say, not_there=not_there)) is not None:
            return box
    return None


async def _first(wants: tuple[Want, ...], where: Paths) -> tuple[Want, Order]:
    """The first candidate that has what is wanted. Raises the last one's Failure where none has."""
    from tui.verbs.renting import order

    *before, last = wants
    for want in before:
        try:
            return want, await order(want, where)
        except Failure as failure:
            _say(f"{want.platform}: {failure.what}")
    return last, await order(last, where)


def _price(box: Instance) -> str:
    return f"{'?' if box.price_per_hour is None else f'{box.price_per_hour:.2f}'} {box.currency}/h"


def _print(args: argparse.Namespace, told: dict[str, object]) -> None:
    if args.json:
        print(json.dumps(told, indent=1))


def _say(line: str) -> None:
    print(safe(line, 500), file=sys.stderr, flush=True)
