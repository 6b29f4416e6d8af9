"""The whole chain as a state machine: whatever happens in whatever order, nothing is destroyed unproven.

The platform's side checks each destroy when it arrives, from what really lies on the box and in the copy, and
not from what rgt believes.
"""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.custody.chains import NOW, VICTIM, Maker, changed, proof_of
from tests.custody.endings import Scene
from tests.custody.fake_plane import OTHER, OURS, FakePlane
from tui.custody import hold
from tui.custody.approval import approve, phrase
from tui.custody.codes import refusal
from tui.custody.journal import ENDS
from tui.custody.order import Before, Order
from tui.custody.preflight import compared
from tui.custody.proof import Chain
from tui.model.custody import Approval, Outcome, Proof, Refusal, Roster, Victim, Writer
from tui.platforms.control import NoAnswer, NotAllowed, VerbRefused

JUMPS = (1.0, 30.0, 400.0, 4000.0, 1e6, -30.0, -400.0, -4000.0)
MOODS: tuple[dict[str, Any], ...] = (
    {},
    {"lag": 3},
    {"one_lag": 40},
    {"list_lag": 40},
    {"ignores": {"destroy"}},
    {"bad_key": True},
    {"bad_key_empty": True},
    {"one_fails": True},
    {"list_fails": True},
    {"incomplete": True},
    {"account": None},
    {"account": "acct-2"},
    {"answers": {"destroy": [NoAnswer("500")]}},
    {"answers": {"destroy": [NoAnswer("500")]}, "applies_though": True},
    {"answers": {"destroy": [NotAllowed("403")]}},
    {"answers": {"destroy": [VerbRefused("409")]}},
)
NAMES = ("ckpt/a.pt", "ckpt/b.pt", "log.csv")


class Killed(BaseException):
    """Our process dies here; only what is on disk is left of it."""


