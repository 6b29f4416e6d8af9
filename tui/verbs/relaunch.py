"""`rgt relaunch`: a run whose machine is gone goes on on another one, from its durable copy. Level 2."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import amount, safe

if TYPE_CHECKING:
    from tui.box.transport import Transport
    from tui.fleet.paths import Paths
    from tui.model.instance import Instance
    from tui.runs.book import Page
    from tui.runs.carry import Carried
    from tui.runs.errand import Errand
    from tui.runs.fate import Fate
    from tui.workers.carried_back import DurableCopy
    from tui.workers.launch_once import Looked
    from tui.workers.line import Line

_ASK_S = 25.0


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    again = sub.add_parser("relaunch", help="go on with a run on another box, from its durable checkpoints")
    again.add_argument("name", metavar="RUN", help="a run that rgt launched")
    again.add_argument("--on", required=True, metavar="BOX", help="another box of the fleet")
    begins = again.add_mutually_exclusive_group(required=True)
    begins.add_argument("--from", dest="copy", metavar="DIR", help="a copy of it on this computer")
    begins.add_argument("--pulled", action="store_true", help="the durable copy that rgt pull made last")
    begins.add_argument("--from-scratch", action="store_true", help="without a checkpoint, at step 0")
    again.add_argument("--dir", metavar="FOLDER", help="on the box, in place of its data disk")
    again.add_argument(
        "--old-is-gone", action="store_true", help="your word that the old machine runs no more"
    )
    again.add_argument("--dry-run", action="store_true", help="the plan and the preflight, nothing else")
    again.add_argument("--json", action="store_true", help="print JSON")
    again.set_defaults(run=lambda args: asyncio.run(_relaunch(args)))


async def _relaunch(args: argparse.Namespace) -> int:
    from tui.verbs.ending import changing
    from tui.workers.lock import starting

    where = changing(args)
    with starting(where, args.name):  # two at once would both find the old one dead, and start it twice
        return await _alone(args, where)


async def _alone(args: argparse.Namespace, where: Paths) -> int:
    from tui.runs.book import book
    from tui.runs.errand import secrets_of
    from tui.verbs.ending import instance_named
    from tui.verbs.line import line_to
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer
    from tui.workers.carried_back import bring_here, drop
    from tui.workers.launch_once import look_around, look_first, plan_lines

    page = book(where).page(args.name)
    box = instance_named(args.on, where)
    old = await _fate(page, where)
    there = box.name == page.box and box.instance_id == page.instance_id
    if there and old.kind != "unbegun":  # else a relaunch to it was cut off before it began
        return await _begun_already(args, page, box, where, old)
    task, copy = _same(page, box, where, args.dir), _copy(args, page, where)
    files = copy.files if copy is not None else _files(args, page)
    secrets = secrets_of(task.job)
    async with line_to(box, where) as line:
        looked = await look_around(line, await look_first(task, await line()), Path(page.file).parent)
        _say(f"relaunch {page.run}: from {page.box} to {box.name}")
        _say(f"  old      {old.kind}: {old.why}")
        for one in files:
            told = f"{one.path}, {amount(one.bytes)}, sha256 {one.sha256[:12]}…"
            _say(f"  carry    {told}, from {one.origin or one.here}")
        if not files:
            _say("  carry    nothing: it begins at step 0")
        for title, text in plan_lines(looked.task):
            _say(f"  {title:<8} {text}")
        for check in looked.checks:
            _say(f"  {check.verdict:<8} {check.name}: {check.said}")
        if not there:
            _certain(old, page, sworn=args.old_is_gone)
        if args.dry_run or looked.stopped:
            _say("Nothing was started.")
            return Exit.ATTENTION if looked.stopped else Exit.FINE
        if copy is not None:
            await bring_here(copy, where, dialer(where, asker=TerminalAsker()))
        if not there:
            _move(args, page, looked, files, where, old)
        code = await _begun(args, page, line, looked, files, where, secrets)
    if copy is not None:
        await drop(copy)
    return code


def _move(
    args: argparse.Namespace,
    page: Page,
    looked: Looked,
    files: tuple[Carried, ...],
    where: Paths,
    old: Fate,
) -> None:
    """From here on the run belongs there, whatever happens to this process: receipt, page, fleet file."""
    from tui.custody.moments import moment
    from tui.fleet.fleet_source import FleetFile
    from tui.runs.book import book
    from tui.workers.launch_once import plan_id

    task = looked.task
    moved = task.page(Path(page.file), plan_id(looked), moment(time.time()))
    _receipt(where, page, task, old, files, sworn=args.old_is_gone and not old.certain)
    book(where).move(moved)
    FleetFile(where).set_run(task.spec({}, tmux=False))


async def _begun_already(args: argparse.Namespace, page: Page, box: Instance, where: Paths, now: Fate) -> int:
    """It was begun there, maybe by a relaunch that was cut off before it could write that down."""
    from tui.runs.errand import spec_of
    from tui.runs.truth import look
    from tui.verbs.line import line_to
    from tui.workers.launch_once import watch

    if now.kind != "unknown":
        async with line_to(box, where) as line:
            truth = await look(await line(), page.folder)
        watch(where, spec_of(page, truth.start, truth.job))
    if now.kind not in ("runs", "over"):
        raise Failure(
            f"{page.run} is on {box.name} already. {now.why}",
            do=f"rgt resume {page.run} goes on with it there.",
            exit=Exit.USAGE,
        )
    if args.json:
        print(json.dumps({"run": page.run, "box": box.name, "kind": now.kind, "why": now.why}))
    else:
        print(f"{page.run} is on {box.name} already; nothing was started. {now.why}")
    return Exit.FINE


async def _begun(
    args: argparse.Namespace,
    page: Page,
    line: Line,
    looked: Looked,
    files: tuple[Carried, ...],
    where: Paths,
    secrets: dict[str, str],
) -> int:
    from tui.runs.carry import carry
    from tui.workers.launch_once import begin

    task = looked.task

    async def more(_box: Transport) -> None:
        await carry(line, task.run, files, _say)

    answer = await begin(line, looked, Path(page.file), where, secrets, _say, more)
    if args.json:
        print(
            json.dumps({"run": page.run, "box": task.instance.name, "kind": answer.kind, "why": answer.why})
        )
    else:
        print(f"{page.run} on {task.instance.name}: {answer.kind}. {answer.why}")
        if answer.pace is not None:
            print(f"checkpoints: {answer.pace.said}")
    return {"dead": Exit.ATTENTION, "unknown": Exit.UNKNOWN}.get(answer.kind, Exit.FINE)


def _same(page: Page, box: Instance, where: Paths, folder: str | None) -> Errand:
    """The very same run on another box. Raises Failure: its job or code here is another one now."""
    from tui.workers.launch_once import worked_out

    task = worked_out(Path(page.file), box, where, name=page.run, folder=folder)
    task = replace(task, cell=page.cell)
    if task.tree.digest != page.code or task.job != page.job:
        what = "code" if task.tree.digest != page.code else "job file"
        commit = f"Check out commit {page.commit[:12]}, or launch" if page.commit else "Launch"
        raise Failure(
            f"The {what} of {page.run} here is not what it was launched with.",
            means="It would not be the same run; nothing was started.",
            do=f"{commit} it as a run of its own.",
            code="other-code",
        )
    return task


def _copy(args: argparse.Namespace, page: Page, where: Paths) -> DurableCopy | None:
    """The durable copy on record, where that is asked for. Raises Failure."""
    from tui.workers.carried_back import durable_copy

    return durable_copy(page.run, _pattern(page), where) if args.pulled else None


def _files(args: argparse.Namespace, page: Page) -> tuple[Carried, ...]:
    from tui.workers.carried_back import copy_in

    return () if args.from_scratch else copy_in(Path(args.copy).expanduser(), _pattern(page))


def _pattern(page: Page) -> str:
    if not page.job.checkpoints:
        raise Failure(
            f"The job file of {page.run} names no checkpoints.",
            do='Add checkpoints = "ckpt/*.pt" to it, or give --from-scratch.',
            exit=Exit.USAGE,
        )
    return page.job.checkpoints


async def _fate(page: Page, where: Paths) -> Fate:
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


def _certain(old: Fate, page: Page, *, sworn: bool) -> None:
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


def _receipt(
    where: Paths, page: Page, task: Errand, old: Fate, files: tuple[Carried, ...], *, sworn: bool
) -> None:
    from tui.custody.machine import known_victim
    from tui.custody.moments import moment
    from tui.custody.receipts import Ledger
    from tui.custody.statement import Receipt, Subject, about

    victim = known_victim(task.instance, where)
    carried = tuple(Subject(name=one.path, sha256=f"sha256:{one.sha256}") for one in files)
    word = ", by the operator's word" if sworn else ""
    Ledger(where.receipts).append(
        Receipt(
            act="relaunch",
            result="recorded",
            at=moment(time.time()),
            subjects=(about(victim, victim.name), *carried),
            victim=victim,
            run=page.run,
            detail=f"from {page.box}, which is {old.kind}{word}; {len(files)} checkpoints to carry",
        )
    )


def _say(line: str) -> None:
    print(safe(line, 500), file=sys.stderr, flush=True)
