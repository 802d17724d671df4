"""What is known of the files of an Iceberg snapshot: its manifests' partition summaries, and the statistics in them.

The JVM sends the list of manifests first. Whether a manifest's files can matter is asked of its partition summary; only
the statistics of those that are left are asked for, once: a manifest never changes, so the next snapshot shares them.

What the statistics can be trusted with: bounds hold for every value that is neither NULL nor NaN, but those of strings
are cut short; a column without statistics may lack them for many reasons (it is younger than the file and has a
default, there are more than 100 columns, the table keeps none), so it is unknown, never NULL (rule S1). Deletes leave
bounds as they were: they stay true, exact no more, and counts are known only where a deletion vector counts its rows
(rule S4).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.plan.columns import Mask, ScanColumn
from secateur.stats.arrays import null_mask
from secateur.stats.arrow_buffers import read_arrow_buffers
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.file_stats import ColumnStats, FileStats, Groups
from secateur.stats.formats.iceberg_snapshot import Columns, Snapshot, typed
from secateur.stats.formats.iceberg_transforms import Lifted, lift
from secateur.stats.formats.parquet import families
from secateur.stats.listing import Listing, Values
from secateur.stats.store.range_set_segments import RangeSegments
from secateur.stats.store.store import Store

Ints = npt.NDArray[np.int64]

_TINY = 5e-324
"""The least number above zero."""
_PATH = 2_147_483_646
"""Iceberg's id of the column ``_file``: here, of the paths of files."""
_FILE_TYPES: dict[str, tuple[str, ...]] = {
    "int": ("int32",),
    "bigint": ("int32", "int64"),
    "float": ("float",),
    "double": ("float", "double"),
    "date": ("date",),
    "timestamp": ("timestamp_us_utc",),
    "timestamp_ntz": ("timestamp_us",),
    "string": ("string",),
}
"""The types of file columns that Iceberg writes for a type, or wrote before it was promoted."""
_SMALL = 10_000
"""A snapshot of up to so many files is opened whole even without a condition, so that its rows are known."""


class Chunk:
    """The statistics of the files of one manifest, by the names that ``IcebergWriter.java`` gives them.

    Only those of the columns in ``fields`` are there; others follow when a query asks for them.
    """

    __slots__ = ("__weakref__", "columns", "fields")

    def __init__(self) -> None:
        self.columns: Columns = {}
        self.fields: frozenset[int] = frozenset()

    def extended(self, columns: Columns, fields: Iterable[int]) -> Chunk:
        """The same with more columns: readers of this one are not disturbed."""
        more = Chunk()
        more.columns, more.fields = {**self.columns, **columns}, self.fields.union(fields)
        return more


_chunks: WeakValueDictionary[tuple[str, str], Chunk] = WeakValueDictionary()
"""By manifest and schema, as long as a snapshot that is in use has them."""


