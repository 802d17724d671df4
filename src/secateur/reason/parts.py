"""Files taken apart by the ranges of one column, so that the evaluator sees the gaps between them.

A range stands for the rows whose value lies in it, with whatever is known of the file's other columns; so do the rows
with NULL and those with NaN. Every row of the file belongs to one of these parts, and a part is an entry like any
other: whoever can reason about files can reason about parts. A file of which no range-set is known is one part, itself.

    file   x                        parts
    0      {[1, 39], [46, 60]}      0: 1 … 39      0: 46 … 60
    1      [1, 99] by its bounds    1: 1 … 99
    2      {[5, 5]} and NULL        2: 5           2: NULL
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.reason.facts import facts
from secateur.reason.rangesets import RangeSet, values_in
from secateur.stats.fileranges import FileRanges
from secateur.stats.filestats import ColumnStats, FileStats, Mask, ScanColumn

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of all files: what is known of them, and the file of each."""

    stats: FileStats
    owner: Ints
    whole: Mask
    """The files that were not taken apart."""

    def of(self, files: Mask) -> Ints:
        """The positions of the parts of some files."""
        return np.flatnonzero(files[self.owner])


def parts_by(stats: FileStats, column: ScanColumn) -> Parts | None:
    """All files taken apart by a column, None if no range-set of it is known."""
    return stats.derive(column, _take_apart)


def values_of(stats: FileStats, column: ScanColumn, kept: Mask) -> RangeSet | None:
    """What a column can hold in the kept files together: by their range-sets, by bounds where there are none.

    None if one of them may hold anything (rule S1).

    >>> from secateur.query.types import parse_type
    >>> flags, zeros = np.ones(3, dtype=np.bool_), pa.array([0, 0, 0])
    >>> known = ColumnStats(pa.array([1, 7, 5]), pa.array([3, 9, 7]), zeros, zeros, flags, flags)
    >>> lists = pa.array([None, [7, 9], None]), pa.array([None, [7, 9], None])
    >>> ranges = FileRanges.of_lists(*lists, pa.array([False] * 3), pa.array([False] * 3))
    >>> stats = FileStats(pa.array([10, 10, 10]), zeros, load=lambda column: known, ranges=lambda column: ranges)
    >>> values_of(stats, ScanColumn(1, "x", parse_type("int")), np.array([True, True, False])).pairs()
    [(1, 3), (7, 7), (9, 9)]
    """
    parts = parts_by(stats, column)
    if parts is not None:
        stats, kept = parts.stats, kept[parts.owner]
    found = facts(stats, column)
    return None if found is None else values_in(found, kept)


def _take_apart(stats: FileStats, column: ScanColumn) -> Parts | None:
    ranges = stats.range_sets(column)
    if ranges is None or not ranges.known.any():
        return None
    positions, owner = ranges.at(np.arange(stats.count))
    null, nan = np.flatnonzero(ranges.known & ranges.null), np.flatnonzero(ranges.known & ranges.nan)
    whole = np.flatnonzero(~ranges.known)
    kind = np.repeat(np.arange(4), [len(positions), len(null), len(nan), len(whole)])
    owner = np.concatenate([owner, null, nan, whole])
    at = pa.array(np.append(positions, np.zeros(len(kind) - len(positions), np.int64)), mask=kind > 0)
    split = _Split(stats, ranges, owner, kind, at)
    rows = pc.if_else(pa.array(kind < 3), pa.scalar(1, pa.int64()), stats.rows.take(pa.array(owner)))
    sizes = stats.sizes.take(pa.array(owner))
    return Parts(FileStats(rows, sizes, lambda asked: split.load(asked, column), nested=True), owner, ~ranges.known)


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """How files come apart: the kind of each part is 0 for a range, 1 for NULL, 2 for NaN, 3 for a whole file."""

    files: FileStats
    ranges: FileRanges
    owner: Ints
    kind: Ints
    at: pa.Array

    def load(self, asked: ScanColumn, column: ScanColumn) -> ColumnStats | None:
        found = self.files.column(asked)
        inexact = np.zeros(len(self.owner), np.bool_)
        whole = pa.array(self.kind == 3)
        part = None if found is None else found.take(self.owner)
        if (asked.name, asked.kind, asked.type, asked.path) != (column.name, column.kind, column.type, column.path):
            # The row that an entry stands for is any one of the file's.
            if part is None:
                return None
            rows = self.files.rows.take(pa.array(self.owner))
            bounded = pc.or_(part.low.is_valid(), part.high.is_valid())
            all_null = pc.and_not(pc.equal(part.nulls, rows).fill_null(False), bounded)
            nulls = pc.if_else(all_null, pa.scalar(1, pa.int64()), _only_zero(part.nulls))
            return ColumnStats(
                part.low,
                part.high,
                pc.if_else(whole, part.nulls, nulls),
                pc.if_else(whole, part.nans, _only_zero(part.nans)),
                inexact,
                inexact,
            )
        nulls, nans = (pa.array((self.kind == k).astype(np.int64), mask=self.kind == 3) for k in (1, 2))
        low, high = (_taken(ends, self.at) for ends in (self.ranges.lows, self.ranges.highs))
        if part is None:
            return ColumnStats(low, high, nulls, nans, inexact, inexact)
        return ColumnStats(
            _filled(low, part.low, self.kind),
            _filled(high, part.high, self.kind),
            pc.if_else(whole, part.nulls, nulls),
            pc.if_else(whole, part.nans, nans),
            inexact,
            inexact,
        )


def _taken(ends: pa.Array, at: pa.Array) -> pa.Array:
    """The ends at some positions; there may be none at all, and then all are null."""
    return ends.take(at) if len(ends) else pa.nulls(len(at), ends.type)


def _filled(ends: pa.Array, bounds: pa.Array, kind: Ints) -> pa.Array:
    """The ends of ranges, and the bounds of whole files."""
    # By position and not by if_else, which garbles slices of strings before Arrow 24 (apache/arrow#49410).
    at = np.arange(len(kind)) + np.where(kind == 3, len(kind), 0)
    return pa.concat_arrays([ends, bounds]).take(pa.array(at))


def _only_zero(counts: pa.Array) -> pa.Array:
    """What a count of the file says of any one of its rows: if there is none there, it is none here."""
    return pc.if_else(pc.equal(counts, 0), pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
