"""What it costs this computer to follow a busy log, beside `ssh box tail -F` and a loop that splits lines."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tests.bench.lag import log_line
from tests.bench.many import plan_for
from tests.bench.measure import median
from tests.bench.place import Bench, child
from tests.bench.report import Row, beside

WRITE_EVERY_S = 0.02


def rows(bench: Bench) -> Iterator[Row]:
    seconds, rounds = (3.0, 1) if bench.quick else (6.0, 3)
    with bench.sshd() as server:
        plan = json.dumps(asdict(plan_for(server, 1, 0, 0)))
        for rate in (1_000, 10_000):
            taken: dict[str, list[float]] = {"ours": [], "ssh": []}
            for _ in range(rounds):
                for side, found in taken.items():
                    log = server.home / f"{side}.log"
                    with busy(log, rate):
                        seen = child(
                            "follow_child", side, plan, str(seconds), timeout=60, RGT_BENCH_LOG=str(log)
                        )
                    assert seen["lines_s"] > 0.8 * rate, f"{side}: {seen['lines_s']:.0f} lines/s came in"
                    found.append(seen["cpu_pct"])
            yield beside(
                f"follow {rate:,} lines/s (peer: ssh tail -F, split)",
                median(taken["ours"]), median(taken["ssh"]), "%", most=1.5,
                note="ours ends in gated lines on disk and in the buffer; theirs throws them away"
                if rate == 1_000 else "",
            )  # fmt: skip


@contextmanager
def busy(log: Path, rate: int) -> Iterator[None]:
    """A log that grows at this many lines a second."""
    done = threading.Event()
    log.write_text("".join(map(log_line, range(100))))
    writer = threading.Thread(target=_write, args=(log, rate, done))
    writer.start()
    try:
        yield
    finally:
        done.set()
        writer.join()
        os.unlink(log)


def _write(log: Path, rate: int, done: threading.Event) -> None:
    began, written = time.monotonic(), 0
    block = "".join(map(log_line, range(rate)))
    size = len(block) // rate
    with log.open("a", buffering=1) as file:
        while not done.wait(WRITE_EVERY_S):
            due = min(int((time.monotonic() - began) * rate) - written, rate)
            file.write(block[: due * size])
            file.flush()
            written += due
