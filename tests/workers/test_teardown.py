"""The wizard's worker: from the roster to the operator's word, through crashes and lost links."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.custody.fake_plane import FakePlane, refuses
from tests.workers.teardown_rig import QUICK, Rig, furnish, put, running, safetensors
from tui.box.errors import unreachable
from tui.custody import hold
from tui.custody.errand import Errand
from tui.custody.machine import known_victim
from tui.custody.provider import Platform
from tui.custody.receipts import Ledger
from tui.fleet import settings
from tui.fleet.paths import Paths
from tui.model.ending import (
    ChooseDestination,
    DecideLeftovers,
    GivePhrase,
    GiveWord,
    GoOnOver,
    HaltTeardown,
    LeaveTeardown,
    RedoStep,
    StartTeardown,
)
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.model.teardown import TeardownView
from tui.platforms.control import Machine, State
from tui.workers import judging, teardown_walk
from tui.workers.box import Dial
from tui.workers.local_box import LocalBox
from tui.workers.steps import JOURNAL

OPEN = StartTeardown("box", "exp", "destroy")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settling between two looks, and checkpoints judged in this process: one test does it as it is."""
    monkeypatch.setattr("tui.custody.roster.SETTLE_S", 0.02)

    async def here(task: Errand, dial: Dial, told: Callable[[str, int, int], None]) -> None:
        judging.judge(task, told)

    monkeypatch.setattr(teardown_walk, "judge_apart", here)


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Path]:
    return furnish(tmp_path)


@dataclass
class Counted:
    """A box that counts connections and refuses some."""

    refuse: int = 0
    dials: int = 0

    def __call__(self, instance: Instance) -> LocalBox:
        self.dials += 1
        if self.refuse:
            self.refuse -= 1
            raise unreachable(f"{instance.name} does not answer.")
        return LocalBox(instance.name)


async def scrapped(rig: Rig) -> TeardownView:
    """Opened, and everything beside the run given up."""
    view = await rig.do(OPEN)
    groups = tuple(one.group for one in view.leftovers)
    return await rig.do(DecideLeftovers("box", groups, "scrap", "from before"))


async def proven(rig: Rig) -> TeardownView:
    """All the way to the phrase."""
    await scrapped(rig)
    view = await rig.do(ChooseDestination("box", str(rig.home / "vault")))
    assert view.question == "phrase", view
    return view


async def typed(rig: Rig, view: TeardownView) -> TeardownView:
    """The right phrase."""
    assert view.phrase is not None
    return await rig.do(GivePhrase("box", view.phrase.text, view.phrase.proof))


def states(view: TeardownView) -> list[str]:
    return [one.state for one in view.steps]


def results(where: Paths) -> list[tuple[str, str]]:
    """Acts and results of a ledger that holds."""
    report = Ledger(where.receipts).report()
    assert report.holds
    return [(one.receipt.act, one.receipt.result) for one in report.receipts]


# --- the way to the phrase --------------------------------------------------------------------------------


async def test_it_stops_at_leftovers_checkpoints_first_then_at_the_destination(
    made: tuple[Path, Path],
) -> None:
    async with running(*made) as rig:
        view = await rig.do(OPEN)
        assert (view.current, view.question) == ("roster", "leftovers")
        assert [one.checkpoint_like for one in view.leftovers] == [True, False]
        first, second = view.leftovers
        view = await rig.do(DecideLeftovers("box", (first.group,), "scrap", "an older try"))
        assert [one.decision for one in view.leftovers] == ["scrap", ""]
        assert view.question == "leftovers"
        view = await rig.do(DecideLeftovers("box", (second.group,), "scrap", ""))
        assert (view.current, view.question) == ("copy", "destination")
        assert states(view)[:3] == ["done", "done", "needs-you"]
        with pytest.raises(Failure, match="No box is named"):
            await rig.do(ChooseDestination("box", "nowhere:/x"))
        assert teardown_walk.in_public("rclone::sftp,pass=abc:/x") == "rclone::sftp,…:/x"
        await rig.do(ChooseDestination("box", str(made[0] / "vault")))
        assert rig.view.destination == str(made[0] / "vault")
        assert (await rig.do(ChooseDestination("box", ""))).question == "phrase"
        assert rig.step("copy").reused


