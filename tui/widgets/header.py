"""The first line: how many boxes, how they are, what they cost. Drawn from the snapshot alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tui.fleet import judge, money, reconcile
from tui.fleet.age import is_stale, short
from tui.model.snapshot import FleetSnapshot
from tui.widgets.glyphs import Glyphs, glyphs_of
from tui.widgets.lines import Line, Lines, Span, length
from tui.widgets.roster_rows import whole_minute

Part: TypeAlias = list[Span]
"""Spans that come and go together."""


def census(snapshot: FleetSnapshot, now: float, period_s: float) -> tuple[int, int, int, int]:
    """Boxes, those with a fresh probe, those whose numbers are old, those never probed in this session.

    One that is destroyed has no numbers that could be fresh or old.
    """
    live = stale = 0
    there = [box for box in snapshot.boxes if box.ended is None]
    for box in there:
        if box.telemetry is None:
            continue
        if is_stale(box.telemetry.taken_at, now, period_s):
            stale += 1
        else:
            live += 1
    return len(snapshot.boxes), live, stale, len(there) - live - stale


def attention_counts(snapshot: FleetSnapshot, now: float, period_s: float) -> tuple[int, int]:
    """Boxes in danger, boxes that want attention."""
    kinds = [judge.box_word(box, now, period_s).kind for box in snapshot.boxes]
    return kinds.count("danger"), kinds.count("attention")


def header_line(
    snapshot: FleetSnapshot, now: float, width: int, glyphs: Glyphs, *, read_only: bool, period_s: float
) -> Line:
    """The header in `width` cells: what is wrong and what it costs stay longest when room is short."""
    alarm = _alarm(snapshot, now, period_s, glyphs)
    full, short_of = _health(snapshot, now, period_s)
    burning = _burning(snapshot)
    burn: Part = [(f"burn {burning}", "money")] if burning else []
    rate: Part = [(burning, "money")] if burning else []
    spent = money.spent_total(money.paid(snapshot.boxes), whole_minute(now))
    paid: Part = [(f"spent {_sum(spent)}", "money")] if spent else []
    left = _balances(snapshot)
    mode: Part = [("read-only", "strong")] if read_only else []
    if any(box.instance.simulated for box in snapshot.boxes):
        mode.append(("simulated", "dim"))  # never dropped for room: what is not real says so at every size
    clock: Part = [(time.strftime("%H:%M", time.localtime(now)), "dim")]
    brand: Part = [("rgt", "strong")]
    for parts, right in (
        ([alarm, full, burn, left, paid], [mode, clock]),
        ([alarm, full, burn, left], [mode, clock]),
        ([alarm, full, burn], [mode, clock]),
        ([alarm, short_of, burn], [mode, clock]),
        ([alarm, short_of, burn], [mode]),
        ([alarm, short_of, rate], [mode]),
        ([alarm, burn], [mode, clock]),
        ([alarm, rate], [mode, clock]),
        ([alarm, rate], [mode]),
        ([alarm], [mode]),
    ):
        line = _packed([brand, *parts], right, width)
        if line is not None:
            return line
    return (*brand, (" ", ""), *mode)


def _alarm(snapshot: FleetSnapshot, now: float, period_s: float, glyphs: Glyphs) -> Part:
    danger, attention = attention_counts(snapshot, now, period_s)
    found: Part = []
    if danger:
        found.append((f"{glyphs.attention} {danger} in danger", "danger"))
    if attention:
        found.append((f"{glyphs.attention} {attention} attention", "attention"))
    return found


def _health(snapshot: FleetSnapshot, now: float, period_s: float) -> tuple[Part, Part]:
    """How many boxes there are and how they are; and the same without those that are well."""
    total, live, stale, unknown = census(snapshot, now, period_s)
    counted = "?" if snapshot.problems and not total else str(total)
    boxes: Span = (f"{counted} {'box' if total == 1 else 'boxes'}", "")
    over = sum(box.ended is not None for box in snapshot.boxes)
    others: Part = [
        (f"{count} {word}", "dim")
        for count, word in ((stale, "stale"), (unknown, "unknown"), (over, "destroyed"))
        if count
    ]
    return [boxes, *([(f"{live} live", "")] if live else []), *others], [boxes, *others]


def _burning(snapshot: FleetSnapshot) -> str:
    """What the fleet costs by the hour; empty where nothing of it can cost."""
    burn = money.burn(money.burning(snapshot.boxes))
    if burn:
        return f"{_sum(burn)}/h"
    return "" if all(box.instance.here for box in snapshot.boxes) else "? $/h"


def _balances(snapshot: FleetSnapshot) -> Part:
    """The balance that ends first, and when; nothing where no account tells one."""
    known = [view for view in snapshot.accounts if view.balance is not None]
    if not known:
        return []
    runways = [(reconcile.runway_s(view), view) for view in known]
    first = min(runways, key=lambda pair: float("inf") if pair[0] is None else pair[0])
    runway, view = first
    sign = money.SIGNS.get(view.currency, view.currency)
    lasts = "" if runway is None else f" · {short(runway)}"
    low = runway is not None and runway < reconcile.LOW_S
    return [(f"left {view.balance:,.2f} {sign}{lasts}", "danger" if low else "money")]


def _sum(totals: Sequence[money.Total]) -> str:
    return " + ".join(total.word for total in totals)


def _packed(left: list[Part], right: list[Part], width: int) -> Line | None:
    """Left parts from the left, right parts flush right; None where `width` cells are too few."""
    head: list[Span] = [(" ", "")]
    for part in filter(None, left):
        for span in part:
            head += [span, ("  ", "")]
        head.append((" ", ""))
    tail: list[Span] = []
    for part in right:
        for span in part:
            tail += [span, ("   ", "")]
    tail = [*tail[:-1], (" ", "")] if tail else []
    blank = width - length(head) - length(tail)
    return None if blank < 0 else (*head, (" " * blank, ""), *tail)


class Header(Lines):
    """The fleet in one line."""

    def __init__(self, *, clock: Callable[[], float], read_only: bool, id: str | None = None) -> None:
        super().__init__(id=id)
        self._clock = clock
        self._read_only = read_only
        self._period_s = 2.0
        self._snapshot = FleetSnapshot()

    def apply(self, snapshot: FleetSnapshot, period_s: float = 2.0) -> None:
        """Take in a snapshot."""
        self._snapshot, self._period_s = snapshot, period_s
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        line = header_line(
            self._snapshot,
            self._clock(),
            self.size.width,
            glyphs_of(self),
            read_only=self._read_only,
            period_s=self._period_s,
        )
        self.show((line,))
