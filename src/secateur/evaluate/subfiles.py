"""Files taken apart by the ranges of one column, so that the evaluator sees the gaps between them.

A range stands for the rows whose value lies in it, with whatever is known of the file's other columns; so do the rows
with NULL and those with NaN. Every row of the file belongs to one of these parts, and a part is an entry like any
other: what can reason about files can reason about parts. A file without a range set is one part, itself.

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

from secateur.evaluate.evaluator import context_of
from secateur.evaluate.expression_ranges import EvalContext, column_source, range_of
from secateur.evaluate.in_lists import search, take
from secateur.evaluate.range_sets import RangeSet, meets, values_in
from secateur.evaluate.value_range import ValueRange, value_range
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Column, Expression, walk
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.file_stats import ColumnStats, FileStats

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Subfiles:
    """The parts of all files: what is known of them, and the file of each."""

    stats: FileStats
    owner: Ints
    whole: Mask
    """The files that were not taken apart."""

    def of(self, files: Mask) -> Ints:
        """The positions of the parts of some files."""
        return np.arange(len(self.owner)) if files.all() else files[self.owner].nonzero()[0]

    def marked(self, files: Mask) -> Mask:
        """A flag for each part, whether it is of one of some files."""
        return np.ones(len(self.owner), np.bool_) if files.all() else files[self.owner]


def subfiles_by(stats: FileStats, column: ScanColumn) -> Subfiles | None:
    """All files taken apart by a column, None if no range-set of it is known."""
    return stats.derive(column, _take_apart)


def values_of(stats: FileStats, column: ScanColumn, kept: Mask) -> RangeSet | None:
    """What a column can hold in the kept files together: by their range-sets, by bounds where there are none.

    None if one of them may hold anything (rule S1).

    >>> from secateur.plan.types import parse_type
    >>> flags, zeros = np.ones(3, dtype=np.bool_), pa.array([0, 0, 0])
    >>> known = ColumnStats(pa.array([1, 7, 5]), pa.array([3, 9, 7]), zeros, zeros, flags, flags)
    >>> lists = pa.array([None, [7, 9], None]), pa.array([None, [7, 9], None])
    >>> ranges = FileRangeSets.of_lists(*lists, pa.array([False] * 3), pa.array([False] * 3))
    >>> stats = FileStats(pa.array([10, 10, 10]), zeros, load=lambda column: known, ranges=lambda column: ranges)
    >>> values_of(stats, ScanColumn(1, "x", parse_type("int")), np.array([True, True, False])).pairs()
    [(1, 3), (7, 7), (9, 9)]
    """
    return stats.derive(column, _values_of_all) if kept.all() else _values_of(stats, column, kept)


def _values_of_all(stats: FileStats, column: ScanColumn) -> RangeSet | None:
    return _values_of(stats, column, np.ones(stats.count, np.bool_))


def _values_of(stats: FileStats, column: ScanColumn, kept: Mask) -> RangeSet | None:
    parts = subfiles_by(stats, column)
    found = value_range(stats if parts is None else parts.stats, column)
    return None if found is None else values_in(found, np.flatnonzero(kept) if parts is None else parts.of(kept))


def finest(e: Expression, context: EvalContext) -> tuple[ValueRange | None, Subfiles | None]:
    """What is known of an expression in the files, or in their parts if one of its columns has range-sets."""
    sources = (column_source(part, context.columns) for part in walk(e) if isinstance(part, Column))
    parts = next((p for s in sources if s is not None and (p := subfiles_by(context.stats, s)) is not None), None)
    return range_of(e, context if parts is None else context_of(parts.stats, context.columns, context.settings)), parts


def files_meeting(
    found: ValueRange, fine: ValueRange | None, parts: Subfiles | None, wanted: RangeSet, kept: Mask
) -> Mask:
    """The kept files that meet the set and of which, if they come in parts, some part does."""
    alive = kept.nonzero()[0]
    met = np.zeros(len(kept), np.bool_)
    met[alive] = meets(found, wanted, alive if len(alive) < len(kept) else None)
    if fine is None or parts is None:
        return met
    # A file whose least number is wanted has a part that meets the set: no need to look at its parts.
    begins = _begins_in(found, wanted, met)
    open_ = met if begins is None else met & ~begins
    left = np.zeros(len(kept), np.bool_) if begins is None else begins
    if not open_.any():
        return left
    at = parts.of(open_)
    left[parts.owner[at[np.broadcast_to(meets(fine, wanted, at), len(at))]]] = True
    return left


def _begins_in(found: ValueRange, wanted: RangeSet, met: Mask) -> Mask | None:
    """Those of some files whose least number is in the set, None if numbers do not tell."""
    low = found.low.values
    certain = found.may_hold_number is True and found.low.unknown is False
    if not certain or not isinstance(low, np.ndarray) or not len(wanted):
        return None
    first = np.minimum(search(wanted.high, low), len(wanted) - 1)
    begins: Mask = met & (take(wanted.low, first) <= low) & (low <= take(wanted.high, first))
    return begins


def files_where(e: Expression, wanted: RangeSet, context: EvalContext, kept: Mask) -> Mask:
    """The kept files in which an expression may take one of some values."""
    found = range_of(e, context)
    return kept if found is None else files_meeting(found, *finest(e, context), wanted, kept)


def _take_apart(stats: FileStats, column: ScanColumn) -> Subfiles | None:
    ranges = stats.range_sets(column)
    if ranges is None or not ranges.known.any():
        return None
    owner = np.repeat(np.arange(stats.count), ranges.counts)
    null, nan = np.flatnonzero(ranges.known & ranges.null), np.flatnonzero(ranges.known & ranges.nan)
    whole = np.flatnonzero(~ranges.known)
    kind = np.repeat(np.arange(4), [len(owner), len(null), len(nan), len(whole)])
    split = _Split(stats, ranges, np.concatenate([owner, null, nan, whole]), kind)
    rows = pa.concat_arrays([pa.array(np.ones(len(kind) - len(whole), np.int64)), stats.rows.take(pa.array(whole))])
    parts = FileStats(rows, pa.nulls(len(kind), pa.int64()), lambda asked: split.load(asked, column), nested=True)
    return Subfiles(parts, split.owner, ~ranges.known)


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """How files come apart: ranges first (kind 0), then the parts with NULL (1), with NaN (2), and whole files (3)."""

    files: FileStats
    ranges: FileRangeSets
    owner: Ints
    kind: Ints

    def load(self, asked: ScanColumn, column: ScanColumn) -> ColumnStats | None:
        found = self.files.column(asked)
        inexact = np.zeros(len(self.owner), np.bool_)
        if (asked.name, asked.kind, asked.type, asked.path) == (column.name, column.kind, column.type, column.path):
            whole = None if found is None else found.take(self.owner[self.kind == 3])
            low, high, nulls, nans = (whole.low, whole.high, whole.nulls, whole.nans) if whole else (None,) * 4
            low, high = self._bounds(self.ranges.lows, low), self._bounds(self.ranges.highs, high)
            return ColumnStats(low, high, self._counts(1, nulls), self._counts(2, nans), inexact, inexact)
        return None if found is None else any_row(found, self.files.rows, self.owner, self.kind == 3)

    def _bounds(self, ends: pa.Array, whole: pa.Array | None) -> pa.Array:
        """The ends of ranges, nothing for the parts with NULL and NaN, and the bounds of whole files."""
        rest = len(self.kind) - len(ends) - (0 if whole is None else len(whole))
        parts = [ends, pa.nulls(rest, ends.type), *([] if whole is None else [whole])]
        return pa.concat_arrays([part for part in parts if len(part)] or [ends])

    def _counts(self, kind: int, whole: pa.Array | None) -> pa.Array:
        """One in the parts of a kind, none in the others, and the counts of whole files."""
        counts = pa.array((self.kind == kind).astype(np.int64), mask=self.kind == 3)
        return counts if whole is None else pa.concat_arrays([counts[: len(counts) - len(whole)], whole])


def any_row(found: ColumnStats, rows: pa.Array, owner: Ints, whole: Mask) -> ColumnStats:
    """What is known of a column in entries that stand for any one row of their files, or for a whole file."""
    part, is_whole = found.take(owner), pa.array(whole)
    bounded = pc.or_(part.low.is_valid(), part.high.is_valid())
    all_null = pc.and_not(pc.equal(part.nulls, rows.take(pa.array(owner))).fill_null(False), bounded)
    nulls = pc.if_else(all_null, pa.scalar(1, pa.int64()), _only_zero(part.nulls))
    nulls = pc.if_else(is_whole, part.nulls, nulls)
    nans = pc.if_else(is_whole, part.nans, _only_zero(part.nans))
    inexact = np.zeros(len(owner), np.bool_)
    return ColumnStats(part.low, part.high, nulls, nans, inexact, inexact)


def _only_zero(counts: pa.Array) -> pa.Array:
    """What a count of the file says of any one of its rows: if there is none there, it is none here."""
    return pc.if_else(pc.equal(counts, 0), pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
