"""`rgt queue` and `rgt matrix`: many cells of one job over several boxes, and what is true of each."""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.verbs.job_word import job_word

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.runs.cells import Cell
    from tui.runs.errand import Errand
    from tui.runs.matrix import Row
    from tui.runs.queue import Seen
    from tui.runs.queue_book import QueuePage, Share
    from tui.verbs.line import Line


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both verbs to the command line."""
    queue = sub.add_parser("queue", help="run every cell of a job's matrix, split over boxes")
    queue.add_argument("file", type=job_word, metavar="JOB", help="a job.toml with a [matrix]")
    queue.add_argument("--on", required=True, metavar="BOX[,BOX]", help="boxes of the fleet")
    queue.add_argument(
        "--shared", metavar="FOLDER", help="one all boxes see: who is free takes the next cell"
    )
    queue.add_argument(
        "--speed", action="append", default=[], metavar="BOX=N", help="how fast a box is beside others"
    )
    queue.add_argument("--dir", metavar="FOLDER", help="on the boxes, in place of their data disk")
    queue.add_argument("--dry-run", action="store_true", help="show the split, do nothing")
    queue.add_argument("--json", action="store_true", help="print JSON")
    queue.set_defaults(run=lambda args: asyncio.run(_queue(args)))
    matrix = sub.add_parser("matrix", help="a queue's cells: what each box and the ledger say of each")
    matrix.add_argument("name", nargs="?", metavar="QUEUE", help="by default the newest one")
    matrix.add_argument("--json", action="store_true", help="print JSON")
    matrix.set_defaults(run=lambda args: asyncio.run(_matrix(args)))


async def _queue(args: argparse.Namespace) -> int:
    from tui.custody.moments import moment
    from tui.runs.cells import cells, split
    from tui.runs.queue_book import QueuePage, queue_book
    from tui.verbs.ending import changing

    where = changing(args)
    tasks = _tasks(args, where)
    first = next(iter(tasks.values()))
    found = cells(first.job, first.tree.digest)
    name = f"{first.job.name}-{first.run_id.rpartition('-')[2]}"
    speeds = _speeds(args.speed, tuple(tasks))
    parts = {box: list(found) for box in tasks} if args.shared else split(found, speeds)
    parts = _as_before(queue_book(where).find(name), parts, found)
    tasks = {box: tasks[box] for box in parts}  # in the order that it was begun in
    _say(args, (safe(f"{box}: {len(part)} cells of {len(found)}") for box, part in parts.items()))
    if args.dry_run:
        _say(args, (safe(f"  {box}  {cell.name}", 200) for box, part in parts.items() for cell in part))
        return Exit.FINE
    shares = await _laid_down(args, where, name, tasks, parts)
    values = {cell.name: dict(cell.values) for cell in found}
    page = QueuePage(queue=name, file=args.file, at=moment(time.time()), values=values, shares=shares)
    queue_book(where).write(page)
    started = await _start(args, where, name, tasks, shares)
    _say(args, [f"{name}: {len(found)} cells on {len(shares)} boxes. Look: rgt matrix {name}"])
    if args.json:
        print(json.dumps({"queue": name, "cells": len(found), "started": started}, indent=1))
    return Exit.FINE if all(started.values()) else Exit.ATTENTION


def _tasks(args: argparse.Namespace, where: Paths) -> dict[str, Errand]:
    """The job on each box. Raises Failure."""
    from tui.verbs.ending import instance_named
    from tui.workers.launch_once import worked_out

    found = {}
    for box in dict.fromkeys(args.on.split(",")):
        instance = instance_named(box.strip(), where)
        found[instance.name] = worked_out(Path(args.file), instance, where, folder=args.shared or args.dir)
    return found


def _as_before(
    page: QueuePage | None, parts: dict[str, list[Cell]], found: Sequence[Cell]
) -> dict[str, list[Cell]]:
    """The split that a queue was begun with: another one could run a cell on two boxes. Raises Failure."""
    if page is None:
        return parts
    before = {share.box: [cell for cell in found if cell.name in share.folders] for share in page.shares}
    if before.keys() != parts.keys():
        raise Failure(
            f"This queue was begun on {', '.join(before)}.",
            means="Another split could run a cell twice; nothing was started.",
            do="Name the same boxes.",
            code="other-split",
        )
    return before


def _speeds(words: Sequence[str], boxes: Sequence[str]) -> dict[str, float]:
    found = dict.fromkeys(boxes, 1.0)
    for word in words:
        box, _, number = word.partition("=")
        try:
            speed = float(number)
        except ValueError:
            speed = 0.0
        if box not in found or not 0 < speed < 1e6:
            raise Failure("--speed takes BOX=N with a box of --on and a number above 0.", exit=Exit.USAGE)
        found[box] = speed
    return found


async def _laid_down(
    args: argparse.Namespace,
    where: Paths,
    name: str,
    tasks: Mapping[str, Errand],
    parts: Mapping[str, Sequence[Cell]],
) -> tuple[Share, ...]:
    """Bring code, plans and list to every box; what is there already is compared, not written over."""
    from tui.runs.queue_book import Share
    from tui.verbs.line import line_to

    shares: list[Share] = []
    token = secrets.token_hex(8)
    for box, task in tasks.items():
        async with line_to(task.instance, where) as line:
            task, home = await _resolved(args, line, task)
            if args.shared:
                await _really_shared(line, task, token, first=not shares)
            claims = f"{task.folder}/queue/{name}/claims"
            folders = {cell.name: f"{task.folder}/active/{cell.name}" for cell in parts[box]}
            if not args.shared or not shares:
                await _cells_down(args, where, line, task, home, parts[box])
            shares.append(Share(box=box, root=task.folder, claims=claims, folders=folders))
    return tuple(shares)


async def _resolved(args: argparse.Namespace, line: Line, task: Errand) -> tuple[Errand, str]:
    """The errand with the folder as the box resolves it, and the box's home. Raises Failure: it must stop."""
    from tui.runs.preflight import ask_box, checks
    from tui.workers.launch_once import look_first
    from tui.workers.once import take

    box = await line()
    if task.scheduled:
        looked = await look_first(task, box)
        _say(
            args,
            (f"  {one.verdict:<8} {one.name}: {one.said}" for one in looked.checks if one.verdict != "ok"),
        )
        if looked.stopped:
            raise Failure(f"{task.instance.name}: {looked.checks[0].said}", means="Nothing was started.")
        return looked.task, looked.home
    facts = await ask_box(box, task.run, task.inputs())
    telemetry = await take(box, task.instance.mounts, (), time.time)
    found = checks(task.job, facts, telemetry, None)
    _say(args, (f"  {one.verdict:<8} {one.name}: {one.said}" for one in found if one.verdict != "ok"))
    stops = [one.said for one in found if one.verdict == "stop"]
    if stops:
        raise Failure(f"{task.instance.name}: {stops[0]}", means="Nothing was started.", code="preflight")
    host = telemetry.host.value
    return task.at(facts.run), str(host.home) if host and host.home else "/root"


