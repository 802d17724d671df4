"""The rows of a small table that may still matter, while joining tables tell each other what they hold.

First those that may pass the conditions right above the scan; then, with each message, those of them that have a
partner. A row that does not pass its conditions, or has no partner where it needs one, has no part in the answer,
whether its file is read or not: so what such rows hold need not be told to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from secateur.evaluate.evaluator import context_of, evaluate
from secateur.evaluate.expression_ranges import EvalContext, range_of
from secateur.evaluate.known_rows import rows_by
from secateur.evaluate.range_sets import RangeSet, meets, values_in
from secateur.evaluate.subfiles import Ints, Subfiles
from secateur.passes.filter.predicates import Predicate
from secateur.passes.filter.tree import PruningTree
from secateur.passes.tuning import Tuning
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression, IsNotNull
from secateur.plan.nodes import Query, Scan
from secateur.stats.file_stats import FileStats


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


class ConditionsOfScans(Protocol):
    """What is asked of the analysis of a query."""

    @property
    def query(self) -> Query: ...

    def predicate(self, scan: Scan) -> Predicate: ...


class SmallTables:
    """The rows of a query's small tables that may still matter, as far as passes have worked them out."""

    def __init__(self, analysis: ConditionsOfScans, stats: Mapping[int, FileStats], tuning: Tuning) -> None:
        self._analysis = analysis
        self._stats = stats
        self._tuning = tuning
        self._conjuncts: dict[int, Predicate] = {}
        self._left: dict[int, tuple[Mask, Ints]] = {}
        """For a scan the files that were kept when its rows were looked at, and the rows that were left of them."""

    def informative_conjuncts(self, scan: Scan) -> Predicate:
        """The conditions right above a scan without those that hold anyway: ``x IS NOT NULL`` where no x is NULL."""
        if scan.id not in self._conjuncts:
            settings = self._analysis.query.settings
            context = context_of(self._stats[scan.id], {c.id: c for c in scan.columns}, settings)
            conjuncts = (c for c in self._analysis.predicate(scan) if not _always_holds(c, context))
            self._conjuncts[scan.id] = tuple(conjuncts)
        return self._conjuncts[scan.id]

    def surviving_rows(self, scan: Scan, kept: Mask) -> SurvivingRows | None:
        """The rows of kept files that may pass the conditions right above the scan, None if rows are not known."""
        stats, settings = self._stats[scan.id], self._analysis.query.settings
        parts = stats.once(rows_by)
        ranges = (stats.range_sets(column) for column in scan.columns)
        if parts is None or all(each is None or each.values is None for each in ranges):
            return None
        columns = {column.id: column for column in scan.columns}
        predicate = self.informative_conjuncts(scan)
        before, left = self._left.get(scan.id, (None, _NO_ROWS))
        if before is None or (kept > before).any():
            if not predicate:
                left = parts.of(kept)
            else:
                # If time is up, the rows that nobody looked at are left.
                some = replace(self._tuning, filter_seconds=self._tuning.filter_seconds / 4)
                tree = PruningTree(predicate, columns, settings, some)
                left = np.flatnonzero(tree.entries(parts.stats, parts.marked(kept)))
            self._left[scan.id] = kept, left
        elif not np.array_equal(kept, before):
            left = left[kept[parts.owner[left]]]
        return SurvivingRows(context_of(parts.stats, columns, settings), parts, left, predicate)


_NO_ROWS: Ints = np.empty(0, np.int64)


def _always_holds(condition: Expression, context: EvalContext) -> bool:
    found = range_of(condition.child, context) if isinstance(condition, IsNotNull) else None
    return found is not None and found.may_hold_null is False
