"""What is known of a list of files: columnar, one entry per file, null = unknown.

``FileStats`` is the contract between the readers, which know formats, and the evaluator, which knows predicates.
Columns are loaded on demand and kept. A ``FileStats`` can also describe something coarser than files (blocks) or
finer (row groups): the same evaluator runs on each.

Conventions, stated once:

* bounds are closed: every value ``v`` of the entry that is neither NULL nor NaN has ``low <= v <= high``;
* a null bound is unknown, not infinite and not "no values";
* ``nulls`` and ``nans`` count rows; null = unknown; NaN is outside the bounds (rule S5);
* ``nulls`` counts among the same rows as ``rows``: a reader that lowers ``rows`` for deleted rows (rule S4) makes every
  count but zero unknown, or ``nulls == rows`` would wrongly say that all is NULL;
* exactness says that the bound is a value that occurs (rule S3); skipping never needs it.

``FileStats.column`` makes what cannot be right unknown, once, when a column is loaded: a pair of bounds with low > high
and a bound of NaN (rules S1, S5). So nothing after it, the blocks included, sees such a pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.plan.columns import Mask, Reading, ScanColumn
from secateur.stats.arrays import null_mask, raw_values
from secateur.stats.file_range_sets import FileRangeSets

T = TypeVar("T")
_INT64 = np.iinfo(np.int64)
BLOCK = 4096
"""Files per block: the first step of every decision looks at blocks."""


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """Bounds and counts of one column, an entry per file. ``low`` and ``high`` are of the type's domain."""

    low: pa.Array
    high: pa.Array
    nulls: pa.Array
    nans: pa.Array
    low_exact: Mask
    high_exact: Mask

    def take(self, indices: npt.NDArray[np.int64]) -> ColumnStats:
        """The same for some of the entries."""
        at = pa.array(indices)
        return ColumnStats(
            self.low.take(at),
            self.high.take(at),
            self.nulls.take(at),
            self.nans.take(at),
            self.low_exact[indices],
            self.high_exact[indices],
        )

    def slice(self, start: int, stop: int) -> ColumnStats:
        """The same for a run of entries, without copying."""
        low, high, nulls, nans = (a.slice(start, stop - start) for a in (self.low, self.high, self.nulls, self.nans))
        return ColumnStats(low, high, nulls, nans, self.low_exact[start:stop], self.high_exact[start:stop])


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups that the table itself puts its files in, such as Iceberg's manifests: what is known of each one's files
    together, and the group of each file.
    """

    stats: FileStats
    of: npt.NDArray[np.int64]


Loader = Callable[[ScanColumn], ColumnStats | None]
RangeLoader = Callable[[ScanColumn], FileRangeSets | None]
Where: TypeAlias = npt.NDArray[np.int64] | slice
"""Some of the entries: their positions, or a run of them."""


class FileStats:
    """Statistics of ``count`` entries; ``column`` loads what a predicate asks for, None if nothing is known anywhere.

    >>> import pyarrow as pa
    >>> stats = FileStats(pa.array([10, None]), pa.array([100, 200]), load=lambda column: None)
    >>> stats.count, stats.rows.to_pylist()
    (2, [10, None])
    """

    __slots__ = (
        "_blocks",
        "_columns",
        "_derived",
        "_load",
        "_nested",
        "_range_sets",
        "_ranges",
        "are_rows",
        "count",
        "groups",
        "nan_is_greatest",
        "origin",
        "row_groups",
        "rows",
        "sizes",
    )

    def __init__(
        self,
        rows: pa.Array,
        sizes: pa.Array,
        load: Loader,
        groups: Groups | None = None,
        *,
        nested: bool = False,
        ranges: RangeLoader | None = None,
    ) -> None:
        self.count = len(rows)
        self.rows = rows
        self.sizes = sizes
        self.groups = groups
        self.nan_is_greatest = False
        """The table's own planner takes the maximum of floats to be above NaN, and finds no NaN where that is wrong."""
        self.row_groups: pa.Array | None = None
        """How many row groups each file has, null = unknown; None if always unknown."""
        self.are_rows = False
        """An entry is a row, so that the same value comes again and again."""
        self.origin: tuple[FileStats, Where] | None = None
        """The statistics that these are a part of, and which: what was derived there need not be derived again."""
        self._load = load
        self._nested = nested  # whether the loader knows of fields in structs
        self._ranges = ranges
        self._range_sets: dict[Reading, FileRangeSets | None] = {}
        self._columns: dict[Reading, ColumnStats | None] = {}
        self._derived: dict[tuple[Reading | None, str], object] = {}
        self._blocks: FileStats | None = None

    def column(self, column: ScanColumn) -> ColumnStats | None:
        """What is known of a column, an entry per file, or None."""
        key = column.reads
        try:
            return self._columns[key]
        except KeyError:
            loaded = self._load(column) if self._nested or not column.path else None
            checked = self._columns[key] = _checked(loaded, column, self.count) if loaded else None
            return checked

    def range_sets(self, column: ScanColumn) -> FileRangeSets | None:
        """The ranges in which a column's values lie, some for each file, or None if they are known of no file."""
        if self._ranges is None or column.type.domain is None:
            return None
        key = column.reads
        if key not in self._range_sets:
            self._range_sets[key] = self._ranges(column)
        return self._range_sets[key]

    def derive(self, column: ScanColumn, build: Callable[[FileStats, ScanColumn], T]) -> T:
        """What ``build`` makes of a column, kept as long as these statistics are."""
        key = (column.reads, f"{build.__module__}.{build.__qualname__}")
        if key not in self._derived:
            self._derived[key] = build(self, column)
        return self._derived[key]  # type: ignore[return-value]

    def once(self, build: Callable[[FileStats], T]) -> T:
        """What ``build`` makes of all of it, kept as long as these statistics are."""
        key = (None, f"{build.__module__}.{build.__qualname__}")
        if key not in self._derived:
            self._derived[key] = build(self)
        return self._derived[key]  # type: ignore[return-value]

    def take(self, indices: npt.NDArray[np.int64]) -> FileStats:
        """The statistics of some of the entries, in the order of ``indices``."""

        def load(column: ScanColumn) -> ColumnStats | None:
            whole = self.column(column)
            return whole.take(indices) if whole else None

        def ranges(column: ScanColumn) -> FileRangeSets | None:
            whole = self.range_sets(column)
            return whole.take(indices) if whole else None

        at = pa.array(indices)
        part = FileStats(self.rows.take(at), self.sizes.take(at), load, nested=True, ranges=ranges)
        part.origin = (self, indices)
        return part

    def slice(self, start: int, stop: int) -> FileStats:
        """The statistics of a run of entries, without copying."""

        def load(column: ScanColumn) -> ColumnStats | None:
            whole = self.column(column)
            return whole.slice(start, stop) if whole else None

        def ranges(column: ScanColumn) -> FileRangeSets | None:
            whole = self.range_sets(column)
            return whole.take(np.arange(start, stop)) if whole else None

        rows, sizes = self.rows.slice(start, stop - start), self.sizes.slice(start, stop - start)
        part = FileStats(rows, sizes, load, nested=True, ranges=ranges)
        part.origin = (self, slice(start, stop))
        return part

    @property
    def blocks(self) -> FileStats:
        """The statistics of each run of ``BLOCK`` files together, so that whole runs can be ruled out at once."""
        if self._blocks is None:
            starts = np.arange(0, self.count, BLOCK)

            def load(column: ScanColumn) -> ColumnStats | None:
                whole = self.column(column)
                return _summarise(whole, self.rows, starts) if whole else None

            self._blocks = FileStats(_sums(self.rows, starts), _sums(self.sizes, starts), load, nested=True)
        return self._blocks


