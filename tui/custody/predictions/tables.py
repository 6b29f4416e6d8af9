"""One view of every prediction file: named columns, read in batches of rows.

The bytes are foreign: nothing is unpickled, every length is bounded before it is believed, and whatever does
not fit raises `Unreadable` with one sentence.

A batch maps each column to an array whose first axis is the rows: numbers where the whole column is numbers,
else Python objects (text, None for a missing value, lists or arrays of numbers).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tui.custody.predictions.foreign import Unreadable, parse_json, text_lines

BATCH_ROWS = 16_384
BATCH_BYTES = 16 << 20
JSON_BYTES = 64 << 20
"""Largest file of the one format that cannot be read in pieces."""
COLUMNS = 20_000
PEEK_ROWS = 200

Batch = dict[str, Any]


class Table(Protocol):
    """A file of rows. `shapes` gives the shape of one row of a column where the format states it."""

    name: str
    columns: tuple[str, ...]
    shapes: dict[str, tuple[int, ...]]
    left_out: tuple[str, ...]

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The rows in file order.

        Raises:
            Unreadable: the file is damaged, or no such column is in it.
        """
        ...


def open_table(path: Path, name: str) -> Table:
    """The table in a file, by its suffix.

    Args:
        name: the file as people know it, relative to the run.

    Raises:
        Unreadable: the format is not known, or the file's head is damaged.
    """
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return DelimitedTable(path, name)
    if suffix in (".jsonl", ".ndjson", ".json"):
        return JsonTable(path, name)
    if suffix == ".parquet":
        from tui.custody.predictions.parquet import ParquetTable

        return ParquetTable(path, name)
    from tui.custody.predictions import arrays

    if suffix == ".npz":
        return arrays.NpzTable(path, name)
    if suffix == ".safetensors":
        return arrays.SafetensorsTable(path, name)
    raise Unreadable(f"{name} is of no format that holds predictions here")


def check_columns(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Column names, each once.

    Raises:
        Unreadable: two columns share a name, or there are too many.
    """
    if len(columns) > COLUMNS:
        raise Unreadable(f"{name} has more than {COLUMNS:,} columns")
    if len(set(columns)) != len(columns):
        twice = next(c for c in columns if list(columns).count(c) > 1)
        raise Unreadable(f"{name} has two columns called {twice[:80]!r}")
    return tuple(columns)


def objects(values: Sequence[Any]) -> Any:
    """A one-dimensional array of objects, also where each of them is a list."""
    array: Any = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array


class DelimitedTable:
    """Comma- or tab-separated text with a header. Every cell stays text; an empty one is a missing value."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self.name = path, name
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else self._sniffed()
        header = next(self._records(), None)
        if header is None:
            raise Unreadable(f"{name} is empty: it has no header line")
        self.columns = check_columns(name, [cell.strip() for cell in header])
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.left_out: tuple[str, ...] = ()

    def _sniffed(self) -> str:
        first = next(text_lines(self._path, self.name), "")
        return next((mark for mark in ",;\t" if mark in first), ",")

    def _records(self) -> Iterator[list[str]]:
        reader = csv.reader(text_lines(self._path, self.name), delimiter=self._delimiter, strict=True)
        try:
            yield from reader
        except csv.Error as error:
            raise Unreadable(f"{self.name} is damaged near line {reader.line_num}: {error}") from None

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        places = [self.columns.index(column) for column in columns]
        rows: list[list[str | None]] = []
        records = self._records()
        next(records, None)
        size = 0
        for number, record in enumerate(records, start=1):
            if not record:
                continue
            if len(record) != len(self.columns):
                raise Unreadable(
                    f"row {number} of {self.name} has {len(record)} cells, its header {len(self.columns)}"
                )
            row = [record[place] if record[place] != "" else None for place in places]
            size += sum(len(cell) for cell in row if cell is not None)
            rows.append(row)
            if len(rows) >= BATCH_ROWS or size >= BATCH_BYTES:
                yield _by_column(columns, rows)
                rows, size = [], 0
        if rows:
            yield _by_column(columns, rows)


class JsonTable:
    """One JSON object a line, or (in a ``.json`` file) a list of them. Keys are the columns."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self.name = path, name
        seen: dict[str, None] = {}
        for number, row in enumerate(self._rows()):
            seen.update(dict.fromkeys(row))
            if number >= PEEK_ROWS:
                break
        self.columns = check_columns(name, list(seen))
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.left_out: tuple[str, ...] = ()

    def _rows(self) -> Iterator[dict[str, Any]]:
        if self._path.suffix.lower() == ".json":
            yield from self._listed()
            return
        for number, line in enumerate(text_lines(self._path, self.name), start=1):
            if not line.isspace():
                yield self._object(parse_json(line, f"line {number} of {self.name}"), f"line {number}")

    def _listed(self) -> Iterator[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                raw = file.read(JSON_BYTES + 1)
        except OSError as error:
            raise Unreadable(f"{self.name} cannot be read ({error.strerror})") from None
        if len(raw) > JSON_BYTES:
            raise Unreadable(f"{self.name} is too large for one JSON value; write one object a line (.jsonl)")
        rows = parse_json(raw, self.name)
        if not isinstance(rows, list):
            raise Unreadable(f"{self.name} holds no list of rows")
        for number, row in enumerate(rows, start=1):
            yield self._object(row, f"item {number}")

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Unreadable(f"{where} of {self.name} is not a JSON object")
        return value

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        rows: list[list[Any]] = []
        for row in self._rows():
            rows.append([row.get(column) for column in columns])
            if len(rows) >= BATCH_ROWS or (
                len(rows) % 256 == 0 and _weight(rows[-1]) * len(rows) > BATCH_BYTES
            ):
                yield _by_column(columns, rows)
                rows = []
        if rows:
            yield _by_column(columns, rows)


def _by_column(columns: Sequence[str], rows: list[list[Any]]) -> Batch:
    return {column: objects([row[place] for row in rows]) for place, column in enumerate(columns)}


def _weight(row: list[Any]) -> int:
    """Rough bytes of a row's cells, nested lists counted two levels deep."""
    return sum(_cell_weight(cell) for cell in row)


def _cell_weight(cell: Any) -> int:
    if not isinstance(cell, list):
        return 64
    inner = len(cell[0]) if cell and isinstance(cell[0], list) else 1
    return 32 * len(cell) * max(inner, 1)
