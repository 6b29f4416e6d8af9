"""The whole app with twenty boxes over a real sshd, each with a log that is full and goes on growing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.pane import PYTHON
from tests.bench.place import Bench, on_server, write_fleet
from tests.bench.quiet import on_terminal, read
from tests.bench.report import Row, limited

RUNS = 20
LINES = 20_000
RATE = 100
DEADLINE_S = 120.0


def log_line(number: int) -> str:
    """A line of about a hundred characters, as a training loop prints them."""
    return (
        f"[2026-07-01 12:00:00] step {number:8d} | loss 2.34567 | lr 1.0e-04 | gnorm 0.987 | "
        f"tok/s 123456 | mem 71.2\n"
    )


def rows(bench: Bench) -> Iterator[Row]:
    seconds = 5.0 if bench.quick else 20.0
    with bench.sshd() as server:
        home, logs = bench.new_folder(), [server.home / f"run-{n:02d}.log" for n in range(RUNS)]
        boxes = {f"box-{n:02d}": on_server(server) for n in range(RUNS)}
        runs = {f"run-{n:02d}": {"box": f"box-{n:02d}", "log": str(log)} for n, log in enumerate(logs)}
        write_fleet(home, boxes, runs)
        seen = _watched(home, logs, seconds)
    assert seen["screen"] == "RunScreen"
    assert seen["lines_held"] >= RUNS * LINES
    yield limited(
        f"loop lag p99, {RUNS} boxes × {RATE} lines/s, a run in view", seen["p99_ms"], "ms", most=20,
        note=f"a 10 ms timer, 5 windows; p50 {seen['p50_ms']:.1f}, max {seen['max_ms']:.0f} ms; real "
        f"sshd, probes included; {seen['lines_s']:,.0f} lines/s came in",
    )  # fmt: skip
    yield limited(
        f"memory, {RUNS} runs × {LINES:,} lines", seen["rss"] / 1e6, "MB", most=180, digits=0,
        note=f"RSS of the whole app; {seen['rss_empty'] / 1e6:.0f} MB with {RUNS} boxes and no lines yet",
    )  # fmt: skip


def _watched(home: Path, logs: list[Path], seconds: float) -> dict[str, Any]:
    report, done = home / "report.json", threading.Event()
    command = (PYTHON, "-m", "tests.bench.live_app", str(report), str(LINES), str(seconds))
    writer = threading.Thread(target=_write, args=(report.with_suffix(".ready"), logs, done))
    with on_terminal(command, RGT_HOME=str(home)) as (fd, _):
        writer.start()
        try:
            end = time.monotonic() + DEADLINE_S
            while not report.exists():
                if time.monotonic() > end:
                    raise RuntimeError("the logs never came in whole")
                try:
                    read(fd, 0.2)
                except RuntimeError:
                    if not report.exists():  # it leaves as soon as it has reported
                        raise
        finally:
            done.set()
            writer.join()
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def _write(ready: Path, logs: list[Path], done: threading.Event) -> None:
    """Full logs as soon as every box is connected, and from then on RATE lines a second in each."""
    while not ready.exists():
        if done.wait(0.1):
            return
    files = [log.open("w", buffering=1 << 20) for log in logs]
    for file in files:
        file.writelines(map(log_line, range(LINES)))
        file.flush()
    began, written = time.monotonic(), 0
    while not done.wait(0.05):
        due = int((time.monotonic() - began) * RATE)
        block = "".join(log_line(LINES + n) for n in range(written, due))
        written = due
        for file in files:
            file.write(block)
            file.flush()
    for file in files:
        file.close()
