"""`rgt relaunch`: a run whose machine is gone goes on on another one, from its durable copy. Level 2.

The other one is a box of the fleet, or is rented in the same plan (`relaunch_rent`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

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


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    from tui.verbs.renting import arguments

    again = sub.add_parser("relaunch", help="go on with a run on another box, from its durable checkpoints")
    again.add_argument("name", metavar="RUN", help="a run that rgt launched")
    there = again.add_mutually_exclusive_group(required=True)
    there.add_argument("--on", metavar="BOX", help="another box of the fleet")
    there.add_argument(
        "--rent", action="store_true", help="a new machine of the same platform, rented in the same plan"
    )
    arguments(again, "with --rent: ")
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
    from tui.verbs.ending import instance_named
    from tui.verbs.relaunch_old import fate_of

    page = book(where).page(args.name)
    old = await fate_of(page, where)
    if not args.rent:
        return await _onto(args, page, instance_named(args.on, where), where, old)
    box = await _rented(args, page, where, old)
    if box is None:
        return Exit.FINE if args.dry_run else Exit.ATTENTION
    code: int = Exit.ATTENTION
    try:
        code = await _onto(args, page, box, where, old)
    finally:
        if code:
            _say(f"{box.name} was rented for it, and bills until its end. The same command goes on there;")
            _say(f"rgt down {box.name} ends it, and after rgt remove {box.name} another one is rented.")
    return code


async def _rented(args: argparse.Namespace, page: Page, where: Paths, old: Fate) -> Instance | None:
    """The machine to go on at: one rented before for this run, else a new one. None: nothing was rented."""
    from tui.runs.errand import secrets_of
    from tui.verbs import renting
    from tui.verbs.relaunch_old import certain
    from tui.verbs.relaunch_rent import after_it, provisional, rented_before, want_of

    want, base = want_of(args, page, where), Path(page.file).parent
    box = None
    if not args.dry_run:
        box = await renting.settled(want, where, _say, not_there=args.not_there)
    if box is None:
        box = rented_before(page, where, unbegun=old.kind == "unbegun")
    if box is not None:
        _say(f"rented before: {box.name}, for {page.run}")
        return box
    certain(old, page, sworn=args.old_is_gone)
    task = _same(page, provisional(page), where, args.dir)
    copy = _copy(args, page, where)
    secrets_of(task.job)  # what lacks there stops it before any money
    _say(f"relaunch {page.run}: from {page.box} to a new machine of {page.platform}")
    _tell(old, copy.files if copy is not None else _files(args, page), task)
    stops = await _told_here(task, base)
    made = await renting.order(want, where)
    for title, text in chain(renting.plan_of(made), after_it(task, base)):
        _say(f"  {title:<8} {text}")
    if args.dry_run or stops or not await asyncio.to_thread(renting.consents, made):
        _say("Nothing was rented, nothing was started.")
        return None
    return await renting.rent(made, want, where, _say)


async def _told_here(task: Errand, base: Path) -> bool:
    """Tell what can be seen of the inputs before there is a machine; whether something stops."""
    from tui.runs.inputs import here, mirrored

    checks = [*await asyncio.to_thread(here, task.job, base), *await mirrored(task.job)]
    for check in checks:
        _say(f"  {check.verdict:<8} {check.name}: {check.said}")
    return any(check.verdict == "stop" for check in checks)


def _tell(old: Fate, files: tuple[Carried, ...], task: Errand) -> None:
    from tui.runs.carry import carry_lines
    from tui.workers.launch_once import plan_lines

    _say(f"  old      {old.kind}: {old.why}")
    for title, text in (*carry_lines(files), *plan_lines(task)):
        _say(f"  {title:<8} {text}")


async def _onto(args: argparse.Namespace, page: Page, box: Instance, where: Paths, old: Fate) -> int:
    """Go on on this box."""
    from tui.runs.errand import secrets_of
    from tui.verbs.line import line_to
    from tui.verbs.relaunch_old import certain
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer
    from tui.workers.carried_back import bring_here, drop
    from tui.workers.launch_once import look_around, look_first

    there = box.name == page.box and box.instance_id == page.instance_id
    if there and old.kind != "unbegun":  # else a relaunch to it was cut off before it began
        return await _begun_already(args, page, box, where, old)
    task, copy = _same(page, box, where, args.dir), _copy(args, page, where)
    files = copy.files if copy is not None else _files(args, page)
    secrets = secrets_of(task.job)
    async with line_to(box, where) as line:
        _say(f"relaunch {page.run}: from {page.box} to {box.name}")
        if args.rent:
            await _made_ready(line, task, Path(page.file).parent, dry_run=args.dry_run)
        looked = await look_around(line, await look_first(task, await line()), Path(page.file).parent)
        _tell(old, files, looked.task)
        for check in looked.checks:
            _say(f"  {check.verdict:<8} {check.name}: {check.said}")
        if not there:
            certain(old, page, sworn=args.old_is_gone)
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


async def _made_ready(line: Line, task: Errand, base: Path, *, dry_run: bool) -> None:
    """A machine that is new lets nobody in for a while, and has none of the inputs. Raises Failure."""
    from tui.runs.preflight import ask_box
    from tui.runs.stage import bring, steps
    from tui.verbs.renting import reached

    await reached(line, _say)
    facts = await ask_box(await line(), task.run, task.inputs())
    for step in steps(task.job.inputs, facts, base):
        _say(f"  {step.line}")
        if step.source not in ("there", "nowhere") and not dry_run:
            _say(f"  {await bring(line, step, _say)}")


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
