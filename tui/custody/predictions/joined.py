"""Predictions whose targets lie in files of their own: rows are joined by id, whatever their order.

Targets are held in memory and predictions still read in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tui.custody.predictions.cells import id_texts
from tui.custody.predictions.foreign import Unreadable
from tui.custody.predictions.population import Ids, named
from tui.custody.predictions.tables import Batch, Table, objects


class Targets:
    """The rows of the target files, found by id.

    Args:
        tables: which together hold each sample once, all of the same columns.
        identity: their id column.
    """

    def __init__(self, tables: Sequence[Table], identity: str) -> None:
        self.tables, self.identity = tuple(tables), identity
        self.ids = Ids()
        digests = [Ids.digests(())]
        for batch in self._batches([identity]):
            names = id_texts(batch[identity])
            self.ids.add(names)
            digests.append(Ids.digests(names))
        self._sorted, self._places = np.unique(np.concatenate(digests), return_index=True)
        self._held: dict[str, Any] = {}

    def _batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        for table in self.tables:
            yield from table.batches(columns)

    def names(self) -> Iterator[str | None]:
        """The ids once more, in file order."""
        for batch in self._batches([self.identity]):
            yield from id_texts(batch[self.identity])

    def rows(self, ids: Sequence[str | None]) -> Any:
        """The row of each id; -1 where there is no target of that id."""
        wanted = Ids.digests(ids)
        if not len(self._sorted):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        known = np.array([name is not None for name in ids], dtype=bool)
        return np.where((self._sorted[at] == wanted) & known, self._places[at], -1)

    def cells(self, column: str, rows: Any) -> Any:
        """A target column at these rows; None where there is no such row."""
        held = self._column(column)
        if (rows >= 0).all():
            return held[rows]
        return objects([held[row] if row >= 0 else None for row in rows])

    def _column(self, column: str) -> Any:
        if column not in self._held:
            parts = [batch[column] for batch in self._batches([column])]
            kinds = {(part.dtype == object, part.shape[1:]) for part in parts}
            whole = len(kinds) == 1
            self._held[column] = np.concatenate(parts) if whole else objects([x for p in parts for x in p])
        return self._held[column]


class JoinedTable:
    """A file of predictions with columns of the target files beside its own.

    Args:
        taken: the target files' columns, by the name they get here.
        identity: the predictions' id column.
    """

    def __init__(self, table: Table, identity: str, targets: Targets, taken: dict[str, str]) -> None:
        self._table, self._identity, self._targets, self._taken = table, identity, targets, taken
        self.name = table.name
        self.columns = (*table.columns, *taken)
        self.shapes = dict(table.shapes)
        for name, column in taken.items():
            shapes = {target.shapes.get(column) for target in targets.tables}
            if len(shapes) == 1 and (shape := shapes.pop()) is not None:
                self.shapes[name] = shape
        self.left_out = table.left_out

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows of the predictions in file order. Raises Unreadable."""
        own = [column for column in columns if column not in self._taken]
        asked = list(dict.fromkeys([*own, self._identity]))
        for batch in self._table.batches(asked):
            if len(own) < len(columns):
                rows = self._targets.rows(id_texts(batch[self._identity]))
                batch |= {c: self._targets.cells(self._taken[c], rows) for c in columns if c in self._taken}
            yield {column: batch[column] for column in columns}


def unmatched(ids: Ids, names: Iterator[str | None], targets: Targets) -> Iterator[str]:
    """How the ids of predictions and targets differ, both ways; nothing where each has exactly one partner.

    Args:
        names: goes through the predictions' ids once more, to name the first few.
    """
    found, _ = ids.counted()
    held, counts = targets.ids.counted()
    if targets.ids.without:
        yield f"{targets.ids.without:,} targets have no id"
    if len(twice := held[counts > 1]):
        yield f"the targets give {len(twice):,} ids more than once ({named(twice, targets.names())})"
    if len(alone := np.setdiff1d(found, held)):
        yield f"{len(alone):,} predictions have no target ({named(alone, names)})"
    if len(left := np.setdiff1d(held, found)):
        yield f"{len(left):,} targets have no prediction ({named(left, targets.names())})"


def one_shape(tables: Sequence[Table]) -> None:
    """Raises Unreadable: the files do not have the same columns."""
    first = tables[0]
    odd = next((t for t in tables if set(t.columns) != set(first.columns)), None)
    if odd is not None:
        raise Unreadable(f"{odd.name} has other columns than {first.name}")