class ChainMachine(RuleBasedStateMachine):
    """One box, its platform and its operator."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="chain-"))
        self.scene = Scene(self.folder)
        self.scene.look = self.look  # type: ignore[method-assign]
        self.scene.newer = self.newer  # type: ignore[method-assign]
        self.scene.plane = self.new_plane()
        self.files: dict[str, tuple[bytes, int]] = {"ckpt/a.pt": (b"weights", 1)}
        self.copy: dict[str, bytes] = {}
        self.writing = False
        self.held = False
        self.reachable = True
        self.stamp = 1
        self.kill_at_verb = False
        self.chains: list[tuple[Chain, Proof | None]] = []
        self.approvals: list[tuple[Approval, Proof, float]] = []
        self.used: set[str] = set()
        self.order: Order | None = None
        self.ended: Outcome | None = None
        self.nonces = 0
        self.destroys = 0

    def teardown(self) -> None:
        if self.chains:  # not for a machine that never ran
            event(f"{min(self.destroys, 3)} destroys; ended: {self.ended.kind if self.ended else 'no'}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_plane(self, **values: Any) -> FakePlane:
        return FakePlane(on_verb=self.verb_arrives, **copy.deepcopy(values))

    # --- the box ---

    @rule(name=st.sampled_from(NAMES), data=st.binary(min_size=1, max_size=3))
    def an_artifact_appears_or_grows(self, name: str, data: bytes) -> None:
        self.stamp += 1
        self.files[name] = (self.files.get(name, (b"", 0))[0] + data, self.stamp)

    @rule(name=st.sampled_from(NAMES))
    def an_artifact_vanishes(self, name: str) -> None:
        if len(self.files) > 1:
            self.files.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def an_artifact_is_written_over(self, name: str) -> None:
        if name in self.files:
            self.stamp += 1
            data = bytes(255 - byte for byte in self.files[name][0])
            self.files[name] = (data, self.stamp)

    @rule()
    def somebody_writes(self) -> None:
        self.writing = not self.writing

    @rule()
    def the_box_is_lost_or_back(self) -> None:
        self.reachable = not self.reachable

    def roster(self, chain_changes: dict[str, Any] | None = None, victim: Victim = VICTIM) -> Chain:
        writers = (Writer(path="x", evidence="open"),) if self.writing else ()

        def as_it_lies(roster: Roster) -> Roster:
            artifacts = tuple(
                one.model_copy(update={"modified_ns": self.files[one.path][1]}) for one in roster.artifacts
            )
            return roster.model_copy(update={"artifacts": artifacts, "writers": writers})

        files = {
            name: (data, "checkpoint" if "ckpt" in name else "log") for name, (data, _) in self.files.items()
        }
        changes = {"roster": as_it_lies, **(chain_changes or {})}
        return Maker(changes, victim=victim, at=self.scene.now, files=files).chain()

    async def look(self) -> Before:
        if not self.reachable:
            return Before(known=False, ssh="connection refused")
        assert self.order is not None
        before = Before(known=True, ssh="the box answered")
        if self.order.roster is None:
            return before
        return compared(before, self.order.roster, self.roster().roster)

    def newer(self, proof: Proof) -> tuple[Refusal, ...]:
        newest = self.chains[-1][1]
        return () if newest == proof else (refusal("proof-other", "walked again"),)

    # --- the chain ---

    @rule()
    def the_chain_is_walked(self) -> None:
        self.copy = {name: data for name, (data, _) in self.files.items()}
        self._proven(self.roster())

    @rule(
        fault=st.sampled_from(
            [
                {"readback": changed(different=("ckpt/a.pt",))},
                {"copied": changed(files=())},
                {"digests": changed(files=())},
                {"load": changed(checkpoints=())},
                {"readback": changed(copy_report="sha256:" + "0" * 64)},
                {"roster": changed(artifacts=())},
            ]
        )
    )
    def the_chain_is_walked_with_a_fault(self, fault: dict[str, Any]) -> None:
        if "load" in fault and not any("ckpt" in name for name in self.files):
            return  # without a checkpoint that is no fault
        if "readback" not in fault:  # then the bytes never got there
            self.copy = {}
        chain = self.roster(fault)
        answer = proof_of(chain, VICTIM, self.scene.now)
        assert not isinstance(answer, Proof)
        self.chains.append((chain, None))

    @rule()
    def a_chain_for_another_machine_is_walked(self) -> None:
        other = VICTIM.model_copy(update={"instance_id": "inst-12"})
        chain = self.roster(victim=other)
        proof = proof_of(chain, other, self.scene.now)
        self.chains.append((chain, proof if isinstance(proof, Proof) else None))

    @rule()
    def everything_is_brought_in_order_and_approved(self) -> None:
        """So that what comes between an approval and its verb comes often enough."""
        self.writing, self.reachable = False, True
        if self.held:
            self.the_operator_holds_or_lets_go()
        self.the_chain_is_walked()
        proof = self.chains[-1][1]
        assert proof is not None
        self.nonces += 1
        answer = approve(proof, phrase(proof), self.scene.now, nonce=f"n{self.nonces}", spent=self.used)
        assert isinstance(answer, Approval)
        self.approvals.append((answer, proof, self.scene.now))

    def _proven(self, chain: Chain) -> None:
        answer = proof_of(chain, VICTIM, self.scene.now)
        assert isinstance(answer, Proof) is not self.writing
        self.chains.append((chain, answer if isinstance(answer, Proof) else None))

    # --- the operator ---

    @precondition(lambda self: self.chains)
    @rule(data=st.data(), typo=st.booleans(), again=st.booleans())
    def the_operator_types(self, data: st.DataObject, typo: bool, again: bool) -> None:
        _, proof = data.draw(st.sampled_from(self.chains[-3:]))
        if proof is None:
            return
        other = self.chains[0][1]
        typed = phrase(proof) + "." if typo else phrase(proof)
        if again and other is not None:
            typed = phrase(other)
        self.nonces += 0 if again and self.nonces else 1
        answer = approve(proof, typed, self.scene.now, nonce=f"n{self.nonces}", spent=self.used)
        if isinstance(answer, Approval):
            assert typed == phrase(proof)
            self.approvals.append((answer, proof, self.scene.now))

    @rule()
    def the_operator_holds_or_lets_go(self) -> None:
        if self.held:
            hold.unhold(self.scene.ledger, VICTIM, "", self.scene.now)
        else:
            hold.hold(self.scene.ledger, VICTIM, "wait", self.scene.now)
        self.held = not self.held

    @rule(by=st.sampled_from(JUMPS))
    def the_clock_jumps(self, by: float) -> None:
        self.scene.now = max(NOW - 10_000, self.scene.now + by)

    @rule()
    def our_process_will_die_when_the_verb_arrives(self) -> None:
        self.kill_at_verb = True

    # --- the platform ---

    @rule(values=st.sampled_from(MOODS))
    def the_platform_is_in_another_mood(self, values: dict[str, Any]) -> None:
        machines = self.scene.plane.machines
        self.scene.plane = self.new_plane(**values)
        self.scene.plane.machines = machines

    @rule(rarely=st.integers(0, 7))
    def somebody_else_ends_the_machine(self, rarely: int) -> None:
        if rarely == 0:
            self.scene.plane.vanishes()

    @rule()
    def the_id_is_given_to_another_machine(self) -> None:
        if OURS.id not in self.scene.plane.machines:
            reborn = replace(OURS, created_at="2026-12-24")
            self.scene.plane.machines = {OURS.id: reborn, OTHER.id: OTHER}

    # --- the act ---

    @rule(data=st.data())
    def destroy_is_ordered(self, data: st.DataObject) -> None:
        """With any proof and any approval there is, also such as do not belong together."""
        proof = data.draw(st.sampled_from(self.chains[-3:]))[1] if self.chains else None
        approval = data.draw(st.sampled_from(self.approvals[-3:]))[0] if self.approvals else None
        self._destroy(approval, proof)

    @rule(data=st.data())
    def all_is_in_order_then_one_thing_happens_then_the_verb(self, data: st.DataObject) -> None:
        machines = self.scene.plane.machines
        self.scene.plane = self.new_plane()
        self.scene.plane.machines = machines
        self.everything_is_brought_in_order_and_approved()
        name = data.draw(st.sampled_from(NAMES))
        data.draw(
            st.sampled_from(
                (
                    lambda: None,
                    lambda: self.an_artifact_appears_or_grows(name, b"+"),
                    lambda: self.an_artifact_is_written_over(name),
                    lambda: self.an_artifact_vanishes(name),
                    self.somebody_writes,
                    self.the_box_is_lost_or_back,
                    self.the_operator_holds_or_lets_go,
                    self.our_process_will_die_when_the_verb_arrives,
                    lambda: self.the_clock_jumps(data.draw(st.sampled_from(JUMPS))),
                    lambda: self.the_platform_is_in_another_mood(data.draw(st.sampled_from(MOODS))),
                )
            )
        )()
        self._destroy(*self.approvals[-1][:2])

    def _destroy(self, approval: Approval | None, proof: Proof | None) -> None:
        chain = next((c for c, p in self.chains if p is not None and p == proof), None)
        self.order = Order(
            VICTIM, "destroy", roster=chain.roster if chain else None, proof=proof, approval=approval
        )
        with suppress(Killed):
            self._ended(self.scene.carry_out(self.order))

    @precondition(lambda self: self.order is not None)
    @rule()
    def the_truth_is_read_again(self) -> None:
        assert self.order is not None
        sent = len(self.scene.plane.sent)
        self._ended(self.scene.look_again(self.order))
        assert len(self.scene.plane.sent) == sent

    def _ended(self, outcome: Outcome) -> None:
        if self.ended is not None:
            assert outcome == self.ended, "a settled fact was overwritten"
        if outcome.kind in ENDS:
            here = self.scene.plane.machines.get(OURS.id)
            assert self.ended is not None or here is None, "it is there"
            self.ended = outcome

    def verb_arrives(self, verb: str) -> None:
        """The platform's side of a destroy: everything is checked against what really is."""
        order, now = self.order, self.scene.now
        assert verb == "destroy"
        assert order is not None
        assert self.ended is None, "it had ended already"
        for name, (data, _) in self.files.items():
            assert self.copy.get(name) == data, f"{name} would be lost"
        assert not self.writing
        assert not self.held
        assert self.reachable
        plane = self.scene.plane
        assert not (plane.bad_key or plane.bad_key_empty or plane.one_fails or plane.list_fails)
        assert plane.account != "acct-2"
        assert order.proof is not None
        assert order.approval is not None
        given = [at for one, proof, at in self.approvals if one == order.approval and proof == order.proof]
        assert given, "this proof was never approved"
        assert -60 <= now - given[0] < 300
        assert order.approval.nonce not in self.used, "it was used before"
        self.used.add(order.approval.nonce)
        self.destroys += 1
        if self.kill_at_verb:
            self.kill_at_verb = False
            raise Killed

    @invariant()
    def the_ledger_holds(self) -> None:
        assert self.scene.ledger.report().holds

    @initialize()
    def nothing_to_begin_with(self) -> None:
        assert self.scene.plane.sent == []


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody pulls the plug here; the crash tests are elsewhere."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


