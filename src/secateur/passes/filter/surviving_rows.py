"""The rows of a small table that may still matter, while joining tables tell each other what they hold.

First those that may pass the conditions right above the scan; then, with each message, those of them that have a
partner. A row that does not pass its conditions, or has no partner where it needs one, has no part in the answer,
whether its file is read or not: so what such rows hold need not be told to others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from secateur.evaluate.evaluator import context_of, evaluate
from secateur.evaluate.expression_ranges import EvalContext, range_of
from secateur.evaluate.known_rows import rows_by
from secateur.evaluate.range_sets import RangeSet, meets, values_in
from secateur.evaluate.subfiles import Ints, Subfiles
from secateur.passes.contract import PassInput
from secateur.passes.filter.predicates import Predicate, scan_predicate
from secateur.passes.filter.tree import PruningTree
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression, IsNotNull
from secateur.plan.nodes import Scan


@dataclass(slots=True)
class SurvivingRows:
    """The rows of all files of a scan, and the positions of those that are left."""

    context: EvalContext
    parts: Subfiles
    left: Ints
    predicate: Predicate = ()
    _files: Mask | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every row is left."""
        return len(self.left) == self.parts.stats.count

    @property
    def is_certain(self) -> bool:
        """Whether each row that is left passes all conditions for sure: then a query would find out no more."""
        stats, columns, settings = self.context.stats.take(self.left), self.context.columns, self.context.settings
        return not self.parts.whole.any() and all(
            evaluate(conjunct, stats, columns, settings).must.all() for conjunct in self.predicate
        )

    def values(self, e: Expression) -> RangeSet | None:
        """What an expression can be in the rows that are left, None if that is not known of one of them."""
        found = range_of(e, self.context)
        return None if found is None else values_in(found, self.left)

    def narrow(self, e: Expression, wanted: RangeSet, kept: Mask) -> bool:
        """Leaves the rows of kept files in which an expression may be wanted; files without any are kept no longer.

        Whether there are fewer rows now.
        """
        before = len(self.left)
        if (self.files() > kept).any():
            self.left = self.left[kept[self.parts.owner[self.left]]]
        found = range_of(e, self.context)
        if found is not None:
            self.left = self.left[np.broadcast_to(meets(found, wanted, self.left), len(self.left))]
        if len(self.left) < before:
            self._files = None
        kept &= self.files()
        return len(self.left) < before

    def files(self) -> Mask:
        """The files that have a row which is left."""
        if self._files is None:
            self._files = np.zeros(len(self.parts.whole), np.bool_)
            if len(self._files) == 1:  # as most small tables have it, whatever the number of rows
                self._files[0] = len(self.left) > 0
            else:
                self._files[self.parts.owner[self.left]] = True
        return self._files


def informative_conjuncts(scan: Scan, known: PassInput) -> Predicate:
    """The conditions right above a scan without those that are known to hold: ``x IS NOT NULL`` where no x is NULL."""
    if (informative_conjuncts, scan.id) not in known.shared:
        context = context_of(known.stats[scan.id], {c.id: c for c in scan.columns}, known.query.settings)
        conjuncts = (c for c in scan_predicate(known.query, scan) if not _is_idle(c, context))
        known.shared[informative_conjuncts, scan.id] = tuple(conjuncts)
    predicate: Predicate = known.shared[informative_conjuncts, scan.id]
    return predicate


def _is_idle(condition: Expression, context: EvalContext) -> bool:
    found = range_of(condition.child, context) if isinstance(condition, IsNotNull) else None
    return found is not None and found.may_hold_null is False


def surviving_rows(scan: Scan, known: PassInput, kept: Mask) -> SurvivingRows | None:
    """The rows of kept files that may pass the conditions right above the scan, None if rows are not known."""
    stats, settings = known.stats[scan.id], known.query.settings
    parts = stats.once(rows_by)
    ranges = (stats.range_sets(column) for column in scan.columns)
    if parts is None or all(each is None or each.values is None for each in ranges):
        return None
    columns = {column.id: column for column in scan.columns}
    predicate = informative_conjuncts(scan, known)
    before, left = known.shared.get((surviving_rows, scan.id), (None, None))
    if before is None or (kept > before).any():
        if not predicate:
            left = parts.of(kept)
        else:
            # If time is up, the rows that nobody looked at are left.
            some = replace(known.limits, filter_seconds=known.limits.filter_seconds / 4)
            tree = PruningTree(predicate, columns, settings, some)
            left = np.flatnonzero(tree.entries(parts.stats, parts.marked(kept)))
        known.shared[surviving_rows, scan.id] = kept, left
    elif not np.array_equal(kept, before):
        left = left[kept[parts.owner[left]]]
    return SurvivingRows(context_of(parts.stats, columns, settings), parts, left, predicate)