def sum_of(counts: pa.Array, mask: Mask | None = None, *, known: bool = False) -> int | None:
    """The sum over the marked entries (None: all). None if one of them is unknown, unless those that are known will do.

    >>> counts, mask = pa.array([1, None, 3]), np.array([True, False, True])
    >>> sum_of(counts, mask), sum_of(counts), sum_of(counts, known=True)
    (4, None, 4)
    """
    if not counts.null_count and pa.types.is_int64(counts.type):
        values = raw_values(counts, np.int64)
    elif not counts.null_count:
        values = counts.to_numpy()
    elif known or (mask is not None and not (mask & null_mask(counts)).any()):
        values = pc.fill_null(counts, 0).to_numpy()
    else:
        return None
    return int(values.sum(where=True if mask is None else mask))


def _checked(stats: ColumnStats, column: ScanColumn, count: int) -> ColumnStats:
    """The same with impossible bounds made unknown (rule S1); a reader's mistake in type or length is an error."""
    for part in (stats.low, stats.high):
        if part.type != column.type.domain:
            raise TypeError(f"bounds of {column.name} are {part.type}, but {column.type} needs {column.type.domain}")
    for array in (stats.low, stats.high, stats.nulls, stats.nans):
        if len(array) != count:
            raise ValueError(f"statistics of {column.name} have {len(array)} entries for {count} files")
    # A comparison with NaN is false, so this catches NaN bounds as well as low > high.
    ordered = pc.less_equal(stats.low, stats.high)
    low, high = stats.low, stats.high
    if pc.all(ordered).as_py() is False:
        # Not by if_else: before Arrow 24 it garbles slices of strings if the other side is null (apache/arrow#49410).
        impossible = pc.invert(ordered).fill_null(False).to_numpy(zero_copy_only=False)
        possible = pa.array(np.arange(count), mask=impossible)
        low, high = low.take(possible), high.take(possible)
    if column.type.is_float:
        low, high = _without_nan(low), _without_nan(high)
    return replace(stats, low=low, high=high)


