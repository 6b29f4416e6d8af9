"""What a client that watches many boxes is told, and what it reports."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.bench import measure

T = TypeVar("T")

PERIOD_S = 2.0
READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the boxes are (all are one server), how many, and for how long they are watched."""

    host: str
    port: int
    user: str
    key: str
    host_key: str
    ssh_config: str
    boxes: int
    settle_s: float
    window_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What it cost the client's process and its children.

    Attributes:
        connect_s, connect_cpu_s: until every box had answered a first command.
        cpu_pct: per cent of one core while watching.
        boxes_bytes: memory that the boxes add to the client.
        looks: answers taken in the window.
    """

    connect_s: float
    connect_cpu_s: float
    cpu_pct: float
    boxes_bytes: int
    looks: int


@dataclass(slots=True)
class Spent:
    """Time and CPU of this process and its children, between two moments."""

    seconds: float
    cpu_s: float

    @classmethod
    def begin(cls) -> Spent:
        return cls(-time.monotonic(), -measure.tree_cpu_s(os.getpid()))

    def end(self) -> None:
        self.seconds += time.monotonic()
        self.cpu_s += measure.tree_cpu_s(os.getpid())


async def window(plan: Plan, looks: Callable[[], int], ready: Callable[[], bool]) -> tuple[float, int]:
    """Watch once everything is under way: per cent of a core, and looks taken."""
    async with asyncio.timeout(READY_S):
        while not ready():
            await asyncio.sleep(0.1)
    await asyncio.sleep(plan.settle_s)
    before, spent = looks(), Spent.begin()
    await asyncio.sleep(plan.window_s)
    spent.end()
    return 100 * spent.cpu_s / spent.seconds, looks() - before


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All at once; the first failure ends it."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
    return [task.result() for task in tasks]