async def _really_shared(line: Line, task: Errand, token: str, *, first: bool) -> None:
    """What one box wrote the others must read: a path of the same name need not be the same disk."""
    from tui.box.transport import Script

    write = 'umask 077; mkdir -p -- "$1/queue" && printf %s "$2" >"$1/queue/.shared"'
    text = write if first else 'cat -- "$1/queue/.shared"'
    done = await (await line()).run(Script(text, (task.folder, token), why="is the folder shared?"))
    if done.exit != 0 or (not first and done.stdout.decode("ascii", "replace") != token):
        raise Failure(
            f"{task.instance.name} does not see in {safe(task.folder, 200)} what another box wrote there.",
            means="It is no shared folder for them, and cells could run twice; nothing was started.",
            do="Leave --shared out, and the cells are split beforehand.",
            code="not-shared",
        )


async def _cells_down(
    args: argparse.Namespace, where: Paths, line: Line, task: Errand, home: str, part: Sequence[Cell]
) -> None:
    from tui.custody.moments import moment
    from tui.runs.book import book
    from tui.runs.detach import give_secrets, lay_down
    from tui.runs.errand import secrets_of
    from tui.runs.plan_files import PLAN
    from tui.runs.push import make_copy, push

    await push(await line(), task.tree, task.store)
    given = secrets_of(task.job)
    for number, cell in enumerate(part, start=1):
        one = replace(task, run_id=cell.name, cell=cell.values)
        file = one.secrets_file(home) if given else None
        what = one.launch(file)
        book(where).write(
            one.page(Path(args.file), what.files[f"{PLAN}/id"].decode().strip(), moment(time.time()))
        )
        await lay_down(await line(), one.run, what.files)
        await make_copy(await line(), one.tree, one.store, one.run)
        if file is not None:
            folder, _, leaf = file.rpartition("/")
            await give_secrets(await line(), folder, leaf, given)
        if number % 50 == 0:
            _say(args, [f"  {number} of {len(part)} cells laid down"])


