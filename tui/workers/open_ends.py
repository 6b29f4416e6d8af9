"""What was begun on this computer and is not settled, as everybody shows it. Cheap where there is nothing."""

from __future__ import annotations

from tui.fleet.paths import Paths
from tui.model.teardown import OpenEnd


def open_ends(where: Paths) -> tuple[OpenEnd, ...]:
    """Every verb on record whose end nobody has seen or told, oldest first. It blocks.

    Raises:
        Failure: a journal is damaged; then it can't be told.
    """
    if not any((where.state / "teardown").glob("*.jsonl")):
        return ()
    from tui.custody.by_hand import reminders  # with the records that it reads, 100 ms

    return tuple(OpenEnd(one.victim.name, one.verb, one.since, one.by_hand) for one in reminders(where))
