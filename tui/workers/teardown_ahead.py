"""The steps of a teardown before they are done: what will run, what must come of it, what is there yet."""

from __future__ import annotations

from tui.custody.standing import Stands
from tui.model.teardown import StepId, StepView
from tui.model.text import safe

_AHEAD: dict[StepId, tuple[str, str]] = {
    "roster": (
        "lists the run's folder and everything else that would be lost",
        "no file that still grows, none missing that is declared, every other group decided",
    ),
    "digest": ("hashes every artifact on the box", "a SHA-256 of each, of bytes at rest"),
    "copy": ("copies every artifact to a durable place", "each with the digest that it had on the box"),
    "readback": (
        "reads the copy, not the box, into a fresh folder of this computer",
        "exactly the same files, every byte as it was hashed on the box",
    ),
    "load": ("loads every checkpoint in a jailed process", "complete, undamaged, every number finite"),
    "metrics": ("recomputes every reported metric from all predictions", "the figures that were reported"),
    "approval": ("shows what is lost, what survives and what it costs", "the phrase, typed by hand"),
    "outcome": ("looks once more, acts once, then looks what became of it", "two witnesses that agree"),
}


def waiting(step: StepId, since: str = "") -> StepView:
    """A step that is still to come. `since`: its earlier evidence is there and is looked at first."""
    runs, expected = _AHEAD[step]
    brief = f"evidence of {since[:16].replace('T', ' ')} UTC, to be looked at again" if since else ""
    return StepView(step, brief=safe(brief), runs=safe(runs), expected=safe(expected), at=since)


def dates(held: Stands) -> dict[StepId, str]:
    """When the evidence of each step that holds on disk was made."""
    found: dict[StepId, str] = {}
    if held.roster:
        found["roster"] = held.roster.taken_at
    if held.digests:
        found["digest"] = held.digests.taken_at
    if held.copied:
        found["copy"] = held.copied.finished_at
    if held.readback:
        found["readback"] = held.readback.finished_at
    if held.load:
        found["load"] = held.load.finished_at
    if held.metrics:
        found["metrics"] = held.metrics.finished_at
    return found
