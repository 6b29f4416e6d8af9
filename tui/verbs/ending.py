"""What `stop`, `down` and `hold` share: who may be changed, and the words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tui.fleet import settings
from tui.fleet.paths import Paths, paths
from tui.model.custody import Outcome, Refusal
from tui.model.failure import Exit, Failure
from tui.model.instance import Instance
from tui.model.text import safe


def changing(args: argparse.Namespace) -> Paths:
    """The operator's files, for a verb that changes something. Raises Failure in read-only mode."""
    where = paths()
    if getattr(args, "read_only", False) or settings.load(where.fleet_file).settings.read_only:
        raise Failure(
            "This is read-only mode.",
            means="Nothing was done.",
            do=f"Leave --read-only out, or take read_only out of {where.fleet_file}.",
            code="read-only",
        )
    return where


def instance_named(name: str, where: Paths) -> Instance:
    """The box of this name, or the box of the run of this name. Raises Failure."""
    loaded = settings.load(where.fleet_file)
    boxes = {one.name: one for one in loaded.instances}
    box = name if name in boxes else next((run.box for run in loaded.runs if run.name == name), None)
    if box not in boxes:
        raise Failure(
            f"No box or run is named {safe(name, 80)!r} in {where.fleet_file}.",
            do="See `rgt status`.",
            exit=Exit.USAGE,
            code="unknown-name",
        )
    return boxes[box]


def refusal_lines(refusals: tuple[Refusal, ...]) -> Iterator[str]:
    """Refusals with what clears each, safe to print."""
    for one in refusals[:20]:
        path = f" {one.path}" if one.path else ""
        yield safe(f"refused: {one.code}{path}: {one.detail} {one.clears}")
    if len(refusals) > 20:
        yield f"refused: and {len(refusals) - 20} more"


_WORDS = {
    "proven": "PROVEN by two witnesses",
    "unproven": "UNPROVEN",
    "attested": "ATTESTED by your word, not proven",
    "already-gone": "ALREADY GONE; nothing was sent",
    "already-stopped": "ALREADY STOPPED; nothing was sent",
    "refused": "REFUSED",
}


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """An outcome in a few lines, safe to print."""
    yield safe(f"{outcome.verb} {outcome.victim.name}: {_WORDS[outcome.kind]}")
    if outcome.detail:
        yield safe(f"  {outcome.detail}")
    yield from (f"  {line}" for line in refusal_lines(outcome.refusals))
    for one in outcome.gaps:
        yield safe(f"  gap: {one.code}: {one.detail} {one.reason}".rstrip())
    for witness in outcome.witnesses[-2:]:
        yield safe(f"  {witness.who} at {witness.at}: {witness.said}, {witness.detail}")
    if outcome.check_by_hand:
        yield safe(f"  by hand: {outcome.check_by_hand}")


def exit_of(outcome: Outcome) -> Exit:
    """0 where it is settled, 1 where it was refused, 4 where nobody knows."""
    if outcome.kind == "refused":
        return Exit.ATTENTION
    return Exit.UNKNOWN if outcome.kind == "unproven" else Exit.FINE
