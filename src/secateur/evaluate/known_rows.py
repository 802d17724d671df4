"""Small tables row by row: where all values are known, a condition shows which rows are left, hence which keys.

A dimension is often a single file. Its bounds tell nothing of the keys that a condition leaves, nor do its ranges: each
is of one column. So of small tables the collector keeps the values themselves, and here every row becomes an entry like
any other, for which the evaluator says whether it may match:

    file   d_key   d_year             entries        may match d_year = 2001
    0      1       2000               0: 1, 2000     no
    0      2       2001               0: 2, 2001     yes: of d_key only 2 is left
    1      unknown                    1: anything    yes

A file of which nothing is known row by row is one entry, itself (rule S1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.subfiles import Ints, Subfiles, any_row
from secateur.plan.columns import Mask, ScanColumn
from secateur.stats.arrays import null_mask
from secateur.stats.file_range_sets import SMALL
from secateur.stats.file_stats import ColumnStats, FileStats


def rows_by(stats: FileStats) -> Subfiles | None:
    """All files taken apart into their rows, None if the table is not small.

    >>> from secateur.plan.types import parse_type
    >>> from secateur.stats.file_range_sets import FileRangeSets
    >>> column, zero = ScanColumn(1, "x", parse_type("int")), np.zeros(2, np.bool_)
    >>> bounds = ColumnStats(pa.array([1, 7]), pa.array([9, 8]), pa.array([1, 0]), pa.array([0, 0]), zero, zero)
    >>> values = pa.array([[1, None, 9], None])
    >>> ends, flags = [pa.array([None, None], values.type)] * 2, [pa.nulls(2, "bool")] * 2
    >>> ranges = FileRangeSets.of_lists(*ends, *flags, values)
    >>> stats = FileStats(pa.array([3, 2]), pa.array([1, 1]), lambda c: bounds, ranges=lambda c: ranges)
    >>> parts = rows_by(stats)
    >>> parts.owner.tolist(), parts.stats.column(column).low.to_pylist(), parts.stats.column(column).nulls.to_pylist()
    ([0, 0, 0, 1, 1], [1, None, 9, 7, 7], [0, 1, 0, 0, 0])
    """
    whole = null_mask(stats.rows)
    counts = pc.fill_null(stats.rows, 1).to_numpy(zero_copy_only=False).astype(np.int64)
    if whole.all() or counts.sum() > SMALL:
        return None
    owner = np.repeat(np.arange(stats.count), counts)
    rows = pa.array(np.ones(len(owner), np.int64), mask=whole[owner])
    split = _Rows(stats, owner, np.cumsum(counts) - counts)
    entries = FileStats(rows, pa.nulls(len(owner), pa.int64()), split.load)
    entries.are_rows = True
    return Subfiles(entries, owner, whole)


def listed(stats: FileStats, column: ScanColumn) -> Mask:
    """The files whose values of a column are known row by row."""
    return stats.derive(column, _listed)


def _listed(stats: FileStats, column: ScanColumn) -> Mask:
    ranges = stats.range_sets(column)
    if ranges is None or ranges.values is None:
        return np.zeros(stats.count, np.bool_)
    fits: Mask = (
        pc.equal(pc.list_value_length(ranges.values), stats.rows).fill_null(False).to_numpy(zero_copy_only=False)
    )
    return fits


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    files: FileStats
    owner: Ints
    first: Ints
    """The first entry of each file."""

    def load(self, column: ScanColumn) -> ColumnStats | None:
        ranges, found = self.files.range_sets(column), self.files.column(column)
        lists = None if ranges is None else ranges.values
        whole = null_mask(self.files.rows)[self.owner]
        inexact = np.zeros(len(self.owner), np.bool_)
        if found is None:
            count, flags = self.files.count, np.zeros(self.files.count, np.bool_)
            nothing, unknown = pa.nulls(count, column.type.domain), pa.nulls(count, pa.int64())
            found = ColumnStats(nothing, nothing, unknown, unknown, flags, flags)
        rough = any_row(found, self.files.rows, self.owner, whole)
        if lists is None:
            return rough
        lengths = pc.list_value_length(lists)
        known = listed(self.files, column)[self.owner] & ~whole
        begins = np.cumsum(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)).astype(np.int64)
        begins = np.concatenate([[0], begins[:-1]])
        place = begins[self.owner] + np.arange(len(self.owner)) - self.first[self.owner]
        exact = pc.list_flatten(lists).take(pa.array(place, mask=~known))
        null = known & null_mask(exact)
        nan = np.zeros(len(known), np.bool_)
        if pa.types.is_floating(exact.type):
            nan = pc.is_nan(exact).fill_null(False).to_numpy(zero_copy_only=False)
        values = exact.take(pa.array(np.arange(len(known)), mask=nan))
        at = pa.array(np.where(known, np.arange(len(known)), np.arange(len(known)) + len(known)))
        # By position and not by if_else, which garbles slices of strings before Arrow 24 (apache/arrow#49410).
        low, high = (pa.concat_arrays([values, ends]).take(at) for ends in (rough.low, rough.high))
        nulls = pc.if_else(pa.array(known), pa.array(null.astype(np.int64)), rough.nulls)
        nans = pc.if_else(pa.array(known), pa.array(nan.astype(np.int64)), rough.nans)
        return ColumnStats(low, high, nulls, nans, inexact, inexact)
