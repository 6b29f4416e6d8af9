"""SHA-256 of whole trees on a box, beside what people run there: ``find -print0 | xargs -0 sha256sum``.

The box is this machine; files lie on its disk and were read before, so they come from the page cache. (A
tmpfs of 4 KiB pages measures its own copying: 0.07 s of each 512 MiB here, where ext4 takes 0.02.) The CPU
that hashing takes on the box tells what a core is worth, whatever else runs; the time on the clock tells that
all cores are used. Both give way to other programs (nice 19), as ours always does.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measure import tree_cpu_s
from tests.bench.place import Bench
from tests.bench.pull import MIB, Place
from tests.bench.report import Row, beside
from tests.real import need
from tests.rig import Sshd
from tui.box.session import SshTransport
from tui.box.transport import Script
from tui.custody.hashing import Hashed, Hasher, Job, hash_files, race

_EVERYBODYS = 'cd "$1" && find . -type f -print0 | xargs -0 nice -n 19 sha256sum | tail -n 1'


@dataclass(frozen=True, slots=True)
class _Cost:
    """The least seen: seconds on the clock, and of CPU on the box."""

    clock: float
    cpu: float


def rows(bench: Bench) -> Iterator[Row]:
    need("sha256sum", "find", "xargs")
    rounds = 2 if bench.quick else 4
    with tempfile.TemporaryDirectory(dir=bench.folder, prefix="rgt-bench-") as folder, bench.sshd() as server:
        place = Place(server, Path(folder))
        count, size = 4, 128 if bench.quick else 512
        jobs = [Job(place.big(f"{n}.pt", size).path, size * MIB) for n in range(count)]
        ours, theirs, tool = asyncio.run(_taken(place, jobs, rounds))
        cores = len(os.sched_getaffinity(0))
        what = f"hashing {count} × {size} MiB"
        where = f"with {tool}; on the box, what others use of it not counted"
        yield beside(f"{what}: CPU on the box", ours.cpu, theirs.cpu, "s",
                     most=1 / 3 if tool == "openssl" else 1.1, digits=2, note=where)  # fmt: skip
        yield beside(f"{what} on {cores} cores", ours.clock, theirs.clock, "s",
                     most=1 / (3 * cores) if tool == "openssl" else 1.1, digits=2)  # fmt: skip
        shutil.rmtree(place.source)
        jobs = _small(place.source, 5_000 if bench.quick else 50_000)
        ours, theirs, tool = asyncio.run(_taken(place, jobs, rounds))
        what = f"hashing {len(jobs):,} small files"
        yield beside(f"{what}: CPU on the box", ours.cpu, theirs.cpu, "s", digits=2)
        yield beside(f"{what} on {cores} cores", ours.clock, theirs.clock, "s",
                     most=1 / 2, digits=2)  # fmt: skip


def _small(folder: Path, count: int) -> list[Job]:
    jobs: list[Job] = []
    for number in range(count):
        path = folder / f"d{number % 100}" / f"f{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = os.urandom(1000 + number * 7919 % 14_000)
        path.write_bytes(data)
        jobs.append(Job(str(path.relative_to(folder)), len(data)))
    return jobs


async def _taken(place: Place, jobs: Sequence[Job], rounds: int) -> tuple[_Cost, _Cost, str]:
    box = await place.connect()
    hasher = await race(box)
    ours: list[_Cost] = []
    theirs: list[_Cost] = []
    try:
        for _ in range(rounds):
            ours.append(await _ours(box, place.server, str(place.source), jobs, hasher))
            theirs.append(await _theirs(box, place.server, str(place.source)))
    finally:
        await box.close()
    return _least(ours), _least(theirs), hasher.tool


def _least(costs: Sequence[_Cost]) -> _Cost:
    return _Cost(min(cost.clock for cost in costs), min(cost.cpu for cost in costs))


async def _ours(box: SshTransport, server: Sshd, root: str, jobs: Sequence[Job], hasher: Hasher) -> _Cost:
    began, cpu, done = time.perf_counter(), tree_cpu_s(server.pid), 0
    async for events in hash_files(box, root, jobs, hasher):
        done += sum(isinstance(event, Hashed) for event in events)
    assert done == len(jobs)
    return _Cost(time.perf_counter() - began, tree_cpu_s(server.pid) - cpu)


async def _theirs(box: SshTransport, server: Sshd, root: str) -> _Cost:
    began, cpu = time.perf_counter(), tree_cpu_s(server.pid)
    said = await box.run(Script(_EVERYBODYS, (root,), why="hash a tree"), timeout=300)
    assert said.exit == 0
    return _Cost(time.perf_counter() - began, tree_cpu_s(server.pid) - cpu)
