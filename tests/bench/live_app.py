"""The real app over real connections, with a watch on itself. Runs on a terminal:

    python -m tests.bench.live_app REPORT LINES SECONDS

It watches the fleet of RGT_HOME with the product's own workers, opens the first run's screen, waits until the
log of every run has LINES lines in memory, and then times its event loop for SECONDS. What it saw is written
to REPORT as JSON; REPORT.ready appears when every box is connected.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from tui import terminal

terminal.prepare_colour("256", os.environ)  # before Textual is imported, as rgt itself does

from tests.bench.measure import median, percentile, rss_bytes  # noqa: E402
from tui.app import RgtApp  # noqa: E402
from tui.fleet import themes  # noqa: E402
from tui.fleet.paths import paths, shipped  # noqa: E402
from tui.fleet.store import Store  # noqa: E402
from tui.leaving import run  # noqa: E402
from tui.model.instance import LinkState  # noqa: E402

TICK_S = 0.01
WINDOWS = 5


async def watch(app: RgtApp, report: Path, lines: int, seconds: float) -> None:
    """The workers, and beside them the observer, who ends the app."""
    from tui.verbs.wiring import supervisor, until_cancelled

    watching = asyncio.create_task(until_cancelled(supervisor(app.store, paths())))
    try:
        await observe(app, report, lines, seconds)
    finally:
        watching.cancel()
        await asyncio.wait([watching])
    app.exit(0)


async def observe(app: RgtApp, report: Path, lines: int, seconds: float) -> None:
    store = app.store
    while not store.snapshot.boxes or any(b.link.state is not LinkState.LIVE for b in store.snapshot.boxes):
        await asyncio.sleep(0.1)
    runs = [view.name for view in store.snapshot.runs]
    app.open_run(store.snapshot.runs[0].spec.box, runs[0])
    empty = rss_bytes(os.getpid())
    report.with_suffix(".ready").touch()
    while any(len(store.log(name).lines) < lines for name in runs):
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.0)
    full = rss_bytes(os.getpid())
    before = sum(store.log(name).end for name in runs)
    windows = [await lateness(seconds / WINDOWS) for _ in range(WINDOWS)]
    late = [one for window in windows for one in window]
    seen = {
        "lines_held": sum(len(store.log(name).lines) for name in runs),
        "lines_s": (sum(store.log(name).end for name in runs) - before) / seconds,
        "rss_empty": empty,
        "rss": max(full, rss_bytes(os.getpid())),
        "p50_ms": 1000 * median(late),
        "p99_ms": 1000 * median(percentile(window, 0.99) for window in windows),
        "max_ms": 1000 * max(late),
        "screen": type(app.screen).__name__,
        "rows": app.screen.size.height,
    }
    report.write_text(json.dumps(seen))


async def lateness(seconds: float) -> list[float]:
    """How much too late a timer of ten milliseconds comes."""
    late, end = [], time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        await asyncio.sleep(TICK_S)
        late.append(max(0.0, time.perf_counter() - began - TICK_S))
    return late


def main() -> int:
    report, lines, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    found = themes.load([shipped("themes")])
    store = Store(frame_s=terminal.FRAME_LOCAL_S)
    app = RgtApp(store, themes=found.by_name, start=lambda app: watch(app, report, lines, seconds))
    return run(app)


if __name__ == "__main__":
    sys.exit(main())
