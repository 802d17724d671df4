"""What is known of the files of one listing: the store's rows, aligned with the listing and typed as the query reads.

A file's column is only used if Spark reads it value for value as the query's type (``FAMILIES``). A column that none of
a file's top-level columns matches reads as NULL in every row, unless it has an existence default.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.types import DataType
from secateur.stats.collect.footers import FIXED, OPTIONAL, STATISTICS, Key, Path, decode_key, domain, encode_key
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.file_stats import ColumnStats, FileStats
from secateur.stats.listing import Listing, Values
from secateur.stats.store.range_set_segments import RangeSegments, found_at
from secateur.stats.store.segment import Segment
from secateur.stats.store.store import Store

Ints = npt.NDArray[np.int64]

_SMALLINT = ("int8", "int16", "uint8")
_INT = (*_SMALLINT, "int32", "uint16")
FAMILIES: dict[str, tuple[str, ...]] = {
    "tinyint": ("int8",),
    "smallint": _SMALLINT,
    "int": _INT,
    "bigint": (*_INT, "int64", "uint32"),
    "float": ("float",),
    "double": ("double", "float"),
    "date": ("date",),
    "timestamp": ("timestamp_ms_utc", "timestamp_us_utc", "int96"),
    "timestamp_ntz": ("timestamp_ms", "timestamp_us"),
    "string": ("string",),
    "boolean": ("bool",),
}
"""The file types that Spark reads as a type without changing a value; those of int96 have null counts only."""

# What a file's list of columns says of one column, beside the position of the name that matches
_ABSENT, _UNCLEAR = -1, -2


class ParquetTable:
    """The statistics of a listing's files, as far as the stores know them.

    What the stores hold at construction is what counts; after collecting, construct anew.
    """

    def __init__(self, listing: Listing, stores: Iterable[Store]) -> None:
        self.listing = listing
        stores = tuple(stores)
        self._ranges = RangeSegments(listing, [store.ranges for store in stores])
        self._segments: list[Segment] = []
        self._whole: dict[str, pa.Array] = {}
        # The row of each file in all segments laid end to end, -1 = no statistics.
        self._row = np.full(listing.count, -1, dtype=np.int64)
        for store in stores:
            self._align(store)
        self._row_groups = self._at("row_groups", self._row)
        rows = self._at("rows", self._row)
        self.files = FileStats(
            rows,
            pa.array(listing.lengths),
            lambda c: self._load(c, self._row, None, rows),
            nested=True,
            ranges=self._load_ranges,
        )
        self.files.row_groups = self._row_groups

    @classmethod
    def load(cls, listing: Listing, stores: Iterable[Store]) -> ParquetTable:
        """The statistics as the stores hold them now."""
        return cls(listing, stores)

    @property
    def uncollected(self) -> Listing:
        """All: what the stores have is found out when it is collected."""
        return self.listing

    @property
    def partial(self) -> None:
        """None: a listing is all there is."""

    def values(self, columns: Collection[str] | None) -> Values:
        """All files, columns by their names in any case."""
        return Values(self.listing, None if columns is None else frozenset(name.lower() for name in columns))

    @property
    def missing(self) -> Mask:
        """The files without statistics."""
        return self._row < 0

    def row_groups(self, indices: Ints) -> tuple[FileStats, Ints]:
        """The statistics of the row groups of some files, and the ordinal of each one's file.

        A file with one row group or none is its own entry; files without statistics have no entry.
        """
        indices = indices[self._row[indices] >= 0]
        counts = np.maximum(pc.fill_null(self._row_groups, 1).to_numpy(zero_copy_only=False)[indices], 1)
        owner = np.repeat(indices, counts)
        ordinal = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        several = np.repeat(counts > 1, counts)
        row = self._row[owner] + np.where(several, ordinal + 1, 0)  # a file's row groups follow its own row
        rows = self._at("rows", row)
        return FileStats(rows, self._at("bytes", row), lambda c: self._load(c, row, owner, rows), nested=True), owner

    def _align(self, store: Store) -> None:
        """Finds a store's files in the listing: the same path, length and modification time (rule S8)."""
        keys, rows, offset = [], [], sum(s.count for s in self._segments)
        for segment in store.segments():
            keys.append(segment.read(["path", "length", "mtime"]).take(pa.array(segment.file_rows)))
            rows.append(segment.file_rows + offset)
            offset += segment.count
            self._segments.append(segment)
        if not keys or not self.listing.count:
            return
        row, position = np.concatenate(rows), found_at(self.listing, store, pa.concat_tables(keys))
        self._row[position[position >= 0]] = row[position >= 0]  # of several rows for one file, the last wins

    def _at(self, name: str, row: Ints) -> pa.Array:
        """A column of the segments laid end to end, taken at some rows: null where that is -1."""
        if name not in self._whole:
            self._fetch([name])
        return self._whole[name].take(pa.array(row, mask=row < 0))

    def _fetch(self, names: Sequence[str]) -> None:
        wanted = {name: _arrow_type(name) for name in names if name not in self._whole}
        parts: dict[str, list[pa.Array]] = {name: [pa.nulls(0, kind)] for name, kind in wanted.items()}
        for segment in self._segments:
            here = [name for name in wanted if name in segment.columns]
            table = segment.read(here) if here else None
            for name, kind in wanted.items():
                chunks = table[name].cast(kind).chunks if table and name in here else [pa.nulls(segment.count, kind)]
                parts[name].extend(chunks)
        self._whole.update({name: pa.concat_arrays(arrays) for name, arrays in parts.items()})

    def _load(self, column: ScanColumn, row: Ints, owner: Ints | None, rows: pa.Array) -> ColumnStats | None:
        if column.type.domain is None or column.kind == "hidden":
            return None
        if column.kind == "partition":
            return self._partition(column, owner, rows)
        return self._data(column, row, rows)

    def _partition(self, column: ScanColumn, owner: Ints | None, rows: pa.Array) -> ColumnStats | None:
        known = self.listing.partitions.get(column.name)
        if known is None or known[0] != column.type:
            return None
        values = known[1]
        return partition_stats(column.type, values if owner is None else values.take(pa.array(owner)), rows)

    def _data(self, column: ScanColumn, row: Ints, rows: pa.Array) -> ColumnStats | None:
        paths, match = self._matches(column, row)
        absent = pa.array((match == _ABSENT) & (not column.has_default))
        stored = frozenset[tuple[Key, str]]().union(*(s.families for s in self._segments))
        found = [(path, family) for path in paths for family in families(column.type) if (path, family) in stored]
        if not found and not pc.any(absent).as_py():
            return None
        self._fetch([encode_key(*key, statistic) for key in found for statistic in STATISTICS])
        low, high, nulls, nans, low_exact, high_exact = (pa.nulls(len(row), t) for t in _cell_types(column.type))
        for path, family in found:
            # A file has one type for one name, so of all families at most one has a value.
            here = np.where(match == paths.index(path), row, -1)
            cells = [self._at(encode_key(path, family, statistic), here) for statistic in STATISTICS]
            low, high, nulls, nans, low_exact, high_exact = (
                pc.coalesce(old, new)
                for old, new in zip((low, high, nulls, nans, low_exact, high_exact), cells, strict=True)
            )
        zero = pa.scalar(0, pa.int64())
        return ColumnStats(
            low,
            high,
            pc.if_else(absent, rows, nulls),
            pc.if_else(absent, zero, nans),
            pc.fill_null(low_exact, False).to_numpy(zero_copy_only=False),
            pc.fill_null(high_exact, False).to_numpy(zero_copy_only=False),
        )

    def _load_ranges(self, column: ScanColumn) -> FileRangeSets | None:
        if column.kind != "data" or column.path or not self._ranges:
            return None
        paths, match = self._matches(column, self._row)
        keys = [(path, family) for path in paths for family in families(column.type)]
        absent = (match == _ABSENT) & (not column.has_default)
        here = [match == paths.index(path) for path, _ in keys]
        return self._ranges.load(keys, column.type.domain, here, absent)

    def _matches(self, column: ScanColumn, row: Ints) -> tuple[list[Path], Ints]:
        """The paths under which files have a column, and for each entry which of them, or why none."""
        lists = self._at("columns", row)
        fields = self._at("fields", row) if column.path else pa.nulls(len(row), OPTIONAL["fields"])
        schemas, trees = lists.dictionary.to_pylist(), fields.dictionary.to_pylist()
        paths: list[Path] = []
        # A table has few schemas, so there are few pairs of both lists.
        either = (pc.fill_null(part.indices, -1).to_numpy(zero_copy_only=False) + 1 for part in (lists, fields))
        columns, tree = (part.astype(np.int64) for part in either)
        pairs, at = np.unique(columns * (len(trees) + 1) + tree, return_inverse=True)
        codes = []
        for names, nested in zip(*np.divmod(pairs, len(trees) + 1), strict=True):
            known = json.loads(schemas[names - 1]) if names else None
            path = _UNCLEAR if known is None else _find(column, known, trees[nested - 1] if nested else None)
            if isinstance(path, tuple) and path not in paths:
                paths.append(path)
            codes.append(paths.index(path) if isinstance(path, tuple) else path)
        return paths, np.array(codes, dtype=np.int64)[at]


