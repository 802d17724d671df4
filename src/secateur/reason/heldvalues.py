"""Which values the files of a table can hold in a column, and which files can hold some of given values.

Range-sets say it where there are any, the bounds of the file otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.reason.facts import facts
from secateur.reason.rangesets import RangeSet, meets, union
from secateur.reason.verdict import Flags
from secateur.stats.filestats import FileStats, Mask, ScanColumn


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """All values that a column can take, and whether NULL and NaN are among them: those are in no range."""

    ranges: RangeSet
    null: bool
    nan: bool


def values_of(stats: FileStats, column: ScanColumn, kept: Mask) -> Held | None:
    """What a column can hold in the kept files together, None if one of them may hold anything (rule S1).

    >>> from secateur.query.types import parse_type
    >>> from secateur.stats.filestats import ColumnStats
    >>> flags, zeros = np.ones(3, dtype=np.bool_), pa.array([0, 0, 0])
    >>> known = ColumnStats(pa.array([1, 7, 5]), pa.array([3, 9, 7]), zeros, zeros, flags, flags)
    >>> stats = FileStats(pa.array([10, 10, 10]), pa.array([1, 1, 1]), load=lambda column: known)
    >>> values_of(stats, ScanColumn(1, "x", parse_type("int")), np.array([True, True, True])).ranges
    {[1, 3], [5, 9]}
    """
    domain = column.type.domain
    if domain is None:
        return None
    lows, highs, null, nan = [pa.nulls(0, domain)], [pa.nulls(0, domain)], False, False
    ranges, rest = stats.range_sets(column), kept
    if ranges is not None:
        here = np.flatnonzero(kept & ranges.known)
        at = pa.array(ranges.at(here)[0])
        lows.append(ranges.lows.take(at))
        highs.append(ranges.highs.take(at))
        null, nan = bool(ranges.null[here].any()), bool(ranges.nan[here].any())
        rest = kept & ~ranges.known
    if rest.any():
        known = facts(stats, column)
        bounds = stats.column(column)
        if known is None or bounds is None:
            return None
        holding = np.flatnonzero(rest & _mask(known.may_hold_number, stats.count))
        low, high = (array.take(pa.array(holding)) for array in (bounds.low, bounds.high))
        if low.null_count or high.null_count:
            return None
        lows.append(low)
        highs.append(high)
        null = null or bool((rest & _mask(known.may_hold_null, stats.count)).any())
        nan = nan or bool((rest & _mask(known.may_hold_nan, stats.count)).any())
    return Held(union(pa.concat_arrays(lows), pa.concat_arrays(highs)), null, nan)


def files_with(stats: FileStats, column: ScanColumn, wanted: RangeSet, *, null: bool, nan: bool) -> Mask:
    """The files that may hold one of some values in a column; ``null`` and ``nan`` say whether these are wanted, too.

    >>> from secateur.query.types import parse_type
    >>> from secateur.stats.filestats import ColumnStats
    >>> flags, zeros = np.ones(2, dtype=np.bool_), pa.array([0, 0])
    >>> known = ColumnStats(pa.array([1, 7]), pa.array([3, 9]), zeros, zeros, flags, flags)
    >>> stats = FileStats(pa.array([10, 10]), pa.array([1, 1]), load=lambda column: known)
    >>> wanted = union(pa.array([4, 20]), pa.array([7, 30]))
    >>> files_with(stats, ScanColumn(1, "x", parse_type("int")), wanted, null=False, nan=False).tolist()
    [False, True]
    """
    may = np.ones(stats.count, np.bool_)
    if column.type.domain != wanted.lows.type:
        return may
    known, bounds = facts(stats, column), stats.column(column)
    if known is not None and bounds is not None:
        unbounded = pc.or_(bounds.low.is_null(), bounds.high.is_null()).to_numpy(zero_copy_only=False)
        bounded = np.flatnonzero(~unbounded)
        at = pa.array(bounded)
        may[bounded] = meets(wanted, bounds.low.take(at), bounds.high.take(at))
        may &= _mask(known.may_hold_number, stats.count)
        if null:
            may |= _mask(known.may_hold_null, stats.count)
        if nan:
            may |= _mask(known.may_hold_nan, stats.count)
    ranges = stats.range_sets(column)
    if ranges is None:
        return may
    here = np.flatnonzero(may & ranges.known)
    positions, owner = ranges.at(here)
    at = pa.array(positions)
    found = np.zeros(len(here), np.bool_)
    found[owner[meets(wanted, ranges.lows.take(at), ranges.highs.take(at))]] = True
    may[here] = found | (null & ranges.null[here]) | (nan & ranges.nan[here])
    return may


def _mask(flags: Flags, count: int) -> Mask:
    return np.broadcast_to(np.bool_(flags), count) if isinstance(flags, bool) else flags
