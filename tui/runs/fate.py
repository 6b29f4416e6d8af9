"""What became of the machine that a run was on: alive, dead, taken away by its platform, or not known.

A run is started elsewhere only where it is certain that the old one does not run. That a machine does not
answer says nothing of the run on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui.model.text import SafeText, safe
from tui.runs.truth import Truth

Kind = Literal["runs", "over", "dead", "taken", "unbegun", "unknown"]
"""``runs``: it may be at work. ``over``: finished. ``dead``: its machine answers, and the run does not live.
``taken``: its provider says that the machine does not run. ``unbegun``: its machine answers and knows no
attempt of it: it was never started, is being started, or its disk is not there. ``unknown``: nobody can
tell."""

_ENDED = frozenset(("stopped", "gone"))
"""What is stopping or being destroyed may still be at work."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What is known. Only ``dead`` and ``taken`` let a run go on elsewhere."""

    kind: Kind
    why: SafeText

    @property
    def certain(self) -> bool:
        return self.kind in ("dead", "taken")


def fate(seen: Truth | None, unreached: str, provider: str | None, *, spot: bool) -> Fate:
    """Judge the old machine.

    Args:
        seen: what it said of the run; None: it did not answer, for the reason `unreached`.
        provider: its state in the provider's list, such as ``stopped``; None: no provider could be asked.
        spot: whether its platform takes machines away.
    """
    if seen is not None:
        return _of_truth(seen)
    if provider in _ENDED:
        how = "it was taken away, or stopped" if spot else "it was stopped or ended"
        return Fate("taken", safe(f"Its provider says that the machine is {provider}: {how}.", 300))
    if provider == "running":
        return Fate("unknown", safe(f"Its provider says it runs, and it does not answer: {unreached}", 400))
    asked = "no provider could be asked" if provider is None else f"its provider says {provider}"
    return Fate("unknown", safe(f"It does not answer, and {asked}: {unreached}", 400))


def _of_truth(seen: Truth) -> Fate:
    if seen.state in ("running", "pending"):
        return Fate("runs", safe(f"It is {seen.state} there: {seen.why}", 300))
    if seen.state == "finished":
        return Fate("over", seen.why)
    if seen.state in ("absent", "placed"):
        return Fate("unbegun", safe(f"{seen.why} Somebody may be starting it, or its disk is away.", 300))
    if seen.state == "unknown":
        return Fate("unknown", seen.why)
    return Fate("dead", safe(f"It is {seen.state} there: {seen.why}", 300))
