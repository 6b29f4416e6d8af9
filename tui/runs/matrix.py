"""The matrix of a queue: each cell by what each witness says of it, nothing inferred from another state."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tui.model.text import SafeText, safe
from tui.runs.queue import Seen, State

Mark = bool | None
"""True: seen. False: looked for, and not so. None: nobody could be asked."""


@dataclass(frozen=True, slots=True)
class Row:
    """One cell.

    Attributes:
        box: whose share it is in; `by` another host that claimed it.
        state: what its box says; ``unreachable`` where it said nothing.
        sealed: an export of it is sealed on its box.
        accepted: its durable copy was read back by somebody else, and passed.
        evaluated: its metrics were recomputed from the full population, and passed.
        took_s: seconds of all its attempts, where each has ended.
    """

    name: str
    values: Mapping[str, str]
    box: str
    state: State | str
    attempt: int | None
    why: SafeText
    sealed: Mark
    accepted: Mark
    evaluated: Mark
    by: SafeText | None = None
    took_s: float | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What finished cells cost on one box. `speed` is relative to the slowest of the queue's boxes."""

    box: str
    cells: int
    each_s: float
    left: int
    speed: float

    @property
    def left_s(self) -> float:
        """Seconds until the box has done its share, if what is left is like what is done."""
        return self.each_s * self.left


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the ledger holds of one run: the newest result of an act, None where there is none."""

    readback: str | None = None
    metrics: str | None = None


def verdicts(receipts: Iterable[tuple[str | None, str, str]]) -> dict[str, Verdicts]:
    """By run, from receipts in order: (run, act, result). The newest one of an act counts."""
    found: dict[str, Verdicts] = {}
    for run, act, result in receipts:
        if run is None or act not in ("readback-report", "metric-report"):
            continue
        was = found.get(run, Verdicts())
        if act == "readback-report":
            found[run] = Verdicts(result, was.metrics)
        else:
            found[run] = Verdicts(was.readback, result)
    return found


def rows(
    values: Mapping[str, Mapping[str, str]],
    boxes: Mapping[str, str],
    seen: Mapping[str, Seen],
    unreached: Mapping[str, str],
    held: Mapping[str, Verdicts],
) -> tuple[Row, ...]:
    """One row for each cell, in the matrix's order.

    Args:
        boxes: whose share each cell is in.
        seen: what boxes said, by cell.
        unreached: why a box said nothing, by box.
        held: what the ledger says, by run.
    """
    found = []
    for name, cell in values.items():
        box = boxes.get(name, "?")
        said, told = seen.get(name), held.get(name, Verdicts())
        found.append(
            Row(
                name=name,
                values=cell,
                box=box,
                state=said.state if said else "unreachable",
                attempt=said.attempt if said else None,
                why=said.why if said else safe(unreached.get(box, "Its box said nothing of it."), 200),
                sealed=said.sealed if said else None,
                accepted=_mark(told.readback),
                evaluated=_mark(told.metrics),
                by=said.by if said else None,
                took_s=said.took_s if said else None,
            )
        )
    return tuple(found)


def counts(found: Iterable[Row]) -> dict[str, int]:
    """How many cells are in each state, and how many carry each verdict."""
    told: dict[str, int] = {}
    for row in found:
        told[row.state] = told.get(row.state, 0) + 1
        for word, mark in (("sealed", row.sealed), ("accepted", row.accepted), ("evaluated", row.evaluated)):
            if mark:
                told[word] = told.get(word, 0) + 1
    return told


def costs(found: Iterable[Row]) -> tuple[Cost, ...]:
    """Seconds a cell on each box, the middle of its complete ones; a box with none has no figure."""
    took: dict[str, list[float]] = {}
    left: dict[str, int] = {}
    for row in found:
        box = row.by or row.box
        if row.state == "complete" and row.took_s is not None:
            took.setdefault(box, []).append(row.took_s)
        elif row.state in ("waiting", "claimed", "running"):
            left[box] = left.get(box, 0) + 1
    each = {box: statistics.median(values) for box, values in took.items()}
    slowest = max(each.values(), default=0.0)
    return tuple(
        Cost(box, len(took[box]), value, left.get(box, 0), slowest / value if value else 1.0)
        for box, value in each.items()
    )


def cost_lines(found: Iterable[Row]) -> list[SafeText]:
    """The same for people; with two boxes or more, also how fast each is beside the others."""
    told = costs(found)
    lines = [
        safe(
            f"{one.box}: {one.each_s:.0f} s a cell ({one.cells} complete)"
            + (f", {one.left} left: about {one.left_s / 3600:.1f} h" if one.left else "")
        )
        for one in told
    ]
    if len(told) > 1 and all(one.each_s for one in told):
        words = " ".join(f"--speed {one.box}={one.speed:.1f}" for one in told)
        lines.append(safe(f"for the next queue on these boxes: {words}", 400))
    return lines


def _mark(result: str | None) -> Mark:
    return False if result is None else result == "passed"
