"""`rgt job`, `smoke`, `push` and `launch`: from a job file to a run that needs nobody."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.verbs.job_word import job_word

if TYPE_CHECKING:
    from tui.fleet.paths import Paths
    from tui.runs.errand import Errand
    from tui.runs.launch import Answer
    from tui.workers.launch_once import Looked

_SMOKE_S = 600.0
_AFTER_S = 3.0
"""What the receipt and a look at the checkpoints take behind an answer that was waited for to the last."""


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verbs to the command line."""
    job = sub.add_parser("job", help="check a job file; --schema prints the schema of all of them")
    job.add_argument("file", nargs="?", type=job_word, metavar="JOB", help="a job.toml")
    job.add_argument("--schema", action="store_true", help="print the JSON schema of a job file")
    job.add_argument("--json", action="store_true", help="print JSON")
    job.set_defaults(run=_job)
    smoke = sub.add_parser("smoke", help="run a job's smoke command on this computer, without a GPU")
    smoke.add_argument("file", type=job_word, metavar="JOB", help="a job.toml with a smoke command")
    smoke.add_argument("--timeout", type=float, default=_SMOKE_S, metavar="S", help="seconds at most")
    smoke.set_defaults(run=_smoke)
    push = sub.add_parser("push", help="bring a job's code to a box; only what it has not got")
    launch = sub.add_parser("launch", help="start a job on a box, detached, and say what came of it")
    for verb in (push, launch):
        verb.add_argument(
            "file", type=job_word, metavar="JOB", help="a job.toml, or the name of one of your own"
        )
        verb.add_argument("--on", required=True, metavar="BOX", help="a box of the fleet")
        verb.add_argument("--id", metavar="NAME", help="the run's name; else made of job and code")
        verb.add_argument("--dir", metavar="FOLDER", help="on the box, in place of its data disk")
        verb.add_argument("--json", action="store_true", help="print JSON")
    launch.add_argument("--dry-run", action="store_true", help="the plan and the preflight, nothing else")
    launch.add_argument(
        "--sums", action="store_true", help="hash the inputs on the box, however long it takes"
    )
    push.set_defaults(run=lambda args: asyncio.run(_push(args)))
    launch.set_defaults(run=lambda args: asyncio.run(_launch(args)))


def _job(args: argparse.Namespace) -> int:
    from tui.runs.job_file import read_job, schema

    if args.schema:
        print(json.dumps(schema(), indent=1, ensure_ascii=True))
        return Exit.FINE
    if args.file is None:
        raise Failure("Name a job file, or ask for --schema.", exit=Exit.USAGE)
    job = read_job(Path(args.file))
    if args.json:
        print(job.model_dump_json(indent=1))
        return Exit.FINE
    many = len(job.chain())
    print(f"{job.name} of {job.project}: {many} stage{'s' if many > 1 else ''}")
    for stage in job.chain():
        print(
            safe(f"  {stage.name}: {' '.join(stage.run)} → {stage.artifact or 'its exit status alone'}", 400)
        )
    return Exit.FINE


def _smoke(args: argparse.Namespace) -> int:
    """Run the smoke command in a copy of the code, without a card: faults show before they cost."""
    from tui.runs.code_tree import content, read_tree
    from tui.runs.job_file import read_job
    from tui.runs.plan_files import Where, filled

    file = Path(args.file)
    job = read_job(file)
    if job.smoke is None:
        raise Failure(
            f"{file} has no smoke command.", do='Add smoke = ["python", "train.py", "--steps", "2"].'
        )
    tree = read_tree((file.parent / job.code.path).resolve(), job.code.exclude)
    with tempfile.TemporaryDirectory(prefix="rgt-smoke-") as folder:
        place = Path(folder) / "src"
        for one in tree.files:
            path = place / one.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content(tree.root, one))
            path.chmod(0o755 if one.executable else 0o644)
        words = [filled(word, job, Where(folder)) for word in job.smoke]
        environment = {**os.environ, **job.env, "CUDA_VISIBLE_DEVICES": "", "WANDB_MODE": "offline"}
        print(safe(f"smoke: {' '.join(words)}", 400), file=sys.stderr, flush=True)
        try:
            done = subprocess.run(
                words, cwd=place, env={**environment, "RGT_RUN": folder}, timeout=args.timeout
            )
        except FileNotFoundError:
            raise Failure(
                f"{safe(words[0], 200)} is not on this computer.", means="Nothing was run."
            ) from None
        except subprocess.TimeoutExpired:
            raise Failure(
                f"The smoke run took longer than {args.timeout:.0f} s and was ended.",
                do="Make it smaller, or give --timeout.",
                code="smoke-timeout",
            ) from None
    print(f"smoke: {'passed' if done.returncode == 0 else f'failed with {done.returncode}'}", file=sys.stderr)
    return Exit.FINE if done.returncode == 0 else Exit.ATTENTION


