"""Measure and print the table.

    python -m tests.bench [NAME ...] [--quick]

Every peer runs in the same session on the same machine. The exit code is 0 also where goals are missed: this
is a report, not a test. Only loopback is used, and nothing is left behind.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import report
from tests.bench.measure import Neighbours
from tests.bench.place import Bench

FIGURES = {
    "frame": "the first frame, beside a bare Textual app; fifty boxes out of reach",
    "leave": "leaving while a box hangs",
    "quiet": "bytes to the terminal when nothing changes, and when everything does",
    "lag": "the event loop and memory with twenty logs",
    "ingest": "from a log's bytes to its lines in memory",
    "follow": "following a busy log, beside ssh tail -F",
    "many": "a hundred boxes, beside ssh processes and a ControlMaster",
    "checkpoints": "what the verdict on a checkpoint costs, beside torch.load",
    "pull": "fetching with proof, beside scp, sftp and rsync; over long ways; after a cut",
    "hashes": "SHA-256 of a tree on the box, beside find and sha256sum",
    "tick": "what a probe costs the box, beside one ssh per look",
    "triage": "a whole log through triage, beside grep -E",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {name:<11} {what}" for name, what in FIGURES.items()),
    )
    parser.add_argument("name", nargs="*", help="only these figures")
    parser.add_argument("--quick", action="store_true", help="smaller, in less than two minutes")
    asked = parser.parse_args()
    unknown = [name for name in asked.name if name not in FIGURES]
    if unknown:
        parser.error(f"no figure is named {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    print(report.facts(), flush=True)
    print(report.heading(), flush=True)
    began, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="rgt-bench-") as folder:
        bench = Bench(asked.quick, Path(folder))
        for name in asked.name or FIGURES:
            for row in measured(name, bench):
                rows.append(row)
                print(report.line(row), flush=True)
    print(f"\n{report.verdict(rows)}. It took {time.monotonic() - began:.0f} s.")
    return 0


def measured(name: str, bench: Bench) -> Iterator[report.Row]:
    """The rows of one figure, and how much others used the machine meanwhile where that was much."""
    module = importlib.import_module(f"tests.bench.{name}")
    neighbours = Neighbours.watch()
    try:
        yield from module.rows(bench)
    except pytest.skip.Exception as missing:
        yield report.unmeasured(FIGURES[name], str(missing))
    except Exception as error:  # one figure that fails must not cost the others
        yield report.unmeasured(FIGURES[name], f"{type(error).__name__}: {error}")
    cores = neighbours.cores()
    if cores > 0.3:
        print(f"    ({name}: other programs used {cores:.1f} cores meanwhile)", flush=True)


if __name__ == "__main__":
    sys.exit(main())
