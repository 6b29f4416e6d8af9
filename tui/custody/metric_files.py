"""Which files of a run its metrics are recomputed from: what is fetched where they lie elsewhere. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from tui.custody.codes import gap
from tui.custody.metrics import DECLARATION_FILE
from tui.custody.predictions.files import SUFFIXES
from tui.model.custody import Gap, HashedFile
from tui.model.failure import Failure
from tui.model.metrics import Declaration
from tui.model.text import amount

MOST = 2 << 30
"""Bytes that are fetched for it at most; a run of more is read back on this computer instead."""


def metric_files(
    files: Sequence[HashedFile], roles: Mapping[str, str], declared: Declaration | None
) -> tuple[HashedFile, ...]:
    """Metrics, predictions and what is declared to belong to them. A declared evaluator is run there.

    Args:
        roles: of the roster, by path; a checkpoint is fetched only where it is declared.
    """
    patterns = tuple(_declared(declared)) if declared is not None else ()
    return tuple(one for one in files if _belongs(one.path, roles.get(one.path, ""), patterns))


def _belongs(path: str, role: str, patterns: Iterable[str]) -> bool:
    here = PurePosixPath(path)
    if any(path == pattern or here.match(pattern) for pattern in patterns):
        return True
    return role != "checkpoint" and (here.suffix.lower() in SUFFIXES or here.name == DECLARATION_FILE)


def _declared(declared: Declaration) -> Iterator[str]:
    for population in declared.populations:
        yield from population.files
        yield from population.target_files
        if isinstance(population.ids, str):
            yield population.ids
    yield from (metric.file for metric in declared.metrics if metric.file is not None)


def check_size(files: Sequence[HashedFile], run: str, box: str) -> None:
    """Refuse to fetch more than `MOST`. Raises Failure."""
    size = sum(one.size for one in files)
    if size > MOST:
        raise Failure(
            f"The predictions of {run} have {amount(size)} on {box}; at most {amount(MOST)} are fetched.",
            means="No metric was recomputed; what was loaded is recorded.",
            do=f"Read the copy back on this computer: rgt readback {run} --on here.",
            code="metrics-too-large",
        )


def fetched_gap(files: Sequence[HashedFile], box: str, *, evaluated: bool = False) -> Gap:
    """What is recorded of it.

    Args:
        evaluated: a declared evaluator ran on that box.
    """
    size = amount(sum(one.size for one in files))
    more = f" The declared evaluator ran on {box}." if evaluated else ""
    return gap("metrics-fetched", f"{len(files)} files, {size}, of {box}; recomputed on this computer.{more}")
