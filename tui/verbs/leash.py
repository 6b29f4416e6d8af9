"""`rgt leash`: a box that stops itself at a date, where its platform keeps the data then. Level 2."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.runs.leash import Leash


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    leash = sub.add_parser(
        "leash", help="let a box stop itself at a date, disks kept; alone it tells what is armed"
    )
    leash.add_argument("box", metavar="BOX", help="a box of the fleet")
    what = leash.add_mutually_exclusive_group()
    what.add_argument("--hours", type=float, metavar="N", help="arm it, or renew it, from now on")
    what.add_argument(
        "--test", action="store_true", help="let a timer run out that only tells what it would do"
    )
    what.add_argument("--off", action="store_true", help="take it off")
    leash.add_argument("--json", action="store_true", help="print JSON")
    leash.set_defaults(run=lambda args: asyncio.run(_leash(args)))


async def _leash(args: argparse.Namespace) -> int:
    from tui.fleet.paths import paths
    from tui.runs import leash
    from tui.verbs.ending import changing, instance_named
    from tui.verbs.line import line_to

    changes = args.hours is not None or args.test or args.off
    where = changing(args) if changes else paths()
    box = instance_named(args.box, where)
    if args.hours is not None or args.test:
        _possible(box, where)
    async with line_to(box, where) as line:
        if args.off:
            told = await leash.off(await line())
            _recorded(where, box, "off", "taken off")
            _noted(where, box, None)
        elif args.test:
            command = (await leash.test(await line())).removeprefix("would: ")
            print(
                f"{box.name}: it would run {command} when its time is up; nothing was run.", file=sys.stderr
            )
            told = await leash.look(await line())
        elif args.hours is not None:
            told = await leash.arm(await line(), round(args.hours * 3600))
            _recorded(where, box, "armed", f"armed for {args.hours:g} h")
            _noted(where, box, None if told.left_s is None else time.time() + told.left_s)
        else:
            told = await leash.look(await line())
    return _tell(args, box, told)


def _noted(where: Paths, box: Instance, at: float | None) -> None:
    """Keep the date, or tell that it is not kept: the leash itself is the box's."""
    from tui.fleet.leash_notes import note

    try:
        note(where, box.name, at)
    except OSError as error:
        print(
            f"rgt: It is done on {box.name}, and its date could not be noted here ({error.strerror}), so "
            f"`rgt status` tells it wrongly or not at all. Make room or give access in {where.state}.",
            file=sys.stderr,
        )


def _possible(box: Instance, where: Paths) -> None:
    from tui.fleet import profiles
    from tui.fleet.paths import shipped
    from tui.runs.leash import refused

    profile = profiles.load(shipped("profiles"), where.profiles).by_id.get(box.platform)
    why = refused(profile.facts if profile else None, box.platform)
    if why is not None:
        raise Failure(
            f"A leash on {box.name} is {why.rstrip('.')}.", means="Nothing was armed.", code="no-leash"
        )
    if profile is not None:
        for clock in profile.facts.clocks:
            if clock.trigger == "stopped":  # a box that stops itself starts these
                print(safe(f"note: {clock.text}", 400), file=sys.stderr)


def _recorded(where: Paths, box: Instance, act: str, detail: str) -> None:
    from tui.custody.machine import known_victim
    from tui.custody.moments import moment
    from tui.custody.receipts import Ledger
    from tui.custody.statement import Receipt, about

    victim = known_victim(box, where)
    Ledger(where.receipts).append(
        Receipt(
            act="leash",
            result="recorded",
            at=moment(time.time()),
            subjects=(about(victim, victim.name),),
            victim=victim,
            detail=f"{act}: {detail}",
        )
    )


def _tell(args: argparse.Namespace, box: Instance, told: Leash) -> int:
    from tui.fleet.leash_notes import date

    at = None if told.left_s is None else time.time() + told.left_s
    when = "a date that is not told" if at is None else date(at)
    if args.json:
        print(
            json.dumps(
                {"box": box.name, "state": told.state, "left_s": told.left_s, "at": at, "said": told.said}
            )
        )
    else:
        words = {
            "none": "no leash is armed: nothing stops it by itself",
            "armed": f"stops itself at {when}, disks kept, unless it is renewed",
            "gone": f"nothing stops it any more: {told.said}",
            "fired": f"its leash ran out: {told.said}",
        }
        print(safe(f"{box.name}: {words[told.state]}", 300))
    return Exit.ATTENTION if told.state in ("gone", "fired") else Exit.FINE
