"""The operator's approval: a phrase typed for exactly one act on one machine, used once, and soon too old.

What is typed is compared as it is. Nothing is trimmed, folded or completed.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Container

from tui.custody.codes import refusal
from tui.custody.moments import moment, seconds
from tui.custody.proof import CLOCK_SLACK_S
from tui.model.custody import Approval, CopyReport, Proof, Refusal

LASTS_S = 300.0
"""How long an approval may be acted on."""


def phrase(proof: Proof) -> str:
    """What the operator types: verb, machine and the first 8 digits of the proof's digest."""
    return f"{proof.verb} {proof.victim.name} {proof.digest.removeprefix('sha256:')[:8]}"


def new_nonce() -> str:
    """One for each time a phrase is asked for. It is what makes an approval usable once."""
    return secrets.token_hex(16)


def approve(
    proof: Proof, typed: str, now: float, *, nonce: str, spent: Container[str] = ()
) -> Approval | Refusal:
    """The approval of the act that `proof` is for, or why what was typed is none.

    Args:
        typed: as it came from the keyboard, without the Enter that ended it.
        now: seconds since the epoch.
        nonce: of this question, from `new_nonce`.
        spent: nonces that were used already.
    """
    if nonce in spent:
        return refusal("approval-used", "This question was answered already.")
    if now >= seconds(proof.expires_at):
        return refusal("proof-expired", f"The proof was good until {proof.expires_at}.")
    if seconds(proof.made_at) > now + CLOCK_SLACK_S:
        return refusal("clock-went-back", f"The proof is dated {proof.made_at}.")
    if not hmac.compare_digest(typed.encode("utf-8", "surrogatepass"), phrase(proof).encode()):
        return refusal("phrase-wrong", difference(typed, phrase(proof)))
    return Approval(
        proof=proof.digest,
        phrase=typed,
        given_at=moment(now),
        expires_at=moment(min(now + LASTS_S, seconds(proof.expires_at))),
        nonce=nonce,
    )


def difference(typed: str, wanted: str) -> str:
    """What is off, without repeating foreign text."""
    if not typed:
        return "Nothing was typed."
    if "\n" in typed or "\r" in typed or "\x1b" in typed:
        return "It was pasted, or more than one line came at once."
    if typed.strip() == wanted:
        return "There are blanks before or after it."
    if typed.lower() == wanted.lower():
        return "Capital and small letters differ."
    words, right = typed.split(), wanted.split()
    if len(words) == 3 and words[0] == right[0] and words[1] != right[1]:
        return "It names another machine."
    return "It differs."


def approval_stands(
    approval: Approval, proof: Proof, now: float, *, spent: Container[str] = ()
) -> tuple[Refusal, ...]:
    """Whether an approval given earlier still allows exactly the act of `proof` at this moment."""
    against: list[Refusal] = []
    if approval.proof != proof.digest or approval.phrase != phrase(proof):
        against.append(refusal("approval-other", "It was given for another proof."))
    if approval.nonce in spent:
        against.append(refusal("approval-used", f"It was given at {approval.given_at} and used."))
    given, ends = seconds(approval.given_at), seconds(approval.expires_at)
    if not given - CLOCK_SLACK_S <= now < min(ends, given + LASTS_S):
        against.append(refusal("approval-expired", f"It was good until {approval.expires_at}."))
    return tuple(against)


def summary(proof: Proof, copied: CopyReport | None = None) -> tuple[tuple[str, str], ...]:
    """Everything the operator decides on, as titles and values. Foreign text in it is not made safe yet."""
    victim = proof.victim
    where = f" → {copied.destination.uri}" if copied else ""
    return (
        ("act", f"{proof.verb} {victim.name}"),
        ("machine", f"{victim.instance_id or 'no id known'} at {victim.platform}"),
        ("account", victim.account or "not known"),
        ("reached at", victim.endpoint or "not known"),
        ("host key", victim.host_key or "not recorded"),
        ("run", proof.run),
        ("destroys", ", ".join(proof.destroys) or "nothing"),
        ("survives", ", ".join(proof.survives) or "nothing"),
        ("bills afterwards", proof.bills_afterwards),
        ("spent so far", proof.spent),
        ("reversible", "no" if proof.destroys else "yes"),
        ("last byte pulled", f"{proof.copied_at}{where}"),
        ("gaps", ", ".join(dict.fromkeys(g.code for g in proof.gaps)) or "none"),
        ("proof", f"{proof.digest}, good until {proof.expires_at}"),
    )
