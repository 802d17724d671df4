"""Top-k pruning: for ORDER BY … LIMIT k, skip the files whose rows cannot be among the first k.

Before and after, for ``ORDER BY x DESC LIMIT 2`` with two rows in each file, x up to 9 in the first, 7 in the second::

    Limit 2                        kept: [True, True]    ->    kept: [True, False]
      Sort x DESC NULLS LAST
        Scan t [x]  (6..9, 1..5)

From metadata alone at least k rows are known to be at or beyond a *boundary* (section 5.4 of the Snowflake paper): a
fully matching file whose greatest value v is exact has one row at v, and all its other rows are at its least value or
beyond. Sorted from the best value down, the rows of these pairs are counted until there are k; there lies the boundary.
A file is needed only if it may hold a row at the boundary or beyond, so ties and all further sort keys stay right.

NULLs count as beyond everything with NULLS FIRST, otherwise they do not count. NaN is the greatest number (rule S5):
with DESC it is beyond any boundary, with ASC it does not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.decision.parts import Keep, Part
from secateur.evaluate.evaluator import context_of
from secateur.evaluate.expression_ranges import range_of
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.filter import narrow
from secateur.passes.limits.limit_scope import Counts, LimitScope, fully_matching, limit_scopes, sure_rows
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Compare, Expression, IsNull, Literal, Or
from secateur.plan.nodes import Settings, SortKey
from secateur.plan.wording import in_words
from secateur.reasons import Reason
from secateur.stats.file_stats import FileStats


def prune_by_topk(known: PassInput) -> PassResult:
    """Keep of every scan below ORDER BY and LIMIT the files that may hold one of the first rows."""
    parts: list[tuple[int, Part]] = []
    for scope in limit_scopes(known, ordered=True):
        id_ = scope.scan.id
        stats, before = known.stats[id_], known.kept[id_]
        if not scope.count or not before.any():
            continue
        boundary = boundary_of(scope, stats, before, known.query.settings)
        if boundary is None:
            parts.append((id_, _no_boundary(scope)))
            continue
        after = narrow((boundary,), stats, scope.columns, before, known.query.settings)
        if np.count_nonzero(after) < np.count_nonzero(before):
            parts.append((id_, Keep(after, needs_kept_unchanged=True)))
        else:
            parts.append((id_, _not_selective(scope, boundary)))
    return parts


def boundary_of(scope: LimitScope, stats: FileStats, kept: Mask, settings: Settings) -> Expression | None:
    """A condition that each of the first rows satisfies, None if metadata tell of none."""
    key = scope.keys[0]
    value_range = range_of(key.expression, context_of(stats, scope.columns, settings))
    if value_range is None or key.expression.type.domain is None:
        return None
    rows = sure_rows(stats, fully_matching(scope, stats, kept, settings))
    values, counts, _ = counted_values(key, value_range, rows, stats, scope)
    if scope.grouped:
        values, counts = _different(values)
    value = _kth(values, counts, scope.count, descending=key.descending)
    if value is None:
        return None
    return at_or_beyond(key, Literal(value, value_range.type))


def at_or_beyond(key: SortKey, boundary: Literal) -> Expression:
    """What the rows satisfy that do not come after a boundary."""
    row_filter = Compare(">=" if key.descending else "<=", key.expression, boundary)
    return Or(row_filter, IsNull(key.expression)) if key.nulls_first else row_filter


def counted_values(
    key: SortKey, value_range: ValueRange, rows: Counts, stats: FileStats, scope: LimitScope
) -> tuple[pa.Array, Counts, npt.NDArray[np.intp]]:
    """Values, how many rows are at each or beyond it, no row twice, and in which files.

    Where groups are counted, the values are some that occur.
    """
    best, worst = (value_range.high, value_range.low) if key.descending else (value_range.low, value_range.high)
    ranked = _ranked_rows(key, value_range, rows, stats, scope)
    one = np.where(_exact(key, stats, scope) & ~as_flags(best.unknown, len(rows)), np.minimum(rows, 1), 0)
    if scope.grouped:
        rest = np.where(_exact(key, stats, scope, best=False), np.minimum(rows, 1), 0)
    else:
        rest = np.maximum(ranked - one, 0)
    rest = np.where(as_flags(worst.unknown, len(rows)), 0, rest)
    values = pa.concat_arrays([_taken(best, one), _taken(worst, rest)])
    places = np.concatenate([np.flatnonzero(one), np.flatnonzero(rest)])
    return values, np.concatenate([one[one > 0], rest[rest > 0]]), places


def _different(values: pa.Array) -> tuple[pa.Array, Counts]:
    """The values that are known to occur, each once: so many groups there are at least."""
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # -0.0 and 0.0 are one group
    values = pc.unique(values).drop_null()
    return values, np.ones(len(values), np.int64)


def _ranked_rows(key: SortKey, value_range: ValueRange, rows: Counts, stats: FileStats, scope: LimitScope) -> Counts:
    """Of the rows that are sure to arrive, those that lie within the bounds or beyond them."""
    count = len(rows)
    unsure = np.zeros(count, np.int64)
    column = _column(key, scope)
    known = stats.column(column) if column is not None else None
    if not key.nulls_first:
        unsure = unsure + _at_most(value_range.may_hold_null, known.nulls if known else None, rows)
    if not key.descending and value_range.type.is_float:
        unsure = unsure + _at_most(value_range.may_hold_nan, known.nans if known else None, rows)
    ranked: Counts = np.maximum(rows - unsure, 0)
    return ranked


def _at_most(possible: Any, counted: pa.Array | None, rows: Counts) -> Counts:
    """How many rows of a kind there are at most: none if it is not possible, those counted, or all."""
    most: Counts = (
        rows if counted is None else pc.fill_null(counted, np.iinfo(np.int64).max).to_numpy(zero_copy_only=False)
    )
    most = np.where(most < 0, rows, np.minimum(most, rows))
    return np.where(as_flags(possible, len(rows)), most, 0)


def _exact(key: SortKey, stats: FileStats, scope: LimitScope, *, best: bool = True) -> Mask:
    """Where the best bound, or the worst, is a value that occurs (rule S3)."""
    column = _column(key, scope)
    known = stats.column(column) if column is not None else None
    if known is None:
        return np.zeros(stats.count, np.bool_)
    return known.high_exact if key.descending == best else known.low_exact


def _column(key: SortKey, scope: LimitScope) -> Any:
    match key.expression:
        case Column(id_, _, type_):
            column = scope.columns.get(id_)
            return column if column is not None and column.type == type_ else None
    return None


def as_flags(flags: Any, count: int) -> Mask:
    """One flag for each of so many entries."""
    return np.full(count, flags, np.bool_) if isinstance(flags, bool) else flags


def taken(bound: Bound, places: npt.NDArray[np.intp]) -> pa.Array:
    """The bounds of some entries."""
    return (
        pa.array(bound.values[places]) if isinstance(bound.values, np.ndarray) else bound.values.take(pa.array(places))
    )


def _taken(bound: Bound, counts: Counts) -> pa.Array:
    return taken(bound, np.flatnonzero(counts))


def _kth(values: pa.Array, counts: Counts, needed: int, *, descending: bool) -> Any:
    """The value at which the rows, from the best down, are as many as needed.

    >>> _kth(pa.array([3, 9, 7]), np.array([10, 1, 4]), 5, descending=True)
    7
    >>> _kth(pa.array([3, 9]), np.array([2, 1]), 5, descending=True) is None
    True
    """
    if int(counts.sum()) < needed:
        return None
    order = pc.sort_indices(values, sort_keys=[("", "descending" if descending else "ascending")])
    place = int(np.searchsorted(np.cumsum(counts[order.to_numpy()]), needed))
    return values[order[place].as_py()].as_py()


def _no_boundary(scope: LimitScope) -> Reason:
    key = in_words(scope.keys[0].expression)
    return Reason(
        "no-boundary",
        f"The statistics of {scope.scan.table} do not show which {scope.count:,} rows come first by {key}: too few "
        "files match fully, or the bounds and NULL counts of the sort key are unknown. Filter by columns that the "
        "table is sorted by, and collect statistics of the sort key.",
    )


def _not_selective(scope: LimitScope, boundary: Expression) -> Reason:
    key = in_words(scope.keys[0].expression)
    return Reason(
        "boundary-not-selective",
        f"Every file of {scope.scan.table} may hold one of the first {scope.count:,} rows by {key}, those with "
        f"{in_words(boundary)}. Sort or cluster the table by {key}.",
    )
