"""What the log of a Delta table says of its files, for one version of the table.

The JVM sends the files of a version with the statistics as the log has them, or what changed since another version
that is known here. A column that a file's statistics do not mention is unknown, since they cover only the first 32
columns or those that the table names (rule S1).

What is believed, and what is not:

=======================================  ============================================================================
in the log                               taken as
=======================================  ============================================================================
no statistics, or no number of rows      everything unknown but the partition values, until footers are collected
a deletion vector, or bounds not tight   bounds that may not occur; rows less those deleted; a null count is only
                                         known if it is none or all (rule S4)
timestamps, cut to milliseconds          the maximum is raised by 999 µs; before 1972 and not in UTC both bounds are
                                         widened by a minute, since the log's offsets have no seconds
strings, cut to 32 characters            bounds that may not occur; with a replacement character unknown, since it may
                                         stand for bytes that compare differently
floats                                   widened to the neighbouring number, since the log has few digits
doubles that once were floats            the same
decimals of more than 15 digits          unknown once bounds are not tight: Delta rounds them when it rewrites them
NaN, infinities                          no bound; NaN counts are unknown, since not all writers take NaN as greatest.
                                         Delta itself believes that they do: for ``x > v`` its word is taken
a null count beyond the rows, or of all  unknown, and so are the bounds
rows beside bounds
=======================================  ============================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import WireError
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.types import INTEGERS, DataType, parse_type
from secateur.stats.arrays import null_mask
from secateur.stats.arrow_buffers import read_arrow_buffers
from secateur.stats.collect.footers import Key
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.file_stats import ColumnStats, FileStats
from secateur.stats.formats.delta_bounds import DOUBLE_DIGITS, survives_doubles, typed_bounds, unless
from secateur.stats.formats.parquet import ParquetTable, families, partition_stats
from secateur.stats.listing import Listing, Values, partition_values
from secateur.stats.store.range_set_segments import RangeSegments
from secateur.stats.store.store import Store

Ints = npt.NDArray[np.int64]

_CHUNKS, _ALIVE = 16, 0.8


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the table by the name that queries use, or a field in a struct by the names on the way to it."""

    path: tuple[str, ...]
    type: DataType
    once_narrower: bool
    """Its type was widened, so that statistics of old files are of the narrower one."""
    physical: tuple[str, ...] = ()
    """The same by the names that it has in the files."""
    id: int = -1
    """The id that it has in the files, if they are read by ids."""


@dataclass(frozen=True, slots=True, eq=False)
class DeltaSource:
    """The files of one version. ``facts`` has a row per file, bounds in their type's domain, null = unknown.

    A later version shares the rows of the one that it builds on: ``alive`` marks those that are still there.
    """

    fingerprint: str
    roots: tuple[str, ...]
    fields: tuple[Field, ...]
    partition_types: tuple[tuple[str, DataType], ...]
    facts: pa.Table
    alive: Mask | None = None
    by_id: bool = False
    """Columns are found in the files by their ids, not by their names."""

    @property
    def count(self) -> int:
        return int(self.facts.num_rows) if self.alive is None else int(np.count_nonzero(self.alive))

    def column(self, name: str) -> pa.Array:
        """A column of the facts, an entry per file."""
        column = self.facts[name]
        if self.alive is not None:
            column = column.filter(pa.array(self.alive))
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    @staticmethod
    def from_wire(wire: dict[str, Any], base: DeltaSource | None = None) -> DeltaSource:
        """The version that the bridge sends: all its files, or those of ``base`` without some and with others."""
        columns = read_arrow_buffers(wire["bulk"])
        fields = tuple(
            Field(tuple(path), parse_type(type_), bool(widened), tuple(physical), id_)
            for path, type_, widened, physical, id_ in wire["cols"]
        )
        partitions = tuple((name, parse_type(type_)) for name, type_ in wire["pcols"])
        facts, alive = _facts(columns, fields, partitions, wire["pvals"]), None
        if base is not None:
            facts, alive = _later(base, columns["gone"].to_numpy(), facts)
        source = DeltaSource(wire["fp"], tuple(wire["roots"]), fields, partitions, facts, alive, wire["by_id"])
        if source.count != wire["count"]:
            raise WireError(f"a version of {wire['roots'][0]} has {wire['count']} files, but {source.count} came")
        return source


