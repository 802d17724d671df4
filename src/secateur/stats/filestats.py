"""What is known of a list of files: columnar, one entry per file, null = unknown.

``FileStats`` is the contract between the readers, which know formats, and the evaluator, which knows predicates.
Columns are loaded on demand and kept. A ``FileStats`` can also describe something coarser than files (blocks) or
finer (row groups): the same evaluator runs on each.

Conventions, stated once:

* bounds are closed: every value ``v`` of the entry that is neither NULL nor NaN has ``low <= v <= high``;
* a null bound is unknown, not infinite and not "no values";
* ``nulls`` and ``nans`` count rows; null = unknown; NaN is outside the bounds (rule S5);
* exactness says that the bound is a value that occurs (rule S3); skipping never needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.query.types import DataType

Mask = npt.NDArray[np.bool_]
BLOCK = 4096
"""Files per block: the first step of every decision looks at blocks."""


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column as one scan reads it: where its values come from decides what is known of them."""

    id: int
    name: str
    type: DataType
    kind: OneOf["data", "partition", "hidden"] = "data"
    case_sensitive: bool = False
    has_default: bool = False
    """The column has an existence default, so a file that lacks it does not read as NULL."""


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


Loader = Callable[[ScanColumn], ColumnStats | None]


class FileStats:
    """Statistics of ``count`` entries; ``column`` loads what a predicate asks for, None if nothing is known anywhere.

    >>> import pyarrow as pa
    >>> stats = FileStats(pa.array([10, None]), pa.array([100, 200]), load=lambda column: None)
    >>> stats.count, stats.rows.to_pylist()
    (2, [10, None])
    """

    __slots__ = ("_blocks", "_columns", "_load", "count", "rows", "sizes")

    def __init__(self, rows: pa.Array, sizes: pa.Array, load: Loader) -> None:
        self.count = len(rows)
        self.rows = rows
        self.sizes = sizes
        self._load = load
        self._columns: dict[ScanColumn, ColumnStats | None] = {}
        self._blocks: FileStats | None = None

    def column(self, column: ScanColumn) -> ColumnStats | None:
        """What is known of a column, an entry per file, or None."""
        try:
            return self._columns[column]
        except KeyError:
            loaded = self._columns[column] = self._load(column)
            return loaded

    def take(self, indices: npt.NDArray[np.int64]) -> FileStats:
        """The statistics of some of the entries, in the order of ``indices``."""

        def load(column: ScanColumn) -> ColumnStats | None:
            whole = self.column(column)
            return whole.take(indices) if whole else None

        at = pa.array(indices)
        return FileStats(self.rows.take(at), self.sizes.take(at), load)

    @property
    def blocks(self) -> FileStats:
        """The statistics of each run of ``BLOCK`` files together, so that whole runs can be ruled out at once."""
        if self._blocks is None:
            starts = np.arange(0, self.count, BLOCK)

            def load(column: ScanColumn) -> ColumnStats | None:
                whole = self.column(column)
                return _summarise(whole, starts) if whole else None

            self._blocks = FileStats(_sums(self.rows, starts), _sums(self.sizes, starts), load)
        return self._blocks


def _summarise(stats: ColumnStats, starts: npt.NDArray[np.int64]) -> ColumnStats:
    inexact = np.zeros(len(starts), dtype=np.bool_)
    return ColumnStats(
        low=_extremes(stats.low, starts, "min"),
        high=_extremes(stats.high, starts, "max"),
        nulls=_sums(stats.nulls, starts),
        nans=_sums(stats.nans, starts),
        low_exact=inexact,
        high_exact=inexact,
    )


def _ends(starts: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    return np.append(starts[1:], count)


def _any_null(array: pa.Array, starts: npt.NDArray[np.int64]) -> Mask:
    if array.null_count == 0 or not len(starts):
        return np.zeros(len(starts), dtype=np.bool_)
    return np.logical_or.reduceat(array.is_null().to_numpy(zero_copy_only=False), starts)


def _sums(array: pa.Array, starts: npt.NDArray[np.int64]) -> pa.Array:
    if not len(starts):
        return array.slice(0, 0)
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    return pa.array(np.add.reduceat(values, starts), type=pa.int64(), mask=_any_null(array, starts))


def _extremes(array: pa.Array, starts: npt.NDArray[np.int64], which: OneOf["min", "max"]) -> pa.Array:
    """The least or greatest of each run; one unknown member makes the run unknown (rule S1)."""
    if not len(starts):
        return array.slice(0, 0)
    unknown = _any_null(array, starts)
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        reduce = np.minimum if which == "min" else np.maximum
        values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        return pa.array(reduce.reduceat(values, starts), type=array.type, mask=unknown)
    picked = [
        None if skip else pc.min_max(array.slice(start, end - start))[which]
        for start, end, skip in zip(starts, _ends(starts, len(array)), unknown, strict=True)
    ]
    return pa.array([None if p is None else p.as_py() for p in picked], type=array.type)
