"""Parquet files, one batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tui.custody.predictions.foreign import Unreadable
from tui.custody.predictions.tables import BATCH_BYTES, BATCH_ROWS, Batch, check_columns, objects

GROUP_BYTES = 4 << 30
"""Largest row group that is opened: a reader must hold a group's column at once."""


class ParquetTable:
    """A Parquet file. Dictionary columns are decoded, nulls are None, lists of one length are matrices."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise Unreadable(
                f"{name} needs pyarrow, which is not installed here: pip install 'remote-gpu-trainer[verify]'"
            ) from None
        self._pa = pa
        try:
            self._file = pq.ParquetFile(path, memory_map=False)
            metadata = self._file.metadata
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            names = self._file.schema_arrow.names
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Unreadable(f"{name} is no readable Parquet file ({_first_line(error)})") from None
        if any(group.total_byte_size > GROUP_BYTES for group in groups):
            raise Unreadable(f"{name} has a row group larger than {GROUP_BYTES >> 30} GiB")
        self.columns = check_columns(name, names)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.left_out: tuple[str, ...] = ()
        per_row = sum(group.total_byte_size for group in groups) // max(metadata.num_rows, 1)
        self._rows = max(1, min(BATCH_ROWS, BATCH_BYTES // max(per_row, 1)))

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        pa = self._pa
        try:
            # a nested column is chosen by the name of its root
            for piece in self._file.iter_batches(batch_size=self._rows, columns=list(columns)):
                if piece.num_rows:
                    yield {c: _values(pa, piece.column(piece.schema.get_field_index(c))) for c in columns}
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Unreadable(f"{self.name} is damaged ({_first_line(error)})") from None


def _values(pa: Any, column: Any) -> Any:
    types = pa.types
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count == 0:
        if types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type):
            return column.to_numpy(zero_copy_only=False)
        matrix = _matrix(pa, column)
        if matrix is not None:
            return matrix
    return objects(column.to_pylist())


def _matrix(pa: Any, column: Any) -> Any:
    """Lists of one length as an array with one more axis; None where they are ragged or hold no numbers."""
    types = pa.types
    lengths: list[int] = []
    rows = len(column)
    while (
        types.is_list(column.type)
        or types.is_large_list(column.type)
        or types.is_fixed_size_list(column.type)
    ):
        if column.null_count:
            return None
        sizes = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
        if len(sizes) != 1:
            return None
        lengths.append(int(sizes[0]))
        column = column.flatten()
    if column.null_count or not (types.is_integer(column.type) or types.is_floating(column.type)):
        return None
    return column.to_numpy(zero_copy_only=False).reshape(rows, *lengths) if lengths else None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