class BareFiles:
    """The files without statistics in the log, and what was collected of their footers."""

    def __init__(self, source: DeltaSource, stores: Sequence[Store]) -> None:
        self.at: Ints = np.empty(0, dtype=np.int64)
        paths, size, time = pa.nulls(0, pa.string()), pa.nulls(0, pa.int64()), pa.nulls(0, pa.int64())
        if "path" in source.facts.column_names:
            paths, size, time = (source.column(name) for name in ("path", "size", "time"))
            self.at = np.flatnonzero(~null_mask(paths))
        some = pa.array(self.at)
        self.listing = Listing(
            f"{source.fingerprint} bare",
            source.roots,
            paths.take(some).cast(pa.string()),
            size.take(some).to_numpy(),
            time.take(some).to_numpy(),
            {},
        )
        self._table = ParquetTable.load(self.listing, stores if len(self.at) else ())

    @property
    def rows(self) -> pa.Array:
        return self._table.files.rows

    def column(self, field: Field) -> ColumnStats | None:
        """By the name in the files; one that lacks it is unknown, since it may have it by another spelling."""
        if not len(self.at):
            return None
        name, *path = field.physical
        column = ScanColumn(0, name, field.type, case_sensitive=True, has_default=True, path=tuple(path))
        return self._table.files.column(column)

    def put(self, known: pa.Array, collected: pa.Array) -> pa.Array:
        """What the log says of all files, but of these what was collected."""
        if not len(self.at):
            return known
        at = np.arange(len(known))
        at[self.at] = len(known) + np.arange(len(self.at))
        return pa.concat_arrays([known, collected.cast(known.type)]).take(pa.array(at))


class DeltaTable:
    """What is known of the files of a version: by the log, and by footers where the log says nothing."""

    def __init__(self, source: DeltaSource, stores: Sequence[Store] = ()) -> None:
        self._source = source
        self._bare = BareFiles(source, stores)
        self._physical = self._bare.put(self._source.column("rows"), self._bare.rows)
        self.missing: Mask = null_mask(self._physical)
        """The files without statistics, be it in the log or collected."""
        deleted = self._source.column("deleted")
        left = pc.subtract(self._physical, deleted)
        self._rows = pc.if_else(pc.greater_equal(left, 0), left, pa.scalar(None, pa.int64()))
        self._loose = pc.or_(self._source.column("wide"), pc.greater(deleted, 0))
        self._stores = [store.table_ranges for store in stores]
        for store in self._stores:
            store.look()
        self._listing: Listing | None = None
        self._ranges: RangeSegments | None = None
        self.files = self._build()

    @classmethod
    def load(cls, source: DeltaSource, stores: Sequence[Store]) -> DeltaTable:
        """With what the stores have of the files that the log says nothing of."""
        return cls(source, stores)

    def _build(self) -> FileStats:
        files = FileStats(self._rows, self._source.column("size"), self._load, nested=True, ranges=self._load_ranges)
        files.nan_is_greatest = True
        files.row_groups = pa.nulls(files.count, pa.int32())  # the log does not say
        return files

    @property
    def partial(self) -> DeltaTable | None:
        """Only if there are range-sets, and it is not known of which files."""
        return self if self._ranges is None and any(store.at_hand for store in self._stores) else None

    def lacks(self, names: Collection[str]) -> bool:
        """Where the files are has nothing to do with columns, but is of use only for some."""
        return bool(names) and self.partial is not None

    def wanted(self, opened: Mask, names: Collection[str], *, filtered: bool) -> dict[str, Any] | None:
        """Where the files are, if there are range-sets of some: nothing else asks for it."""
        return {"fp": self._source.fingerprint} if self.lacks(names) else None

    def extend(self, wire: dict[str, Any]) -> None:
        """Takes in where the files are."""
        columns = read_arrow_buffers(wire["bulk"])
        paths, times = columns["path"].cast(pa.string()), columns["time"].to_numpy()
        if len(paths) != self._source.count:
            raise WireError(f"{len(paths)} paths came for {self._source.count} files")
        sizes = self._source.column("size").to_numpy()
        self._listing = Listing(self._source.fingerprint, self._source.roots, paths, sizes, times, {})
        self._ranges = RangeSegments(self._listing, self._stores, at_hand=True)
        self.files = self._build()

    def values(self, columns: Collection[str] | None) -> Values | None:
        """All files, columns by their names or ids in them."""
        if self._listing is None:
            return None
        asked = None if columns is None else {name.lower() for name in columns}
        found = [
            f for f in self._source.fields if asked is not None and f.path[0].lower() in asked and len(f.path) == 1
        ]
        names: frozenset[Any] = frozenset(f.id if self._source.by_id else f.physical[0].lower() for f in found)
        return Values(self._listing, None if asked is None else names, self._source.by_id, of_table=True)

    @property
    def uncollected(self) -> Listing | None:
        """The files without statistics in the log."""
        return self._bare.listing if self._bare.listing.count else None

    def row_groups(self, indices: Ints) -> tuple[FileStats, Ints]:
        """Each file is its own entry."""
        return self.files.take(indices), indices

    def _load(self, column: ScanColumn) -> ColumnStats | None:
        if column.type.domain is None or column.kind == "hidden":
            return None
        if column.kind == "partition":
            known = dict(self._source.partition_types).get(column.name)
            if known != column.type or f"partition:{column.name}" not in self._source.facts.column_names:
                return None
            return partition_stats(column.type, self._source.column(f"partition:{column.name}"), self._rows)
        at = self._field(column)
        return None if at is None else self._data(self._source.fields[at], at)

    def _field(self, column: ScanColumn) -> int | None:
        """Which of the fields it is, if it is read by the type that it has in the table."""
        path = (column.name, *column.path)
        at = next((n for n, field in enumerate(self._source.fields) if field.path == path), None)
        return None if at is None or self._source.fields[at].type != column.type else at

    def _load_ranges(self, column: ScanColumn) -> FileRangeSets | None:
        """As files have them, deleted rows included. A file that lacks the column is unknown (see ``BareFiles``)."""
        at = self._field(column)
        if self._ranges is None or column.kind != "data" or column.path or at is None:
            return None
        field = self._source.fields[at]
        key: Key = (field.id,) if self._source.by_id else field.physical
        return self._ranges.load([(key, family) for family in families(field.type)], field.type.domain)

    def _data(self, field: Field, at: int) -> ColumnStats:
        nulls = self._source.column(f"nulls{at}")
        if f"low{at}" in self._source.facts.column_names:
            low, high = self._source.column(f"low{at}"), self._source.column(f"high{at}")
        else:
            low = high = pa.nulls(len(nulls), field.type.domain)
        nans = pa.nulls(len(nulls), pa.int64())
        if (footers := self._bare.column(field)) is not None:
            # Of floats a maximum counts only if no NaN is above it: for `x > v` the word of Delta is taken, which has
            # said nothing of these files.
            surely = unless(pc.invert(pc.equal(footers.nans, 0).fill_null(False)), footers.high)
            low, high = self._bare.put(low, footers.low), self._bare.put(high, surely)
            nulls, nans = self._bare.put(nulls, footers.nulls), self._bare.put(nans, footers.nans)
        all_null = pc.equal(nulls, self._physical)
        bounded = pc.or_(low.is_valid(), high.is_valid())
        wrong = pc.or_(pc.less(nulls, 0), pc.greater(nulls, self._physical))
        wrong = pc.or_(wrong.fill_null(False), pc.and_(all_null, bounded).fill_null(False))
        # Empty files have no values and count none.
        wrong = pc.and_not(wrong, pc.equal(self._physical, 0).fill_null(False))
        nulls = unless(wrong, nulls)
        unsure = pc.and_(self._loose, pc.and_not(pc.not_equal(nulls, 0), all_null).fill_null(True))
        nulls = pc.if_else(pc.and_(self._loose, all_null).fill_null(False), self._rows, unless(unsure, nulls))
        rounded = field.type.name == "decimal" and field.type.precision > DOUBLE_DIGITS
        unbounded = pc.or_(wrong, self._loose) if rounded else wrong
        low, high = unless(unbounded, low), unless(unbounded, high)
        exact = np.zeros(len(nulls), dtype=np.bool_)
        if field.type.name in (*INTEGERS, "date", "decimal"):
            occurs = pc.and_not(pc.greater(self._rows, 0).fill_null(False), self._loose)
            exact = occurs.to_numpy(zero_copy_only=False).copy()
            exact[self._bare.at] = False
        if field.type.name == "decimal":
            exact &= survives_doubles(low, field.type) & survives_doubles(high, field.type)
        return ColumnStats(low, high, nulls, self._nans(field, nulls, nans), exact, exact)

    def _nans(self, field: Field, nulls: pa.Array, collected: pa.Array) -> pa.Array:
        zeros = pa.array(np.zeros(len(nulls), dtype=np.int64))
        if not field.type.is_float:
            return zeros
        none = pc.or_(pc.equal(nulls, self._rows).fill_null(False), pc.equal(collected, 0).fill_null(False))
        return unless(pc.invert(none), zeros)


