"""A value together with its age and its source, or the reason why it is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from tui.model.text import SafeText

T = TypeVar("T")

NOT_PROBED = SafeText("not probed yet")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value came from, as *explain* shows it.

    Attributes:
        command: what ran on the box, or which file was read.
        taken_at: seconds since the epoch, by the operator's clock.
        raw: the lines that were printed, at most 4 KiB of them.
    """

    command: SafeText
    taken_at: float
    raw: tuple[SafeText, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """One look at one thing. `value` is None when it could not be told, and then `reason` says why."""

    value: T | None = None
    reason: SafeText = NOT_PROBED
    source: Source | None = None

    @property
    def known(self) -> bool:
        return self.value is not None


def known(value: T, source: Source | None = None) -> Reading[T]:
    """A reading that succeeded."""
    return Reading(value, SafeText(""), source)


def unknown(reason: SafeText, source: Source | None = None) -> Reading[T]:
    """A reading that could not be taken, and why."""
    return Reading(None, reason, source)
