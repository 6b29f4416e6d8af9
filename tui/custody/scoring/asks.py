"""What the two implementations are asked and answer, across processes."""

from __future__ import annotations

from tui.model.metrics import Frozen, Measured


class Ask(Frozen):
    """A figure the second implementation is asked for.

    Attributes:
        finding: its place in the report.
        source: name of the population.
        what: a definition's `second` name.
        first: the reference's figure.
        scale: 100 where the finding shows percent.
    """

    finding: int
    source: str
    what: str
    first: float
    scale: int = 1
    k: int | None = None
    ignore: int | None = None
    data_range: float | None = None
    clamp: float | None = None
    threshold: float | None = None
    classes: int | None = None


class Examined(Frozen):
    """The reference's report, and what the second implementation should be asked."""

    report: Measured
    asks: tuple[Ask, ...] = ()
