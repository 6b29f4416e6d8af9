"""`rgt resume`, `drill` and `handbook`: go on with a run, prove that it can, and say how by hand."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.runs.book import Page
    from tui.runs.drill import Reading

_CONSENT_S = 300.0


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verbs to the command line."""
    resume = sub.add_parser("resume", help="go on with a launched run: the identical plan, nothing else")
    drill = sub.add_parser("drill", help="kill a run on purpose, start it again, and see whether it goes on")
    handbook = sub.add_parser("handbook", help="what somebody needs who knows nothing of a run")
    for verb, run in ((resume, _resume), (drill, _drill), (handbook, _handbook)):
        verb.add_argument("name", metavar="RUN", help="a run that rgt launched")
        verb.add_argument("--json", action="store_true", help="print JSON")
        verb.set_defaults(run=lambda args, run=run: asyncio.run(run(args)))


async def _resume(args: argparse.Namespace) -> int:
    from tui.runs.resume import resume
    from tui.verbs.line import line_to

    with _alone(args):
        page, instance, where = _known(args)
        async with line_to(instance, where) as dial:
            answer = await resume(dial, page, told=lambda line: _say(args, line))
    if answer.started is not None:
        _watch_again(where, page, answer.truth.start)
    if args.json:
        print(json.dumps({"run": page.run, "kind": answer.kind, "attempt": answer.truth.attempt}))
    else:
        print(f"{page.run}: {answer.kind}. {answer.why}")
    return {"dead": Exit.ATTENTION, "unknown": Exit.UNKNOWN}.get(answer.kind, Exit.FINE)


async def _drill(args: argparse.Namespace) -> int:
    from tui.custody.keyboard import require_terminal
    from tui.runs.drill import drill, where_it_is
    from tui.verbs.line import line_to

    require_terminal()
    with _alone(args):
        page, instance, where = _known(args)
        async with line_to(instance, where) as dial:
            truth, before = await where_it_is(await dial(), page)
            if not await _consents(args, page, before):
                print("Nothing was done.")
                return Exit.ATTENTION
            done = await drill(dial, page, truth, before, told=lambda line: _say(args, line))
    if done.answer.started is not None:
        _watch_again(where, page, done.answer.truth.start)
    if args.json:
        print(
            json.dumps({"run": page.run, "verdict": done.verdict, "why": done.why, "lost": done.lost_steps})
        )
    else:
        print(f"before  {_words(done.before)}")
        print(f"after   {_words(done.after)}")
        print(f"{done.verdict}: {done.why}")
    return Exit.FINE if done.verdict == "goes on" else Exit.ATTENTION


async def _consents(args: argparse.Namespace, page: Page, before: Reading) -> bool:
    from tui.custody.keyboard import read_line

    _say(args, f"{page.run} on {page.box} is at {_words(before)}.")
    _say(args, "The drill kills it with SIGKILL and starts it again: what was done since its newest")
    _say(args, "checkpoint is done again and paid again. Nothing is deleted.")
    typed = await asyncio.to_thread(read_line, f"Type kill {page.run} and Enter to do it: ", _CONSENT_S)
    return typed.strip() == f"kill {page.run}"


async def _handbook(args: argparse.Namespace) -> int:
    from tui.fleet.leash_notes import noted
    from tui.fleet.paths import paths
    from tui.runs.book import book
    from tui.runs.handbook import handbook

    page = book(paths()).page(args.name)
    found = handbook(page, f"rgt ssh {shlex.quote(page.box)}", noted(paths()).get(page.box))
    if args.json:
        print(json.dumps(dict(found), indent=1))
    else:
        for title, line in found:
            print(f"{title:<12} {line}")
    return Exit.FINE


def _words(reading: Reading) -> str:
    loss = "" if reading.loss is None else f", loss {reading.loss:.4g}"
    rate = "" if reading.rate is None else f", lr {reading.rate:.3g}"
    return safe(f"{reading.unit or 'step'} {'?' if reading.step is None else reading.step}{loss}{rate}")


def _alone(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Nobody else starts the run. Its page is read inside: a relaunch moves it until then. Raises Failure."""
    from tui.verbs.ending import changing
    from tui.workers.lock import starting

    return starting(changing(args), args.name)


def _known(args: argparse.Namespace) -> tuple[Page, Instance, Paths]:
    """The run's page, its box and the operator's files. Raises Failure."""
    from tui.runs.book import book
    from tui.verbs.ending import changing, instance_named

    where = changing(args)
    page = book(where).page(args.name)
    instance = instance_named(page.box, where)
    if page.instance_id and instance.instance_id and page.instance_id != instance.instance_id:
        raise Failure(
            f"{page.box} is another machine now ({safe(instance.instance_id, 60)}).",
            means=f"{page.run} was launched on {safe(page.instance_id, 60)}; nothing was done.",
            do="Launch the job on the new machine, with its checkpoints in place.",
            code="other-machine",
        )
    return page, instance, where


def _watch_again(where: Paths, page: Page, start: Mapping[str, str]) -> None:
    """The process to watch is another one now."""
    from tui.fleet import fleet_file, settings

    if not any(one.name == page.run for one in settings.load(where.fleet_file).runs):
        return
    pid, ticks = start.get("pid", ""), start.get("ticks", "")
    fleet_file.edit_run(
        where.fleet_file,
        page.run,
        {
            "pid": int(pid) if pid.isdecimal() else None,
            "pid_start": int(ticks) if ticks.isdecimal() else None,
            "boot_id": start.get("boot") or None,
        },
    )


def _say(args: argparse.Namespace, line: str) -> None:
    """Narration; beside JSON it goes to stderr."""
    print(line, file=sys.stderr if args.json else sys.stdout, flush=True)
