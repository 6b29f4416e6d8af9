"""`rgt verify RUN`: the chain's step between readback and approval, on the files that were read back."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from tui.model.failure import Exit, Failure
from tui.model.text import safe

if TYPE_CHECKING:
    from tui.model.custody import LoadReport, MetricReport, ReadbackReport

_SHOWN = 20


def verify_run(args: argparse.Namespace) -> int:
    """Load the checkpoints and recompute the metrics of a run's readback, and record both.

    Raises:
        Failure: nothing was read back yet, or not to this computer.
    """
    from tui.checkpoints.examine import Options, examine_tree, listed
    from tui.checkpoints.jailer import Jail
    from tui.custody.judged import load_report, metric_report
    from tui.custody.metrics import verify_metrics
    from tui.fleet.paths import paths
    from tui.model.custody import ReadbackReport
    from tui.verbs.errand import errand, moment

    task = errand(args.target, paths())
    name = task.spec.name
    readback = task.records.need(ReadbackReport, f"Read the copy back first: rgt readback {name}.")
    folder = _folder(readback, name)
    with Jail() as jail:
        found = examine_tree(listed(str(folder)), Options(jail=jail, digests=True))
    loaded = load_report(readback, found, moment())
    measured = metric_report(loaded, verify_metrics(folder, task.table), moment())
    task.records.save(loaded)
    task.records.save(measured)
    if args.json:
        told = {"load": json.loads(loaded.canonical), "metrics": json.loads(measured.canonical)}
        print(json.dumps(told, ensure_ascii=True, indent=1))
    else:
        print("\n".join(_lines(loaded, measured, name)))
    return Exit.FINE if passes(loaded, measured) else Exit.ATTENTION


def _folder(readback: ReadbackReport, name: str) -> Path:
    """Where the restored files lie. Raises Failure where they can't be examined from here."""
    if readback.refusals or readback.missing or readback.extra or readback.different:
        raise Failure(
            f"The readback of {name} does not pass.",
            do=f"Clear what it refuses, then rgt readback {name} again.",
        )
    if readback.consumer.kind != "path":
        raise Failure(
            f"{name} was read back on {readback.consumer.box}; its files are not on this computer.",
            do=f"Read it back here: rgt readback {name}.",
            code="readback-elsewhere",
        )
    folder = Path(readback.consumer.path)
    if not folder.is_dir():
        raise Failure(
            f"The files of {name} that were read back are not at {folder} any more.",
            do=f"Read it back again: rgt readback {name}.",
            code="readback-gone",
        )
    return folder


def passes(loaded: LoadReport, measured: MetricReport) -> bool:
    """Whether nothing stands against a proof in these two reports."""
    from tui.custody.proof import checkpoint_passes, metric_passes

    return (
        not loaded.refusals
        and not measured.refusals
        and all(checkpoint_passes(one) for one in loaded.checkpoints)
        and all(metric_passes(one) for one in measured.metrics)
    )


def _lines(loaded: LoadReport, measured: MetricReport, name: str) -> list[str]:
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
    gaps = sorted({gap.code for gap in (*loaded.gaps, *measured.gaps)})
    if gaps:
        lines.append(f"not looked at, or not there: {', '.join(gaps)}")
    word = "passes" if passes(loaded, measured) else "DOES NOT PASS"
    lines.append(
        f"{name}: {len(loaded.checkpoints)} checkpoint(s), {len(measured.metrics)} metric(s): it {word}."
    )
    return lines
