"""The table: one row per figure, both sides, and whether the goal is met."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

_WIDTHS = (60, 16, 16, 8, 17)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        what: what was measured, on whose terms.
        ours, peer: values with their unit; `peer` is empty where nothing stands beside it.
        ratio: ours / peer, or None.
        goal: the most allowed, such as ``≤ 1.25 ×``; empty for a figure that only informs.
        met: None where there is no goal, or where nothing could be measured.
        note: what a reader must know to believe it.
    """

    what: str
    ours: str
    peer: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None
    note: str = ""


def beside(
    what: str,
    ours: float,
    peer: float,
    unit: str,
    *,
    most: float | None = None,
    digits: int = 1,
    note: str = "",
) -> Row:
    """A figure beside its peer's; the goal is the most that ours / peer may be."""
    ratio = ours / peer if peer else None
    met = None if most is None or ratio is None else ratio <= most
    goal = "" if most is None else f"≤ {most:.3g} ×"
    return Row(what, f"{ours:,.{digits}f} {unit}", f"{peer:,.{digits}f} {unit}", ratio, goal, met, note)


def limited(
    what: str,
    ours: float,
    unit: str,
    *,
    most: float | None = None,
    least: float | None = None,
    digits: int = 1,
    note: str = "",
) -> Row:
    """A figure with a limit of its own."""
    if least is not None:
        goal, met = f"≥ {least:,.0f}", ours >= least
    elif most is not None:
        goal, met = f"≤ {most:,g}", ours <= most
    else:
        return Row(what, f"{ours:,.{digits}f} {unit}", note=note)
    return Row(what, f"{ours:,.{digits}f} {unit}", goal=f"{goal} {unit}", met=met, note=note)


def unmeasured(what: str, why: str) -> Row:
    """A figure that could not be taken here."""
    return Row(what, "not measured", note=why)


def line(row: Row) -> str:
    """The row as a line of the table, with its note below."""
    ratio = "" if row.ratio is None else f"{row.ratio:.3g} ×"
    met = {True: "yes", False: "NO", None: ""}[row.met]
    cells = (row.what, row.ours, row.peer, ratio, row.goal)
    first = "  ".join(
        _cell(text, width, i) for i, (text, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    )
    return f"{first}  {met}".rstrip() + (f"\n    {row.note}" if row.note else "")


def heading() -> str:
    head = line(Row("figure", "ours", "peer", goal="goal"))
    return f"{head.ljust(sum(_WIDTHS) + 8)}  met\n{'─' * (sum(_WIDTHS) + 13)}"


def _cell(text: str, width: int, place: int) -> str:
    return text.ljust(width) if place in (0, 4) else text.rjust(width)


def verdict(rows: Sequence[Row]) -> str:
    """How many goals were met."""
    judged = [row for row in rows if row.met is not None]
    missed = [row.what for row in judged if not row.met]
    text = f"{len(judged) - len(missed)} of {len(judged)} goals met"
    return f"{text}; missed: {'; '.join(missed)}" if missed else text


def facts() -> str:
    """The machine and the versions the figures belong to."""
    programs = [_said("ssh", "-V"), _said("tmux", "-V")]
    packages = [f"{name} {version(name)}" for name in ("textual", "rich", "asyncssh")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {memory:.1f} GiB, Linux {platform.release()}"
    return f"{machine}; Python {platform.python_version()}, {', '.join(packages + programs)}"


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return f"no {command[0]}"
    return (done.stdout + done.stderr).split("\n")[0].split(",")[0]
