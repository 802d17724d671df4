"""Which values the files of a table can hold in a column, and which files can hold some of given values.

Range-sets say it where there are any, the bounds of the file otherwise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from secateur.reason.facts import Facts, facts
from secateur.reason.rangesets import RangeSet, ends, meets, merged, overlaps, union, values_in
from secateur.stats.filestats import FileStats, Mask, ScanColumn


def values_of(stats: FileStats, column: ScanColumn, kept: Mask, found: Facts | None = None) -> RangeSet | None:
    """What a column can hold in the kept files together, None if one of them may hold anything (rule S1).

    >>> from secateur.query.types import parse_type
    >>> from secateur.stats.filestats import ColumnStats
    >>> flags, zeros = np.ones(3, dtype=np.bool_), pa.array([0, 0, 0])
    >>> known = ColumnStats(pa.array([1, 7, 5]), pa.array([3, 9, 7]), zeros, zeros, flags, flags)
    >>> stats = FileStats(pa.array([10, 10, 10]), pa.array([1, 1, 1]), load=lambda column: known)
    >>> values_of(stats, ScanColumn(1, "x", parse_type("int")), np.array([True, True, True])).pairs()
    [(1, 3), (5, 9)]
    """
    ranges = stats.range_sets(column)
    rest = kept if ranges is None else kept & ~ranges.known
    held = []
    if ranges is None or rest.any():
        found = facts(stats, column) if found is None else found
        by_bounds = None if found is None else values_in(found, rest)
        if by_bounds is None:
            return None
        held.append(by_bounds)
    if ranges is not None:
        here = np.flatnonzero(kept & ranges.known)
        at = pa.array(ranges.at(here)[0])
        by_ranges = merged(column.type, ends(ranges.lows.take(at)), ends(ranges.highs.take(at)))
        null, nan = bool(ranges.null[here].any()), bool(ranges.nan[here].any())
        held.append(replace(by_ranges, null=null, nan=nan and column.type.is_float))
    return union(held) if len(held) > 1 else held[0]


def files_with(stats: FileStats, column: ScanColumn, wanted: RangeSet, kept: Mask, found: Facts | None = None) -> Mask:
    """The kept files that may hold one of some values in a column.

    >>> from secateur.query.types import parse_type
    >>> from secateur.reason.rangesets import range_set
    >>> from secateur.stats.filestats import ColumnStats
    >>> flags, zeros = np.ones(2, dtype=np.bool_), pa.array([0, 0])
    >>> known = ColumnStats(pa.array([1, 7]), pa.array([3, 9]), zeros, zeros, flags, flags)
    >>> stats = FileStats(pa.array([10, 10]), pa.array([1, 1]), load=lambda column: known)
    >>> wanted = range_set(parse_type("int"), [(4, 7), (20, 30)])
    >>> files_with(stats, ScanColumn(1, "x", parse_type("int")), wanted, flags).tolist()
    [False, True]
    """
    may: Mask = kept.copy()
    found = facts(stats, column) if found is None else found
    if found is not None:
        alive = np.flatnonzero(kept)
        may[alive] = meets(found.at(alive), wanted)
    ranges = stats.range_sets(column)
    if ranges is None:
        return may
    here = np.flatnonzero(may & ranges.known)
    positions, owner = ranges.at(here)
    at = pa.array(positions)
    held = (wanted.null & ranges.null[here]) | (wanted.nan & ranges.nan[here])
    held[owner[overlaps(wanted, ends(ranges.lows.take(at)), ends(ranges.highs.take(at)))]] = True
    may[here] = held
    return may
