"""One tick over the whole fleet without a screen: a line for everything, and what changed since the last one.

A line comes also where nothing changed: silence is not health. Notices come only for what changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tui.fleet.age import age_word
from tui.fleet.attention import run_attention
from tui.fleet.judge import box_word, time_left
from tui.fleet.report import progress_words
from tui.model.instance import LinkState
from tui.model.run import RunState
from tui.model.snapshot import BoxView, FleetSnapshot, RunView
from tui.model.text import SafeText, safe

ESCALATED = frozenset(
    one.value
    for one in (
        RunState.DEAD,
        RunState.STALLED,
        LinkState.REFUSED,
        LinkState.IDENTITY,
        LinkState.NEEDS_SECRET,
    )
)


@dataclass(frozen=True, slots=True)
class Tick:
    """What one thing is like now.

    Attributes:
        key: ``box NAME`` or ``run NAME``; stays the same between ticks.
        word: one word that changes only when something material does.
        line: one line for a person.
        escalated: whether it wants somebody now.
    """

    key: str
    word: str
    line: SafeText
    escalated: bool


def ticks(snapshot: FleetSnapshot, now: float) -> tuple[Tick, ...]:
    """A line for each run, and for each box that has none."""
    found: list[Tick] = []
    for box in snapshot.boxes:
        runs = snapshot.runs_on(box.name)
        found += [_run(box, run, now) for run in runs]
        told = [one for run in runs for one in run_attention(run)]
        box = replace(box, attention=tuple(one for one in box.attention if one not in told))
        if not runs or box.attention or box.link.state is not LinkState.LIVE:
            found.append(_box(box, now))
    return tuple(found)


def changes(before: Mapping[str, str], now: tuple[Tick, ...]) -> Iterator[Tick]:
    """What became another word since the last tick; what was never seen is news only where it escalates."""
    for tick in now:
        was = before.get(tick.key)
        if (was is None and tick.escalated) or (was is not None and was != tick.word):
            yield tick


_UNSETTLED = frozenset(
    one.value
    for one in (
        RunState.UNKNOWN,
        RunState.UNREACHABLE,
        RunState.STARTING,
        LinkState.IDLE,
        LinkState.CONNECTING,
        LinkState.LOST,
    )
)
"""What is no news by itself: the next word that is settled tells what came of it."""


class Calls:
    """What somebody is called for while the fleet is watched: each material change once, and never what
    stood so when the watch began."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, snapshot: FleetSnapshot, now: float) -> tuple[Tick, ...]:
        """What ended, or wants somebody, and did not when it was last known."""
        found = []
        told = ticks(snapshot, now)
        quiet = {f"box {box.name}" for box in snapshot.boxes if box.telemetry is not None}
        for key in quiet - {tick.key for tick in told}:
            self._known[key] = LinkState.LIVE.value
        for tick in told:
            if tick.word in _UNSETTLED:
                continue
            was, self._known[tick.key] = self._known.get(tick.key), tick.word
            ended = tick.word == RunState.FINISHED.value
            if was is not None and was != tick.word and (tick.escalated or ended):
                found.append(tick)
        return tuple(found)


def words(now: tuple[Tick, ...]) -> dict[str, str]:
    """What is kept until the next tick."""
    return {tick.key: tick.word for tick in now}


def _run(box: BoxView, run: RunView, now: float) -> Tick:
    word = run.state.value
    if run.finished:
        word = "finished"
    reached = progress_words(run.progress, time_left(run, now))
    how = f"{word}, {reached}" if any(sign.isalnum() for sign in reached) else word
    line = f"{run.name} on {box.name}: {how}. {run.why}".rstrip()
    return Tick(f"run {run.name}", word, safe(line, 300), word in ESCALATED)


def _box(box: BoxView, now: float) -> Tick:
    seen = age_word(box.telemetry.taken_at if box.telemetry else None, now)
    if box.ended is not None:
        word, why = "destroyed", f"It is destroyed, {box.ended.how}."
    elif box.link.state is not LinkState.LIVE:
        word = box.link.state.value
        why = box.link.detail.removeprefix(f"{box.name}: ") or box_word(box, now).word
    elif box.attention:
        word = "+".join(sorted({_steady(one.short) for one in box.attention}))
        why = " ".join(one.text for one in box.attention)
    else:
        word, why = "live", "No run is watched on it."
    escalated = bool(box.attention) or word in ESCALATED
    return Tick(f"box {box.name}", word, safe(f"{box.name}: {why} Seen: {seen}.", 400), escalated)


def _steady(short: str) -> str:
    """``inodes 96%`` and ``inodes 97%`` are one and the same trouble."""
    return " ".join(part for part in short.split() if not part[0].isdigit()) or short
