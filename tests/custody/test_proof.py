"""No proof without a whole chain: every fault in any link refuses, and missing paperwork is a gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.custody.chains import NOW, VICTIM, Maker, changed, good_proof, proof_of, sha
from tui.custody.moments import moment
from tui.custody.proof import LASTS_S, proof_stands
from tui.model.custody import (
    CheckpointFinding,
    Gap,
    HashedFile,
    Leftover,
    MetricFinding,
    Place,
    Proof,
    Refusal,
    Tier,
    Writer,
)


def refused(changes: dict[str, Any], **more: Any) -> set[str]:
    """Codes of what stands against a chain with these changes."""
    answer = proof_of(Maker(changes).chain(), **more)
    assert isinstance(answer, tuple), "a proof was made"
    return {one.code for one in answer}


def metric(verdict: str) -> MetricFinding:
    return MetricFinding(name="f1", reported="0.91", recomputed=None, direction="up", verdict=verdict)


def test_a_whole_chain_makes_a_proof_for_its_machine_and_verb() -> None:
    chain = Maker().chain()
    proof = good_proof(chain)
    assert (proof.victim, proof.verb, proof.roster) == (VICTIM, "destroy", chain.roster.digest)
    assert (proof.destroys, proof.survives) == (("/",), ("/nas",))
    assert proof.expires_at == moment(NOW + LASTS_S)
    assert proof.gaps == ()


ONE = HashedFile(path="ckpt/best.safetensors", size=7, sha256=sha(b"weights"))
BAD_BYTE = HashedFile(path="test/results.csv", size=3, sha256=sha(b"a,c"))
SHORT = HashedFile(path="test/results.csv", size=2, sha256=sha(b"a,"))
REFUSAL = Refusal(code="live-writer", detail="open")

FAULTS: dict[str, tuple[str, Any, str]] = {
    **{
        f"a refusal in {link}": (link, changed(refusals=(REFUSAL,)), "live-writer")
        for link in ("roster", "digests", "copied", "readback", "load", "metrics")
    },
    "digests of another roster": ("digests", changed(roster=sha(b"x")), "chain-broken"),
    "a copy of other digests": ("copied", changed(digests=sha(b"x")), "chain-broken"),
    "a readback of another copy": ("readback", changed(copy_report=sha(b"x")), "chain-broken"),
    "a load of another readback": ("load", changed(readback=sha(b"x")), "chain-broken"),
    "metrics of another load": ("metrics", changed(load=sha(b"x")), "chain-broken"),
    "an empty roster": ("roster", changed(artifacts=()), "roster-empty"),
    "a live writer": ("roster", changed(writers=(Writer(path="a", evidence="open"),)), "live-writer"),
    "an undecided group": (
        "roster",
        changed(leftovers=(Leftover(group="g", title="g", count=1, size=1, examples=()),)),
        "unclassified",
    ),
    "a wrong declared count": ("roster", changed(declared=(("checkpoint", 2),)), "roster-count"),
    "an unhashed artifact": ("digests", changed(files=(ONE,)), "files-differ"),
    "a file copied short": ("copied", changed(files=(ONE, SHORT)), "files-differ"),
    "a file not copied": ("copied", changed(files=(ONE,)), "files-differ"),
    "a file that was read back otherwise": ("readback", changed(files=(ONE, BAD_BYTE)), "readback-inexact"),
    "a file that was not read back": ("readback", changed(files=(ONE,)), "readback-inexact"),
    "a missing file": ("readback", changed(missing=("a",)), "readback-inexact"),
    "an extra file": ("readback", changed(extra=("a",)), "readback-inexact"),
    "a different file": ("readback", changed(different=("a",)), "readback-inexact"),
    "a copy on the machine itself": (
        "copied",
        changed(destination=Place(kind="box", path="/data/x", box="done-01")),
        "copy-on-victim",
    ),
    "a copy that only seems to survive": (
        "copied",
        changed(destination=Place(kind="box", path="/nas/../x", box="done-01")),
        "copy-on-victim",
    ),
    "read back by the producer": (
        "readback",
        changed(consumer=Place(kind="box", path="/x", box="done-01")),
        "read-by-producer",
    ),
    "a checkpoint that was not tried": ("load", changed(checkpoints=()), "checkpoint-not-loaded"),
    "a metric that differs": ("metrics", changed(metrics=(metric("differs"),)), "metric-wrong"),
    "an incomplete population": (
        "metrics",
        changed(metrics=(metric("population-incomplete"),)),
        "metric-wrong",
    ),
    "a verdict nobody knows": ("metrics", changed(metrics=(metric("fine, surely"),)), "metric-wrong"),
    "a report from the future": ("load", changed(finished_at=moment(NOW + 7200)), "clock-went-back"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_refuses(fault: str) -> None:
    link, change, code = FAULTS[fault]
    assert code in refused({link: change})


@pytest.mark.parametrize("word", ["corrupt", "incomplete", "partial", "suspicious", "unsafe", "??"])
def test_a_checkpoint_that_is_not_accepted_refuses(word: str) -> None:
    finding = CheckpointFinding(path="ckpt/best.safetensors", verdict=word, code=f"{word}-x")
    assert "checkpoint-refused" in refused({"load": changed(checkpoints=(finding,))})


def test_a_link_that_was_changed_afterwards_breaks_the_chain() -> None:
    chain = Maker().chain()
    later = chain.roster.model_copy(update={"taken_at": moment(NOW - 30)})
    answer = proof_of(replace(chain, roster=later))
    assert [one.code for one in answer] == ["chain-broken"]


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({"instance_id": "inst-78"}, "other-machine"),
        ({"host_key": "SHA256:" + "B" * 43}, "other-machine"),
        ({"account": "acct-2"}, "other-machine"),
        ({"platform": "runpod"}, "other-machine"),
        ({"name": "done-02"}, "other-machine"),
        ({"instance_id": None, "host_key": None}, "machine-unidentified"),
    ],
)
def test_prov_idreuse_another_machine_gets_no_proof(other: dict[str, str | None], code: str) -> None:
    assert refused({}, victim=VICTIM.model_copy(update=other)) == {code}


def test_an_address_may_move() -> None:
    moved = VICTIM.model_copy(update={"endpoint": "root@10.9.9.9:2222", "boot_id": "later"})
    assert isinstance(proof_of(Maker().chain(), victim=moved), Proof)


def test_a_copy_on_a_surviving_tier_of_the_same_box_counts() -> None:
    there = Place(kind="box", path="/nas/vault", box="done-01")
    assert isinstance(proof_of(Maker({"copied": changed(destination=there)}).chain()), Proof)


def test_a_tier_nobody_knows_counts_as_destroyed() -> None:
    tiers = (Tier(path="/mnt", survives=None, told_by="nobody"),)
    assert good_proof(Maker({"roster": changed(tiers=tiers)}).chain()).destroys == ("/mnt",)


def test_missing_paperwork_is_a_gap_and_the_proof_is_made() -> None:
    told = Gap(code="no-manifest", detail="none", reason="counted by hand")
    chain = Maker(
        {
            "roster": changed(gaps=(told,), tiers=()),
            "readback": changed(independence="same-device", cold=False),
            "metrics": changed(metrics=(metric("not-declared"),)),
        }
    ).chain()
    assert {one.code for one in good_proof(chain).gaps} == {
        "no-manifest",
        "same-device",
        "cache-not-proven-cold",
        "metric-not-recomputed",
        "survival-unknown",
    }


def test_checkpoints_judged_as_a_folder_or_by_their_index_were_tried() -> None:
    files = {"m/a-1.safetensors": (b"1", "checkpoint"), "z/global_step1/x.pt": (b"2", "checkpoint")}
    findings = (
        CheckpointFinding(path="m/model.safetensors.index.json", verdict="ok"),
        CheckpointFinding(path="z/global_step1", verdict="ok"),
    )
    maker = Maker({"load": changed(checkpoints=findings)}, files=files)
    assert isinstance(proof_of(maker.chain()), Proof)


def test_a_proof_stands_until_it_expires_and_only_for_its_act() -> None:
    chain = Maker().chain()
    proof = good_proof(chain)

    def codes(**more: Any) -> list[str]:
        values: dict[str, Any] = {
            "proof": proof, "roster": chain.roster, "victim": VICTIM, "verb": "destroy", "now": NOW + 10
        } | more  # fmt: skip
        return [one.code for one in proof_stands(**values)]

    assert codes() == []
    assert codes(now=NOW + LASTS_S) == ["proof-expired"]
    assert codes(now=NOW - 3600) == ["clock-went-back"]
    assert codes(verb="stop") == ["proof-other"]
    assert codes(roster=Maker(at=NOW + 1).chain().roster) == ["proof-other"]
    assert codes(victim=VICTIM.model_copy(update={"instance_id": "inst-78"})) == ["other-machine"]
