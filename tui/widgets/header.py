"""The first line: how many boxes, how they are, what they cost. Drawn from the snapshot alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tui.fleet import judge, money, reconcile
from tui.fleet.age import is_stale, short
from tui.model.snapshot import FleetSnapshot
from tui.widgets.glyphs import Glyphs, glyphs_of
from tui.widgets.lines import Line, Lines, Span, length
from tui.widgets.roster_rows import whole_minute


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
    """The header in at most `width` cells; parts go from the least to the most wanted when room is short."""
    total, live, stale, unknown = census(snapshot, now, period_s)
    danger, attention = attention_counts(snapshot, now, period_s)
    instances = [box.instance for box in snapshot.boxes]
    counted = "?" if snapshot.problems and not total else str(total)
    health: list[Span] = [(f"{counted} {'box' if total == 1 else 'boxes'}", "")]
    if live:
        health.append((f"{live} live", ""))
    if stale:
        health.append((f"{stale} stale", "dim"))
    if unknown:
        health.append((f"{unknown} unknown", "dim"))
    if over := sum(box.ended is not None for box in snapshot.boxes):
        health.append((f"{over} destroyed", "dim"))
    alarm: list[Span] = []
    if danger:
        alarm.append((f"{glyphs.attention} {danger} in danger", "danger"))
    if attention:
        alarm.append((f"{glyphs.attention} {attention} attention", "attention"))
    cost: list[Span] = []
    burn = money.burn(money.burning(snapshot.boxes))
    if burn:
        cost.append((f"burn {_sum(burn)}/h", "money"))
    elif any(not i.here for i in instances):
        cost.append(("burn ? $/h", "money"))
    spent = money.spent_total(money.paid(snapshot.boxes), whole_minute(now))
    paid: list[Span] = [(f"spent {_sum(spent)}", "money")] if spent else []
    left = _balances(snapshot)
    mode: list[Span] = [("read-only", "strong")] if read_only else []
    if any(i.simulated for i in instances):
        mode.append(("simulated", "dim"))  # never dropped for room: what is not real says so at every size
    clock: list[Span] = [(time.strftime("%H:%M", time.localtime(now)), "dim")]
    return _pack(width, [[("rgt", "strong")], alarm, health, cost, left, paid], [mode, clock])


def _balances(snapshot: FleetSnapshot) -> list[Span]:
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


def _pack(width: int, left: list[list[Span]], right: list[list[Span]]) -> Line:
    """Left parts from the left, right parts flush right; the last left parts go when there is no room."""
    tail: list[Span] = []
    for part in right:
        for span in part:
            tail += [span, ("   ", "")]
    tail = [*tail[:-1], (" ", "")] if tail else []
    for keep in range(len(left), 0, -1):
        spans: list[Span] = [(" ", "")]
        for part in left[:keep]:
            for span in part:
                spans += [span, ("  ", "")]
            spans.append((" " if part else "", ""))
        blank = width - length(spans) - length(tail)
        if blank >= 0:
            return (*spans, (" " * blank, ""), *tail)
    return (*left[0], (" ", ""), *tail)


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
