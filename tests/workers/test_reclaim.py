"""A reclaim carried out on a small file system: consent, journal, receipt, cut links, what came free."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.box.test_reclaim import age, cache, identity
from tests.rig import Sshd
from tests.rig.tmpfs import tmpfs
from tests.workers.test_triage import Recording
from tui.box.local import LocalTransport
from tui.box.reclaim import REMOVE
from tui.box.survey import room_on
from tui.box.transport import Completed, LinkLost, Script, SessionsExhausted, Transport
from tui.custody import hold
from tui.custody.journal import Journal, peek
from tui.custody.machine import known_victim
from tui.custody.receipts import Ledger
from tui.fleet.paths import Paths
from tui.model.command import ReclaimStorage
from tui.model.event import FleetChanged, LadderMade, ReclaimChanged
from tui.model.failure import Failure
from tui.model.instance import Endpoint, Instance
from tui.model.reclaim import FRESH_S, ReclaimPlan, ReclaimView, plan_of
from tui.triage.ladder import Found, Kept, Survey, ladder
from tui.verbs.wiring import dialer
from tui.workers.line import line_of
from tui.workers.reclaim import CUT_OFF, Patience, Reclaiming, Reclaims, journal_path
from tui.workers.triage import worked_out

HERE = Instance("local", "local", None)
QUICK = Patience(tries=2, pause_s=0.0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Two caches, a trash and a result."""
    with tmpfs(tmp_path / "disk", size=4 << 20) as made:
        for name in ("a", "b"):
            cache(made / name)
            for odd in list((made / name / "__pycache__").rglob("*")):
                if odd.is_file() and odd.suffix != ".pyc":
                    odd.unlink()
            (made / name / "__pycache__" / "big.pyc").write_bytes(b"x" * 200_000)
        (made / ".Trash-0" / "files").mkdir(parents=True)
        (made / ".Trash-0" / "files" / "old").write_bytes(b"x" * 300_000)
        (made / "results.csv").write_text("kept")
        age(made)
        yield made


@pytest.fixture
def where(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "config", tmp_path / "state")


