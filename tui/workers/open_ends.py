"""What was begun on this computer and is not settled, as everybody shows it. Cheap where there is nothing."""

from __future__ import annotations

from tui.fleet.paths import Paths
from tui.model.instance import Ended
from tui.model.teardown import OpenEnd
from tui.model.text import SafeText


def destroyed(where: Paths) -> tuple[Ended, ...]:
    """Every machine whose destruction is on record as settled. It blocks.

    Raises:
        Failure: a journal is damaged; then it can't be told.
    """
    if not any((where.state / "teardown").glob("*.jsonl")):
        return ()
    from tui.custody.by_hand import settled
    from tui.custody.moments import seconds

    return tuple(
        Ended(
            victim.name,
            seconds(outcome.finished_at),
            SafeText("by your word" if outcome.kind == "attested" else "proven by two witnesses"),
            victim.instance_id,
            victim.host_key,
        )
        for victim, outcome in settled(where, "destroy")
    )


def open_ends(where: Paths) -> tuple[OpenEnd, ...]:
    """Every verb on record whose end nobody has seen or told, oldest first. It blocks.

    Raises:
        Failure: a journal is damaged; then it can't be told.
    """
    if not any((where.state / "teardown").glob("*.jsonl")):
        return ()
    from tui.custody.by_hand import reminders  # with the records that it reads, 100 ms

    return tuple(OpenEnd(one.victim.name, one.verb, one.since, one.by_hand) for one in reminders(where))
