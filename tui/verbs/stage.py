"""`rgt stage`: a job's inputs are brought to a box, by their SHA-256. Level 2: new files, none replaced."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tui.model.failure import Exit, Failure
from tui.model.text import safe
from tui.verbs.job_word import job_word


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    stage = sub.add_parser("stage", help="bring a job's missing inputs to a box, from mirror or here")
    stage.add_argument("file", type=job_word, metavar="JOB", help="a job.toml with inputs")
    stage.add_argument("--on", required=True, metavar="BOX", help="a box of the fleet")
    stage.add_argument("--dry-run", action="store_true", help="what would come from where, nothing else")
    stage.add_argument("--json", action="store_true", help="print JSON")
    stage.set_defaults(run=lambda args: asyncio.run(_stage(args)))


async def _stage(args: argparse.Namespace) -> int:
    from tui.runs.preflight import ask_box
    from tui.runs.stage import bring, steps
    from tui.verbs.ending import changing, instance_named
    from tui.verbs.line import line_to
    from tui.workers.launch_once import worked_out

    where = changing(args)
    file = Path(args.file)
    task = worked_out(file, instance_named(args.on, where), where)
    failed = 0
    async with line_to(task.instance, where) as line:
        facts = await ask_box(await line(), task.run, task.inputs())
        found = steps(task.job.inputs, facts, file.parent)
        for step in found:
            _say(step.line)
            if step.source == "nowhere":
                failed += 1
            if args.dry_run or step.source in ("there", "nowhere"):
                continue
            try:
                _say(f"  {await bring(line, step, _say)}")
            except Failure as failure:
                failed += 1
                _say(f"  {failure.line}")
    if args.json:
        told = [{"path": step.path, "source": step.source} for step in found]
        print(json.dumps({"inputs": told, "failed": failed}, indent=1))
    return Exit.ATTENTION if failed else Exit.FINE


def _say(line: str) -> None:
    print(safe(line, 500), file=sys.stderr, flush=True)