class IcebergTable:
    """The statistics of a snapshot's files, as far as its manifests have been opened."""

    def __init__(self, snapshot: Snapshot, stores: Sequence[Store] = ()) -> None:
        self._snapshot = snapshot
        self._stores = [store.table_ranges for store in stores]
        for store in self._stores:
            store.look()
        self._ranges: RangeSegments | None = None
        self._lock = threading.Lock()
        self._counts = snapshot.manifests["files"].to_numpy().astype(np.int64)
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._counts)])
        self._schema = repr(sorted(snapshot.fields.items()))
        self._chunks: list[Chunk | None] = [_chunks.get((key, self._schema)) for key in snapshot.keys]
        self._deleted: list[pa.Array | None] = [None] * len(self._chunks)
        owner = np.repeat(np.arange(len(self._counts)), self._counts)
        rows = snapshot.manifests["rows"]
        if snapshot.has_deletes:
            rows = pa.nulls(len(rows), pa.int64())
        self._groups = Groups(FileStats(rows, pa.nulls(len(rows), pa.int64()), self._load_manifests), owner)
        self.files = self._build()

    @classmethod
    def load(cls, snapshot: Snapshot, stores: Sequence[Store]) -> IcebergTable:
        """The statistics of manifests that were opened for another snapshot are there from the start."""
        return cls(snapshot, stores)

    @property
    def uncollected(self) -> None:
        """None: a manifest has what a footer would tell. Range-sets are another matter."""

    @property
    def partial(self) -> IcebergTable:
        """Manifests are opened, and columns sent, when they are asked for."""
        return self

    def lacks(self, names: Collection[str]) -> bool:
        """Whether a manifest has not been opened, or not for these columns."""
        return self._everywhere is None or not self._ids(names) <= self._everywhere

    @property
    def missing(self) -> Mask:
        """None: a collection would find nothing that the manifests do not have."""
        return np.zeros(self._snapshot.count, np.bool_)

    def row_groups(self, indices: Ints) -> tuple[FileStats, Ints]:
        """A row group has the bounds of its file; its own are in the file, where the reader finds them."""
        counts = pc.fill_null(self.files.row_groups, 1).to_numpy(zero_copy_only=False)[indices]
        owner = np.repeat(indices, counts)
        whole = self.files

        def load(column: ScanColumn) -> ColumnStats | None:
            found = whole.column(column)
            if found is None:
                return None
            part = found.take(owner)
            inexact = np.zeros(len(owner), np.bool_)
            return ColumnStats(part.low, part.high, _only_zero(part.nulls), _only_zero(part.nans), inexact, inexact)

        unknown = pa.nulls(len(owner), pa.int64())
        return FileStats(unknown, unknown, load), owner

    def wanted(self, opened: Mask, names: Collection[str], *, filtered: bool) -> dict[str, Any] | None:
        """What the JVM has to send before the files of these manifests can be judged, None if nothing."""
        if not filtered and self._snapshot.count > _SMALL:
            return None
        ids = self._ids(names)
        chunks = [(i, self._chunks[i]) for i in np.flatnonzero(opened).tolist()]
        parts = [i for i, chunk in chunks if chunk is None or not ids <= chunk.fields]
        deletes = []
        if self._snapshot.has_deletes:
            deletes = [i for i in np.flatnonzero(opened).tolist() if self._deleted[i] is None]
        if not parts and not deletes:
            return None
        return {"fp": self._snapshot.fingerprint, "files": parts, "columns": sorted(ids), "deletes": deletes}

    def _ids(self, names: Collection[str]) -> set[int]:
        """What a manifest has to have of these columns."""
        ids = {id_ for path, (id_, kind) in self._snapshot.fields.items() if path[0] in names and kind is not None}
        return ids | {_PATH} if ids and any(store.at_hand for store in self._stores) else ids

    def extend(self, wire: dict[str, Any]) -> None:
        """Takes in what :meth:`wanted` asked for."""
        columns = typed(read_arrow_buffers(wire["statistics"]), self._snapshot)
        deleted = read_arrow_buffers(wire["deleted"])["deleted"]
        with self._lock:
            for i, part in _slices(wire["files"], self._counts, len(columns["rows"])):
                before = self._chunks[i] or _chunks.get((self._snapshot.keys[i], self._schema)) or Chunk()
                chunk = before.extended({n: c[part] for n, c in columns.items()}, wire["columns"])
                self._chunks[i] = _chunks[self._snapshot.keys[i], self._schema] = chunk
            for i, part in _slices(wire["deletes"], self._counts, len(deleted)):
                self._deleted[i] = deleted[part]
            self.files = self._build()

    def _build(self) -> FileStats:
        rows = self._concat("rows", pa.int64())
        if self._snapshot.has_deletes:
            rows = pc.subtract(rows, self._deletions())
        self._ranges = None
        self._everywhere = self._opened()
        """The fields that every manifest describes, None if one is not opened."""
        sizes = self._concat("sizes", pa.int64())
        files = FileStats(rows, sizes, self._load_files, self._groups, nested=True, ranges=self._load_ranges)
        files.row_groups = self._concat("groups", pa.int64())  # by the split offsets of each file
        return files

    def _opened(self) -> frozenset[int] | None:
        whole = all(self._chunks) and not (self._snapshot.has_deletes and any(d is None for d in self._deleted))
        fields = [chunk.fields for chunk in self._chunks if chunk is not None]
        return frozenset.intersection(*fields) if whole and fields else None

    def _deletions(self) -> pa.Array:
        """Rows of each file that are known to be deleted, null = unknown."""
        parts = [
            pa.nulls(n, pa.int64()) if d is None else d
            for n, d in zip(self._counts.tolist(), self._deleted, strict=True)
        ]
        return pa.concat_arrays([pa.nulls(0, pa.int64()), *parts])

    def _concat(self, name: str, kind: pa.DataType) -> pa.Array:
        """A column over all files, null where it is not known."""
        parts = [
            pa.nulls(count, kind) if chunk is None or name not in chunk.columns else chunk.columns[name]
            for count, chunk in zip(self._counts.tolist(), self._chunks, strict=True)
        ]
        return pa.concat_arrays([pa.nulls(0, kind), *parts])

    def _field(self, column: ScanColumn) -> tuple[int, pa.DataType] | None:
        """The column's id and domain, if it is read by the type that it has in the table."""
        known = self._snapshot.fields.get((column.name, *column.path))
        if column.kind != "data" or known is None or known[1] != column.type or column.type.domain is None:
            return None
        return known[0], column.type.domain

    def _partitions(self, source: int) -> Iterator[tuple[str, str, pa.DataType, Mask]]:
        """The partition fields made from a column: name, transform, domain, and the manifests that have it."""
        spec = self._snapshot.manifests["spec"].to_numpy()
        for id_, fields in self._snapshot.specs.items():
            for position, field in enumerate(fields):
                if field.source == source and field.type is not None and field.type.domain is not None:
                    yield f"{id_}.{position}", field.transform, field.type.domain, spec == id_

    def _load_files(self, column: ScanColumn) -> ColumnStats | None:
        found = self._field(column)
        if found is None:
            return None
        id_, domain = found
        rows = self.files.rows
        deletions = self._deletions() if self._snapshot.has_deletes else None
        low, high = self._concat(f"low.{id_}", domain), self._concat(f"high.{id_}", domain)
        nulls, nans = self._concat(f"nulls.{id_}", pa.int64()), self._concat(f"nans.{id_}", pa.int64())
        if column.path:  # where the struct is NULL, so is the field, and not every writer counts that
            nulls = pa.nulls(len(nulls), pa.int64())
        exact = np.full(len(low), column.type.name != "string" and not column.type.is_float)
        if column.type.name in ("timestamp", "timestamp_ntz"):  # old ORC files have bounds in milliseconds, widened
            exact &= ~self._concat("orc", pa.bool_()).fill_null(True).to_numpy(zero_copy_only=False)
        if deletions is not None:
            whole = pc.equal(deletions, 0).fill_null(False).to_numpy(zero_copy_only=False)
            nulls, nans = (pc.if_else(pa.array(whole), counts, _only_zero(counts)) for counts in (nulls, nans))
            exact &= whole
        low_exact, high_exact = exact, exact
        for name, transform, values_type, mine in self._partitions(id_):
            values = self._concat(f"part.{name}", values_type)
            lifted = lift(transform, values, values, column.type)
            if lifted is None:
                continue
            sent = [chunk is not None and f"part.{name}" in chunk.columns for chunk in self._chunks]
            there = np.repeat(mine & np.array(sent, np.bool_), self._counts)
            absent = null_mask(values)
            nan = np.zeros(len(absent), np.bool_)
            if column.type.is_float:
                nan = pc.is_nan(values).fill_null(False).to_numpy(zero_copy_only=False)
                nans = pc.if_else(pa.array(there & ~absent & ~nan), pa.scalar(0, pa.int64()), nans)
                lifted = Lifted(_hidden(lifted.low, nan), _hidden(lifted.high, nan), lifted.exact)
            nulls = pc.if_else(pa.array(there & absent), rows, nulls)
            nulls = pc.if_else(pa.array(there & ~absent), pa.scalar(0, pa.int64()), nulls)
            low, low_exact = _narrower(low, low_exact, lifted.low, lifted.exact, pc.greater)
            high, high_exact = _narrower(high, high_exact, lifted.high, lifted.exact, pc.less)
        if column.type.is_float:
            low, high, nans = _without_zeros(low, -_TINY), _without_zeros(high, _TINY), _only_zero(nans)
        occurs = pc.greater(rows, 0).fill_null(False).to_numpy(zero_copy_only=False)
        return ColumnStats(low, high, nulls, nans, low_exact & occurs, high_exact & occurs)

    def values(self, columns: Collection[str] | None) -> Values:
        """The Parquet files, columns by their ids."""
        asked = None if columns is None else {name.lower() for name in columns}
        fields = self._snapshot.fields.items()
        ids = frozenset(id_ for path, (id_, _) in fields if asked is not None and path[0].lower() in asked)
        return Values(self._listing(), None if asked is None else ids, by_id=True, dated=False, of_table=True)

    def _listing(self) -> Listing:
        """The files whose paths are known. Their manifest entry is what tells them from others of the same path (S8).

        A file is named once and never changes, but a table that takes in files of others may meet a path again: then
        another snapshot added it. Its id stands for the time, below all times, as which it is not meant.
        """
        paths = self._concat("path", pa.large_string()).cast(pa.string())
        sizes = self._concat("sizes", pa.int64()).fill_null(-1).to_numpy()
        added = self._concat("added", pa.int64()).fill_null(0).to_numpy()
        return Listing(self._snapshot.fingerprint, self._snapshot.roots, paths, sizes, ~added, {})

    def _load_ranges(self, column: ScanColumn) -> FileRangeSets | None:
        """As files have them, deleted rows included; a file that lacks the column is unknown."""
        found = self._field(column)
        if found is None or column.path or not any(store.at_hand for store in self._stores):
            return None
        if self._ranges is None:
            self._ranges = RangeSegments(self._listing(), self._stores, at_hand=True)
        kinds = families(column.type) if column.type.name == "decimal" else _FILE_TYPES.get(column.type.name, ())
        return self._ranges.load([((found[0],), kind) for kind in kinds], found[1])

    def _load_manifests(self, column: ScanColumn) -> ColumnStats | None:
        found = self._field(column)
        if found is None:
            return None
        id_, domain = found
        summaries, count = self._snapshot.manifests, len(self._counts)
        rows = self._groups.stats.rows
        low, high = pa.nulls(count, domain), pa.nulls(count, domain)
        nulls, nans = pa.nulls(count, pa.int64()), pa.nulls(count, pa.int64())
        inexact, some = np.zeros(count, np.bool_), False
        for name, transform, _, mine in self._partitions(id_):
            lifted = lift(transform, summaries[f"low.{name}"], summaries[f"high.{name}"], column.type)
            if lifted is None:
                continue
            some = True
            null, nan = (summaries[f"{kind}.{name}"].to_numpy(zero_copy_only=False) for kind in ("null", "nan"))
            bounded = summaries[f"low.{name}"].is_valid().to_numpy(zero_copy_only=False)
            nulls = pc.if_else(pa.array(mine & ~null), pa.scalar(0, pa.int64()), nulls)
            nulls = pc.if_else(pa.array(mine & null & ~nan & ~bounded), rows, nulls)
            if transform == "identity":
                nans = pc.if_else(pa.array(mine & ~nan), pa.scalar(0, pa.int64()), nans)
            low, _ = _narrower(low, inexact, lifted.low, False, pc.greater)
            high, _ = _narrower(high, inexact, lifted.high, False, pc.less)
        return ColumnStats(low, high, nulls, nans, inexact, inexact) if some else None


