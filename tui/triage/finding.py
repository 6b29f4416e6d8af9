"""Something that a rule found, before it is weighed against everything else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tui.model.incident import Evidence, Fact, Severity
from tui.triage.schema import Rule

Facts: TypeAlias = Mapping[str, Fact]


@dataclass(frozen=True, slots=True)
class Hit:
    """What a reader gives.

    Attributes:
        at: index of the row that shows it; None when no row does.
        words: evidence where no row shows it, or beside the row.
        severity, rank, confidence: instead of those of the rule.
        source: of `words`, where it is not the text's own.
        settled: the reader has already looked at how training went on.
    """

    at: int | None = None
    words: str = ""
    facts: Facts = field(default_factory=dict)
    severity: Severity | None = None
    rank: int | None = None
    confidence: float | None = None
    source: str = ""
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A hit with its class and its place.

    Attributes:
        view: which text, counted from 0; -1 for telemetry.
        at: index of the row in that text.
        order: for *which came first* within a text.
    """

    cls: str
    rule: Rule
    view: int
    at: int | None
    evidence: tuple[Evidence, ...]
    severity: Severity
    rank: int
    confidence: float
    facts: Facts
    settled: bool = False

    @property
    def order(self) -> int:
        return 1 << 30 if self.at is None else self.at  # a status is told at the end

    @property
    def tier(self) -> int:
        """How directly it names a cause: 3 the cause itself ... 0 what follows from almost anything."""
        return 3 if self.rank >= 70 else 2 if self.rank >= 40 else 1 if self.rank >= 20 else 0
