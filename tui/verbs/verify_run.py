"""`rgt verify RUN`: the chain's step between readback and approval, on the files that were read back."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.model.custody import LoadReport, MetricReport

_SHOWN = 20
_PLACES = ("loaded-on-box", "no-python-there", "metrics-fetched")
"""Gaps that tell where the work was done."""


def verify_run(args: argparse.Namespace) -> int:
    """Load the checkpoints and recompute the metrics of a run's readback, and record both.

    Raises:
        Failure: nothing was read back yet, or the box that read it is out of reach.
    """
    from tui.custody.errand import errand
    from tui.custody.standing import judged_well
    from tui.fleet.paths import paths
    from tui.model.custody import LoadReport, MetricReport
    from tui.verbs.terminal_asker import TerminalAsker
    from tui.verbs.wiring import dialer
    from tui.workers.judged_apart import judge_apart

    if args.manifest is not None:
        raise Failure(
            "--manifest goes with a folder: a run is held against what was hashed on its box.",
            do="Leave it out, or name the folder with a / in it.",
            exit=Exit.USAGE,
        )
    task = errand(args.target, paths())
    name = task.spec.name
    asyncio.run(judge_apart(task, dialer(task.where, asker=TerminalAsker()), lambda phase, done, total: None))
    loaded, measured = task.records.need(LoadReport, ""), task.records.need(MetricReport, "")
    passed = judged_well(loaded, measured)
    if args.json:
        told = {"load": json.loads(loaded.canonical), "metrics": json.loads(measured.canonical)}
        print(json.dumps(told, ensure_ascii=True, indent=1))
    else:
        print("\n".join(_lines(loaded, measured, name, passed=passed)))
    return Exit.FINE if passed else Exit.ATTENTION


def _lines(loaded: LoadReport, measured: MetricReport, name: str, *, passed: bool) -> list[str]:
    lines = [
        f"{one.verdict:<15}  {safe(one.path, 200)}  {safe(one.detail, 200)}".rstrip()
        for one in loaded.checkpoints
    ]
    lines += [
        f"{one.verdict:<15}  {safe(one.name, 80)}  "
        f"reported {one.reported or 'nothing'}, recomputed {one.recomputed or 'nothing'}"
        for one in measured.metrics
    ]
    lines += [
        f"{one.code:<15}  {safe(one.path or '', 200)}  {safe(one.detail, 200)}"
        for one in (*loaded.refusals, *measured.refusals)[:_SHOWN]
    ]
    every = (*loaded.gaps, *measured.gaps)
    lines += [f"{one.code}: {safe(one.detail, 400)}" for one in every if one.code in _PLACES]
    gaps = sorted({gap.code for gap in every if gap.code not in _PLACES})
    if gaps:
        lines.append(f"not looked at, or not there: {', '.join(gaps)}")
    word = "passes" if passed else "DOES NOT PASS"
    lines.append(
        f"{name}: {len(loaded.checkpoints)} checkpoint(s), {len(measured.metrics)} metric(s): it {word}."
    )
    return lines