async def _push(args: argparse.Namespace) -> int:
    from tui.runs.preflight import ask_box
    from tui.verbs.line import line_to
    from tui.workers.launch_once import bring

    task, where = _worked_out(args)
    async with line_to(task.instance, where) as dial:
        facts = await ask_box(await dial(), task.run, ())
        task = task.at(facts.run)
        done = await bring(await dial(), task, lambda line: _say(args, [line]))
    if args.json:
        pushed = {"sent": done.sent, "bytes": done.bytes, "files": done.files}
        print(json.dumps({"store": task.store, "code": task.tree.digest, **pushed}, indent=1))
    return Exit.FINE


async def _launch(args: argparse.Namespace) -> int:
    from tui.runs.errand import secrets_of
    from tui.runs.launch import ANSWER_S, LEAST_S
    from tui.verbs.line import line_to
    from tui.workers.launch_once import begin, look_around, look_first, plan_lines
    from tui.workers.lock import starting

    began = time.monotonic()
    task, where = _worked_out(args)
    secrets = secrets_of(task.job)
    alone = contextlib.nullcontext() if args.dry_run else starting(where, task.run_id)
    with alone:
        async with line_to(task.instance, where) as line:
            looked = await look_first(task, await line())
            looked = await look_around(line, looked, Path(args.file).parent, hashed=args.sums)
            _say(args, [safe(f"launch {task.run_id} on {task.instance.name}")])
            _say(args, (f"  {title:<8} {text}" for title, text in plan_lines(looked.task)))
            _say(args, (f"  {one.verdict:<8} {one.name}: {one.said}" for one in looked.checks))
            if args.dry_run or looked.stopped:
                return _only_told(args, looked)
            answer = await begin(
                line, looked, Path(args.file), where, secrets, lambda text: _say(args, [text]),
                answer_s=max(LEAST_S, ANSWER_S - _AFTER_S - (time.monotonic() - began)),
            )  # fmt: skip
    return _tell(args, looked.task, answer)


def _only_told(args: argparse.Namespace, looked: Looked) -> int:
    if args.json:
        checks = [{"name": one.name, "verdict": one.verdict, "said": one.said} for one in looked.checks]
        kind = "refused" if looked.stopped else "plan"
        print(json.dumps({"run": looked.task.run_id, "kind": kind, "checks": checks}))
    _say(args, ["Nothing was started."])
    return Exit.ATTENTION if looked.stopped else Exit.FINE


def _worked_out(args: argparse.Namespace) -> tuple[Errand, Paths]:
    """The job on its box, and the operator's files. Raises Failure."""
    from tui.verbs.ending import changing, instance_named
    from tui.workers.launch_once import worked_out

    where = changing(args)
    instance = instance_named(args.on, where)
    return worked_out(Path(args.file), instance, where, name=args.id, folder=args.dir), where


def _tell(args: argparse.Namespace, task: Errand, answer: Answer) -> int:
    if args.json:
        progress = answer.progress
        print(
            json.dumps(
                {
                    "run": task.run_id,
                    "box": task.instance.name,
                    "folder": task.run,
                    "kind": answer.kind,
                    "why": answer.why,
                    "attempt": answer.truth.attempt,
                    "step": progress.done if progress else None,
                    "last": list(answer.last),
                    "checkpoint_every_s": answer.pace.every_s if answer.pace else None,
                },
                indent=1,
            )
        )
    else:
        print(f"{task.run_id}: {answer.kind}. {answer.why}")
        if answer.kind != "first-step":
            for line in answer.last:
                print(f"  │ {safe(line, 200)}")
        if answer.pace is not None:
            print(f"checkpoints: {answer.pace.said}")
        print(f"watch it: rgt, or rgt logs {task.run_id} -f")
        job = answer.truth.job or (answer.started.job if answer.started else None)
        if job and (inside := task.way_inside(job)) and answer.kind != "finished":
            print(f"the machine it runs on: rgt add {inside}")
    return {"dead": Exit.ATTENTION, "unknown": Exit.UNKNOWN}.get(answer.kind, Exit.FINE)


def _say(args: argparse.Namespace, lines: Iterable[str]) -> None:
    """Narration; beside JSON it goes to stderr."""
    for line in lines:
        print(line, file=sys.stderr if args.json else sys.stdout, flush=True)