@pytest.fixture(autouse=True)
def no_walk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk through all processes takes seconds on a busy machine: one test takes it, others the figures."""

    async def figures(transport: Transport, path: str) -> Survey:
        room = await room_on(transport, path)
        return Survey(path, "", "", room.used_bytes, room.size_bytes, room.used_inodes, room.inodes)

    if "whole_survey" not in request.fixturenames:
        monkeypatch.setattr("tui.workers.reclaim.survey", figures)


@pytest.fixture
def whole_survey() -> None:
    """The real one."""


def seen_on(disk: Path) -> Survey:
    """What a survey finds there."""
    places = (
        (disk / "a/__pycache__", "pycache"),
        (disk / "b/__pycache__", "pycache"),
        (disk / ".Trash-0", "trash"),
    )
    found = tuple(Found(kind, str(at), identity(at), 204_800, 6) for at, kind in places)
    return Survey(str(disk), used_bytes=900_000, size_bytes=4 << 20, found=found)


def planned(disk: Path, paths: set[str] | None = None, at: float | None = None) -> ReclaimPlan:
    made = ladder(seen_on(disk), box="local", at=time.time() if at is None else at)
    return plan_of(made, paths)


class Act:
    """One act with everything that it told."""

    def __init__(
        self,
        plan: ReclaimPlan,
        where: Paths,
        box: Instance = HERE,
        line: Callable[[], Awaitable[Transport]] | None = None,
        kept: Kept = Kept(),  # noqa: B008 - frozen
    ) -> None:
        self.plan, self.where = plan, where
        self.shown: list[ReclaimView] = []
        self.surveys: list[Survey] = []
        self.path = journal_path(where, known_victim(box, where))
        self.act = Reclaiming(
            plan, box, where, line or self._line, kept=kept, show=self._show, surveyed=self._surveyed,
            patience=QUICK,
        )  # fmt: skip

    async def _line(self) -> Transport:
        return LocalTransport()

    async def _show(self, view: ReclaimView) -> None:
        self.shown.append(view)

    async def _surveyed(self, found: Survey) -> None:
        self.surveys.append(found)

    async def go(self, typed: str | None = None) -> ReclaimView:
        return await self.act.carry_out(str(self.plan.phrase) if typed is None else typed)

    @property
    def states(self) -> dict[str, str]:
        removals = self.act.view.removals
        return {"/".join(Path(one.path).parts[-2:]): one.state for one in removals}

    @property
    def steps(self) -> list[str]:
        return [entry.step for entry in peek(self.path)]

    @property
    def receipts(self) -> list[tuple[str, str, str]]:
        report = Ledger(self.where.receipts).report()
        assert report.holds
        return [(one.receipt.act, one.receipt.result, one.receipt.detail) for one in report.receipts]


async def test_it_goes_step_by_step_into_the_journal_and_once_into_the_ledger(
    disk: Path, where: Paths, whole_survey: None
) -> None:
    act = Act(planned(disk), where)
    view = await act.go()
    assert act.states == {"a/__pycache__": "removed", "b/__pycache__": "removed"}
    assert act.steps == ["approval", *["sending", "answered"] * 2, "looked", "outcome", "receipt"]
    assert view.over and not view.working and view.receipt == 1
    ((name, result, detail),) = act.receipts
    assert (name, result) == ("reclaim", "passed")
    assert detail.startswith(f"2 removed of 2 on {disk}; observed: ")
    size, inodes = view.gained
    assert size is not None and 400_000 <= size < 500_000
    assert inodes == 2 * 6
    assert f"{size:,} bytes and 12 inodes came free" in detail
    assert [found.mount for found in act.surveys] == [str(disk)]
    assert not act.surveys[0].found or {one.kind for one in act.surveys[0].found} == {"trash"}
    assert (disk / "results.csv").read_text() == "kept"
    assert (disk / ".Trash-0/files/old").exists()
    assert [view.removals[0].state for view in act.shown][:2] == ["waits", "at work"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (str.upper, "Capital and small letters differ"),
        (lambda text: f"{text} ", "blanks before or after"),
        (lambda text: "", "Nothing was typed"),
        (lambda text: f"\x1b[200~{text}", "pasted"),
        (lambda text: text.replace("local", "other"), "names another machine"),
        (lambda text: text[:-1], "It differs"),
    ],
)
async def test_anything_but_the_phrase_does_nothing(
    disk: Path, where: Paths, change: Callable[[str], str], said: str
) -> None:
    act = Act(planned(disk), where)
    view = await act.go(change(str(act.plan.phrase)))
    assert not view.over and not view.working
    assert "Nothing was done" in view.said and said in view.said
    assert (disk / "a/__pycache__/big.pyc").exists()
    assert not act.path.exists() and act.receipts == []


async def test_an_old_survey_is_no_ground(disk: Path, where: Paths) -> None:
    act = Act(planned(disk, at=time.time() - FRESH_S - 1), where)
    assert "older than 10 minutes" in (await act.go()).said
    assert act.receipts == []


async def test_a_hold_stands_against_what_is_gone_for_ever_alone(disk: Path, where: Paths) -> None:
    hold.hold(Ledger(where.receipts), known_victim(HERE, where), "the referee may ask", time.time())
    trash = Act(planned(disk, {str(disk / ".Trash-0")}), where)
    assert trash.plan.level == 3
    view = await trash.go()
    assert "the referee may ask" in view.said and not view.over
    assert (disk / ".Trash-0/files/old").exists()
    caches = Act(planned(disk), where)
    assert (await caches.go()).count("removed") == 2
    hold.unhold(Ledger(where.receipts), known_victim(HERE, where), "it was answered", time.time())
    assert (await trash.go()).count("removed") == 1


async def test_what_changed_meanwhile_is_skipped_and_the_rest_goes(disk: Path, where: Paths) -> None:
    plan = planned(disk)
    kept = Kept(((str(disk / "b/__pycache__/run/log"), "log"),))
    act = Act(plan, where, kept=kept)
    with (disk / "a/__pycache__/big.pyc").open("rb"):
        view = await act.go()
    whys = {one.path: str(one.why) for one in view.removals}
    assert f"pid {os.getpid()} has it open" in whys[plan.entries[0].path]
    assert whys[plan.entries[1].path] == "the log of a watched run lies there"
    assert act.steps == ["approval", "sending", "answered", "looked", "outcome", "receipt"]
    assert act.receipts[0][1] == "recorded"
    assert view.gained[1] == 0


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A box that takes a file and then dawdles; gives the file that tells that it came so far."""
    marker, tools = tmp_path / "came so far", tmp_path / "tools"
    tools.mkdir()
    (tools / "find").write_text(
        "#!/bin/sh\n"
        f"case $* in '. -xdev -depth -delete') rm -f ./big.pyc; >'{marker}'; exec sleep 60 ;; esac\n"
        'exec /usr/bin/find "$@"\n'
    )
    (tools / "find").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    return marker


