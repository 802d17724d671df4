"""Scans of which a LIMIT needs only some rows, and the rows of their files that are sure to arrive.

A Limit says something about a scan as long as only Filters, deterministic Projects and joins that preserve its rows
(outer joins, and EXISTS that is not a condition by itself) lie in between, and for ORDER BY one Sort::

    Limit 10                          10 rows of t are needed, those with the greatest
      Project a#1                     values of b#2
        Sort b#2 DESC NULLS LAST
          Filter (a#1 > 5)
            Scan t [a#1 int, b#2 int]

Spark has moved limits below UNION ALL and to the preserved side of outer joins before this is looked at, and never
below what reduces rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from secateur.evaluate.evaluator import evaluate
from secateur.evaluate.expression_ranges import Columns
from secateur.passes.contract import PassInput
from secateur.passes.filter.predicates import Predicate
from secateur.passes.limits.sorted_scans import NOWHERE
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression, conjuncts
from secateur.plan.nodes import (
    Aggregate,
    Filter,
    GroupLimit,
    Limit,
    Plan,
    Scan,
    Settings,
    Sort,
    SortKey,
)
from secateur.plan.propagation import Passage, Propagation
from secateur.plan.substitution import grouped_by
from secateur.stats.file_stats import FileStats

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LimitScope:
    """A scan below a LIMIT: how many rows are needed, in which order (none: any rows)."""

    count: int
    keys: tuple[SortKey, ...] = ()
    scan: Scan = NOWHERE
    predicate: Predicate = ()
    """What lies between the two, every conjunct over the scan's columns."""
    grouped: bool = False
    """It is groups that are counted: rows with the same sort key may be one."""
    partition: tuple[Expression, ...] = ()
    """So many rows are needed of each group of rows in which these are equal."""

    @property
    def columns(self) -> Columns:
        return {column.id: column for column in self.scan.columns}


def limit_scopes(known: PassInput, *, ordered: bool) -> Iterator[LimitScope]:
    """The scans that a LIMIT with (``ordered``) or without an ORDER BY bounds, where that can be used."""
    ways = known.analysis.propagation
    limits = [_below(node.child, LimitScope(node.count), ways) for node in known.query.nodes if isinstance(node, Limit)]
    wanted = (scope for scope in limits if scope and bool(scope.keys) == ordered and not scope.scan.decided)
    yield from _usable(wanted, known)


_RANKS = ("RowNumber", "Rank", "DenseRank")


def window_scopes(known: PassInput) -> Iterator[LimitScope]:
    """The scans of which a window needs the first rows only."""
    for node in known.query.nodes:
        if isinstance(node, GroupLimit) and node.function in _RANKS and not node.subqueries:
            different = node.function == "DenseRank"
            above = LimitScope(node.count, node.keys, grouped=different, partition=node.partition)
            scope = _below(node.child, above, known.analysis.propagation)
            if scope:
                yield from _usable((scope,), known)


def _usable(found: Iterable[LimitScope], known: PassInput) -> Iterator[LimitScope]:
    ids = [scan.id for scan in known.query.scans()]
    order_sensitive = known.analysis.order_sensitive
    by_scan: dict[int, LimitScope] = {}
    for scope in found:
        scan = scope.scan
        if scan.id in known.stats and scan.id not in order_sensitive and ids.count(scan.id) == 1 and not scan.lossy:
            # Of two limits above one scan the lower one is met last, and it is the one that reads the scan.
            by_scan[scan.id] = scope
    yield from by_scan.values()


def _below(plan: Plan, above: LimitScope, propagation: Propagation) -> LimitScope | None:
    """The scan below a Limit, with every conjunct on the way: one left out would let rows count that do not arrive."""
    match plan:
        case Scan():
            return replace(above, scan=plan)
        case Sort() if not above.keys:
            return _below(plan.child, replace(above, keys=plan.keys), propagation)
        case Aggregate() if above.keys and not above.predicate and not above.partition:
            key = grouped_by(plan, above.keys[0].expression)
            if key is None:
                return None
            keys = (replace(above.keys[0], expression=key),)
            return _below(plan.child, replace(above, keys=keys, grouped=True), propagation)
        case Filter():
            above = replace(above, predicate=(*above.predicate, *conjuncts(plan.condition)))
            return _below(plan.child, above, propagation)
    for way in propagation.passages(plan):
        if way.arrives:
            inside = _through(way, above)
            return None if inside is None else _below(way.child, inside, propagation)
    return None


def _through(way: Passage, above: LimitScope) -> LimitScope | None:
    """The same over the columns of the input, None if that cannot be said of one of them."""
    if way.side is not None:
        # Each row arrives, at least once; what is asked of columns of the other side is not sure of any row.
        return above
    keys = [way.below(key.expression) for key in above.keys]
    predicate, partition = list(map(way.below, above.predicate)), list(map(way.below, above.partition))
    if None in keys or None in predicate or None in partition:
        return None
    return replace(
        above,
        keys=tuple(replace(key, expression=e) for key, e in zip(above.keys, keys, strict=True) if e is not None),
        predicate=tuple(e for e in predicate if e is not None),
        partition=tuple(e for e in partition if e is not None),
    )


def fully_matching(scope: LimitScope, stats: FileStats, kept: Mask, settings: Settings) -> Mask:
    """The kept files all of whose rows satisfy what lies between the LIMIT and the scan."""
    full = kept
    for conjunct in scope.predicate:
        full = full & evaluate(conjunct, stats, scope.columns, settings).must
        if not full.any():
            break
    return full


def sure_rows(stats: FileStats, full: Mask) -> Counts:
    """How many rows are sure to arrive from each file: those of fully matching files whose count is known (S4)."""
    counts: Counts = pc.fill_null(stats.rows, 0).to_numpy(zero_copy_only=False)
    return np.where(full, np.maximum(counts, 0), 0)
