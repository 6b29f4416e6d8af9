"""From many verdicts to one: accepted, refused, or not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tui.checkpoints.codes import CODES, Effect
from tui.model.verdict import Acceptance, Examination, Problem, Word

_EFFECTS: Mapping[Word, Effect] = {
    "ok": "gap",
    "ignore": "gap",
    "corrupt": "refuses",
    "unsafe": "refuses",
    "needs_allowlist": "refuses",
    "suspicious": "refuses",
    "incomplete": "incomplete",
    "partial": "incomplete",
}
"""Only ``ok`` is accepted; ``ignore`` says nothing either way."""


def effect_of(problem: Problem) -> Effect:
    """What a problem does to the verdict."""
    return problem.effect or (CODES[problem.code].effect if problem.code in CODES else "gap")


def accept(examination: Examination, *others: Acceptance) -> Acceptance:
    """The verdict on a folder.

    Args:
        others: verdicts on the same folder from elsewhere, such as its metrics.
    """
    effects = {_EFFECTS[found.verdict] for found in examination.checkpoints}
    effects |= {"refuses" for file in examination.files if file.verdict in ("corrupt", "unsafe")}
    effects |= {effect_of(problem) for problem in examination.problems}
    if "refuses" in effects or "refused" in others:
        return "refused"
    return "incomplete" if "incomplete" in effects or "incomplete" in others else "accepted"


def what_to_do(codes: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The next steps, each once, with the codes they clear; refusals before what is only unknown."""
    order: tuple[Effect, ...] = ("refuses", "incomplete", "gap")
    known = sorted(
        {code for code in codes if code in CODES}, key=lambda code: order.index(CODES[code].effect)
    )
    steps: dict[str, list[str]] = {}
    for code in known:
        steps.setdefault(CODES[code].clears, []).append(code)
    return list(steps.items())