async def test_when_the_link_is_killed_the_one_under_way_is_unknown_until_it_was_looked_at_again(
    disk: Path, where: Paths, slow: Path, sshd_factory: Callable[..., Sshd]
) -> None:
    server = sshd_factory(extra_config=(f"SetEnv PATH={os.environ['PATH']}",))
    end = Endpoint(server.host, server.port, server.user, str(server.client_key))
    box = Instance("local", "ssh", end, mounts=(str(disk),))
    async with line_of(box, dialer(where)) as line:
        act = Act(planned(disk), where, box, line)
        task = asyncio.create_task(act.go())
        while not slow.exists():
            assert not task.done(), task.result()
            await asyncio.sleep(0.02)
        server.kill_sessions()
        view = await task
    assert act.states == {"a/__pycache__": "failed", "b/__pycache__": "skipped"}
    assert "looked again: it is still there, perhaps not whole" in view.removals[0].why
    assert not (disk / "a/__pycache__/big.pyc").exists()  # it was at it
    assert (disk / "a/__pycache__/a.pyc").exists() and (disk / "b/__pycache__/big.pyc").exists()
    answered = [entry.data["state"] for entry in peek(act.path) if entry.step == "answered"]
    assert (answered, "not begun" in view.removals[1].why) == (["unknown"], True)
    assert view.after is not None and act.receipts[0][1] == "recorded"


async def test_a_box_that_stays_away_leaves_it_unknown(disk: Path, where: Paths) -> None:
    calls: list[int] = []

    async def line() -> Transport:
        calls.append(1)
        if len(calls) > 1:
            raise LinkLost("The connection broke.")
        return LocalTransport()

    act = Act(planned(disk), where, line=line)
    view = await act.go()
    assert act.states == {"a/__pycache__": "unknown", "b/__pycache__": "skipped"}
    assert view.over and view.after is None
    assert act.receipts[0][1] == "unproven"
    assert "could not be looked at again" in act.receipts[0][2]
    assert len(calls) == 2 + QUICK.tries


async def test_a_box_without_a_session_skips_and_goes_on(disk: Path, where: Paths) -> None:
    class Full(LocalTransport):
        async def run(self, script: Script, **how: object) -> Completed:
            if script.text == REMOVE and "/a/" in str(script.args[0]):
                raise SessionsExhausted("The server takes no more sessions.")
            return await super().run(script, **how)  # type: ignore[arg-type]

    async def line() -> Transport:
        return Full()

    act = Act(planned(disk), where, line=line)
    await act.go()
    assert act.states == {"a/__pycache__": "skipped", "b/__pycache__": "removed"}


async def test_to_leave_in_the_middle_writes_down_how_far_it_came(
    disk: Path, where: Paths, slow: Path
) -> None:
    act = Act(planned(disk), where)
    task = asyncio.create_task(act.go())
    while not slow.exists():
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert act.states == {"a/__pycache__": "unknown", "b/__pycache__": "skipped"}
    assert act.steps == ["approval", "sending", "outcome", "receipt"]
    assert act.receipts == [("reclaim", "unproven", CUT_OFF)]
    assert (disk / "b/__pycache__/big.pyc").exists()


async def test_what_a_crash_left_open_gets_its_receipt_before_anything_else(disk: Path, where: Paths) -> None:
    act = Act(planned(disk), where)
    with Journal.open(act.path, time.time) as journal:
        journal.add("approval", {"plan": act.plan.digest, "entries": []})
        journal.add("sending", {"path": str(act.plan.entries[0].path)})
    await act.go()
    assert [result for _, result, _ in act.receipts] == ["unproven", "passed"]
    assert act.receipts[0][2] == CUT_OFF


