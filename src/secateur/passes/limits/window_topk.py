"""Windows of which only the first rows are asked for: skip the files whose rows cannot be among them.

Before and after, for ``row_number() OVER (PARTITION BY g ORDER BY x DESC) <= 2`` with two rows in each file::

    GroupLimit RowNumber 2 [g] x DESC                kept: [True, True, True]    ->    kept: [True, False, True]
      Scan t [g, x]  (a: 6..9, a: 1..5, b: 2..3)

Spark puts such a limit below a window if all that the window computes looks at the rows up to the current one alone, so
that it matters only which rows come first in their group. It is the boundary of :mod:`secateur.passes.limits.topk`, one
for each group: of files that are known to lie within one group, since each expression that the window is partitioned by
has one value in them, or only NULLs. All others are read, and count for nothing.

``row_number`` and ``rank`` leave no row that k others come before; rows with the same sort key are kept together.
``dense_rank`` counts different sort keys: as many values as are known to occur.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.decision.parts import Keep, Part
from secateur.evaluate.evaluator import context_of
from secateur.evaluate.expression_ranges import range_of
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.limits.limit_scope import Counts, LimitScope, fully_matching, sure_rows, window_scopes
from secateur.passes.limits.topk import as_flags, counted_values
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression
from secateur.plan.nodes import Settings
from secateur.plan.wording import in_words
from secateur.reasons import Reason
from secateur.stats.arrays import null_mask
from secateur.stats.file_stats import FileStats

Codes = npt.NDArray[np.int64]


def prune_by_window_topk(known: PassInput) -> PassResult:
    """Keep of every scan below such a window the files that may hold one of the first rows of a group."""
    parts: list[tuple[int, Part]] = []
    for scope in window_scopes(known):
        id_ = scope.scan.id
        stats, before = known.stats[id_], known.kept[id_]
        if not before.any():
            continue
        after = before & may_come_first(scope, stats, before, known.query.settings)
        if np.count_nonzero(after) < np.count_nonzero(before):
            parts.append((id_, Keep(after, needs_kept_unchanged=True)))
        else:
            parts.append((id_, _not_selective(scope)))
    return parts


def may_come_first(scope: LimitScope, stats: FileStats, kept: Mask, settings: Settings) -> Mask:
    """The files that may hold one of the first rows of a group."""
    key = scope.keys[0]
    context = context_of(stats, scope.columns, settings)
    value_range = range_of(key.expression, context)
    everything = np.ones(stats.count, np.bool_)
    if value_range is None or key.expression.type.domain is None:
        return everything
    groups = groups_of([range_of(e, context) for e in scope.partition], scope.partition, stats.count)
    rows = sure_rows(stats, fully_matching(scope, stats, kept & (groups >= 0), settings))
    values, counts, places = counted_values(key, value_range, rows, stats, scope)
    # A bound that is NULL is unknown (rule S1).
    known = ~null_mask(values)
    values, counts, places = values.drop_null(), counts[known], places[known]
    best = value_range.high if key.descending else value_range.low
    ends_of_files = _whole(best, values.type)
    ranks = _ranks(pa.concat_arrays([values, ends_of_files]), descending=key.descending)
    counted, of_file = ranks[: len(values)], ranks[len(values) :]
    last = np.full(int(groups.max()) + 2, np.iinfo(np.int64).max)  # the last one is that of the group -1
    reached, ends = _ends(groups[places], counted, counts, scope)
    last[reached] = ends
    beyond = (groups >= 0) & (of_file > last[groups]) & ~as_flags(best.unknown, stats.count)
    beyond &= ~null_mask(ends_of_files)
    if key.nulls_first:
        beyond &= ~as_flags(value_range.may_hold_null, stats.count)
    if key.descending:
        beyond &= ~as_flags(value_range.may_hold_nan, stats.count)
    return ~beyond


def groups_of(known: list[ValueRange | None], by: tuple[Expression, ...], count: int) -> Codes:
    """A number for the group that all rows of a file belong to, -1 if that is not known."""
    codes = np.zeros(count, np.int64)
    unknown = np.zeros(count, np.bool_)
    for value_range, e in zip(known, by, strict=True):
        if value_range is None or value_range.type.is_float or value_range.type != e.type:
            return np.full(count, -1, np.int64)
        one = _is_constant(value_range, count) & ~as_flags(value_range.may_hold_null, count)
        none = ~as_flags(value_range.may_hold_value, count)
        values = _whole(value_range.low, None).dictionary_encode()
        places = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        here = np.where(none, len(values.dictionary), places)
        unknown |= ~(one | none)
        _, codes = np.unique(codes * (len(values.dictionary) + 1) + here, return_inverse=True)
    return np.where(unknown, -1, codes)


def _is_constant(value_range: ValueRange, count: int) -> Mask:
    low, high = value_range.low.values, value_range.high.values
    if isinstance(low, np.ndarray) and isinstance(high, np.ndarray):
        same = low == high
    elif isinstance(low, pa.Array) and isinstance(high, pa.Array):
        same = pc.fill_null(pc.equal(low, high), False).to_numpy(zero_copy_only=False)
    else:
        return np.zeros(count, np.bool_)
    sure: Mask = same & ~as_flags(value_range.low.unknown, count) & ~as_flags(value_range.high.unknown, count)
    return sure


def _whole(bound: Bound, type_: pa.DataType | None) -> pa.Array:
    values = pa.array(bound.values) if isinstance(bound.values, np.ndarray) else bound.values
    return values if type_ is None or values.type == type_ else values.cast(type_)


def _ranks(values: pa.Array, *, descending: bool) -> Codes:
    """The place of each value among the different ones, the best first; NULLs come anywhere.

    >>> _ranks(pa.array([3, 9, 3, 7]), descending=True).tolist()
    [2, 0, 2, 1]
    """
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # -0.0 and 0.0 come at the same place
    found = values.dictionary_encode()
    order = pc.sort_indices(found.dictionary, sort_keys=[("", "descending" if descending else "ascending")])
    places = np.empty(len(order), np.int64)
    places[order.to_numpy()] = np.arange(len(order))
    indices = pc.fill_null(found.indices, 0).to_numpy(zero_copy_only=False)
    return places[indices] if len(places) else np.zeros(len(values), np.int64)


def _ends(groups: Codes, ranks: Codes, counts: Counts, scope: LimitScope) -> tuple[Codes, Codes]:
    """The groups that are known to have as many rows as needed, and the rank at which that is so.

    >>> groups, ranks, counts = np.array([1, 0, 1, 0]), np.array([3, 1, 0, 2]), np.array([5, 1, 1, 1])
    >>> _ends(groups, ranks, counts, LimitScope(2))
    (array([0, 1]), array([2, 3]))
    >>> _ends(groups, ranks, counts, LimitScope(3))
    (array([1]), array([3]))
    """
    if scope.grouped:
        _, first = np.unique(np.stack([groups, ranks]), axis=1, return_index=True)
        groups, ranks, counts = groups[first], ranks[first], np.ones(len(first), np.int64)
    order = np.lexsort((ranks, groups))
    groups, ranks = groups[order], ranks[order]
    total = np.cumsum(counts[order])
    begins = np.flatnonzero(np.diff(groups, prepend=-1))
    before = np.repeat(total[begins] - counts[order][begins], np.diff(begins, append=len(groups)))
    enough = total - before >= scope.count
    reached, first = np.unique(groups[enough], return_index=True)
    return reached, ranks[enough][first]


def _not_selective(scope: LimitScope) -> Reason:
    by = ", ".join(map(in_words, scope.partition))
    groups = f" of each {by}" if by else ""
    return Reason(
        "window-not-selective",
        f"No file of {scope.scan.table} is known to lie behind the first {scope.count:,} rows{groups} by "
        f"{in_words(scope.keys[0].expression)}. Partition or cluster the table by {by or 'the sort key'}, so that a "
        "file holds one group.",
    )