async def test_a_group_that_is_kept_outside_the_run_is_refused_and_remembered(
    made: tuple[Path, Path],
) -> None:
    home, top = made
    async with running(home, top) as rig:
        view = await rig.do(OPEN)
        view = await rig.do(DecideLeftovers("box", tuple(o.group for o in view.leftovers), "keep", "thesis"))
        assert view.step("roster").state == "refused"  # type: ignore[union-attr]
        assert {t.code for t in rig.step("roster").refusals} == {"kept-not-on-roster"}
    async with running(home, top) as rig:  # another process, the same decisions
        view = await rig.do(OPEN)
        assert {one.reason for one in view.leftovers} == {"thesis"}


async def test_to_the_operators_word_by_hand(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        view = await proven(rig)
        assert view.phrase is not None
        rows = {str(title): value for title, value in view.summary}
        assert rows["machine"] == "abc-1 at ssh"
        assert rows["reversible"] == "no"
        assert view.phrase.proof[7:19] in rows["proof"]
        text = view.phrase.text
        for wrong in ("", text.upper(), text + " ", text + "\n", text.replace("box", "box2"), "destroy box"):
            view = await rig.do(GivePhrase("box", wrong, view.phrase.proof))
            assert view.question == "phrase"
            assert "Nothing was done" in view.answer
        view = await rig.do(GivePhrase("box", text, "sha256:" + "0" * 64))
        assert "earlier proof" in view.answer
        assert not (rig.where.state / "teardown").exists()
        view = await typed(rig, view)
        assert (view.current, view.question) == ("outcome", "word")
        assert "by hand" in view.console
        rig.store.fold()
        assert [end.box for end in rig.store.snapshot.open_ends] == ["box"]
        view = await rig.do(GiveWord("box", "unsure"))
        assert view.question == "word"
        view = await rig.do(GiveWord("box", "gone"))
        assert (view.ended, view.question) == ("attested", None)
        rig.store.fold()
        assert rig.store.snapshot.open_ends == ()
        ends = [result for act, result in results(rig.where) if act == "destroy"]
        assert ends == ["unproven", "unproven", "attested"]
        with pytest.raises(Failure, match="settled"):
            await rig.do(RedoStep("box", "roster"))


async def test_the_reason_for_a_gap_stands_in_the_proof_and_voids_the_phrase_before(
    made: tuple[Path, Path],
) -> None:
    async with running(*made) as rig:
        before = await proven(rig)
        view = await rig.do(GoOnOver("box", "readback", "one laptop is all there is"))
        assert view.question == "phrase"
        assert view.phrase != before.phrase
        gaps = {one.code: one.reason for one in rig.step("approval").gaps}
        assert gaps["same-device"] == "one laptop is all there is"
        view = await typed(rig, view)
        receipt = Ledger(rig.where.receipts).report().receipts[-1].receipt
        assert {g.code: g.reason for g in receipt.gaps}["same-device"] == "one laptop is all there is"
        with pytest.raises(Failure):
            await rig.do(GoOnOver("box", "digest", "because"))


# --- again, from disk -------------------------------------------------------------------------------------


async def test_a_new_process_goes_on_with_the_same_evidence(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        first = await proven(rig)
    await asyncio.sleep(1.0)  # moments are told in whole seconds
    async with running(*made) as rig:
        again = await rig.do(OPEN)
        assert again.question == "phrase"
        assert all(one.reused for one in again.steps[:6]), again.steps
        assert [one.at for one in again.steps[:6]] == [one.at for one in first.steps[:6]]
        assert again.phrase != first.phrase  # an approval is for one proof, and this is another moment
        refused = await rig.do(GivePhrase("box", first.phrase.text, first.phrase.proof))  # type: ignore[union-attr]
        assert "earlier proof" in refused.answer


async def test_a_changed_file_is_not_proven_by_old_evidence(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        before = await proven(rig)
    put(made[1] / "train.log", b"epoch 2 loss 0.1\n" * 100)
    async with running(*made) as rig:
        view = await rig.do(OPEN)
        assert not any(one.reused for one in view.steps)
        assert view.question == "phrase"  # the destination is known, so the whole of it was made again
        assert rig.step("digest").brief != before.step("digest").brief  # type: ignore[union-attr]


@pytest.mark.parametrize("same_times", [False, True])
async def test_a_flipped_bit_in_the_copy_is_refused_at_readback(
    made: tuple[Path, Path], same_times: bool
) -> None:
    async with running(*made) as rig:
        await proven(rig)
        (bag,) = (rig.home / "vault").iterdir()
    victim = bag / "data" / "ckpt" / "best.safetensors"
    times = victim.stat()
    raw = bytearray(victim.read_bytes())
    raw[-1] ^= 1
    victim.chmod(0o600)
    victim.write_bytes(raw)
    if same_times:
        os.utime(victim, ns=(times.st_atime_ns, times.st_mtime_ns))
    async with running(*made) as rig:
        view = await rig.do(OPEN)
        assert view.question is None
        assert rig.step("readback").state == "refused"
        assert "readback-inexact" in {one.code for one in rig.step("readback").refusals}
        assert [one.state for one in view.steps[4:]] == ["waiting"] * 4


async def test_what_changes_while_the_phrase_is_asked_for_stops_the_verb(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        view = await proven(rig)
        put(made[1] / "ckpt" / "newer.safetensors", safetensors((9.0,)))
        view = await typed(rig, view)
        assert view.ended == "refused"
        assert "changed-since-proof" in {one.code for one in rig.step("outcome").refusals}
        view = await rig.do(RedoStep("box", "outcome"))
        assert view.question == "phrase"
        assert "3 files" in rig.step("roster").brief


async def test_bytes_that_change_under_their_old_size_and_time_stop_the_verb(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        view = await proven(rig)
        harmed = made[1] / "ckpt" / "best.safetensors"
        times = harmed.stat()
        harmed.write_bytes(safetensors((1.0, 2.0, 4.0)))
        os.utime(harmed, ns=(times.st_atime_ns, times.st_mtime_ns))
        view = await typed(rig, view)
        assert view.ended == "refused"
        assert [(one.code, one.path) for one in rig.step("outcome").refusals] == [
            ("changed-since-proof", "ckpt/best.safetensors")
        ]


@pytest.mark.parametrize("harm", ["gone", "one file gone", "one more", "flipped", "written again"])
async def test_disk_rot_and_loss_of_the_copy_while_the_phrase_is_asked_for_stop_the_verb(
    made: tuple[Path, Path], harm: str
) -> None:
    """DISK-ROT, MOUNT-GONE: what was read back an hour ago is no copy any more."""
    async with running(*made) as rig:
        view = await proven(rig)
        (bag,) = (rig.home / "vault").iterdir()
        befall(bag, harm)
        view = await typed(rig, view)
        if harm == "written again":  # the same bytes: dated later, and hashed again
            assert view.question == "word"
            return
        assert view.ended == "refused"
        assert {one.code for one in rig.step("outcome").refusals} == {"copy-changed"}
        view = await rig.do(RedoStep("box", "outcome"))
        assert rig.step("readback").state in ("refused", "failed")


def befall(bag: Path, harm: str) -> None:
    victim = bag / "data" / "ckpt" / "best.safetensors"
    raw = bytearray(victim.read_bytes())
    if harm == "gone":
        shutil.rmtree(bag)
    elif harm == "one file gone":
        victim.unlink()
    elif harm == "one more":
        (bag / "data" / "more").write_bytes(b"x")
    else:
        raw[-1] ^= harm == "flipped"
        victim.chmod(0o600)
        victim.write_bytes(raw)


async def test_a_link_that_is_lost_for_a_while_costs_nothing(made: tuple[Path, Path]) -> None:
    box = Counted()
    async with running(*made, dialled=box) as rig:
        await scrapped(rig)
        box.refuse = 2
        view = await rig.do(ChooseDestination("box", str(rig.home / "vault")))
        assert view.question == "phrase"
    async with running(*made, dialled=(box := Counted(refuse=99))) as rig:
        view = await rig.do(OPEN)
        assert rig.step("roster").state == "failed"
        assert "does not answer" in rig.step("roster").brief
        assert box.dials == 1 + len(QUICK.pauses)
        box.refuse = 0
        view = await rig.do(RedoStep("box", "roster"))
        assert view.question == "phrase"


async def test_a_halted_step_goes_on_and_another_rgt_is_kept_out(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        await scrapped(rig)
        await rig.teardowns.handle(ChooseDestination("box", str(rig.home / "vault")))
        view = await rig.do(HaltTeardown("box"))
        assert view.step(view.current).state == "failed"  # type: ignore[union-attr]
        async with running(*made) as other:
            kept_out = await other.do(OPEN)
            assert "rgt with pid" in kept_out.problem
        view = await rig.do(RedoStep("box", "copy"))
        assert view.question == "phrase"
        await rig.teardowns.handle(LeaveTeardown("box"))
        rig.store.fold()
        assert rig.store.snapshot.teardown("box") is None
        async with running(*made) as other:
            assert (await other.do(OPEN)).question == "phrase"


WALK = """
import asyncio, functools, sys
from pathlib import Path
from tests.workers.teardown_rig import running
from tui.model.ending import ChooseDestination, DecideLeftovers, StartTeardown
import tui.custody.roster
import tui.workers.teardown_walk as walk
tui.custody.roster.SETTLE_S = 0.02
walk.copy_run = functools.partial(walk.copy_run, cap=int(sys.argv.pop()))

async def main(home, top):
    async with running(Path(home), Path(top)) as rig:
        view = await rig.do(StartTeardown("box", "exp", "destroy"))
        groups = tuple(one.group for one in view.leftovers)
        asyncio.ensure_future(rig.teardowns.handle(DecideLeftovers("box", groups, "scrap", "old")))
        sent = False
        while True:
            if not sent and view.question == "destination" and not view.working:
                sent = True
                await rig.teardowns.handle(ChooseDestination("box", home + "/vault"))
            rig.store.fold()
            view = rig.store.snapshot.teardown("box")
            print(view.current, view.step(view.current).state, flush=True)
            await asyncio.sleep(0.005)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def walker(made: tuple[Path, Path], at: str) -> Iterator[subprocess.Popen[str]]:
    root, cap = Path(__file__).parents[2], 2_000_000 if at == "copy running" else 10**9
    process = subprocess.Popen(
        [sys.executable, "-c", WALK, str(made[0]), str(made[1]), str(cap)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.mark.parametrize("at", ["digest running", "copy running", "readback running", "load running"])
async def test_kill_9_loses_no_evidence(
    made: tuple[Path, Path], walker: subprocess.Popen[str], at: str
) -> None:
    put(made[1] / "ckpt" / "big.safetensors", safetensors((3.0,) * 2_000_000))
    assert walker.stdout is not None
    end = time.monotonic() + 40
    while at not in (line := walker.stdout.readline()):
        assert line, "it ended by itself"
        assert time.monotonic() < end, line
    walker.send_signal(signal.SIGKILL)
    walker.wait()
    journal = made[0] / "state" / "custody" / "exp" / JOURNAL
    kept = journal.read_bytes() if journal.exists() else b""
    async with running(*made) as rig:
        view = await rig.do(OPEN)
        if at == "digest running":  # nobody had chosen a place yet
            assert rig.step("roster").reused
            assert view.question == "destination"
            assert journal.read_bytes().startswith(kept)
            return
        assert view.question == "phrase", view
        assert rig.step("roster").reused
        assert rig.step("digest").reused
        assert rig.step("copy").reused == (at != "copy running")
        assert journal.read_bytes() == kept  # nothing hashed twice


# --- the end ----------------------------------------------------------------------------------------------

OURS = Machine(id="abc-1", name="box", state="running", created_at="2026-11-01", said="RUNNING")
OTHER = Machine(id="inst-12", name="other", state="running", created_at="2026-10-01", said="RUNNING")


@dataclass
class Plane(FakePlane):
    """A control plane with our box on it."""

    def becomes(self, state: State) -> None:
        self.machines[OURS.id] = replace(OURS, state=state, said=state.upper())


@pytest.fixture
def plane(monkeypatch: pytest.MonkeyPatch) -> FakePlane:
    """A control plane that knows the box."""
    found = Plane(machines={OURS.id: OURS, OTHER.id: OTHER})
    monkeypatch.setattr("tui.workers.end.control_of", lambda *_: found)
    return found


async def test_two_witnesses_prove_the_end(made: tuple[Path, Path], plane: FakePlane) -> None:
    plane.lag = 1
    async with running(*made) as rig:
        view = await typed(rig, await proven(rig))
        assert view.ended == "proven"
        assert plane.sent == ["destroy"]
        assert any("look 1" in line or "gone" in line for line in rig.step("outcome").observed)


async def test_an_unseen_end_is_looked_at_again_by_the_next_process_and_sent_once(
    made: tuple[Path, Path], plane: FakePlane
) -> None:
    plane.lag = 50
    async with running(*made) as rig:
        view = await typed(rig, await proven(rig))
        assert view.ended == "unproven"
        rig.store.fold()
        assert [end.by_hand for end in rig.store.snapshot.open_ends] == [False]
    plane._stale_one.clear()
    plane._stale_list.clear()
    async with running(*made) as rig:
        view = await rig.do(OPEN)
        assert view.ended == "proven"
        assert plane.sent == ["destroy"]


async def test_a_refused_verb_is_told(made: tuple[Path, Path], plane: FakePlane) -> None:
    plane.answers["destroy"] = [refuses()]
    async with running(*made) as rig:
        view = await typed(rig, await proven(rig))
        assert view.ended == "refused"
        assert [one.code for one in rig.step("outcome").refusals] == ["verb-refused"]


async def test_a_held_box_gets_no_phrase_and_says_since_when_and_why(made: tuple[Path, Path]) -> None:
    async with running(*made) as rig:
        await scrapped(rig)
        (box,) = settings.load(rig.where.fleet_file).instances
        hold.hold(
            Ledger(rig.where.receipts), known_victim(box, rig.where), "the referee may ask", time.time()
        )
        view = await rig.do(ChooseDestination("box", str(rig.home / "vault")))
        assert view.phrase is None
        assert [one.code for one in rig.step("approval").refusals] == ["held"]
        assert "the referee may ask" in rig.step("approval").refusals[0].detail
    async with running(*made) as rig:
        view = await rig.do(OPEN)
        assert "the referee may ask" in view.held
        assert "receipt" in view.held


STOP = StartTeardown("box", None, "stop")


async def test_a_stop_that_loses_nothing_takes_one_line_and_two_witnesses(
    made: tuple[Path, Path], plane: FakePlane
) -> None:
    on_autodl(made[0])
    async with running(*made) as rig:
        view = await rig.do(STOP)
        assert [one.id for one in view.steps] == ["approval", "outcome"]
        assert view.phrase is not None
        assert view.phrase.text == "stop box"
        assert "15 days" in " ".join(value for _, value in view.summary)
        assert "data disk" in view.bills
        view = await rig.do(GivePhrase("box", "stop  box", ""))
        assert view.question == "phrase"
        assert plane.sent == []
        view = await rig.do(GivePhrase("box", "stop box", ""))
        assert (view.ended, plane.sent) == ("proven", ["stop"])


async def test_a_busy_box_is_stopped_only_over_a_reason(made: tuple[Path, Path], plane: FakePlane) -> None:
    on_autodl(made[0])
    busy = subprocess.Popen(["sleep", "60"])
    try:
        fleet = made[0] / "config" / "fleet.toml"
        fleet.write_text(f"{fleet.read_text()}pid = {busy.pid}\n")
        async with running(*made) as rig:
            view = await rig.do(STOP)
            view = await rig.do(GivePhrase("box", "stop box", ""))
            assert (view.question, plane.sent) == ("anyway", [])
            with pytest.raises(Failure):
                await rig.do(GoOnOver("box", "outcome", " "))
            view = await rig.do(GoOnOver("box", "outcome", "it hangs"))
            assert (view.ended, plane.sent) == ("proven", ["stop"])
            assert [one.reason for one in rig.step("outcome").gaps] == ["it hangs"]
    finally:
        busy.kill()
        busy.wait()


async def test_a_box_that_is_written_to_is_stopped_only_over_a_reason(
    made: tuple[Path, Path], plane: FakePlane
) -> None:
    on_autodl(made[0])
    with (made[1] / "ckpt" / "half.bin").open("wb"):
        async with running(*made) as rig:
            await rig.do(STOP)
            view = await rig.do(GivePhrase("box", "stop box", ""))
            (why,) = rig.step("outcome").refusals
            assert (view.ended, why.code) == ("refused", "box-busy")
            assert why.path.endswith("ckpt/half.bin")
            assert plane.sent == []


async def test_a_stop_by_hand_never_ends_this_computer(made: tuple[Path, Path]) -> None:
    on_autodl(made[0])
    async with running(*made) as rig:
        await rig.do(STOP)
        view = await rig.do(GivePhrase("box", "stop box", ""))
        assert view.ended == "refused"
        assert [one.code for one in rig.step("outcome").refusals] == ["own-computer"]


def on_autodl(home: Path) -> None:
    fleet = home / "config" / "fleet.toml"
    fleet.write_text(fleet.read_text().replace('platform = "ssh"', 'platform = "autodl"'))


async def test_old_facts_of_a_platform_ask_for_a_look_at_its_page(made: tuple[Path, Path]) -> None:
    on_autodl(made[0])
    in_two_years = time.time() + 2 * 365 * 86400
    async with running(*made, clock=lambda: in_two_years) as rig:
        view = await rig.do(STOP)
        assert any("months ago. Look at the vendor's page" in one for one in view.warnings)


def test_facts_nobody_has_are_said_to_be_missing() -> None:
    from datetime import date

    unknown = Platform(Instance("b", "nowhere", None), "destroy", None, None)
    assert "No profile tells" in (unknown.old(date(2026, 11, 30)) or "")


async def test_checkpoints_are_judged_in_a_process_of_their_own_that_ends_with_its_caller(
    made: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui.workers import judged_apart

    told: list[str] = []

    async def apart(task: Errand, dial: Dial, tell: Callable[[str, int, int], None]) -> None:
        def both(phase: str, done: int, total: int) -> None:
            told.append(phase)
            tell(phase, done, total)

        await judged_apart.judge_apart(task, dial, both)

    monkeypatch.setattr(teardown_walk, "judge_apart", apart)
    put(made[1] / "ckpt" / "bad.safetensors", safetensors((float("nan"), 1.0)))
    async with running(*made) as rig:
        await scrapped(rig)
        view = await rig.do(ChooseDestination("box", str(rig.home / "vault")))
        assert view.phrase is None
        assert rig.step("load").state == "refused"
        assert [one.path for one in rig.step("load").refusals] == ["ckpt/bad.safetensors"]
        assert {"load", "metrics"} <= set(told)