TestChainMachine = ChainMachine.TestCase
TestChainMachine.settings = settings(
    max_examples=200,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_the_machine_really_destroys_when_everything_is_in_order() -> None:
    """The state machine above would be worth nothing if it never came to a verb."""
    machine = ChainMachine()
    machine.the_chain_is_walked()
    chain, proof = machine.chains[-1]
    assert proof is not None
    approval = approve(proof, phrase(proof), machine.scene.now, nonce="n1")
    assert isinstance(approval, Approval)
    machine.approvals.append((approval, proof, machine.scene.now))
    machine.order = Order(VICTIM, "destroy", roster=chain.roster, proof=proof, approval=approval)
    assert machine.scene.carry_out(machine.order).kind == "proven"
    assert machine.scene.plane.sent == ["destroy"]
    shutil.rmtree(machine.folder)


@pytest.mark.parametrize("lie", ["changes", "busy", "hold", "expiry"])
def test_the_machine_would_notice(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each guard switched off is noticed by the platform's side: the oracle is not the guard itself."""
    machine = ChainMachine()
    machine.the_chain_is_walked()
    chain, proof = machine.chains[-1]
    assert proof is not None
    approval = approve(proof, phrase(proof), machine.scene.now, nonce="n1")
    assert isinstance(approval, Approval)
    machine.approvals.append((approval, proof, machine.scene.now))
    machine.order = Order(VICTIM, "destroy", roster=chain.roster, proof=proof, approval=approval)
    if lie == "changes":
        machine.an_artifact_is_written_over("ckpt/a.pt")
        monkeypatch.setattr("tui.custody.outcome.box_gate", lambda *_: ((), ()))
    elif lie == "busy":
        machine.somebody_writes()
        monkeypatch.setattr("tui.custody.outcome.box_gate", lambda *_: ((), ()))
    elif lie == "hold":
        machine.the_operator_holds_or_lets_go()
        monkeypatch.setattr("tui.custody.outcome.gates", lambda *_: ())
    else:
        machine.the_clock_jumps(400.0)
        monkeypatch.setattr("tui.custody.outcome.gates", lambda *_: ())
    with pytest.raises(AssertionError):
        machine.scene.carry_out(machine.order)
    shutil.rmtree(machine.folder)
