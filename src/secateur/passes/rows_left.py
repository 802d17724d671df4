"""The rows of a small table that may still matter, while joining tables tell each other what they hold.

First those that may pass the conditions right above the scan; then, with each message, those of them that have a
partner. A row that does not pass its conditions, or has no partner where it needs one, has no part in the answer,
whether its file is read or not: so what such rows hold need not be told to others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from secateur.passes.contract import Limits
from secateur.passes.predicates import Predicate
from secateur.passes.tree import PruningTree
from secateur.query.expressions import Expression
from secateur.reason.evaluate import evaluate, scope_of
from secateur.reason.parts import Parts
from secateur.reason.ranges import Scope, facts_of
from secateur.reason.rangesets import RangeSet, meets, values_in
from secateur.reason.rows import rows_by
from secateur.stats.filestats import Mask


@dataclass(slots=True)
class Rows:
    """The rows of all files of a scan, and which of them are left."""

    scope: Scope
    parts: Parts
    left: Mask
    predicate: Predicate = ()

    @staticmethod
    def of(scope: Scope, predicate: Predicate, kept: Mask, limits: Limits) -> Rows | None:
        """The rows that may satisfy all conditions, None if the table is not known row by row."""
        parts = scope.stats.once(rows_by)
        ranges = (scope.stats.range_sets(column) for column in scope.columns.values())
        if parts is None or all(each is None or each.values is None for each in ranges):
            return None
        left = kept[parts.owner]
        if predicate:
            # If time is up, the rows that nobody looked at are left.
            some = replace(limits, filter_seconds=limits.filter_seconds / 4)
            tree = PruningTree(predicate, scope.columns, scope.settings, some)
            left = tree.entries(parts.stats, left)
        return Rows(scope_of(parts.stats, scope.columns, scope.settings), parts, left, predicate)

    @property
    def is_certain(self) -> bool:
        """Whether each row that is left passes all conditions for sure: then a query would find out no more."""
        stats, columns, settings = self.scope.stats, self.scope.columns, self.scope.settings
        return not self.parts.whole.any() and all(
            evaluate(conjunct, stats, columns, settings).must[self.left].all() for conjunct in self.predicate
        )

    def values(self, e: Expression) -> RangeSet | None:
        """What an expression can be in the rows that are left, None if that is not known of one of them."""
        found = facts_of(e, self.scope)
        return None if found is None else values_in(found, self.left)

    def narrow(self, e: Expression, wanted: RangeSet, kept: Mask) -> bool:
        """Leaves the rows of kept files in which an expression may be wanted; files without any are kept no longer.

        Whether there are fewer rows now.
        """
        before = np.count_nonzero(self.left)
        left = self.left & kept[self.parts.owner]
        found = facts_of(e, self.scope)
        if found is not None:
            at = np.flatnonzero(left)
            left = np.zeros(len(left), np.bool_)
            left[at[np.broadcast_to(meets(found.at(at), wanted), len(at))]] = True
        self.left = left
        holds = np.zeros(len(kept), np.bool_)
        holds[self.parts.owner[left]] = True
        kept &= holds
        return bool(np.count_nonzero(left) < before)
