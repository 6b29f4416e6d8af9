"""What the operator decided about leftovers and said about gaps: durable at once, whatever comes after."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tui.custody.leftovers import Decision
from tui.custody.records import write_file
from tui.durable import read_regular
from tui.model.custody import Gap, Moment, Proof, Roster, canonical
from tui.model.failure import Exit, Failure

FILE = "decisions.json"
_CAP = 16 << 20


def record(folder: Path, decisions: Mapping[str, Decision], now: Moment) -> None:
    """Write decisions down beside earlier ones; a newer one about the same group holds. Raises Failure."""
    if decisions:
        kept = _read(folder / FILE)
        for group, one in decisions.items():
            kept["groups"][group] = {"word": one.word, "reason": one.reason, "at": now}
        write_file(folder / FILE, canonical(kept))


def record_reason(folder: Path, codes: Iterable[str], reason: str, now: Moment) -> None:
    """Write down why the operator goes on over gaps of these codes. Raises Failure."""
    kept = _read(folder / FILE)
    for code in codes:
        kept["gaps"][code] = {"reason": reason, "at": now}
    write_file(folder / FILE, canonical(kept))


def decided(folder: Path, roster: Roster | None) -> dict[str, Decision]:
    """All that holds now: what a roster was taken with, and what was decided since. Raises Failure."""
    found = {
        one.group: Decision(one.decision, one.reason)
        for one in (roster.leftovers if roster is not None else ())
        if one.decision is not None
    }
    for group, one in _read(folder / FILE)["groups"].items():
        found[group] = Decision("keep" if one["word"] == "keep" else "scrap", one["reason"])
    return found


def reasons(folder: Path) -> dict[str, str]:
    """Why the operator went on, by the code of a gap. Raises Failure."""
    return {code: one["reason"] for code, one in _read(folder / FILE)["gaps"].items()}


def with_reasons(proof: Proof, said: Mapping[str, str]) -> Proof:
    """A proof whose gaps tell why the operator went on over them."""
    gaps = tuple(_told(one, said) for one in proof.gaps)
    return proof if gaps == proof.gaps else proof.model_copy(update={"gaps": gaps})


def _told(gap: Gap, said: Mapping[str, str]) -> Gap:
    reason = gap.reason or said.get(gap.code, "")
    return gap if reason == gap.reason else gap.model_copy(update={"reason": reason})


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        raw = read_regular(path, _CAP + 1)
        if len(raw) > _CAP:
            raise ValueError("too long")
        value = json.loads(raw)
        groups, gaps = dict(value["groups"]), dict(value["gaps"])
        good = all(g["word"] in ("keep", "scrap") and isinstance(g["reason"], str) for g in groups.values())
        if not good or not all(isinstance(g["reason"], str) for g in gaps.values()):
            raise ValueError("no decisions")
    except FileNotFoundError:
        return {"groups": {}, "gaps": {}}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Failure(
            f"{path} can't be read as decisions.",
            means="What you decided about leftovers is not known any more.",
            do="Move it away, and decide again.",
            exit=Exit.UNKNOWN,
            code="decisions-damaged",
        ) from None
    return {"groups": groups, "gaps": gaps}
