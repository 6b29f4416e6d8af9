"""A whole log through triage, beside grep -E with the same words."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.measure import median
from tests.bench.place import Bench, child
from tests.bench.report import Row, limited

SIZE = 1 << 30
WHAT = {
    "typical": "losses, bars and warnings of four trainers, six errors among them",
    "unique": "text of a language model, no two lines alike: nothing repeats, so all of it is searched",
}


def rows(bench: Bench) -> Iterator[Row]:
    folder = bench.new_folder()
    for kind, what in WHAT.items():
        size = SIZE // 8 if bench.quick else SIZE // 2 if kind == "unique" else SIZE
        log, words = folder / f"{kind}.log", folder / "words"
        child("triage_child", "make", kind, str(log), str(size), str(words), timeout=300)
        times: dict[str, list[float]] = {"ours": [], "grep": []}
        memory = 0.0
        for _ in range(3):  # by turns, so that what else runs here meets both
            found = child("triage_child", "read", str(log), timeout=300)
            times["ours"].append(found["seconds"])
            memory = max(memory, found["anonymous_mib"])
            times["grep"].append(_grep(words, log))
        ours, grep = (size / 1e6 / median(times[side]) for side in ("ours", "grep"))
        met = ours >= 100 or ours >= 0.5 * grep
        yield Row(
            f"triage: {size >> 20} MiB log, {kind}", f"{ours:,.0f} MB/s", f"{grep:,.0f} MB/s", ours / grep,
            "≥ 100 or ≥ 0.5 ×", met,
            f"{what}; grep -E -i -c -f with the same words, LC_ALL=C",
        )  # fmt: skip
        yield limited(f"triage: memory for it, {kind}", memory, "MiB", most=100)
        log.unlink()


def _grep(words: Path, log: Path) -> float:
    began = time.perf_counter()
    try:
        done = subprocess.run(
            ["grep", "-E", "-i", "-c", "-f", str(words), str(log)],
            stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}, timeout=300, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("no grep here")
    if done.returncode > 1:
        raise RuntimeError("grep failed")
    return time.perf_counter() - began
