"""The ledger: an unbroken chain through crashes and concurrent writers, every alteration named."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.custody.killing import until_unharmed
from tui.custody.receipts import Ledger, verify_chain
from tui.custody.statement import (
    CAP_BYTES,
    RECEIPT_V1,
    STATEMENT,
    Evidence,
    Receipt,
    Subject,
    public_uri,
    read,
)
from tui.model.custody import Gap, Place, Refusal, Victim
from tui.model.failure import Failure

GOLDEN = Path(__file__).parents[1] / "cases" / "receipts-v1"
GOLDEN_LINKS = GOLDEN.with_name("receipts-v1-links")
VICTIM = Victim(name="done-01", platform="autodl", instance_id="pro-1a2b", account="me")


def receipt(act: str = "hold", **more: object) -> Receipt:
    values: dict[str, object] = {
        "act": act,
        "result": "recorded",
        "at": "2026-11-29T10:00:00Z",
        "subjects": (Subject(name="done-01", sha256=VICTIM.digest),),
        "victim": VICTIM,
        "detail": "kept for the paper",
    }
    return Receipt.model_validate(values | more)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "receipts")


def filled(ledger: Ledger, count: int = 5) -> Ledger:
    for number in range(count):
        ledger.append(receipt(detail=f"{number}: for the paper"))
    return ledger


def test_a_receipt_is_a_canonical_statement_that_names_its_predecessor(ledger: Ledger) -> None:
    filled(ledger, 2)
    first, second = ((ledger.folder / f"00000{n}.json").read_bytes() for n in (1, 2))
    value = json.loads(second)
    assert value["_type"] == STATEMENT
    assert value["predicateType"] == RECEIPT_V1
    assert value["subject"] == [
        {"name": "done-01", "digest": {"sha256": VICTIM.digest.removeprefix("sha256:")}}
    ]
    assert value["predicate"]["prev"] == "sha256:" + hashlib.sha256(first).hexdigest()
    assert json.loads(first)["predicate"]["prev"] is None
    assert json.dumps(value, sort_keys=True, separators=(",", ":")).encode() == second


def test_an_empty_ledger_holds(ledger: Ledger) -> None:
    report = verify_chain(ledger.folder)
    assert report.holds
    assert report.head is None
    assert report.receipts == ()


def test_every_receipt_comes_back_as_it_was_given(ledger: Ledger) -> None:
    pointer = Evidence(
        uri="/copy", sha256=VICTIM.digest, size=5, provider="this computer", mutability="mutable"
    )
    odd = receipt(
        run="r1",
        evidence=(pointer,),
        refusals=(Refusal(code="unreadable", detail="no", path="bad\udcff\nname"),),
        gaps=(Gap(code="no-manifest", detail="none"),),
    )
    ledger.append(odd)
    assert [one.receipt for one in ledger.report().receipts] == [odd]


@pytest.mark.parametrize("number", [1, 3, 5])
def test_an_altered_receipt_is_the_one_named(ledger: Ledger, number: int) -> None:
    path = filled(ledger).folder / f"{number:06d}.json"
    path.write_bytes(path.read_bytes().replace(b"the paper", b"the brief"))
    report = ledger.report()
    assert report.first_bad is not None
    assert report.first_bad.path == path
    assert "changed" in report.first_bad.why


@pytest.mark.parametrize("number", [1, 3, 5])
def test_a_missing_receipt_is_the_one_named_also_at_the_end(ledger: Ledger, number: int) -> None:
    path = filled(ledger).folder / f"{number:06d}.json"
    path.unlink()
    report = ledger.report()
    assert report.first_bad is not None
    assert (report.first_bad.path, report.first_bad.why) == (path, "is missing")


def test_exchanged_receipts_are_named(ledger: Ledger) -> None:
    filled(ledger)
    two, three = (ledger.folder / f"00000{n}.json" for n in (2, 3))
    kept = two.read_bytes()
    two.write_bytes(three.read_bytes())
    three.write_bytes(kept)
    report = ledger.report()
    assert report.first_bad is not None
    assert report.first_bad.number == 2


def test_the_first_of_several_bad_ones_is_named_and_the_good_ones_are_still_read(ledger: Ledger) -> None:
    filled(ledger)
    (ledger.folder / "000004.json").write_bytes(b"{}")
    (ledger.folder / "000002.json").write_bytes(b"")
    report = ledger.report()
    assert report.first_bad is not None
    assert report.first_bad.number == 2
    assert [one.number for one in report.receipts] == [1, 3, 5]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_flipped_bit_goes_unnoticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("ledger") / "receipts"
    shutil.copytree(GOLDEN, folder)
    path = data.draw(st.sampled_from(sorted(folder.glob("0*.json"))))
    raw = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(raw)
    report = verify_chain(folder)
    assert report.first_bad is not None
    assert report.first_bad.path == path


def test_host_key_receipts_lie_beside_and_do_not_disturb(ledger: Ledger) -> None:
    filled(ledger)
    beside = ledger.folder / "host-key-done-01-1.json"
    beside.write_text("{}")
    assert ledger.report().holds
    assert ledger.report().beside == (beside,)


@pytest.mark.parametrize("name", ["000003.json", "000002.json", "head.json"])
def test_a_pipe_in_the_ledger_is_bad_and_is_never_waited_for(ledger: Ledger, name: str) -> None:
    filled(ledger, 3)
    (ledger.folder / name).unlink()
    os.mkfifo(ledger.folder / name)
    assert not ledger.report().holds
    if name == "000003.json":
        with pytest.raises(Failure, match="no regular file"):
            ledger.append(receipt())


def test_what_is_being_written_of_a_host_key_is_not_swept_away(ledger: Ledger) -> None:
    filled(ledger, 1)
    theirs, ours = (ledger.folder / name for name in (".host-key-a-1.json-ab12", ".000002.json-ab12"))
    for path in (theirs, ours):
        path.write_bytes(b"{")
    ledger.append(receipt())
    assert (theirs.exists(), ours.exists()) == (True, False)


def test_long_lists_are_counted_and_the_receipt_stays_thin(ledger: Ledger) -> None:
    many = tuple(Refusal(code="live-writer", detail="é" * 500, path="ÿ" * 4000) for _ in range(3000))
    one = ledger.append(receipt(refusals=many))
    raw = (ledger.folder / "000001.json").read_bytes()
    assert len(raw) <= CAP_BYTES
    assert "more" in one.receipt.refusals[-1].detail
    assert ledger.report().holds


def test_what_cannot_be_thin_is_refused_and_leaves_the_chain_alone(ledger: Ledger) -> None:
    filled(ledger, 1)
    with pytest.raises(Failure, match="could not be made"):
        ledger.append(receipt(run="r" * CAP_BYTES))
    assert [one.number for one in ledger.report().receipts] == [1]


def _write_some(folder: Path, count: int) -> None:
    for number in range(count):
        Ledger(folder).append(receipt(detail=f"{os.getpid()} {number}"))


def test_concurrent_writers_wait_for_each_other(ledger: Ledger) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_some, args=(ledger.folder, 15)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    report = ledger.report()
    assert report.holds
    assert len(report.receipts) == 60


def test_app_kill9_between_any_two_steps_leaves_a_chain_that_holds(ledger: Ledger) -> None:
    filled(ledger, 2)

    def work() -> None:
        ledger.append(receipt("unhold"))

    def after() -> None:
        report = ledger.report()
        assert report.holds
        assert len(report.receipts) >= 2
        ledger.append(receipt("hold"))  # and the next one goes on from there
        assert ledger.report().holds
        assert {p.name for p in ledger.folder.iterdir() if p.name.startswith(".")} == {".lock"}

    assert until_unharmed(work, after) >= 8


def test_a_full_disk_is_told_and_leaves_a_chain_that_holds(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(ledger, 2)
    fsync: Callable[[int], None] = os.fsync

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Failure, match="No space left"):
        ledger.append(receipt())
    monkeypatch.setattr(os, "fsync", fsync)
    assert ledger.report().holds
    assert ledger.append(receipt()).number == 3


def test_receipts_of_version_1_verify_for_ever() -> None:
    """Made by the first version that wrote any. If this fails the reader is wrong, not the files."""
    report = verify_chain(GOLDEN)
    assert report.first_bad is None
    assert report.head == (GOLDEN / "head.txt").read_text().strip()
    acts = [(one.receipt.act, one.receipt.result) for one in report.receipts]
    assert acts == [
        ("hold", "recorded"),
        ("unhold", "recorded"),
        ("copy-report", "passed"),
        ("readback-report", "refused"),
        ("destroy", "proven"),
        ("stop", "attested"),
    ]
    copied = report.receipts[2].receipt
    assert copied.evidence[0].sha256 == "sha256:" + "3b" * 32
    assert report.receipts[3].receipt.refusals[0].path == "ckpt/na\udcffme.pt"


def test_receipts_of_every_link_verify_for_ever() -> None:
    """Written when roster, digests and verdicts got receipts of their own; in the form of version 1."""
    report = verify_chain(GOLDEN_LINKS)
    assert report.first_bad is None
    assert report.head == (GOLDEN_LINKS / "head.txt").read_text().strip()
    told = [(one.receipt.act, one.receipt.result) for one in report.receipts]
    assert told == [
        ("roster", "passed"),
        ("digest-report", "passed"),
        ("copy-report", "passed"),
        ("readback-report", "passed"),
        ("load-report", "passed"),
        ("metric-report", "passed"),
        ("copy-report", "passed"),
        ("load-report", "refused"),
        ("destroy", "proven"),
    ]
    anchored = {one.name: one.sha256 for one in report.receipts[1].receipt.subjects}
    assert anchored["manifest-sha256.txt"] == "sha256:" + hashlib.sha256(b"manifest").hexdigest()
    assert report.receipts[7].receipt.refusals[0].path == "ckpt/na\udcffme.pt"
    assert [one.name for one in report.receipts[8].receipt.subjects][3:] == [
        "roster", "digests", "copied", "readback", "load", "metrics"
    ]  # fmt: skip


def test_a_receipt_of_a_later_version_is_said_to_be_one() -> None:
    raw = (GOLDEN / "000001.json").read_bytes().replace(b"receipt:v1", b"receipt:v9")
    with pytest.raises(ValueError, match="does not know"):
        read(raw)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("s3:bucket/x", "rclone:s3:bucket/x"),
        (":s3,secret_access_key=hunter2:bucket/x", "rclone::s3,…:bucket/x"),
        (':s3,secret="hun:ter2",a=b:bucket', "rclone::s3,…:bucket"),
        (":http,url='https://me:hunter2@host':x", "rclone::http,…:x"),
    ],
)
def test_no_secret_of_a_connection_string_reaches_a_receipt(path: str, shown: str) -> None:
    assert public_uri(Place(kind="rclone", path=path)) == shown


def test_killing_really_kills() -> None:
    """The harness of the test above: work that is killed does not end by itself."""
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
