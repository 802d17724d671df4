"""Scans of which a LIMIT needs only some rows, and the rows of their files that are sure to arrive.

A Limit says something about a scan as long as only Filters, deterministic Projects and outer joins that preserve its
rows lie in between, and for ORDER BY one Sort::

    Limit 10                          10 rows of t are needed, those with the greatest
      Project a#1                     values of b#2
        Sort b#2 DESC NULLS LAST
          Filter (a#1 > 5)
            Scan t [a#1 int, b#2 int]

Spark has moved limits below UNION ALL and to the preserved side of outer joins before this is looked at, and never
below what reduces rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from secateur.passes.contract import Known
from secateur.passes.predicates import Predicate, is_small, random_scans, through
from secateur.passes.sorted_scans import grouped_by
from secateur.query.expressions import conjuncts
from secateur.query.plan import Aggregate, Filter, Join, Limit, Plan, Project, Scan, Settings, Sort, SortKey, walk
from secateur.reason.evaluate import evaluate
from secateur.reason.ranges import Columns
from secateur.stats.filestats import FileStats, Mask

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Limited:
    """A scan below a LIMIT: how many rows are needed, in which order (none: any rows)."""

    count: int
    keys: tuple[SortKey, ...]
    scan: Scan
    predicate: Predicate
    """What lies between the two, every conjunct over the scan's columns."""
    grouped: bool = False
    """It is groups that are counted: rows with the same sort key may be one."""

    @property
    def columns(self) -> Columns:
        return {column.id: column for column in self.scan.columns}


def limited_scans(known: Known, *, ordered: bool) -> Iterator[Limited]:
    """The scans that a LIMIT with (``ordered``) or without an ORDER BY bounds, where that can be used."""
    ids = [scan.id for scan in known.query.scans()]
    random = random_scans(known.query)
    found: dict[int, Limited] = {}
    for node in walk(known.query.plan):
        limited = _below(node.child, node.count) if isinstance(node, Limit) else None
        if limited is None:
            continue
        scan = limited.scan
        usable = scan.id in known.stats and scan.id not in random and ids.count(scan.id) == 1 and not scan.lossy
        if usable and not scan.decided and bool(limited.keys) == ordered:
            # Of two limits above one scan the lower one is met last, and it is the one that reads the scan.
            found[scan.id] = limited
    yield from found.values()


def _below(plan: Plan, count: int, keys: tuple[SortKey, ...] = (), predicate: Predicate = ()) -> Limited | None:
    """The scan below a Limit, with every conjunct on the way: one left out would let rows count that do not arrive."""
    match plan:
        case Scan():
            return Limited(count, keys, plan, predicate)
        case Filter():
            return _below(plan.child, count, keys, (*predicate, *conjuncts(plan.condition)))
        case Project() if plan.deterministic:
            below = through(plan)
            moved = tuple(map(below, predicate))
            if not all(map(is_small, moved)):
                return None
            return _below(plan.child, count, tuple(replace(k, expression=below(k.expression)) for k in keys), moved)
        case Sort() if not keys:
            return _below(plan.child, count, plan.keys, predicate)
        case Join("LeftOuter", left=preserved) | Join("RightOuter", right=preserved):
            # Each row arrives, at least once; what is asked of columns of the other side is not sure of any row.
            return _below(preserved, count, keys, predicate)
        case Aggregate() if keys and not predicate and (key := grouped_by(plan, keys[0].expression)) is not None:
            found = _below(plan.child, count, (replace(keys[0], expression=key),))
            return None if found is None else replace(found, grouped=True)
    return None


def fully_matching(limited: Limited, stats: FileStats, kept: Mask, settings: Settings) -> Mask:
    """The kept files all of whose rows satisfy what lies between the LIMIT and the scan."""
    full = kept
    for conjunct in limited.predicate:
        full = full & evaluate(conjunct, stats, limited.columns, settings).must
        if not full.any():
            break
    return full


def sure_rows(stats: FileStats, full: Mask) -> Counts:
    """How many rows are sure to arrive from each file: those of fully matching files whose count is known (S4)."""
    counts: Counts = pc.fill_null(stats.rows, 0).to_numpy(zero_copy_only=False)
    return np.where(full, np.maximum(counts, 0), 0)
