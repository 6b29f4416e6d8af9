"""A diagnosis: what is wrong, what shows it, what was ruled out, and the safe next step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.model.text import SafeText

RunOutcome = Literal["running", "finished", "dead", "stalled", "unknown", "unreachable"]
Severity = Literal["fatal", "warning", "info"]
Retry = Literal["identical", "after-fix", "never"]
Plane = Literal["control", "science"]
"""Where a fault lies: in the machinery around the experiment, or in the experiment itself."""

Fact: TypeAlias = "str | int | float | bool | tuple[Fact, ...] | Mapping[str, Fact] | None"
"""What was read beside a diagnosis, as JSON can carry it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was observed.

    Attributes:
        source: what said it, such as ``log``, ``stderr``, ``df -i /data`` or ``cgroup``.
        text: the words or values themselves.
        line: 1-based in a log, split at newlines only; None where there are no lines.
        at: when it was taken, seconds since the epoch; None: the source does not say.
    """

    source: SafeText
    text: SafeText
    line: int | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Another cause that would look alike, and the observation that speaks against it."""

    cls: str
    why: SafeText


@dataclass(frozen=True, slots=True)
class RemedyStep:
    """One step the operator may take. Nothing is ever taken by itself.

    Attributes:
        level: consequence, 0 observe to 3 irreversible.
        command: to copy, where it is a command.
        look: id of a read-only look that rgt runs on a keypress; only at level 0.
    """

    text: SafeText
    level: int
    command: SafeText | None = None
    look: str | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """One diagnosis.

    Attributes:
        cls: class id of the catalog; an operator's own begin with ``x_``.
        confidence: 0 to 1, how well the evidence carries the class.
        facts: what was read beside it, such as the resource that ran out; for JSON.
        also: classes that are consequences of this one.
        which: what tells it from another of its class: the process, the place, the time; may be empty.
        also_which: the same for each of `also`.
    """

    cls: str
    title: SafeText
    severity: Severity
    plane: Plane
    confidence: float
    retry: Retry
    evidence: tuple[Evidence, ...]
    ruled_out: tuple[RuledOut, ...] = ()
    remedy: tuple[RemedyStep, ...] = ()
    facts: tuple[tuple[str, Fact], ...] = ()
    also: tuple[str, ...] = ()
    which: SafeText = SafeText("")
    also_which: tuple[SafeText, ...] = ()

    @property
    def follows(self) -> tuple[SafeText, ...]:
        """Each consequence with what tells it apart."""
        known = (*self.also_which, *(SafeText("") for _ in self.also))
        pairs = zip(self.also, known, strict=False)
        return tuple(SafeText(f"{cls} ({which})" if which else cls) for cls, which in pairs)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is to be said about one run.

    Attributes:
        outcome: what is true now; a log alone proves only what happened once.
        verdict: one sentence for the top of the screen.
        incidents: first cause first.
        taken_at: when the newest evidence was taken, seconds since the epoch; None: from a file.
        ruled_out: what was seen and is not what is wrong now, such as an error of an earlier run.
        notes: worth knowing, and nothing that is wrong.
    """

    outcome: RunOutcome
    verdict: SafeText
    incidents: tuple[Incident, ...] = ()
    taken_at: float | None = None
    ruled_out: tuple[RuledOut, ...] = ()
    notes: tuple[SafeText, ...] = ()