def _find(column: ScanColumn, names: Sequence[str], fields: str | None) -> Path | int:
    """The path among a file's columns that Spark reads as this column or as this field of it.

    >>> from secateur.plan.types import parse_type
    >>> a = ScanColumn(1, "s", parse_type("int"), path=("a",))
    >>> fields = '[["S", [["A", null], ["b", null]]], ["t", null]]'
    >>> _find(a, ["S", "t"], fields), _find(a, ["t"], fields) == _ABSENT, _find(a, ["S"], None) == _UNCLEAR
    (('S', 'A'), True, True)
    """
    found = _match(column, names)
    if isinstance(found, int) or not column.path:
        return (found,) if isinstance(found, str) else found
    path, tree = [found], json.loads(fields) if fields else []
    for name in column.path:
        below = [members for field, members in tree if field == path[-1]]
        if len(below) != 1 or below[0] is None:  # what Spark reads as a struct is none here
            return _UNCLEAR
        tree = below[0]
        found = _match(replace(column, name=name), [field for field, _ in tree])
        if isinstance(found, int):
            return found
        path.append(found)
    is_leaf = [members for field, members in tree if field == path[-1]] == [None]
    return tuple(path) if is_leaf else _UNCLEAR


def partition_stats(kind: DataType, values: pa.Array, rows: pa.Array) -> ColumnStats:
    """What a partition value for each entry says of its rows: all have it, or all are NULL."""
    zero = pa.scalar(0, pa.int64())
    nulls = pc.if_else(pc.is_null(values), rows, zero)
    nans = pa.nulls(len(values), pa.int64()).fill_null(0)
    if kind.is_float:
        is_nan = pc.fill_null(pc.is_nan(values), False)
        nans = pc.if_else(is_nan, rows, zero)
        values = pc.if_else(is_nan, pa.scalar(None, values.type), values)
    # The value occurs only in a file that is known to have a row (rule S3).
    exact = pc.fill_null(pc.greater(rows, 0), False).to_numpy(zero_copy_only=False)
    return ColumnStats(values, values, nulls, nans, exact, exact)