async def test_only_one_rgt_reclaims_on_a_machine(disk: Path, where: Paths) -> None:
    act = Act(planned(disk), where)
    with Journal.open(act.path, time.time), pytest.raises(Failure, match="Another rgt reclaims room"):
        await act.go()
    assert (disk / "a/__pycache__/big.pyc").exists()


async def test_a_box_on_this_computer_has_its_mounts_and_nothing_else_of_it(disk: Path, where: Paths) -> None:
    ssh = Endpoint("127.0.0.1", 22, "me")
    box = Instance("local", "ssh", ssh, mounts=(str(disk / "a"),))
    act = Act(planned(disk), where, box=box)
    with pytest.raises(Failure, match="runs on this computer") as raised:
        await act.go()
    assert str(disk / "b") in str(raised.value)
    assert act.receipts == [] and (disk / "a/__pycache__/big.pyc").exists()
    inside = Act(planned(disk, {str(disk / "a/__pycache__")}), where, box=box)
    assert (await inside.go()).count("removed") == 1


# -- for the screens ---------------------------------------------------------------------------------------


async def finished(reclaims: Reclaims) -> None:
    while reclaims._open:
        await asyncio.wait(list(reclaims._open.values()), timeout=60)
        await asyncio.sleep(0)


class Loopback(LocalTransport):
    async def alive(self, timeout: float = 3.0) -> bool:
        return True


async def dial(_: Instance) -> Loopback:
    return Loopback()


async def surveyed(store: Recording, disk: Path) -> ReclaimPlan:
    store.now = time.time()
    await store.put(FleetChanged((HERE,), ()))
    box = store.snapshot.box("local")
    assert box is not None
    made = worked_out(seen_on(disk), box, (), str(disk), store.now)
    await store.put(LadderMade(made))
    return plan_of(made)


def views(store: Recording) -> list[ReclaimView]:
    return [event.view for event in store.events if isinstance(event, ReclaimChanged)]


async def test_the_picture_follows_and_a_new_ladder_comes_after(disk: Path, where: Paths) -> None:
    store = Recording()
    plan = await surveyed(store, disk)
    reclaims = Reclaims(store, dial, where, QUICK)  # type: ignore[arg-type]
    await reclaims.handle(ReclaimStorage(plan, str(plan.phrase)))
    with pytest.raises(Failure, match="at work"):
        await reclaims.handle(ReclaimStorage(plan, str(plan.phrase)))
    await finished(reclaims)
    box = store.snapshot.box("local")
    assert box is not None and box.reclaim is not None and box.ladder is not None
    assert box.reclaim.over and box.reclaim.count("removed") == 2
    assert box.ladder.reclaim == () and box.ladder.used is not None and box.ladder.used < 900_000
    assert any(view.working for view in views(store))


async def test_a_plan_of_another_survey_is_refused_on_the_picture(disk: Path, where: Paths) -> None:
    store = Recording()
    plan = await surveyed(store, disk)
    os.utime(disk / "b/__pycache__", (1_700_000_001, 1_700_000_001))
    await surveyed(store, disk)
    reclaims = Reclaims(store, dial, where, QUICK)  # type: ignore[arg-type]
    await reclaims.handle(ReclaimStorage(plan, str(plan.phrase)))
    await finished(reclaims)
    (view,) = views(store)
    assert not view.over and not view.working
    assert "A new survey came in between. Nothing was done." in view.said
    assert (disk / "a/__pycache__/big.pyc").exists()


async def test_a_fault_is_told_on_the_picture(disk: Path, where: Paths) -> None:
    store = Recording()
    plan = await surveyed(store, disk)

    async def broken(_: Instance) -> Loopback:
        raise RuntimeError("of our own")

    reclaims = Reclaims(store, broken, where, QUICK)  # type: ignore[arg-type]
    await reclaims.handle(ReclaimStorage(plan, str(plan.phrase)))
    await finished(reclaims)
    assert "RuntimeError: of our own" in views(store)[-1].said
    assert replace(views(store)[-1]).over is False
    await reclaims.close()
