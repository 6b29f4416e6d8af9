"""A matrix of cells: one run each, with a name and a write path that no other cell has, split over boxes."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tui.model.failure import Exit, Failure
from tui.model.job import Job
from tui.model.text import safe

MOST = 10_000
_PLAIN = re.compile(r"[^A-Za-z0-9.+-]+")


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of the matrix. `name` is its run's."""

    name: str
    values: Mapping[str, str]


def cells(job: Job, code: str) -> tuple[Cell, ...]:
    """All cells of a job, in the matrix's own order.

    Names hold the values as far as a file name can, and eight digits of everything that makes the run; that
    no two are one, also on a disk that folds case, is checked and not hoped.

    Args:
        code: digest of the code; other code makes other runs.

    Raises:
        Failure: no matrix, too many cells, or two cells of one name.
    """
    if not job.matrix:
        raise Failure(
            "The job has no matrix.", do="Add one, such as [matrix] seed = [1, 2, 3].", exit=Exit.USAGE
        )
    count = 1
    for values in job.matrix.values():
        count *= len(values)
    if count > MOST:
        raise Failure(f"The matrix has {count} cells; {MOST} is the most.", exit=Exit.USAGE)
    found = tuple(
        _cell(job, code, dict(zip(job.matrix, map(_word, values), strict=True)))
        for values in itertools.product(*job.matrix.values())
    )
    _injective(found)
    return found


def _cell(job: Job, code: str, values: Mapping[str, str]) -> Cell:
    whole = hashlib.sha256(f"{job.words()}\0{code}\0".encode())
    for name in sorted(values):
        whole.update(f"{name}\0{values[name]}\0".encode())
    words = "_".join(f"{name}={_PLAIN.sub('-', value)[:16]}" for name, value in values.items())
    readable = re.sub(r"[^A-Za-z0-9._-]", "-", words)[:60].strip("-._")
    return Cell(f"{job.name[:24]}-{readable}-{whole.hexdigest()[:8]}", values)


def _word(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _injective(found: Sequence[Cell]) -> None:
    seen: dict[str, Cell] = {}
    for cell in found:
        other = seen.setdefault(cell.name.casefold(), cell)
        if other is not cell:
            raise Failure(
                f"Two cells would write to one place: {_told(other)} and {_told(cell)}.",
                means="Nothing was started.",
                do="Take one of the equal values out of the matrix.",
                code="cells-collide",
            )


def _told(cell: Cell) -> str:
    return safe(", ".join(f"{name}={value}" for name, value in cell.values.items()), 200)


def split(
    cells: Sequence[Cell], boxes: Mapping[str, float], cost: Mapping[str, float] | None = None
) -> dict[str, list[Cell]]:
    """Give each box its cells so that all end at about the same time.

    The dearest cell goes first, each to the box that would be done with it soonest.

    Args:
        boxes: by name, how fast each is, relative to the others; measured or 1.
        cost: by cell name, how much work it is; by default all are alike.
    """
    shares: dict[str, list[Cell]] = {name: [] for name in boxes}
    until = dict.fromkeys(boxes, 0.0)
    work = {cell.name: (cost or {}).get(cell.name, 1.0) for cell in cells}
    for cell in sorted(cells, key=lambda one: -work[one.name]):
        box = min(boxes, key=lambda name: until[name] + work[cell.name] / boxes[name])
        shares[box].append(cell)
        until[box] += work[cell.name] / boxes[box]
    order = {cell.name: number for number, cell in enumerate(cells)}
    return {name: sorted(share, key=lambda one: order[one.name]) for name, share in shares.items()}
