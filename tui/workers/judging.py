"""The last two steps before an approval: load the checkpoints and recompute the metrics of a readback.

Run as a programme it does so in a process of its own, for the wizard: hours of arithmetic must not share an
interpreter with a screen. It tells how far it is in lines of JSON, and ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tui.checkpoints.disk import Disk, OwnDisk
from tui.checkpoints.examine import Options, examine_tree, listed
from tui.checkpoints.far_disk import FarDisk, FarGround
from tui.checkpoints.jailer import Jail
from tui.checkpoints.tree import Tree
from tui.custody.codes import gap
from tui.custody.errand import Errand, errand
from tui.custody.evaluator import Answer
from tui.custody.judged import load_report, metric_report
from tui.custody.link_receipts import load_receipt, metric_receipt
from tui.custody.metrics import verify_metrics
from tui.custody.moments import moment
from tui.custody.receipts import Ledger
from tui.fleet.paths import Paths
from tui.model.custody import Gap, LoadReport, MetricReport, ReadbackReport, Roster
from tui.model.failure import Exit, Failure
from tui.model.verdict import Examination
from tui.workers.far_bridge import Python, connect_through

Told = Callable[[str, int, int], None]
PROTECTIONS = ("network", "memory", "cpu", "writing", "files", "processes", "programs", "changes")
"""What a jailed process is kept from where the system grants it."""


@dataclass(frozen=True, slots=True)
class Far:
    """How a readback on another box is judged.

    Attributes:
        address: of the socket that leads to its python.
        folder: where its predictions were fetched to; empty where they were not: metrics are left then.
        fetched: what is recorded of that.
        answer: of the declared evaluator, which ran there; None: none is declared.
    """

    address: str
    python: Python
    folder: str
    fetched: str
    answer: Answer | None = None


def judge(
    task: Errand, told: Told = lambda phase, done, total: None, far: Far | None = None
) -> tuple[LoadReport, MetricReport | None]:
    """Examine what was read back last, and store what was found. It blocks.

    Args:
        told: hears ``load`` with the bytes done and in all, then ``metrics``, whose length nobody knows.
        far: how the files are reached where another box read the copy back.

    Raises:
        Failure: nothing was read back yet, its files are gone, or the box is out of reach.
    """
    roster, readback = to_judge(task)
    done, total = 0, sum(one.size for one in readback.files)
    lock = threading.Lock()

    def count(size: int) -> None:
        nonlocal done
        with lock:
            done += size
            told("load", done, total)

    told("load", 0, total)
    with _ground(readback, task.spec.name, far) as (tree, disk, jail):
        found = examine_tree(tree, Options(jail=jail, digests=True, progress=count, disk=disk))
    there = (_loaded_there(readback, found, far.python),) if far is not None else ()
    loaded = keep_loaded(task, roster, load_report(readback, found, moment(time.time()), there))
    if far is not None and not far.folder:
        return loaded, None
    told("metrics", 0, 0)
    folder = Path(far.folder) if far is not None else Path(readback.consumer.path)
    fetched = (gap("metrics-fetched", far.fetched),) if far is not None else ()
    return loaded, measure(task, roster, loaded, folder, fetched, far.answer if far else None)


def keep_loaded(task: Errand, roster: Roster, loaded: LoadReport) -> LoadReport:
    """Store it, with its receipt. Raises Failure."""
    task.records.save(loaded)
    Ledger(task.where.receipts).append(load_receipt(roster, loaded))
    return loaded


def measure(
    task: Errand,
    roster: Roster,
    loaded: LoadReport,
    folder: Path,
    more: Iterable[Gap] = (),
    answer: Answer | None = None,
) -> MetricReport:
    """Recompute the metrics of a folder of this computer, and store what came of it. It blocks.

    Args:
        answer: of the declared evaluator, where it ran on the box that read the copy back.

    Raises:
        Failure: there is no such folder, or what it declares is not valid.
    """
    found = verify_metrics(folder, task.table, answer=answer)
    measured = metric_report(loaded, found, moment(time.time()), more)
    task.records.save(measured)
    Ledger(task.where.receipts).append(metric_receipt(roster, measured))
    return measured


def to_judge(task: Errand) -> tuple[Roster, ReadbackReport]:
    """What is judged next. Raises Failure where the steps before do not pass."""
    name = task.spec.name
    roster = task.records.need(Roster, f"Take it first: rgt roster {name}.")
    readback = task.records.need(ReadbackReport, f"Read the copy back first: rgt readback {name}.")
    if readback.refusals or readback.missing or readback.extra or readback.different:
        raise Failure(
            f"The readback of {name} does not pass.",
            do=f"Clear what it refuses, then rgt readback {name} again.",
        )
    return roster, readback


@contextmanager
def _ground(readback: ReadbackReport, name: str, far: Far | None) -> Iterator[tuple[Tree, Disk, Jail]]:
    """The restored files, what opens them, and who looks at their numbers."""
    folder = readback.consumer.path
    if readback.consumer.kind == "path":
        if not Path(folder).is_dir():
            raise gone(name, folder)
        with Jail() as jail:
            yield listed(folder), OwnDisk(), jail
        return
    assert far is not None, "a readback on a box is judged through a bridge"
    connect = connect_through(far.address)
    with contextlib.ExitStack() as held:
        disk = held.enter_context(FarDisk(connect))
        try:
            tree = disk.walk(folder)
        except OSError as fault:
            if fault.errno in (errno.ENOENT, errno.ENOTDIR):
                raise gone(name, f"{readback.consumer.box}:{folder}") from None
            raise Failure(
                f"{readback.consumer.box}:{folder} can't be listed ({fault.strerror}).",
                do=f"Read it back again: rgt readback {name}.",
            ) from None
        yield tree, disk, held.enter_context(Jail(ground=FarGround(connect, disk)))


def gone(name: str, folder: str) -> Failure:
    """The restored files were swept away."""
    return Failure(
        f"The files of {name} that were read back are not at {folder} any more.",
        do=f"Read it back again: rgt readback {name}.",
        code="readback-gone",
    )


def _loaded_there(readback: ReadbackReport, found: Examination, python: Python) -> Gap:
    """Where the numbers were looked at, with what, and what that process was kept from."""
    looked = [set(one.confined) for one in found.checkpoints if one.confined]
    granted = [one for one in PROTECTIONS if looked and all(one in each for each in looked)]
    absent = [one for one in PROTECTIONS if looked and one not in granted]
    words = f"on {readback.consumer.box}, by {python.words}"
    if python.lacks:
        words += f"; install {python.lacks} there to have more looked at"
    if looked:
        words += f"; kept from {', '.join(granted) or 'nothing'}"
    if absent:
        words += f"; the box did not grant: {', '.join(absent)}"
    return gap("loaded-on-box", f"{words}.")


def main(words: list[str]) -> int:
    """``CONFIG STATE RUN [FAR]``: judge the run of that installation; FAR is a `Far` as JSON."""
    config, state, run, *rest = words
    far = _far(rest[0]) if rest else None
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        judge(errand(run, Paths(Path(config), Path(state))), _tell, far)
    except Failure as failure:
        _say({"failure": [failure.what, failure.means, failure.do, failure.code]})
        return int(failure.exit)
    _say({"done": True})
    return int(Exit.FINE)


def far_words(far: Far) -> str:
    """As `main` takes it."""
    return json.dumps(asdict(far))


def _far(text: str) -> Far:
    told = json.loads(text)
    answer = Answer(**told["answer"]) if told["answer"] else None
    return Far(told["address"], Python(**told["python"]), told["folder"], told["fetched"], answer)


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