def _slices(parts: Sequence[int], counts: Ints, total: int) -> Iterator[tuple[int, slice]]:
    ends = np.cumsum(counts[np.asarray(parts, np.int64)])
    if (expected := int(ends[-1]) if parts else 0) != total:
        raise ValueError(f"the JVM sent statistics of {total} files for manifests with {expected}")
    starts = ends - counts[np.asarray(parts, np.int64)]
    return zip(parts, map(slice, starts.tolist(), ends.tolist()), strict=True)


def _only_zero(counts: pa.Array) -> pa.Array:
    """Where some rows are gone, only "none" still says something."""
    return pc.if_else(pc.equal(counts, 0), counts, pa.scalar(None, pa.int64()))


def _without_zeros(bounds: pa.Array, instead: float) -> pa.Array:
    """Iceberg distinguishes -0.0 from 0.0 and finds no NaN above a number; Spark does neither.

    Files are judged as Spark does, but Iceberg may refuse to read one whose rows match only by Spark's rules. So no
    file may be said to match in every row because of its zeros or its NaNs: LIMIT would rest on rows that do not come.
    """
    return pc.if_else(pc.equal(bounds, 0.0), pa.scalar(instead), bounds)


def _hidden(array: pa.Array, where: Mask) -> pa.Array:
    return array.take(pa.array(np.arange(len(array)), mask=where))


def _narrower(old: pa.Array, old_exact: Mask, new: pa.Array, new_exact: bool, better: Any) -> tuple[pa.Array, Mask]:
    """Of two bounds the one that says more, entry by entry."""
    take_new = pc.or_(pc.is_null(old), better(new, old).fill_null(False))
    take_new = pc.and_(take_new, pc.is_valid(new)).to_numpy(zero_copy_only=False)
    both = pa.concat_arrays([old, new])
    at = np.arange(len(old)) + np.where(take_new, len(old), 0)
    return both.take(pa.array(at)), np.where(take_new, new_exact, old_exact)
