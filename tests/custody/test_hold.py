"""A hold blocks what is irreversible until a newer decision of the operator retires it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.custody.chains import NOW, VICTIM
from tui.custody import hold
from tui.custody.receipts import Ledger
from tui.model.custody import Victim
from tui.model.failure import Failure


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "receipts")


def against(ledger: Ledger, victim: Victim = VICTIM) -> list[str]:
    return [one.code for one in hold.against(ledger.report(), victim)]


def test_a_hold_blocks_and_an_unhold_lets_go_and_both_leave_receipts(ledger: Ledger) -> None:
    assert against(ledger) == []
    hold.hold(ledger, VICTIM, "the referee may ask", NOW)
    assert against(ledger) == ["held"]
    (told,) = hold.against(ledger.report(), VICTIM)
    assert "the referee may ask" in told.detail
    hold.unhold(ledger, VICTIM, "", NOW + 1)
    assert against(ledger) == []
    assert [one.receipt.act for one in ledger.report().receipts] == ["hold", "unhold"]


def test_a_newer_hold_retires_the_older_one(ledger: Ledger) -> None:
    hold.hold(ledger, VICTIM, "first", NOW)
    hold.hold(ledger, VICTIM, "second", NOW + 1)
    found = hold.held(ledger.report(), VICTIM)
    assert found is not None
    assert found.reason == "second"
    hold.unhold(ledger, VICTIM, "", NOW + 2)
    assert hold.held(ledger.report(), VICTIM) is None


def test_a_hold_needs_a_reason_and_an_unhold_a_hold(ledger: Ledger) -> None:
    with pytest.raises(Failure, match="reason"):
        hold.hold(ledger, VICTIM, "  ", NOW)
    with pytest.raises(Failure, match="not held"):
        hold.unhold(ledger, VICTIM, "", NOW)
    assert ledger.report().receipts == ()


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({"name": "renamed"}, True),
        ({"name": "renamed", "instance_id": None}, True),  # its host key tells it
        ({"instance_id": None, "host_key": None}, True),  # only the name is known: better held than lost
        ({"instance_id": "inst-99", "host_key": None}, False),  # the next machine of this name
        ({"name": "renamed", "instance_id": "inst-99", "host_key": "SHA256:" + "B" * 43}, False),
    ],
)
def test_a_hold_follows_the_machine(ledger: Ledger, change: dict[str, str | None], held: bool) -> None:
    hold.hold(ledger, VICTIM, "r", NOW)
    assert (against(ledger, VICTIM.model_copy(update=change)) == ["held"]) is held


def test_a_damaged_ledger_may_hide_a_hold_until_a_newer_decision(ledger: Ledger) -> None:
    hold.hold(ledger, VICTIM, "r", NOW)
    hold.unhold(ledger, VICTIM, "", NOW + 1)
    hold.hold(ledger, VICTIM, "again", NOW + 2)
    (ledger.folder / "000003.json").write_bytes(b"")
    assert against(ledger) == ["holds-unknown"]
    hold.unhold(ledger, VICTIM, "looked by hand", NOW + 3)
    assert against(ledger) == []
