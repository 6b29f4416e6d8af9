"""`rgt reclaim`: make room on a full mount. Level 2 where everything comes back, else 3: a typed phrase."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from tui.model.failure import Exit, Failure
from tui.model.reclaim import ReclaimPlan, ReclaimView, plan_of
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.box.transport import Transport
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.model.storage import Ladder
    from tui.triage.ladder import Survey
    from tui.workers.line import Line
    from tui.workers.reclaim_once import Looked

ANSWER_S = 300.0


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = sub.add_parser(
        "reclaim",
        help="make room on a full mount: what comes back by itself, once you consent",
        description="Surveys the mount, prints the exact list, and removes it only after its phrase was "
        "typed on the terminal. No option, variable, pipe or file can supply the phrase. What is gone for "
        "ever (trash, core dumps) is in the list only where --path names it, and never on a held box.",
    )
    parser.add_argument("name", metavar="NAME", help="a box, a run on it, or `local`")
    parser.add_argument("--mount", metavar="M", help="a path on the mount; else the fullest one")
    parser.add_argument(
        "--path", metavar="P", action="append", help="only this place of the list; may be given again"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and do nothing")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON and do nothing")
    parser.set_defaults(run=lambda args: asyncio.run(_reclaim(args)))


async def _reclaim(args: argparse.Namespace) -> int:
    from tui.fleet import settings
    from tui.fleet.paths import paths
    from tui.model.instance import Instance
    from tui.verbs.ending import changing, instance_named
    from tui.verbs.line import line_to
    from tui.workers.reclaim_once import look

    only_told = args.dry_run or args.json
    where = paths() if only_told else changing(args)
    loaded = settings.load(where.fleet_file)
    known = args.name != "local" or any(one.name == "local" for one in loaded.instances)
    box = instance_named(args.name, where) if known else Instance("local", "local", None)
    specs = tuple(run for run in loaded.runs if run.box == box.name)
    async with line_to(box, where) as line:
        if not args.json:
            _say("surveying; it may take a minute", sys.stderr)
        seen = await look(await line(), box, specs, args.mount, time.time, loaded.settings.thresholds)
        try:
            plan = plan_of(seen.ladder, None if args.path is None else set(args.path))
        except Failure as failure:
            if args.path is not None:
                raise
            return _nothing(args, seen.ladder, failure)
        if args.json:
            print(json.dumps(plan_json(plan), ensure_ascii=False, indent=1))
        else:
            _tell((*plan_lines(plan), *left_lines(plan, seen.ladder)))
        if only_told:
            return Exit.ATTENTION if plan.shortfall else Exit.FINE
        return await _carry_out(plan, seen, line, where)


async def _carry_out(plan: ReclaimPlan, seen: Looked, line: Line, where: Paths) -> int:
    """Ask for the phrase, do it, tell what came of it. Raises Failure (exit 4) without a terminal."""
    from tui.custody.keyboard import read_line, require_terminal
    from tui.widgets.storage_words import conclusion, observed
    from tui.workers.reclaim import Reclaiming
    from tui.workers.triage import kept_of

    require_terminal()
    typed = read_line(f"Type this, and Enter, to remove it:\n  {plan.phrase}\n> ", ANSWER_S)
    after: list[Ladder] = []

    async def surveyed(found: Survey) -> None:
        after.append(seen.anew(found, time.time()))

    async def show(view: ReclaimView) -> None:
        if view.working:
            _say(view.said, sys.stderr)

    async def connected() -> Transport:
        return await line()

    box: Instance = seen.box.instance
    act = Reclaiming(plan, box, where, connected, kept=kept_of(seen.runs), show=show, surveyed=surveyed)
    view = await act.carry_out(typed)
    if not view.over:
        _tell([view.said])
        return Exit.ATTENTION
    _tell(removal_lines(view))
    _tell([observed(view), *map(conclusion, after)])
    if view.count("unknown") or view.after is None:
        return Exit.UNKNOWN
    return Exit.FINE if view.count("removed") == len(view.removals) else Exit.ATTENTION


def _nothing(args: argparse.Namespace, made: Ladder, failure: Failure) -> int:
    """What is to be said where nothing may go: the exact shortfall, if there is one."""
    from tui.widgets.storage_words import conclusion

    if args.json:
        short = {"to_free": made.to_free, "shortfall": made.to_free, "expand_by": made.expand_by}
        print(json.dumps({"box": made.box, "mount": made.mount, "entries": [], **short}, indent=1))
    else:
        _tell([failure.line, conclusion(made)])
    return Exit.ATTENTION if made.to_free else Exit.FINE


# -- what is told ------------------------------------------------------------------------------------------


def plan_lines(plan: ReclaimPlan) -> Iterator[str]:
    """The plan for people: each path in full, what it adds up to, where it leaves the mount."""
    from tui.widgets.figures import size
    from tui.widgets.storage_words import LEVELS, computed, conclusion

    yield f"reclaim on {plan.box}, {plan.mount}:"
    for one in plan.entries:
        files = "?" if one.files is None else f"{one.files:,}"
        yield f"  {one.path}"
        yield f"    {size(one.bytes)} in {files} files, {'comes back' if one.returns else 'for ever'}"
        yield f"    {one.kind}: {one.why}"
    files = "?" if plan.files is None else f"{plan.files:,}"
    yield f"in all {len(plan.entries)} places, {size(plan.bytes)} in {files} files"
    yield from (computed(plan), LEVELS[plan.level], conclusion(plan))
    yield from (f"not read: {text}" for text in plan.unread)


def left_lines(plan: ReclaimPlan, made: Ladder) -> Iterator[str]:
    """What else may go and is not in the plan."""
    from tui.widgets.figures import size

    for one in made.reclaim:
        if one not in plan.entries:
            how = "comes back" if one.returns else "gone for ever"
            yield f"not in it: {one.path} ({one.kind}, {size(one.bytes)}, {how}); --path names it"


def plan_json(plan: ReclaimPlan) -> dict[str, object]:
    """The plan for a program; null is what is not known."""
    entries = [
        {
            "path": one.path,
            "kind": one.kind,
            "why": one.why,
            "returns": one.returns,
            "identity": one.identity,
            "bytes": one.bytes,
            "files": one.files,
        }
        for one in plan.entries
    ]
    return {
        "box": plan.box,
        "mount": plan.mount,
        "level": plan.level,
        "digest": plan.digest,
        "resource": plan.resource,
        "used": plan.used,
        "limit": plan.limit,
        "pct_now": plan.pct_now,
        "pct_after": plan.pct_after,
        "bytes": plan.bytes,
        "files": plan.files,
        "to_free": plan.to_free,
        "shortfall": plan.shortfall,
        "expand_by": plan.expand_by,
        "entries": entries,
        "unread": list(plan.unread),
    }


def removal_lines(view: ReclaimView) -> Iterator[str]:
    """What became of each entry."""
    for one in view.removals:
        yield f"{one.state:<8} {one.path}{f': {one.why}' if one.why else ''}"


def _tell(lines: Iterable[str]) -> None:
    for text in lines:
        _say(text, sys.stdout)


def _say(text: str, out: TextIO) -> None:
    print(safe(text), file=out, flush=True)
