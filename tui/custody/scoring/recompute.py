"""Every metric of one population recomputed in one pass over its files, in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tui.custody.predictions.cells import id_texts, label
from tui.custody.predictions.files import Source
from tui.custody.predictions.foreign import Unreadable
from tui.custody.predictions.joined import Targets, unmatched
from tui.custody.predictions.population import Ids, PopulationCheck, check_population, declared_ids, ids_of
from tui.custody.predictions.roles import BOXES, plain_name, recognise
from tui.custody.predictions.tables import Batch, Table, open_table
from tui.custody.scoring.array_collectors import Stored
from tui.custody.scoring.catalogue import Definition, definitions
from tui.custody.scoring.class_collectors import LabelCounts
from tui.custody.scoring.collecting import Collector, Params, Scheme
from tui.custody.scoring.figures import Figure, Undecided
from tui.custody.scoring.target_files import TARGET_ROLES, with_targets

_NO_TARGETS = dict.fromkeys(TARGET_ROLES)


@dataclass(frozen=True)
class Wanted:
    """A metric to compute: a name of the catalogue (None: unknown), its parameters, its name as reported."""

    metric: str | None
    params: Params
    plain: str = ""


@dataclass(frozen=True)
class Computed:
    """One definition with its figure, or why there is none."""

    definition: Definition
    collector: Collector | None
    result: Figure | Undecided


@dataclass
class Recomputed:
    """What one population gives.

    Attributes:
        computed: per wanted metric its definitions, the most usual first.
        stored: per wanted metric the per-sample scores the job stored, where there is such a column.
        failed: why nothing could be computed at all.
    """

    population: PopulationCheck | None = None
    computed: dict[Wanted, list[Computed]] = field(default_factory=dict)
    stored: dict[Wanted, Stored | Undecided] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    notes: list[str] = field(default_factory=list)
    failed: Undecided | None = None


@dataclass(frozen=True)
class Opened:
    """The tables of a population and how their columns are read.

    Attributes:
        targets: where they lie in files of their own; their columns are among those of `tables`.
    """

    tables: tuple[Table, ...]
    scheme: Scheme
    notes: tuple[str, ...]
    targets: Targets | None = None

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """All rows of all files, in order."""
        for table in self.tables:
            yield from table.batches(columns)


def open_source(source: Source) -> Opened:
    """Open the files of a population and tell its columns' roles.

    Raises:
        Undecided: there are no files, they can't be read, or they don't fit together.
    """
    if source.unclear:
        raise Undecided("not-declared", source.unclear)
    if not source.files:
        raise Undecided("population-incomplete", source.wrong or "there is no prediction file")
    try:
        tables = tuple(open_table(path, name) for name, path in source.files)
    except Unreadable as error:
        raise Undecided("unreadable", str(error)) from None
    columns = tables[0].columns
    odd = next((t for t in tables if set(t.columns) != set(columns) and t.columns), None)
    if odd is not None and columns:
        raise Undecided("unreadable", f"{odd.name} has other columns than {tables[0].name}")
    declared = source.declared
    apart = bool(declared and declared.target_files)
    roles = recognise(columns, declared.model_copy(update=_NO_TARGETS) if declared and apart else declared)
    for named in _declared_columns(source, TARGET_ROLES if apart else ()):
        if named not in columns:
            raise Undecided("not-declared", f"the declared column {named[:80]!r} is not in {tables[0].name}")
    targets = None
    if apart:
        try:
            tables, roles, targets = with_targets(source, tables, roles)
        except Unreadable as error:
            raise Undecided("unreadable", str(error)) from None
    scheme = Scheme(
        roles,
        classes=None if declared is None else declared.classes,
        positive=None if declared is None or declared.positive is None else label(declared.positive),
        ground_truth=declared is None or declared.ground_truth,
        prediction_declared=declared is not None and declared.prediction is not None,
    )
    left_out = [
        f"{t.name}: {', '.join(repr(key[:80]) for key in t.left_out[:4])} have other lengths than the rest"
        for t in tables
        if t.left_out
    ]
    return Opened(tables, scheme, (*roles.notes, *left_out), targets)


def _declared_columns(source: Source, elsewhere: Sequence[str]) -> Iterator[str]:
    if source.declared is None:
        return
    for role in ("id", "target", "prediction", *BOXES):
        if role not in elsewhere and (column := getattr(source.declared, role)) is not None:
            yield column
    for columns in (source.declared.scores, source.declared.logits):
        if columns is not None:
            yield from (columns,) if isinstance(columns, str) else columns


def recompute(source: Source, wanted: Sequence[Wanted], counts: set[int], root: Path) -> Recomputed:
    """Compute what is wanted of a population, and check that it is whole.

    Args:
        counts: numbers of samples the metrics file gives; one is taken as declared, several are not.
    """
    found = Recomputed()
    try:
        opened = open_source(source)
        found.notes += [f"{source.name}: {note}" for note in opened.notes]
        reading = _Pass(opened, wanted)
        reading.run()
        found.population = _population(source, opened, reading.ids, reading.rows, counts, root)
        reading.compute(found)
    except Undecided as reason:
        found.failed = reason
    except Unreadable as error:
        found.failed = Undecided("unreadable", str(error))
    except MemoryError:
        found.failed = Undecided("unreadable", "there is not enough memory to hold its predictions")
    return found


class _Pass:
    """One pass over a population: ids are counted and every collector takes what it needs."""

    def __init__(self, opened: Opened, wanted: Sequence[Wanted]) -> None:
        self._opened, self._wanted = opened, wanted
        self._made: dict[Any, Collector | Undecided] = {}
        self.ids: Ids | None = Ids() if opened.scheme.roles.id is not None else None
        self.rows = 0

    def run(self) -> None:
        """Read everything once; twice where a collector has to see the range of values first."""
        for want in self._wanted:
            for definition in self._definitions(want):
                self._collector(definition, want)
            column = self._stored_column(want)
            if column is not None:
                self._made.setdefault(("stored", column), Stored(column))
        self._scan()
        self._read()

    def compute(self, found: Recomputed) -> None:
        """The figures of what was read."""
        for want in self._wanted:
            found.computed[want] = [self._computed(d, want) for d in self._definitions(want)]
            column = self._stored_column(want)
            if column is not None:
                stored = self._made["stored", column]
                assert isinstance(stored, Stored | Undecided)
                found.stored[want] = stored
        counted = [made for made in self._made.values() if isinstance(made, LabelCounts)]
        found.labels = frozenset(name for made in counted for name in made.names)

    @staticmethod
    def _definitions(want: Wanted) -> tuple[Definition, ...]:
        return () if want.metric is None else definitions(want.metric, want.params)

    def _stored_column(self, want: Wanted) -> str | None:
        roles = self._opened.scheme.roles
        raw = {roles.target, roles.prediction, roles.id}
        if want.metric is not None:
            named = roles.stored.get("iou" if want.metric == "miou" else want.metric)
        else:
            same = [c for c in self._opened.tables[0].columns if want.plain and plain_name(c) == want.plain]
            named = same[0] if len(same) == 1 else None
        return None if named in raw else named

    def _key(self, definition: Definition, params: Params) -> Any:
        relevant = (params.ignore, params.data_range, params.clamp, params.threshold)
        return definition.make, relevant

    def _collector(self, definition: Definition, want: Wanted) -> None:
        key = self._key(definition, want.params)
        if key in self._made:
            return
        try:
            if not self._opened.scheme.ground_truth:
                raise Undecided("no-ground-truth", "the test is declared to have no ground truth")
            self._made[key] = definition.make(self._opened.scheme, want.params)
        except Undecided as reason:
            self._made[key] = reason

    def _live(self) -> list[tuple[Any, Collector]]:
        return [(key, made) for key, made in self._made.items() if not isinstance(made, Undecided)]

    def _scan(self) -> None:
        scanning = [(key, c) for key, c in self._live() if c.scans]
        columns = list(dict.fromkeys(column for _, c in scanning for column in c.columns))
        if scanning:
            for batch in self._opened.batches(columns):
                self._each(scanning, lambda collector, b=batch: collector.scan(b))

    def _read(self) -> None:
        live = self._live()
        columns = dict.fromkeys(column for _, collector in live for column in collector.columns)
        identity = self._opened.scheme.roles.id
        if identity is not None:
            columns.setdefault(identity)
        if not columns and self._opened.tables[0].columns:
            columns.setdefault(self._opened.tables[0].columns[0])
        for batch in self._opened.batches(list(columns)):
            self.rows += len(next(iter(batch.values())))
            if self.ids is not None and identity is not None:
                self.ids.add(id_texts(batch[identity]))
            self._each(live, lambda collector, b=batch: collector.add(b))
        self._each(self._live(), lambda collector: collector.finish())

    def _each(self, collectors: Sequence[tuple[Any, Collector]], act: Any) -> None:
        """Let each collector act; one that can't goes out with its reason."""
        for key, collector in collectors:
            if isinstance(self._made[key], Undecided):
                continue
            try:
                act(collector)
            except Undecided as reason:
                self._made[key] = reason
            except Unreadable as error:
                self._made[key] = Undecided("unreadable", str(error))

    def _computed(self, definition: Definition, want: Wanted) -> Computed:
        made = self._made[self._key(definition, want.params)]
        if isinstance(made, Undecided):
            return Computed(definition, None, made)
        try:
            with np.errstate(all="ignore"):
                return Computed(definition, made, definition.compute(made, want.params))
        except Undecided as reason:
            return Computed(definition, None, reason)


def _population(
    source: Source, opened: Opened, ids: Ids | None, rows: int, counts: set[int], root: Path
) -> PopulationCheck:
    """Each sample once, by the declared ids or count.

    Raises:
        Undecided: the files themselves are not all there.
        Unreadable: the declared list of ids is not.
    """
    if source.wrong:
        raise Undecided("population-incomplete", source.wrong)
    declared = source.declared
    listed = None if declared is None else declared.ids
    count = declared.count if declared is not None and declared.count is not None else None
    if count is None and len(counts) == 1:
        (count,) = counts

    def names() -> Iterator[str | None]:
        column = opened.scheme.roles.id
        assert column is not None
        for batch in opened.batches([column]):
            yield from id_texts(batch[column])

    def listed_names() -> Iterator[str]:
        return iter(()) if listed is None else declared_ids(listed, root)

    return check_population(
        ids,
        rows,
        declared=None if listed is None else ids_of(listed_names()),
        count=count,
        names=names,
        declared_names=listed_names,
        partners=() if ids is None or opened.targets is None else unmatched(ids, names(), opened.targets),
    )
