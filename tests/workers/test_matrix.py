"""The matrix while somebody looks: boxes that answer, boxes that do not, and silence when nobody looks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tui.box.local import LocalTransport
from tui.box.transport import Transport
from tui.fleet.paths import Paths
from tui.fleet.store import Store
from tui.model.command import LeaveMatrix, LookAtMatrix, WatchMatrix
from tui.model.queue import MatrixView
from tui.runs.queue_book import QueuePage, Share, queue_book
from tui.workers.matrix import MatrixWatch


class Recording(Store):
    def __init__(self) -> None:
        super().__init__()
        self.views: list[MatrixView] = []

    async def put(self, event: object) -> None:
        await super().put(event)  # type: ignore[arg-type]
        self.fold()
        assert self.snapshot.matrix is not None
        self.views.append(self.snapshot.matrix)


@pytest.fixture
def where(tmp_path: Path) -> Paths:
    """A queue of three cells on two boxes; one is waited for, one ended, one lies on a box without a link."""
    found = Paths(tmp_path / "config", tmp_path / "state")
    root = tmp_path / "p"
    ended = root / "active" / "b" / ".rgt" / "attempts" / "1"
    ended.mkdir(parents=True)
    (ended / "end").write_text("reason failed\nstatus 4\n")
    folders = {name: str(root / "active" / name) for name in "ab"}
    page = QueuePage(
        queue="grid-1",
        file="job.toml",
        at="2026-11-30T00:00:00Z",
        values={name: {"seed": str(n), "loss": "感知"} for n, name in enumerate("abc")},
        shares=(
            Share(box="near", root=str(root), claims=str(root / "claims"), folders=folders),
            Share(box="far", root="/p", claims="/p/claims", folders={"c": "/p/active/c"}),
        ),
    )
    queue_book(found).write(page)
    return found


async def until(store: Recording, holds: Callable[[MatrixView], bool]) -> MatrixView:
    async with asyncio.timeout(20):
        while not (store.views and holds(store.views[-1])):
            await asyncio.sleep(0.01)
    return store.views[-1]


async def test_each_witness_is_told_and_a_silent_box_is_unknown(where: Paths) -> None:
    store, local = Recording(), LocalTransport("near")
    asked: list[str] = []

    def transport(box: str) -> Transport | None:
        asked.append(box)
        return local if box == "near" else None

    watch = MatrixWatch(store, where, transport, every_s=60)
    await watch.handle(WatchMatrix())
    view = await until(store, lambda v: v.at is not None and not v.asking)
    before = next(v for v in store.views if v.cells)
    assert {one.state for one in before.cells} == {"?"}
    assert {(one.sealed, one.accepted, one.evaluated) for one in before.cells} == {(None, None, None)}
    assert (view.queue, view.names) == ("grid-1", ("seed", "loss"))
    assert [(one.state, one.attempt, one.sealed) for one in view.cells] == [
        ("waiting", 0, False), ("failed", 1, False), ("unreachable", None, None),
    ]  # fmt: skip
    assert "status 4" in view.cells[1].why
    assert view.silent == (("far", "It is not in the fleet file."),)
    asked.clear()
    await watch.handle(LookAtMatrix())
    async with asyncio.timeout(20):
        while asked != ["near", "far"]:
            await asyncio.sleep(0.01)
    await watch.handle(LeaveMatrix())
    asked.clear()
    await watch.handle(LookAtMatrix())
    await asyncio.sleep(0.1)
    assert asked == []  # nobody looks


async def test_it_asks_again_by_itself_and_goes_on_after_a_fault(where: Paths) -> None:
    store, asked = Recording(), 0

    def transport(_box: str) -> Transport | None:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ValueError("a fault of ours")
        return None

    watch = MatrixWatch(store, where, transport, every_s=0.02)
    await watch.handle(WatchMatrix("grid-1"))
    await until(store, lambda v: "ValueError" in v.problem)
    view = await until(store, lambda v: not v.problem and not v.asking)
    assert {one.state for one in view.cells} == {"unreachable"}
    await watch.close()


async def test_an_unknown_queue_says_so(where: Paths) -> None:
    store = Recording()
    watch = MatrixWatch(store, where, lambda _box: None, every_s=60)
    await watch.handle(WatchMatrix("other"))
    view = await until(store, lambda v: bool(v.problem))
    assert "no queue 'other'" in view.problem
    assert view.cells == ()
    await watch.close()