def _match(column: ScanColumn, names: Sequence[str]) -> str | int:
    """The name among a file's top-level columns that Spark reads as this column.

    >>> from secateur.plan.types import parse_type
    >>> a = ScanColumn(1, "a", parse_type("int"))
    >>> _match(a, ["b", "A"]), _match(a, ["b"]) == _ABSENT, _match(a, ["a", "A"]) == _UNCLEAR
    ('A', True, True)
    """
    if column.case_sensitive:
        found = [n for n in names if n == column.name]
    else:
        found = [n for n in names if n.lower() == column.name.lower()]
        # Java and Python may fold letters beyond ASCII differently: such names are neither absent nor the same.
        if any(n != column.name and _folds(n) & _folds(column.name) and not n.isascii() for n in names):
            return _UNCLEAR
        if not column.name.isascii() and found != [column.name] and any(_folds(n) & _folds(column.name) for n in names):
            return _UNCLEAR
    if not found:
        return _ABSENT
    return found[0] if len(found) == 1 else _UNCLEAR


def _folds(name: str) -> set[str]:
    return {name.lower(), name.upper().lower(), name.casefold()}


def families(kind: DataType) -> tuple[str, ...]:
    """The file types that Spark reads as a type without changing a value."""
    if kind.name == "decimal":
        return tuple(f"decimal({p},{kind.scale})" for p in range(max(1, kind.scale), kind.precision + 1))
    return FAMILIES.get(kind.name, ())


def _cell_types(kind: DataType) -> tuple[pa.DataType, ...]:
    return (kind.domain, kind.domain, pa.int64(), pa.int64(), pa.bool_(), pa.bool_())


def _arrow_type(name: str) -> pa.DataType:
    key = decode_key(name)
    if key is None:
        return (FIXED | OPTIONAL)[name]
    bounds = domain(key[1])
    return dict(zip(STATISTICS, (bounds, bounds, pa.int64(), pa.int64(), pa.bool_(), pa.bool_()), strict=True))[key[2]]
