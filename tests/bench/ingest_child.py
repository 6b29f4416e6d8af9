"""From a log's bytes to its lines in memory, in a process of its own. Prints one JSON object.

python -m tests.bench.ingest_child FOLDER LINES
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import tracemalloc
from pathlib import Path

from tests.bench.lag import log_line
from tui.box.local import LocalTransport
from tui.box.tail.follower import Follower
from tui.box.tail.splitter import Splitter
from tui.box.tail.spool import Spool
from tui.fleet.logbuffer import LogBuffer
from tui.fleet.store import Store
from tui.model.event import LogRead
from tui.model.log import LogBatch, LogState
from tui.model.text import LogGate

HELD = 20_000


async def follow(folder: Path, lines: int) -> tuple[float, float]:
    """Wall and CPU seconds for the whole way: channel, reader, splitter, gate, spool on disk, store, buffer.

    The log appears whole once it is being waited for. Time runs from the first batch to the last; the lines
    of the first one are not counted by the caller, who is told rates.
    """
    log, store = folder / "train.log", Store()
    began: list[tuple[float, float, int]] = []

    async def emit(batch: LogBatch) -> None:
        if not began:
            began.append((time.perf_counter(), time.process_time(), len(batch.lines)))
        await store.put(LogRead(batch))

    waiting = asyncio.Event()

    def state(said: LogState) -> None:
        waiting.set()

    with contextlib.closing(Spool(folder / "spool")) as spool:
        follower = Follower("run", str(log), spool)
        tasks = [
            asyncio.create_task(follower.follow(LocalTransport(), emit, state)),
            asyncio.create_task(store.pump(lambda _snapshot, _runs: None)),
        ]
        await waiting.wait()
        part = folder / "part"
        part.write_text("".join(map(log_line, range(lines))))
        part.rename(log)
        while store.log("run").end < lines:
            await asyncio.sleep(0.001)
        first_at, first_cpu, counted = began[0]
        wall, cpu = time.perf_counter() - first_at, time.process_time() - first_cpu
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return (lines - counted) / wall, (lines - counted) / cpu


def memory_a_line() -> tuple[float, float]:
    """Bytes that a line takes once it is in the buffer, and characters of a line."""
    data = "".join(map(log_line, range(HELD))).encode()
    buffer, first = LogBuffer(), 0
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for piece in Splitter(0, LogGate()).feed(data):
        buffer.append(LogBatch("run", first, tuple(piece.lines), 0.0))
        first += len(piece.lines)
    del piece
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(buffer.lines) == HELD
    return held / HELD, len(data) / HELD


def main() -> None:
    bytes_a_line, characters = memory_a_line()
    lines_s, lines_cpu_s = asyncio.run(follow(Path(sys.argv[1]), int(sys.argv[2])))
    print(
        json.dumps(
            {
                "lines_s": lines_s,
                "lines_cpu_s": lines_cpu_s,
                "bytes_a_line": bytes_a_line,
                "characters": characters,
            }
        )
    )


if __name__ == "__main__":
    main()
