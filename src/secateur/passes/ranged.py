"""Filter pruning by range-sets: skip the files whose values all lie beside what the WHERE clause asks for.

Before and after, with x in {[1, 39], [46, 60]} in the first file and in {[1, 60]} in the second::

    Filter (x > 40 AND x < 45)      kept: [True, True]    ->    kept: [False, True]
      Scan t [x]

A file is taken apart by the ranges of one column: each range stands for the rows whose value lies in it, with whatever
is known of the file's other columns, and so do the rows with NULL and those with NaN. Every row of the file belongs to
one of these parts. The evaluator is asked about the parts as if they were files, all conjuncts that speak of the column
at once: a file whose parts are all ruled out has no row that could match. So ``x > 40`` rules out the first part above
and ``x < 45`` the second, and functions, IN and OR need nothing of their own.

Files without range-sets stay (rule S1).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.passes.contract import Known, Limits, Outcome
from secateur.passes.predicates import Predicate, random_scans, scan_predicates
from secateur.passes.tree import PruningTree
from secateur.query.expressions import Column, walk
from secateur.query.plan import Scan, Settings
from secateur.reason.ranges import Columns
from secateur.stats.fileranges import FileRanges
from secateur.stats.filestats import ColumnStats, FileStats, Mask, ScanColumn

Ints = npt.NDArray[np.int64]
_DEFAULTS = Settings()
_LIMITS = Limits()


def range_files(known: Known) -> Outcome:
    """Keep of every scan the files that have a range in which some row may satisfy all Filters right above the scan."""
    predicates, random = scan_predicates(known.query), random_scans(known.query)
    kept: dict[int, Mask] = {}
    for scan in {scan.id: scan for scan in known.query.scans()}.values():
        stats = known.stats.get(scan.id)
        if scan.declined or scan.decided or scan.id in random or stats is None or not predicates[scan.id]:
            continue
        before = known.kept[scan.id]
        after = narrow_by_ranges(predicates[scan.id], stats, scan, before, known.query.settings, known.limits)
        if np.count_nonzero(after) < np.count_nonzero(before):
            kept[scan.id] = after
    return Outcome(kept)


def narrow_by_ranges(
    predicate: Predicate,
    stats: FileStats,
    scan: Scan,
    kept: Mask,
    settings: Settings = _DEFAULTS,
    limits: Limits = _LIMITS,
) -> Mask:
    """The kept files that may hold a row which makes every conjunct TRUE, by the range-sets of each column in turn."""
    columns = {column.id: column for column in scan.columns}
    for column, about in _by_column(predicate, columns):
        if not kept.any():
            break
        ranges = stats.range_sets(column)
        if ranges is None:
            continue
        where = np.flatnonzero(kept & ranges.known)
        parts, owner = take_apart(stats, column, ranges, where)
        tree = PruningTree(about, columns, settings, limits)
        may = tree.entries(parts, np.ones(parts.count, np.bool_))
        after = kept.copy()
        after[where] = False
        after[where[owner[may]]] = True
        kept = after
    return kept


def take_apart(stats: FileStats, column: ScanColumn, ranges: FileRanges, where: Ints) -> tuple[FileStats, Ints]:
    """Some files as parts, one for each range of a column, NULL and NaN, and for each part its place in ``where``.

    An entry stands for any one row of its part.
    """
    positions, owner = ranges.at(where)
    null, nan = np.flatnonzero(ranges.null[where]), np.flatnonzero(ranges.nan[where])
    owner = np.concatenate([owner, null, nan])
    count, odd = len(owner), len(null) + len(nan)
    at = pa.array(np.append(positions, np.zeros(odd, np.int64)), mask=np.arange(count) >= count - odd)
    is_null = np.zeros(count, np.int64)
    is_null[len(positions) : len(positions) + len(null)] = 1
    is_nan = np.zeros(count, np.int64)
    is_nan[len(positions) + len(null) :] = 1
    inexact = np.zeros(count, np.bool_)
    files = where[owner]

    def load(asked: ScanColumn) -> ColumnStats | None:
        if asked.name == column.name and asked.kind == column.kind and asked.type == column.type and not asked.path:
            low, high = (_taken(ends, at) for ends in (ranges.lows, ranges.highs))
            return ColumnStats(low, high, pa.array(is_null), pa.array(is_nan), inexact, inexact)
        whole = stats.column(asked)
        if whole is None:
            return None
        part, rows = whole.take(files), stats.rows.take(pa.array(files))
        bounded = pc.or_(part.low.is_valid(), part.high.is_valid())
        all_null = pc.and_not(pc.equal(part.nulls, rows).fill_null(False), bounded)
        nulls = pc.if_else(all_null, pa.scalar(1, pa.int64()), _only_zero(part.nulls))
        return ColumnStats(part.low, part.high, nulls, _only_zero(part.nans), inexact, inexact)

    ones = pa.array(np.ones(count, np.int64))
    return FileStats(ones, ones, load, nested=True), owner


def _by_column(predicate: Predicate, columns: Columns) -> Iterator[tuple[ScanColumn, Predicate]]:
    """Each column with the conjuncts that speak of it."""
    named = [{part.id for part in walk(c) if isinstance(part, Column) and not part.path} for c in predicate]
    for id_ in dict.fromkeys(id_ for ids in named for id_ in sorted(ids)):
        if id_ in columns and columns[id_].kind == "data":
            yield columns[id_], tuple(c for c, ids in zip(predicate, named, strict=True) if id_ in ids)


def _taken(ends: pa.Array, at: pa.Array) -> pa.Array:
    """The ends at some positions; there may be none at all, and then all are null."""
    return ends.take(at) if len(ends) else pa.nulls(len(at), ends.type)


def _only_zero(counts: pa.Array) -> pa.Array:
    """What a count of the file says of any one of its rows: if there is none there, it is none here."""
    return pc.if_else(pc.equal(counts, 0), pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64()))