def _without_nan(array: pa.Array) -> pa.Array:
    isnan = pc.is_nan(array)
    return pc.if_else(isnan, pa.scalar(None, array.type), array) if pc.any(isnan).as_py() else array


def _summarise(stats: ColumnStats, rows: pa.Array, starts: npt.NDArray[np.int64]) -> ColumnStats:
    inexact = np.zeros(len(starts), dtype=np.bool_)
    boundless = pc.and_(stats.low.is_null(), stats.high.is_null())
    all_null = pc.and_(pc.equal(stats.nulls, rows).fill_null(False), boundless)
    valueless = pc.or_(all_null, pc.equal(rows, 0).fill_null(False)).to_numpy(zero_copy_only=False)
    return ColumnStats(
        low=_extremes(stats.low, starts, "min", valueless),
        high=_extremes(stats.high, starts, "max", valueless),
        nulls=_sums(stats.nulls, starts, limit=rows),
        nans=_sums(stats.nans, starts, limit=pc.subtract(rows, stats.nulls)),
        low_exact=inexact,
        high_exact=inexact,
    )


def _ends(starts: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    return np.append(starts[1:], count)


def _any(flags: Mask, starts: npt.NDArray[np.int64]) -> Mask:
    return np.logical_or.reduceat(flags, starts)


def _sums(array: pa.Array, starts: npt.NDArray[np.int64], limit: pa.Array | None = None) -> pa.Array:
    """The sum of each run; a member that is unknown, negative or over its limit makes the run unknown.

    Without the limit two wrong counts could add up to a right one: 7 NULLs of 5 rows and 3 of 5 are not "all NULL".
    """
    if not len(starts):
        return array.slice(0, 0)
    if array.null_count == len(array):
        return pa.nulls(len(starts), pa.int64())
    wrong = pc.less(array, 0)
    if limit is not None:
        wrong = pc.or_(wrong.fill_null(False), pc.greater(array, limit).fill_null(False))
    unknown = null_mask(array) | wrong.fill_null(False).to_numpy(zero_copy_only=False)
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    return pa.array(np.add.reduceat(values, starts), type=pa.int64(), mask=_any(unknown, starts))


def _extremes(array: pa.Array, starts: npt.NDArray[np.int64], which: OneOf["min", "max"], valueless: Mask) -> pa.Array:
    """The least or greatest of each run; one unknown member makes the run unknown (rule S1).

    A member known to hold nothing but NULLs has no values to bound, so its missing bound does no harm.
    """
    if not len(starts):
        return array.slice(0, 0)
    missing = null_mask(array)
    unknown = _any(missing & ~valueless, starts) | np.logical_and.reduceat(missing, starts)
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        reduce = np.minimum if which == "min" else np.maximum
        least, greatest = (_INT64.min, _INT64.max) if pa.types.is_integer(array.type) else (-np.inf, np.inf)
        values = pc.fill_null(array, greatest if which == "min" else least).to_numpy(zero_copy_only=False)
        return pa.array(reduce.reduceat(values, starts), type=array.type, mask=unknown)
    picked = [
        None if skip else pc.min_max(array.slice(start, end - start))[which]
        for start, end, skip in zip(starts, _ends(starts, len(array)), unknown, strict=True)
    ]
    return pa.array([None if p is None else p.as_py() for p in picked], type=array.type)
