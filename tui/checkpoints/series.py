"""Checkpoints of one run in a row: which is the newest one can go on from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tui.checkpoints.judged import say
from tui.checkpoints.names import number_of
from tui.model.verdict import CheckpointVerdict


@dataclass(slots=True, frozen=True)
class Member:
    """One checkpoint of a folder, by name."""

    name: str
    mtime: float
    usable: bool


def judge_series(path: str, members: Iterable[Member]) -> list[CheckpointVerdict]:
    """One verdict per row of at least two: by number, not by name and not by time."""
    rows: dict[str, list[tuple[int, Member]]] = {}
    for member in members:
        place = number_of(member.name)
        if place is not None:
            rows.setdefault(place[0], []).append((place[1], member))
    return [_of_row(path, pattern, sorted(row, key=_order)) for pattern, row in rows.items() if len(row) > 1]


def _order(numbered: tuple[int, Member]) -> tuple[int, str]:
    return numbered[0], numbered[1].name


def _of_row(path: str, pattern: str, row: list[tuple[int, Member]]) -> CheckpointVerdict:
    usable = [member for _, member in row if member.usable]
    if not usable:
        return say(path, "series", "incomplete", "series", pattern)
    newest = max(usable, key=lambda member: member.mtime)
    disagrees = newest.mtime > usable[-1].mtime
    detail = "mtime order disagrees (copied later)" if disagrees else None
    return say(
        path, "series", "ok", why=f"{len(usable)} of {len(row)} of {pattern} are usable",
        resume_from=usable[-1].name, detail=detail, notes=(detail,) if detail else (),
    )  # fmt: skip