async def _start(
    args: argparse.Namespace, where: Paths, name: str, tasks: Mapping[str, Errand], shares: Sequence[Share]
) -> dict[str, bool]:
    """Start each box's worker; one that is alive already is left at work.

    On a cluster it is an array of its scheduler's, a task a cell.
    """
    from tui.runs import queue
    from tui.runs.detach import start
    from tui.verbs.line import line_to

    started = {}
    for share in shares:
        task = tasks[share.box]
        folder = f"{share.root}/queue/{name}/{share.box}"
        session = f"rgt-{name}-{share.box}".replace(".", "_").replace(":", "_")
        async with line_to(task.instance, where) as line:
            more = task.batch(len(share.folders))
            await queue.lay_down(await line(), folder, share.folders, share.claims, more)
            try:
                if not await queue.at_work(await line(), folder):
                    await start(await line(), folder, queue.worker_name(), session, task.how)
                else:
                    _say(args, [safe(f"{share.box}: its worker is at work already; nothing was started.")])
                started[share.box] = True
            except Failure as failure:  # of two at once, one finds the other's worker
                started[share.box] = await queue.at_work(await line(), folder)
                if not started[share.box]:
                    _say(args, [failure.line])
    return started


async def _matrix(args: argparse.Namespace) -> int:
    from tui.fleet.paths import paths
    from tui.runs import queue
    from tui.runs.matrix import cost_lines, counts
    from tui.verbs.ending import instance_named
    from tui.verbs.line import line_to
    from tui.workers.matrix_once import ask_all, held_of, page_of, table

    where = paths()
    page = page_of(args.name, where)

    async def ask(share: Share) -> Sequence[Seen]:
        async with line_to(instance_named(share.box, where), where) as line:
            return await queue.read(await line(), share.claims, share.folders)

    found = table(page, await ask_all(page, ask), held_of(where))
    if args.json:
        print(json.dumps({"queue": page.queue, "counts": counts(found), "cells": [_row(r) for r in found]}))
    else:
        _table(found)
        print("  ".join(f"{word} {count}" for word, count in counts(found).items()))
        print(*cost_lines(found), sep="\n", end="\n" if cost_lines(found) else "")
    bad = {"failed", "lost", "blocked"}
    if any(row.state in bad or (row.accepted is None and row.sealed) for row in found):
        return Exit.ATTENTION
    return Exit.UNREACHABLE if any(row.state == "unreachable" for row in found) else Exit.FINE


_MARKS = {True: "yes", False: "–", None: "?"}


def _table(found: Sequence[Row]) -> None:
    names = list(found[0].values) if found else []
    head = [*names, "BOX", "STATE", "TRY", "SEALED", "ACCEPTED", "EVALUATED", ""]
    lines = [
        [
            *(safe(row.values.get(name, ""), 24) for name in names),
            row.by or row.box,
            row.state,
            "?" if row.attempt is None else str(row.attempt),
            _MARKS[row.sealed],
            _MARKS[row.accepted],
            _MARKS[row.evaluated],
            row.why if row.state not in ("complete", "running", "waiting") else "",
        ]
        for row in found
    ]
    widths = [max(len(line[n]) for line in [head, *lines]) for n in range(len(head))]
    for line in [head, *lines]:
        print("  ".join(word.ljust(widths[n]) for n, word in enumerate(line)).rstrip())


def _row(row: Row) -> dict[str, object]:
    return {
        "run": row.name,
        "values": dict(row.values),
        "box": row.box,
        "claimed_by": row.by,
        "state": row.state,
        "attempt": row.attempt,
        "why": row.why,
        "sealed": row.sealed,
        "accepted": row.accepted,
        "evaluated": row.evaluated,
        "took_s": row.took_s,
    }


def _say(args: argparse.Namespace, lines: Iterable[str]) -> None:
    """Narration; beside JSON it goes to stderr."""
    for line in lines:
        print(line, file=sys.stderr if args.json else sys.stdout, flush=True)
