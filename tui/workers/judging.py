"""The last two steps before an approval: load the checkpoints and recompute the metrics of a readback.

Run as a programme it does so in a process of its own, for the wizard: hours of arithmetic must not share an
interpreter with a screen. It tells how far it is in lines of JSON, and ends when its standard input does.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tui.checkpoints.examine import Options, examine_tree, listed
from tui.checkpoints.jailer import Jail
from tui.custody.errand import Errand, errand
from tui.custody.judged import load_report, metric_report
from tui.custody.link_receipts import load_receipt, metric_receipt
from tui.custody.metrics import verify_metrics
from tui.custody.moments import moment
from tui.custody.receipts import Ledger
from tui.fleet.paths import Paths
from tui.model.custody import LoadReport, MetricReport, ReadbackReport, Roster
from tui.model.failure import Exit, Failure


def judge(
    task: Errand, told: Callable[[str, int, int], None] = lambda phase, done, total: None
) -> tuple[LoadReport, MetricReport]:
    """Examine what was read back last, and store what was found. It blocks.

    Args:
        told: hears ``load`` with the bytes done and in all, then ``metrics``, whose length nobody knows.

    Raises:
        Failure: nothing was read back yet, or not to this computer.
    """
    name = task.spec.name
    roster = task.records.need(Roster, f"Take it first: rgt roster {name}.")
    readback = task.records.need(ReadbackReport, f"Read the copy back first: rgt readback {name}.")
    folder = restored(readback, name)
    done, total = 0, sum(one.size for one in readback.files)
    lock = threading.Lock()

    def count(size: int) -> None:
        nonlocal done
        with lock:
            done += size
            told("load", done, total)

    told("load", 0, total)
    with Jail() as jail:
        found = examine_tree(listed(str(folder)), Options(jail=jail, digests=True, progress=count))
    loaded = load_report(readback, found, moment(time.time()))
    task.records.save(loaded)
    ledger = Ledger(task.where.receipts)
    ledger.append(load_receipt(roster, loaded))
    told("metrics", 0, 0)
    measured = metric_report(loaded, verify_metrics(folder, task.table), moment(time.time()))
    task.records.save(measured)
    ledger.append(metric_receipt(roster, measured))
    return loaded, measured


def restored(readback: ReadbackReport, name: str) -> Path:
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


def main(words: list[str]) -> int:
    """``CONFIG STATE RUN``: judge the run of that installation."""
    config, state, run = words
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        judge(errand(run, Paths(Path(config), Path(state))), _tell)
    except Failure as failure:
        _say({"failure": [failure.what, failure.means, failure.do, failure.code]})
        return int(failure.exit)
    _say({"done": True})
    return int(Exit.FINE)


_told_at = float("-inf")


def _tell(phase: str, done: int, total: int) -> None:
    """Say how far it is; for metrics, a second at a time."""
    global _told_at
    if phase == "metrics":
        threading.Thread(target=_count, args=(time.monotonic(),), daemon=True).start()
        return
    if done in (0, total) or time.monotonic() - _told_at > 0.1:
        _told_at = time.monotonic()
        _say({"phase": phase, "at": done, "of": total})


def _count(began: float) -> None:
    while True:
        _say({"phase": "metrics", "at": int(time.monotonic() - began), "of": 0})
        time.sleep(1.0)


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(int(Exit.INTERRUPTED))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
