"""Which columns of the roster fit into a pane, and how wide each is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from tui.fleet import money
from tui.model.snapshot import FleetSnapshot
from tui.model.text import safe
from tui.widgets.roster_rows import Row

STRIP = 7
"""Cells of the shortest loss strip in the progress column."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        width: cells it needs at least; `most` is what it grows to where its content asks for it.
        rank: says which columns stay when there is little room, lowest first.
        sort: the sort order that belongs to it.
    """

    id: str
    title: str
    width: int
    rank: int
    right: bool = False
    most: int = 0
    sort: str = ""


COLUMNS = (
    Column("BOX", "BOX", 10, 1, most=26, sort="name"),
    Column("PLATFORM", "PLATFORM", 8, 12, most=12),
    Column("STATE", "STATE", 13, 2, most=20, sort="attention"),
    Column("BOX STATE", "BOX STATE", 13, 90, most=20, sort="attention"),
    Column("RUN STATE", "RUN STATE", 13, 91),
    Column("RUN", "RUN", 10, 11, most=30),
    Column("PROGRESS", "PROGRESS", 10, 4, most=16),
    Column("WORST", "WORST", 10, 5),
    Column("GPU", "GPU%", 4, 6, right=True, sort="gpu"),
    Column("VRAM", "VRAM%", 5, 9, right=True),
    Column("DISK", "DISK%", 5, 8, right=True, sort="disk"),
    Column("INODE", "INODE%", 6, 7, right=True, sort="inode"),
    Column("$/H", "$/H", 5, 10, right=True, most=9, sort="cost"),
    Column("SPENT", "SPENT", 7, 14, right=True, most=12),
    Column("NEXT CLOCK", "NEXT CLOCK", 10, 13, most=20),
    Column("AGE", "SEEN", 4, 3, right=True, sort="age"),
)

EDGE = 3
"""Cells at the left for the cursor and a mark, and one blank at the right."""
STRIP_MOST = 16


def gap(left: Column | None, right: Column, width: int) -> int:
    """Blank cells between two neighbours: one between numbers and in narrow panes, else two."""
    if left is None:
        return 0
    return 1 if (left.right and right.right) or width < 70 else 2


def layout(width: int, needs: Mapping[str, int]) -> list[tuple[Column, int]]:
    """The columns that fit into `width` cells, in drawing order, with their widths.

    Narrow panes give up columns by rank; what is left over goes to the columns that can use it. From 136
    cells on the box's state and the run's stand in columns of their own.

    Args:
        needs: cells that the longest content of a column takes.
    """
    wanted = [_with_words(c, needs, width) for c in _wanted(width)]
    columns: list[Column] = []
    for column in sorted(wanted, key=lambda c: c.rank):
        tried = [c for c in wanted if c in columns or c is column]
        if _total(tried, {c.id: c.width for c in tried}, width) > width:
            break
        columns = tried
    widths = {c.id: c.width for c in columns}
    for column in sorted(columns, key=lambda c: (c.sort != "attention", c.rank)):
        room = width - _total(columns, widths, width)
        need = min(needs.get(column.id, 0), column.most)
        widths[column.id] += max(0, min(need - column.width, room))
    room = width - _total(columns, widths, width)
    if "PROGRESS" in widths and room > STRIP:
        widths["PROGRESS"] += min(room, 1 + STRIP_MOST)
    return [(c, widths[c.id]) for c in columns]


def _wanted(width: int) -> list[Column]:
    if width >= 136:
        return [
            replace(c, rank=2) if c.id in ("BOX STATE", "RUN STATE") else c
            for c in COLUMNS
            if c.id not in ("WORST", "STATE")
        ]
    unwanted = {"BOX STATE", "RUN STATE"} | ({"WORST"} if width >= 76 else set())
    return [c for c in COLUMNS if c.id not in unwanted]


def _with_words(column: Column, needs: Mapping[str, int], width: int) -> Column:
    """A column at the width its words want before another column is taken in: names and states are what
    people look for.
    """
    narrow = width < 76
    most = {
        "BOX": 12 if narrow else 16,
        "RUN": 16,
        "STATE": 18,
        "BOX STATE": 18,
        "PROGRESS": 12 if narrow else 10,
    }
    wanted = min(needs.get(column.id, 0), most.get(column.id, 0))
    return replace(column, width=max(column.width, wanted))


def _total(columns: Sequence[Column], widths: Mapping[str, int], width: int) -> int:
    gaps = sum(gap(left, right, width) for left, right in zip((None, *columns), columns, strict=False))
    return EDGE + sum(widths[c.id] for c in columns) + gaps


def needs_of(rows: Iterable[Row]) -> dict[str, int]:
    """Cells that the content of the growing columns takes. Numbers are left out: columns must not jump."""
    found: dict[str, int] = {}
    for row in rows:
        for name in (
            "BOX",
            "PLATFORM",
            "STATE",
            "BOX STATE",
            "RUN",
            "PROGRESS",
            "NEXT CLOCK",
            "$/H",
            "SPENT",
        ):
            found[name] = max(found.get(name, 0), cell_len(row.cells[name].text))
    return found


def title_of(column: Column, currency: str) -> str:
    """The head of a column; units stand here, once."""
    return f"{currency}/H" if column.id == "$/H" else column.title


def currency_sign(snapshot: FleetSnapshot) -> str:
    """The sign for the price column's head; empty when the fleet is paid in several currencies."""
    currencies = {b.instance.currency for b in snapshot.boxes if b.instance.price_per_hour is not None}
    if len(currencies) > 1:
        return ""
    currency = next(iter(currencies), "USD")
    return money.SIGNS.get(currency, safe(currency, 4))
