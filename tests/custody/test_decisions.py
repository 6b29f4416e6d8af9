"""Decisions about leftovers outlive the look they were made in; reasons for gaps reach the proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.custody.chains import Maker, changed, good_proof
from tui.custody.codes import gap
from tui.custody.decisions import FILE, decided, reasons, record, record_reason, with_reasons
from tui.custody.leftovers import Decision
from tui.custody.standing import same_roster, untouched
from tui.model.custody import CopyReport, HashedFile, Place
from tui.model.failure import Failure

AT = "2026-11-30T00:00:00Z"


def test_the_newest_decision_about_a_group_holds_over_the_roster(tmp_path: Path) -> None:
    roster = Maker().chain().roster
    assert decided(tmp_path, roster)["cache"] == Decision("scrap")
    record(tmp_path, {"cache": Decision("keep", "after all"), "bytes-\udcff": Decision("scrap")}, AT)
    record(tmp_path, {"other": Decision("scrap", "old")}, AT)
    found = decided(tmp_path, roster)
    assert found["cache"] == Decision("keep", "after all")
    assert found["bytes-\udcff"].word == "scrap"
    assert found["other"].reason == "old"


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b'{"groups":{"g":{"word":"burn","reason":""}},"gaps":{}}', b'{"groups":{}}', b"[" * 9999],
)
def test_decisions_that_can_t_be_read_are_not_guessed(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / FILE).write_bytes(raw)
    with pytest.raises(Failure, match="can't be read as decisions"):
        decided(tmp_path, None)


def test_a_reason_makes_another_proof(tmp_path: Path) -> None:
    warned = changed(gaps=(gap("same-device", "one laptop"),))
    proof = good_proof(Maker({"readback": warned}).chain())
    record_reason(tmp_path, ["same-device"], "it is all I have", AT)
    told = with_reasons(proof, reasons(tmp_path))
    assert [one.reason for one in told.gaps if one.code == "same-device"] == ["it is all I have"]
    assert told.digest != proof.digest
    assert with_reasons(told, {}) is told


def test_a_roster_holds_only_while_it_says_the_same() -> None:
    roster = Maker().chain().roster
    assert same_roster(roster, roster.model_copy(update={"taken_at": AT}))
    grown = roster.artifacts[0].model_copy(update={"size": 99})
    group = roster.leftovers[0]
    for change in (
        {"artifacts": (grown, *roster.artifacts[1:])},
        {"artifacts": roster.artifacts[1:]},
        {"tiers": roster.tiers[:1]},
        {"leftovers": (group.model_copy(update={"decision": "keep"}),)},
        {"leftovers": (group, group.model_copy(update={"group": "new", "decision": None}))},
        {"root": "/elsewhere"},
    ):
        assert not same_roster(roster, roster.model_copy(update=change)), change
    assert same_roster(roster, roster.model_copy(update={"leftovers": ()}))  # what was scrapped may go


def copy_of(folder: Path, finished_at: str, device: str | None = "kernel/8:1/ext2/ext3") -> CopyReport:
    """A finished copy of one file."""
    import hashlib

    raw = (folder / "a").read_bytes()
    one = HashedFile(path="a", size=len(raw), sha256="sha256:" + hashlib.sha256(raw).hexdigest())
    return CopyReport(
        digests=Maker().chain().digests.digest,
        destination=Place(kind="path", path=str(folder), device=device),
        route="through this computer",
        files=(one,),
        size=one.size,
        bag=(one,),
        finished_at=finished_at,
    )


def test_a_copy_is_untouched_only_where_that_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"weights")
    later, before = "2099-01-01T00:00:00Z", "2001-01-01T00:00:00Z"
    assert untouched(copy_of(tmp_path, later))
    assert untouched(copy_of(tmp_path, before))  # dated later than the report, so it was hashed again
    report = copy_of(tmp_path, before)
    (tmp_path / "a").write_bytes(b"weighty")
    assert not untouched(report)
    assert not untouched(copy_of(tmp_path, later, device="kernel/0:44/nfs"))  # another machine's clock
    assert not untouched(copy_of(tmp_path, later, device=None))
    report = copy_of(tmp_path, later)
    (tmp_path / "b").write_bytes(b"")
    assert not untouched(report)
    (tmp_path / "b").unlink()
    (tmp_path / "a").unlink()
    assert not untouched(report)
