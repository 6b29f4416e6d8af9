"""Every link of the chain leaves a receipt that names it and the one before, and says what it came to."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.custody.chains import Maker
from tui.custody.link_receipts import (
    copy_receipt,
    digest_receipt,
    load_receipt,
    metric_receipt,
    readback_receipt,
    roster_receipt,
)
from tui.custody.receipts import Ledger, verify_chain
from tui.custody.statement import Receipt
from tui.model.custody import CheckpointFinding, MetricFinding


def receipts() -> list[Receipt]:
    chain = Maker().chain()
    roster, digests = chain.roster, chain.digests
    return [
        roster_receipt(roster),
        digest_receipt(roster, digests, Path("/state/custody/r1/manifest-sha256.txt")),
        copy_receipt(roster, digests, chain.copied),
        readback_receipt(roster, digests, chain.copied, chain.readback),
        load_receipt(roster, chain.load),
        metric_receipt(roster, chain.metrics),
    ]


def test_the_receipts_of_a_chain_are_linked_by_digest_as_the_chain_is(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "receipts")
    for one in receipts():
        ledger.append(one)
    report = verify_chain(ledger.folder)
    assert report.holds
    told = [one.receipt for one in report.receipts]
    assert [one.act for one in told] == [
        "roster", "digest-report", "copy-report", "readback-report", "load-report", "metric-report"
    ]  # fmt: skip
    assert {one.result for one in told} == {"passed"}
    for before, after in pairwise(told):
        assert before.subjects[0].sha256 in {one.sha256 for one in after.subjects}
    assert {(one.run, one.victim.name if one.victim else None) for one in told} == {("r1", "done-01")}


def test_the_manifests_own_digest_is_anchored_in_the_ledger() -> None:
    chain = Maker().chain()
    told = digest_receipt(chain.roster, chain.digests, Path("/s/manifest-sha256.txt"))
    anchored = {one.name: one.sha256 for one in told.subjects}
    assert anchored["manifest-sha256.txt"] == chain.digests.manifest
    assert told.evidence[0].uri == "/s/manifest-sha256.txt"
    assert told.evidence[0].sha256 == chain.digests.manifest


def test_decisions_about_leftovers_are_in_the_rosters_receipt() -> None:
    assert "scrap cache (3 files)" in receipts()[0].detail


def test_what_did_not_load_or_is_wrong_is_refused_in_its_receipt() -> None:
    chain = Maker().chain()
    broken = CheckpointFinding(path="best.pt", verdict="truncated", code="CKPT-TRUNC", detail="cut short")
    lie = MetricFinding(name="f1", reported="0.95", recomputed="0.91", direction="up", verdict="differs")
    load = load_receipt(chain.roster, chain.load.model_copy(update={"checkpoints": (broken,)}))
    metrics = metric_receipt(chain.roster, chain.metrics.model_copy(update={"metrics": (lie,)}))
    assert (load.result, metrics.result) == ("refused", "refused")
    assert load.refusals[0].path == "best.pt"
    assert "0.95 reported, 0.91 recomputed" in metrics.refusals[0].detail
