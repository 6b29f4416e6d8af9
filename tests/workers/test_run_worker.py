"""The worker of one run goes on where this computer's disk, the box or a command does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tui.box.backoff import Backoff
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import AdoptRun, ForgetBox, ForgetRun, LoadOlder, ReloadFleet, SearchLog
from tui.model.event import FleetChanged, OpenEndsRead
from tui.model.failure import Failure
from tui.model.instance import Ended, Instance
from tui.model.run import RunSpec
from tui.model.text import safe
from tui.workers import run as run_module
from tui.workers.link import BoxLink
from tui.workers.local_box import LocalBox
from tui.workers.lock import WatchLock
from tui.workers.run import RunWorker
from tui.workers.secrets import StoreAsker
from tui.workers.supervisor import Supervisor

BOX = Instance("here", "local", None)


async def until(store: Store, true: Callable[[], bool], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)
            store.fold()


@asynccontextmanager
async def working(worker: RunWorker) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=5)


@pytest.fixture
def store() -> Store:
    return Store(frame_s=0.01)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "train.log"
    path.write_text("one\ntwo\n")
    return path


def worker_of(spec: RunSpec, store: Store, home: Path) -> RunWorker:
    link = BoxLink()
    link.up(LocalBox("here"))
    return RunWorker(spec, link, store, spool=home / "spool" / "r", lock=WatchLock(home / "locks" / "r"))


@pytest.mark.parametrize("temporary", [True, False])
async def test_a_home_that_cannot_be_written_does_not_end_the_watch(
    store: Store, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: bool
) -> None:
    home = tmp_path / "home"
    home.write_text("a file where a folder should be")
    if not temporary:
        monkeypatch.setattr("tempfile.tempdir", str(home))
    spec = RunSpec("r", BOX.name, log=str(log))
    await store.put(FleetChanged((BOX,), (spec,)))
    async with working(worker_of(spec, store, home)):
        await until(store, lambda: store.log("r").lines[:2] == ["one", "two"])
    (notice,) = store.snapshot.notices
    assert "without a lock" in notice.text
    state = store.snapshot.runs[0].log_state
    assert state is not None
    assert temporary == (state.detail == "")  # what is not kept is said
    assert home.is_file()


async def test_the_second_watcher_takes_over_when_the_first_one_leaves(
    store: Store, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "TURN_S", 0.05)
    first = WatchLock(tmp_path / "locks" / "r")
    assert first.claim() is None
    spec = RunSpec("r", BOX.name, log=str(log))
    await store.put(FleetChanged((BOX,), (spec,)))
    store.fold()
    async with working(worker_of(spec, store, tmp_path)):
        await until(store, lambda: store.snapshot.runs[0].held_by is not None)
        first.release()
        await until(store, lambda: store.snapshot.runs[0].held_by is None)
        assert first.claim() is not None
    assert first.claim() is None
    first.release()


class Fleet:
    """A fleet file that takes one run and can be told to refuse."""

    def __init__(self) -> None:
        self.box = BOX
        self.runs: tuple[RunSpec, ...] = ()
        self.fault: Exception | None = None
        self.removed: tuple[str, ...] = ()

    def load(self) -> tuple[FleetChanged, tuple[Failure, ...]]:
        return FleetChanged(() if self.box.name in self.removed else (self.box,), self.runs), ()

    def stamp(self) -> object:
        return self.runs, self.removed

    def add_run(self, spec: RunSpec) -> None:
        if self.fault is not None:
            raise self.fault
        self.runs = (spec,)

    def remove_run(self, name: str) -> None:
        if self.fault is not None:
            raise self.fault
        self.runs = ()

    def remove_box(self, name: str) -> tuple[str, ...]:
        self.removed = (name,)
        return ()


@pytest.fixture
async def watched(store: Store, tmp_path: Path) -> AsyncIterator[Fleet]:
    """A supervisor at work on this computer."""
    fleet = Fleet()

    async def dial(_instance: Instance) -> LocalBox:
        return LocalBox("here")

    supervisor = Supervisor(
        store,
        dial,
        fleet=fleet,
        accept_key=lambda _box, _key: None,
        asker=StoreAsker(store),
        paths=Paths(tmp_path / "config", tmp_path / "state"),
        new_backoff=lambda: Backoff(base=0.01, cap=0.02),
    )
    task = asyncio.create_task(supervisor.run())
    yield fleet
    task.cancel()
    await asyncio.wait([task], timeout=5)


def told(store: Store) -> list[str]:
    return [str(notice.text) for notice in store.snapshot.notices]


async def test_what_was_done_is_said_when_it_was_done(store: Store, log: Path, watched: Fleet) -> None:
    watched.fault = Failure("fleet.toml cannot be written.")
    store.send(AdoptRun(RunSpec("r", BOX.name, log=str(log))))
    await until(store, lambda: bool(told(store)))
    assert told(store) == ["fleet.toml cannot be written."]
    watched.fault = None
    store.send(AdoptRun(RunSpec("r", BOX.name, log=str(log))))
    await until(store, lambda: len(told(store)) == 2)
    assert told(store)[-1] == "Watching r on here."
    watched.fault = Failure("fleet.toml cannot be written.")
    store.send(ForgetRun("r"))
    await until(store, lambda: len(told(store)) == 3)
    assert told(store)[-1] == "fleet.toml cannot be written."


async def test_only_a_destroyed_box_is_taken_off_the_list(store: Store, watched: Fleet) -> None:
    """One that may run would bill on unseen."""
    await until(store, lambda: bool(store.snapshot.boxes) and store.snapshot.boxes[0].telemetry is not None)
    store.send(ForgetBox(BOX.name))
    await until(store, lambda: len(told(store)) == 1)
    assert "not destroyed on record" in told(store)[0]
    assert not watched.removed
    later = store.snapshot.boxes[0].telemetry.taken_at + 3600  # type: ignore[union-attr]
    watched.box = replace(BOX, instance_id="i-1")
    store.send(ReloadFleet())
    await until(store, lambda: store.snapshot.boxes[0].instance.instance_id == "i-1")
    await store.put(OpenEndsRead((), (Ended(BOX.name, later, safe("proven by two witnesses"), "i-1"),)))
    store.fold()
    assert store.snapshot.boxes[0].ended is not None
    store.send(ForgetBox(BOX.name))
    await until(store, lambda: not store.snapshot.boxes)
    assert watched.removed == (BOX.name,)


async def test_a_fault_in_one_command_ends_nothing(store: Store, log: Path, watched: Fleet) -> None:
    watched.fault = OSError(5, "Input/output error")
    store.send(ForgetRun("r"))
    await until(store, lambda: bool(told(store)))
    assert "Input/output error" in told(store)[0]
    watched.fault = None
    store.send(AdoptRun(RunSpec("r", BOX.name, log=str(log))))
    await until(store, lambda: store.log("r").lines[:2] == ["one", "two"])


async def test_a_new_price_does_not_cut_the_link(store: Store, log: Path, watched: Fleet) -> None:
    await until(store, lambda: bool(store.snapshot.boxes) and store.snapshot.boxes[0].telemetry is not None)
    since = store.snapshot.boxes[0].link.since
    watched.box = replace(BOX, price_per_hour=2.0, mounts=(str(log.parent),))
    store.send(ReloadFleet())
    await until(store, lambda: store.snapshot.boxes[0].instance.price_per_hour == 2.0)
    await asyncio.sleep(0.1)
    store.fold()
    assert store.snapshot.boxes[0].link.since == since
    watched.box = replace(BOX, password_env="SECRET")
    store.send(ReloadFleet())
    await until(store, lambda: store.snapshot.boxes[0].link.since > since)


async def test_older_lines_can_be_asked_for_while_a_search_goes_on(
    store: Store, log: Path, tmp_path: Path
) -> None:
    with log.open("w") as stream:
        stream.writelines(f"line {n} of many\n" for n in range(30_000))
    spec = RunSpec("r", BOX.name, log=str(log))
    await store.put(FleetChanged((BOX,), (spec,)))
    worker = worker_of(spec, store, tmp_path)
    async with working(worker):
        await until(store, lambda: store.log("r").end > 0 and store.log("r").behind_bytes == 0)
        await worker.handle(SearchLog("r", "line 7 of"))
        await worker.handle(LoadOlder("r", store.log("r").base, 10))
        await until(store, lambda: any(s.complete for s in store.snapshot.searches))
