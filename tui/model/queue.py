"""A queue's cells as the operator sees them: what each witness says, nothing inferred from another."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.text import SafeText


@dataclass(frozen=True, slots=True)
class CellView:
    """One cell.

    Attributes:
        values: in the order of the matrix's names.
        box: whose share it is in; `by` another host that claimed it.
        state: what its box says; ``unreachable`` where it said nothing.
        attempt: None where that is not known.
        sealed, accepted, evaluated: None where nobody could be asked.
    """

    name: SafeText
    values: tuple[SafeText, ...]
    box: SafeText
    state: str
    why: SafeText = SafeText("")
    attempt: int | None = None
    sealed: bool | None = None
    accepted: bool | None = None
    evaluated: bool | None = None
    by: SafeText | None = None


@dataclass(frozen=True, slots=True)
class MatrixView:
    """All cells of one queue.

    Attributes:
        queue: empty while none is known.
        names: of the matrix.
        counts: how many cells are in each state, and how many carry each verdict.
        silent: boxes that did not answer, and why.
        at: when the boxes were asked, in seconds since the epoch; None before the first answer.
        asking: they are being asked now.
        others: the other queues that were started from here, newest first.
        problem: why nothing can be shown.
    """

    queue: SafeText = SafeText("")
    names: tuple[SafeText, ...] = ()
    cells: tuple[CellView, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    silent: tuple[tuple[SafeText, SafeText], ...] = ()
    at: float | None = None
    asking: bool = False
    others: tuple[SafeText, ...] = ()
    problem: SafeText = SafeText("")
