"""The store holds workers back instead of dropping, and draws at most once a frame."""

from __future__ import annotations

import asyncio

import pytest

from tests.fleet.test_reducer import FLEET, T0, live, probe
from tui.fleet.store import BATCHES_A_RUN, EVENTS, Store
from tui.model.command import ProbeNow
from tui.model.event import LogRead, Notice
from tui.model.log import LogBatch
from tui.model.snapshot import FleetSnapshot
from tui.model.text import LogText, SafeText


def batch(run: str, first: int, count: int = 1) -> LogRead:
    return LogRead(LogBatch(run, first, tuple(LogText(f"line {first + n}") for n in range(count)), T0))


def new_store() -> Store:
    return Store(clock=lambda: T0, frame_s=0.01)


async def test_telemetry_coalesces_and_what_it_replaced_is_counted() -> None:
    store = new_store()
    for event in (FLEET, live(), probe(T0, inodes=1), probe(T0 + 1, inodes=2)):
        await store.put(event)
    store.fold()
    telemetry = store.snapshot.boxes[0].telemetry
    assert telemetry is not None
    assert telemetry.taken_at == T0 + 1
    assert store.snapshot.dropped == 1


async def test_a_full_log_queue_holds_that_run_back_and_no_other() -> None:
    store = new_store()
    for number in range(BATCHES_A_RUN):
        await store.put(batch("a", number))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(store.put(batch("a", BATCHES_A_RUN)), 0.05)
    await asyncio.wait_for(store.put(batch("b", 0)), 10)
    assert store.fold() == {"a", "b"}
    assert store.log("a").end == BATCHES_A_RUN


async def test_no_line_is_lost_or_doubled_under_pressure() -> None:
    store = new_store()

    async def work(run: str) -> None:
        for number in range(200):
            await store.put(batch(run, number * 10, 10))

    pump = asyncio.create_task(store.pump(lambda _snapshot, _runs: None))
    await asyncio.wait_for(asyncio.gather(work("a"), work("b")), 20)
    await asyncio.sleep(0.05)
    pump.cancel()
    store.fold()
    for run in ("a", "b"):
        assert list(store.log(run).lines) == [f"line {n}" for n in range(2000)]


async def test_a_burst_is_drawn_once() -> None:
    store = Store(clock=lambda: T0, frame_s=5.0)
    drawn: list[FleetSnapshot] = []
    pump = asyncio.create_task(store.pump(lambda snapshot, _runs: drawn.append(snapshot)))
    await store.put(FLEET)
    await asyncio.sleep(0.05)
    for number in range(100):
        await store.put(Notice(SafeText(str(number))))
    await asyncio.sleep(0.05)
    pump.cancel()
    assert len(drawn) == 1


async def test_full_queues_say_so() -> None:
    store = new_store()
    assert all(store.offer(Notice(SafeText("x"))) for _ in range(EVENTS))
    assert not store.offer(Notice(SafeText("x")))
    while store.send(ProbeNow("a")):
        pass
    assert store.commands.full()


async def test_quiet_time_publishes_nothing() -> None:
    store = new_store()
    drawn: list[int] = []
    pump = asyncio.create_task(store.pump(lambda snapshot, _runs: drawn.append(snapshot.version)))
    await store.put(FLEET)
    await asyncio.sleep(1.3)
    pump.cancel()
    assert drawn == [1]


async def test_the_pump_ends_when_it_is_told_to_however_busy_it_is() -> None:
    for moment in range(8):
        store = Store(clock=lambda: T0, frame_s=0.0)
        pump = asyncio.create_task(store.pump(lambda _snapshot, _runs: None))
        await asyncio.sleep(0.01)
        store.offer(Notice(SafeText("x")))
        for _ in range(moment):  # somewhere between the event and the frame that shows it
            await asyncio.sleep(0)
        pump.cancel()
        await asyncio.wait([pump], timeout=1.5)
        assert pump.cancelled()
