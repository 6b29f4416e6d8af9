"""What a wizard says of an act: what is decided on, what is asked, what became of it. Pure."""

from __future__ import annotations

from tui.custody.approval import summary
from tui.custody.journal import ENDS
from tui.custody.provider import Platform, money_of
from tui.model.custody import CopyReport, Outcome, Proof, Victim, Witness
from tui.model.teardown import StepState, StepView
from tui.model.text import SafeText, safe
from tui.workers.teardown_words import gaps, lines, refusals, short

_WORDS = {
    "proven": "PROVEN by two witnesses",
    "unproven": "UNPROVEN: nobody has seen its end; look again",
    "attested": "ATTESTED by your word, not proven",
    "already-gone": "ALREADY GONE; nothing was sent",
    "already-stopped": "ALREADY STOPPED; nothing was sent",
}


def stop_rows(victim: Victim, platform: Platform, now: float) -> tuple[tuple[SafeText, SafeText], ...]:
    """What a stop that loses nothing is decided on."""
    money = money_of(platform, now)
    rows = [
        ("act", f"stop {victim.name} ({platform.action.verb if platform.action else 'stop'})"),
        ("machine", f"{victim.instance_id or 'no id known'} at {victim.platform}"),
        ("account", victim.account or "not known"),
        ("bills afterwards", money.bills_afterwards),
        ("spent so far", money.spent),
        ("clock it starts", platform.clock(now) or "none that is known"),
        ("reversible", "yes" if platform.action and platform.action.reversible else "not known"),
    ]
    return tuple((safe(title), safe(value, 600)) for title, value in rows)


def approval_step(proof: Proof, said: dict[str, str]) -> StepView:
    return StepView(
        "approval",
        "needs-you",
        safe(f"proven {short(proof.digest)}, good until {proof.expires_at[11:16]} UTC · type the phrase"),
        safe("binds your approval to this proof, this machine and this verb"),
        safe("the phrase, typed by hand, once"),
        gaps=gaps(proof.gaps, said),
        at=proof.made_at,
    )


def summary_rows(proof: Proof, copied: CopyReport) -> tuple[tuple[SafeText, SafeText], ...]:
    """Everything that is decided on, as titles and values; what is lost and what it costs come first."""
    found = sorted(summary(proof, copied), key=lambda row: _FIRST.index(row[0]) if row[0] in _FIRST else 99)
    return tuple((safe(title), safe(value, 600)) for title, value in found)


_FIRST = ("act", "machine", "destroys", "survives", "bills afterwards", "spent so far", "reversible",
          "last byte pulled", "gaps", "account")  # fmt: skip


def outcome_step(outcome: Outcome, *, waits: bool) -> StepView:
    settled = outcome.kind in ENDS
    state: StepState = "done" if settled else "refused" if outcome.kind == "refused" else "needs-you"
    told = [outcome.detail, *map(_witness, outcome.witnesses[-6:])]
    if outcome.check_by_hand:
        told.append(f"by hand: {outcome.check_by_hand}")
    return StepView(
        "outcome",
        state,
        safe("waits for your word" if waits else _became(outcome), 300),
        safe(f"one look whether the box is idle and unchanged, then {outcome.verb} once, then the truth"),
        safe("two witnesses that agree, repeatedly; where nobody can be asked, your word"),
        lines(line for line in told if line),
        refusals=refusals(outcome.refusals),
        gaps=gaps(outcome.gaps),
        at=outcome.finished_at,
    )


def _became(outcome: Outcome) -> str:
    first = next(iter(outcome.refusals), None)
    if outcome.kind == "refused":
        return f"{first.code}: {first.detail}" if first else outcome.detail
    return _WORDS[outcome.kind]


def _witness(one: Witness) -> str:
    return f"{one.who} at {one.at[11:19]}: {one.said}, {one.detail}"
