"""What the worker of one box says and does, with a probe and a link that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tui.box.backoff import Backoff
from tui.box.errors import ConnectFailure
from tui.box.local import LocalTransport
from tui.box.probe.loop import ProbeLate
from tui.box.probe.plan import ProbeRequest
from tui.box.transport import LinkLost
from tui.fleet.store import Store
from tui.model.event import FleetChanged
from tui.model.instance import Endpoint, Instance, LinkState
from tui.model.reading import known
from tui.model.run import RunSpec, RunState
from tui.model.telemetry import Gpu, Host, ProcessInfo, RunTruth, Telemetry
from tui.model.text import SafeText
from tui.workers import box as box_module
from tui.workers.box import BoxWorker, Pace
from tui.workers.local_box import LocalBox

BOX = Instance("box-a", "ssh", Endpoint("a.example"))
RUN = RunSpec("run-1", "box-a", pid=412)
PACE = Pace(period_s=0.02)


class Link(LocalBox):
    """A link to nowhere; the probe below never uses it."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


def telemetry(store: Store, *, start: int = 99) -> Telemetry:
    process = ProcessInfo(412, start, "S", SafeText("python train.py"))
    host = known(Host(SafeText("Linux"), boot_id=SafeText("boot-1"), clock_offset_s=0.0))
    return Telemetry(store.clock(), host=host, runs=(RunTruth("run-1", True, process=process),))


class FakeProbe:
    """Answers each tick with the next of `script`: telemetry, or an exception to raise."""

    script: list[Any]
    asked: list[ProbeRequest]
    sections: list[dict[str, bool]]

    def __init__(self, transport: LocalTransport, *, clock: Callable[[], float]) -> None:
        pass

    async def tick(self, request: ProbeRequest, **sections: bool) -> Telemetry:
        type(self).asked.append(request)
        type(self).sections.append(sections)
        answer = self.script.pop(0) if self.script else None
        if answer is None:
            await asyncio.sleep(3600)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Telemetry)
        return answer

    async def close(self) -> None:
        pass


@pytest.fixture
def store() -> Store:
    return Store(frame_s=0.01)


@pytest.fixture
def worker_with(store: Store, monkeypatch: pytest.MonkeyPatch) -> Callable[..., BoxWorker]:
    def make(script: list[Any], dial: Callable[[Instance], Awaitable[Any]] | None = None) -> BoxWorker:
        probe = type("Scripted", (FakeProbe,), {"script": script, "asked": [], "sections": []})
        monkeypatch.setattr(box_module, "Probe", probe)

        async def nowhere(_instance: Instance) -> Link:
            return Link()

        backoff = Backoff(base=0.01, cap=0.02)
        return BoxWorker(BOX, dial or nowhere, store, runs=lambda: (RUN,), pace=PACE, backoff=backoff)

    return make


async def run_for(worker: BoxWorker, store: Store, seconds: float = 0.3) -> None:
    await store.put(FleetChanged((BOX,), (RUN,)))
    task = asyncio.create_task(worker.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.wait([task], timeout=2)
    store.fold()


async def test_a_missed_probe_is_said_and_taken_back(
    store: Store, worker_with: Callable[..., BoxWorker]
) -> None:
    worker = worker_with([ProbeLate("late"), telemetry(store)])
    await run_for(worker, store)
    link = store.snapshot.boxes[0].link
    assert link.state is LinkState.LIVE
    assert link.detail == ""  # the answer that came after it took the complaint back


async def test_a_lost_link_is_lost_not_stopped_and_comes_back(
    store: Store, worker_with: Callable[..., BoxWorker]
) -> None:
    worker = worker_with([telemetry(store), LinkLost("cut"), telemetry(store)])
    await run_for(worker, store)
    assert store.snapshot.boxes[0].link.state is LinkState.LIVE
    assert store.snapshot.runs[0].state is RunState.RUNNING


async def test_a_refused_login_is_not_tried_again_until_asked(
    store: Store, worker_with: Callable[..., BoxWorker]
) -> None:
    dialled = 0

    async def refuse(_instance: Instance) -> Link:
        nonlocal dialled
        dialled += 1
        raise ConnectFailure("no", state=LinkState.REFUSED, retry=False)

    worker = worker_with([], refuse)
    await run_for(worker, store)
    assert dialled == 1
    assert store.snapshot.boxes[0].link.retry_at is None
    await store.put(FleetChanged((BOX,), (RUN,)))
    task = asyncio.create_task(worker.run())
    await asyncio.sleep(0.1)
    worker.retry_now()
    await asyncio.sleep(0.1)
    task.cancel()
    assert dialled == 3


async def test_a_run_named_by_pid_alone_is_held_to_the_process_first_seen(
    store: Store, worker_with: Callable[..., BoxWorker]
) -> None:
    worker = worker_with([telemetry(store), telemetry(store)])
    await run_for(worker, store)
    asked = box_module.Probe.asked  # type: ignore[attr-defined]
    assert asked[0].runs == (RUN,)
    assert asked[1].runs == (replace(RUN, pid_start=99, boot_id="boot-1"),)


async def test_every_link_is_closed(store: Store, worker_with: Callable[..., BoxWorker]) -> None:
    links: list[Link] = []

    async def dial(_instance: Instance) -> Link:
        links.append(Link())
        return links[-1]

    worker = worker_with([LinkLost("cut"), LinkLost("cut"), telemetry(store)], dial)
    await run_for(worker, store)
    assert len(links) == 3
    assert [link.closed for link in links] == [1, 1, 1]


async def test_a_box_without_cards_is_asked_for_them_seldom(
    store: Store, worker_with: Callable[..., BoxWorker]
) -> None:
    bare = telemetry(store)
    carded = replace(bare, gpus=known((Gpu(0, SafeText("H100")),)))
    worker = worker_with([*[bare] * 6, carded, carded, carded])
    await run_for(worker, store)
    asked = [one["gpus"] for one in box_module.Probe.sections]  # type: ignore[attr-defined]
    assert asked[:9] == [True, False, False, False, False, True, False, True, False]


def test_boxes_are_asked_on_one_beat() -> None:
    pace = Pace(period_s=2.0)
    assert {pace.next_at(started, started + 0.1) for started in (9.6, 10.0, 10.001, 10.4)} == {12.0}
    at, asked = 3.3, []
    for _ in range(10):  # an answer takes its time, which puts nothing off
        at = pace.next_at(at + 0.002, at + 0.3)
        asked.append(at)
    assert asked == [5.0 + 2.0 * n for n in range(10)]


def test_a_box_that_answers_late_is_given_a_rest() -> None:
    pace = Pace(period_s=2.0)
    for late in (1.4, 1.6, 2.0, 2.3, 2.6, 3.0, 7.9):
        assert 10.0 + late + 0.5 <= pace.next_at(10.0, 10.0 + late) <= 10.0 + late + 1.5