def _later(base: DeltaSource, gone: Ints, added: pa.Table) -> tuple[pa.Table, Mask | None]:
    """The facts of a base without some of its files and with others, and which rows of them count.

    Nothing is copied until a column is asked for, so that a commit costs little; now and then all is put together.
    """
    alive = np.ones(base.facts.num_rows, dtype=np.bool_) if base.alive is None else base.alive.copy()
    alive[np.flatnonzero(alive)[gone]] = False
    alive = np.append(alive, np.ones(added.num_rows, dtype=np.bool_))
    facts = pa.concat_tables([base.facts, added], promote_options="default")
    if facts["rows"].num_chunks > _CHUNKS or np.count_nonzero(alive) < len(alive) * _ALIVE:
        return facts.filter(pa.array(alive)).combine_chunks(), None
    return facts, None if alive.all() else alive


def _facts(
    columns: dict[str, pa.Array],
    fields: Sequence[Field],
    partitions: Sequence[tuple[str, DataType]],
    values: list[list[Any]],
) -> pa.Table:
    facts: dict[str, pa.Array] = {
        name: columns[name] for name in ("size", "deleted", "rows", "wide", "path", "time") if name in columns
    }
    for at, field in enumerate(fields):
        facts[f"nulls{at}"] = columns[f"nulls{at}"]
        if f"low{at}" in columns and field.type.domain is not None:
            facts[f"low{at}"], facts[f"high{at}"] = typed_bounds(
                field.type, columns[f"low{at}"], columns[f"high{at}"], field.once_narrower
            )
    for position, (name, kind) in enumerate(partitions):
        typed = partition_values([row[position] for row in values], kind)
        if typed is not None:
            facts[f"partition:{name}"] = typed.take(columns["partition"])
    return pa.table(facts)
