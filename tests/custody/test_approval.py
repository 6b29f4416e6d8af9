"""Only the exact phrase of exactly this proof approves, once, and not for long."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.custody.chains import NOW, VICTIM, Maker, good_proof
from tui.custody.approval import LASTS_S, approval_stands, approve, new_nonce, phrase, summary
from tui.model.custody import Approval, Refusal, Victim

PROOF = good_proof()
PHRASE = phrase(PROOF)


def code(answer: Approval | Refusal) -> str:
    assert isinstance(answer, Refusal), "it was approved"
    return answer.code


def test_the_phrase_names_verb_machine_and_proof_and_can_be_typed() -> None:
    assert f"destroy done-01 {PROOF.digest[7:15]}" == PHRASE
    assert len(PHRASE) < 80
    assert set(PHRASE) <= set(string.ascii_letters + string.digits + "._- ")


def test_the_exact_phrase_approves_exactly_this_proof() -> None:
    approval = approve(PROOF, PHRASE, NOW + 5, nonce="n1")
    assert isinstance(approval, Approval)
    assert (approval.proof, approval.nonce) == (PROOF.digest, "n1")
    assert approval_stands(approval, PROOF, NOW + 10) == ()


@st.composite
def near_misses(draw: st.DrawFn) -> str:
    """The phrase with one small thing wrong."""
    place = draw(st.integers(0, len(PHRASE) - 1))
    char = draw(st.characters(codec="utf-8", max_codepoint=0x2FFF))
    return draw(
        st.sampled_from(
            (
                PHRASE[:place] + PHRASE[place + 1 :],
                PHRASE[:place] + char + PHRASE[place:],
                PHRASE[:place] + char + PHRASE[place + 1 :],
                PHRASE[:place],
                PHRASE[place:],
                PHRASE[:place] + PHRASE[place:].swapcase(),
                PHRASE + char,
                char + PHRASE,
            )
        )
    )


@given(typed=near_misses())
@example(typed=PHRASE + "\n")
@example(typed=PHRASE + "\r\n")
@example(typed="\n" + PHRASE)
@example(typed=PHRASE.upper())
@example(typed=" " + PHRASE)
@example(typed=PHRASE + " ")
@example(typed=PHRASE.replace(" ", "  "))
@example(typed=PHRASE.replace(" ", "\u00a0"))
@example(typed=PHRASE.replace("0", "O"))
@example(typed="\x1b[200~" + PHRASE + "\x1b[201~")
@example(typed="y" + PHRASE)
@example(typed="")
@example(typed="yes")
@example(typed="\ud800")
def test_appr_nearmiss(typed: str) -> None:
    assume(typed != PHRASE)
    assert code(approve(PROOF, typed, NOW, nonce="n")) == "phrase-wrong"


@given(typed=st.text())
def test_no_other_text_approves(typed: str) -> None:
    assume(typed != PHRASE)
    assert code(approve(PROOF, typed, NOW, nonce="n")) == "phrase-wrong"


def test_appr_otherid() -> None:
    other = VICTIM.model_copy(update={"instance_id": "inst-78"})
    same_name = good_proof(Maker(victim=other).chain(), victim=other)
    named = VICTIM.model_copy(update={"name": "done-02"})
    other_name = good_proof(Maker(victim=named).chain(), victim=named)
    for proof in (same_name, other_name):
        assert code(approve(PROOF, phrase(proof), NOW, nonce="n")) == "phrase-wrong"
        theirs = approve(proof, phrase(proof), NOW, nonce="n")
        assert isinstance(theirs, Approval)
        assert [r.code for r in approval_stands(theirs, PROOF, NOW)] == ["approval-other"]


def test_a_newer_proof_voids_the_approval_of_the_older() -> None:
    later = good_proof(Maker(at=NOW + 60).chain(), NOW + 60)
    assert code(approve(later, PHRASE, NOW + 61, nonce="n")) == "phrase-wrong"
    old = approve(PROOF, PHRASE, NOW + 61, nonce="n")
    assert isinstance(old, Approval)
    assert [r.code for r in approval_stands(old, later, NOW + 62)] == ["approval-other"]


def test_appr_expired() -> None:
    assert code(approve(PROOF, PHRASE, NOW + 3600, nonce="n")) == "proof-expired"
    approval = approve(PROOF, PHRASE, NOW, nonce="n")
    assert isinstance(approval, Approval)
    for now in (NOW + LASTS_S, NOW + 9e6, NOW - 3600):
        assert [r.code for r in approval_stands(approval, PROOF, now)] == ["approval-expired"]


def test_an_approval_does_not_outlive_its_proof() -> None:
    approval = approve(PROOF, PHRASE, NOW + 3590, nonce="n")
    assert isinstance(approval, Approval)
    assert approval.expires_at == PROOF.expires_at


def test_an_approval_with_a_later_date_written_in_does_not_live_longer() -> None:
    approval = approve(PROOF, PHRASE, NOW, nonce="n")
    assert isinstance(approval, Approval)
    stretched = approval.model_copy(update={"expires_at": "2099-01-01T00:00:00Z"})
    assert [r.code for r in approval_stands(stretched, PROOF, NOW + LASTS_S)] == ["approval-expired"]


def test_clock_jump_back_refuses() -> None:
    assert code(approve(PROOF, PHRASE, NOW - 7200, nonce="n")) == "clock-went-back"


def test_appr_replay() -> None:
    approval = approve(PROOF, PHRASE, NOW, nonce="n")
    assert isinstance(approval, Approval)
    assert code(approve(PROOF, PHRASE, NOW, nonce="n", spent={"n"})) == "approval-used"
    assert [r.code for r in approval_stands(approval, PROOF, NOW, spent={"n"})] == ["approval-used"]
    assert new_nonce() != new_nonce()


@pytest.mark.parametrize("word", ["inst-77 at vast", "acct-1", "0.00 USD/h", "12.40 USD", "/nas", "no"])
def test_the_summary_tells_everything_that_is_decided_on(word: str) -> None:
    assert word in [value for _, value in summary(PROOF)]


def test_what_is_not_known_says_so_in_the_summary() -> None:
    blank = Victim(name="b", platform="ssh", host_key="SHA256:" + "C" * 43)
    told = dict(summary(good_proof(Maker(victim=blank).chain(), victim=blank)))
    assert (told["machine"], told["account"]) == ("no id known at ssh", "not known")
