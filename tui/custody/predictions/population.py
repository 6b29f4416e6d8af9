"""Each sample once: the ids of a population against the declared ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tui.custody.predictions.cells import id_texts
from tui.custody.predictions.foreign import Unreadable, parse_json, text_lines
from tui.custody.predictions.roles import recognise
from tui.custody.predictions.tables import open_table

SAMPLES = 100_000_000
SHOWN = 3
_DIGEST = 16
_PAIR = np.dtype([("high", ">u8"), ("low", ">u8")])


class Ids:
    """The ids of a population as 16-byte digests: a hundred million of them fit in memory, names do not."""

    def __init__(self) -> None:
        self._raw = bytearray()
        self.without = 0

    def add(self, names: Iterable[str | None]) -> None:
        """Take the ids of a batch.

        Raises:
            Unreadable: more samples than are counted here.
        """
        for name in names:
            if name is None:
                self.without += 1
            else:
                self._raw += _digest(name)
        if len(self._raw) > SAMPLES * _DIGEST:
            raise Unreadable(f"more than {SAMPLES:,} samples")

    @staticmethod
    def digests(names: Sequence[str | None]) -> Any:
        """The digests of some ids, as they are compared; a missing one has that of an empty text."""
        return np.frombuffer(b"".join(_digest(name or "") for name in names), dtype=_PAIR)

    def __len__(self) -> int:
        return len(self._raw) // _DIGEST + self.without

    def counted(self) -> tuple[Any, Any]:
        """Distinct digests, sorted, and how often each occurs."""
        if not self._raw:
            return np.empty(0, dtype=_PAIR), np.empty(0, dtype=np.int64)
        unique, counts = np.unique(np.frombuffer(bytes(self._raw), dtype=_PAIR), return_counts=True)
        return unique, counts


@dataclass(frozen=True)
class PopulationCheck:
    """What is known of a population.

    ``complete``: exactly the declared samples, each once. ``broken``: not so. ``counted``: as many as
    declared, but no ids show that each is there once. ``undeclared``: nothing says what it should be.
    """

    state: Literal["complete", "broken", "counted", "undeclared"]
    samples: int
    detail: str = ""


def check_population(
    ids: Ids | None,
    rows: int,
    *,
    declared: Ids | None,
    count: int | None,
    names: Callable[[], Iterator[str | None]],
    declared_names: Callable[[], Iterator[str]],
    partners: Iterable[str] = (),
) -> PopulationCheck:
    """Compare the samples that are there with those that should be.

    Args:
        ids: those found; None where the file has no id column.
        partners: what is wrong between predictions and targets that lie in files of their own.
        names, declared_names: go through the ids once more, to name the first few that are wrong.
    """
    if rows == 0:
        return PopulationCheck("broken", 0, "there is no prediction at all")
    wrong: list[str] = list(partners)
    if ids is not None:
        wrong += _wrong_ids(ids, declared, names, declared_names)
    elif declared is not None:
        return PopulationCheck("broken", rows, "ids are declared, but the predictions have no id column")
    if count is not None and rows != count:
        more = "more" if rows > count else "fewer"
        wrong.append(f"{rows:,} rows, {abs(rows - count):,} {more} than the {count:,} declared")
    if wrong:
        return PopulationCheck("broken", rows, "; ".join(wrong))
    if declared is not None or (ids is not None and count is not None):
        return PopulationCheck("complete", rows)
    if count is not None:
        return PopulationCheck("counted", rows, "no id column shows that each sample is there once")
    once = "each id once" if ids is not None else "no id column"
    return PopulationCheck("undeclared", rows, f"nothing declares the full set of samples ({once})")


def _wrong_ids(
    ids: Ids,
    declared: Ids | None,
    names: Callable[[], Iterator[str | None]],
    declared_names: Callable[[], Iterator[str]],
) -> Iterator[str]:
    if ids.without:
        yield f"{ids.without:,} rows have no id"
    found, counts = ids.counted()
    doubled = found[counts > 1]
    if len(doubled):
        extra_rows = int((counts - 1).sum())
        yield f"{extra_rows:,} rows repeat an id ({named(doubled, names())})"
    if declared is None:
        return
    expected, expected_counts = declared.counted()
    if (expected_counts > 1).any() or declared.without:
        yield "the declared list of ids names one twice or is incomplete itself"
    missing = np.setdiff1d(expected, found)
    extra = np.setdiff1d(found, expected)
    if len(missing):
        yield f"{len(missing):,} declared ids are missing ({named(missing, declared_names())})"
    if len(extra):
        yield f"{len(extra):,} ids were never declared ({named(extra, names())})"


def named(digests: Any, names: Iterator[str | None]) -> str:
    """The first few of some ids in words.

    Args:
        names: goes through all ids once more.
    """
    wanted = {digest.tobytes() for digest in digests[:10_000]}
    shown: dict[str, None] = {}
    for name in names:
        if name is not None and _digest(name) in wanted:
            shown.setdefault(name[:80])
            if len(shown) > SHOWN:
                break
    listed = list(shown)
    return ", ".join(repr(name) for name in listed[:SHOWN]) + (" …" if len(listed) > SHOWN else "")


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=_DIGEST).digest()


def declared_ids(source: tuple[str, ...] | str, root: Path) -> Iterator[str]:
    """The declared ids one by one: from the list itself, or from the file it names.

    A ``.txt`` file has one a line, a ``.json`` file a list; any other is a table with an id column.

    Raises:
        Unreadable: there is no such file, or it holds no ids.
    """
    if not isinstance(source, str):
        yield from source
        return
    path = root / source  # an absolute path stays what it is: the list is the operator's
    if not path.is_file():
        raise Unreadable(f"the list of ids {source} is not there")
    if path.suffix.lower() == ".txt":
        yield from (line.rstrip("\r\n") for line in text_lines(path, source) if line.strip())
    elif path.suffix.lower() == ".json":
        yield from _json_ids(path, source)
    else:
        yield from _table_ids(path, source)


def _json_ids(path: Path, name: str) -> Iterator[str]:
    found = parse_json("".join(text_lines(path, name)), name)
    if not isinstance(found, list):
        raise Unreadable(f"{name} holds no list of ids")
    for value in id_texts(found):
        if value is None:
            raise Unreadable(f"{name} holds an empty id")
        yield value


def _table_ids(path: Path, name: str) -> Iterator[str]:
    table = open_table(path, name)
    column = recognise(table.columns, None).id or (table.columns[0] if len(table.columns) == 1 else None)
    if column is None:
        raise Unreadable(f"{name} has no column that is plainly the id")
    for batch in table.batches([column]):
        for value in id_texts(batch[column]):
            if value is None:
                raise Unreadable(f"{name} holds an empty id")
            yield value


def ids_of(names: Iterable[str | None]) -> Ids:
    """Take all of them."""
    ids = Ids()
    ids.add(names)
    return ids
