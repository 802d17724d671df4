"""Filter pruning by range-sets: skip the files whose values all lie beside what the WHERE clause asks for.

Before and after, with x in {[1, 39], [46, 60]} in the first file and in {[1, 60]} in the second::

    Filter (x > 40 AND x < 45)      kept: [True, True]    ->    kept: [False, True]
      Scan t [x]

A file is taken apart by the ranges of one column (see :mod:`secateur.evaluate.subfiles`), and the evaluator is asked
about the parts as if they were files, all conjuncts that speak of the column at once: a file whose parts are all ruled
out has no row that could match. So ``x > 40`` rules out the first part above and ``x < 45`` the second, and functions,
IN and OR need nothing of their own.

Of a small table whose rows are known, the rows are the parts (:mod:`secateur.passes.filter.surviving_rows`): they tell
most, and are needed anyway for what the table tells others. Where deleted rows hide which are left, ranges are looked
at too.

Files without range-sets stay (rule S1).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from secateur.decision.parts import Keep
from secateur.evaluate.expression_ranges import Columns
from secateur.evaluate.known_rows import listed
from secateur.evaluate.subfiles import subfiles_by
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.predicates import Predicate
from secateur.passes.filter.tree import PruningTree
from secateur.passes.tuning import Tuning
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Column, IsNotNull, walk
from secateur.plan.nodes import Scan, Settings
from secateur.stats.file_stats import FileStats

_DEFAULTS = Settings()
_TUNING = Tuning()


def prune_by_range_sets(known: PassInput) -> PassResult:
    """Keep of every scan the files that have a range in which some row may satisfy all Filters right above the scan."""
    parts: list[tuple[int, Keep]] = []
    for scan in known.analysis.scans.values():
        stats = known.stats.get(scan.id)
        if scan.declined or scan.decided or scan.id in known.analysis.order_sensitive or stats is None:
            continue
        if all(stats.range_sets(column) is None for column in scan.columns):
            continue
        predicate = known.small_tables.informative_conjuncts(scan)
        if not predicate:
            continue
        before = known.kept[scan.id]
        rows = known.small_tables.surviving_rows(scan, before)
        after = before if rows is None else rows.files()
        if rows is None or not _listed(predicate, stats, scan, after):
            after = narrow_by_ranges(predicate, stats, scan, after, known.query.settings, known.tuning)
        if np.count_nonzero(after) < np.count_nonzero(before):
            parts.append((scan.id, Keep(after)))
    return parts


def _listed(predicate: Predicate, stats: FileStats, scan: Scan, files: Mask) -> bool:
    """Whether all that conditions speak of is known row by row, so that ranges tell no more."""
    named = {part.id for conjunct in predicate for part in walk(conjunct) if isinstance(part, Column)}
    return all(listed(stats, column)[files].all() for column in scan.columns if column.id in named)


def narrow_by_ranges(
    predicate: Predicate,
    stats: FileStats,
    scan: Scan,
    kept: Mask,
    settings: Settings = _DEFAULTS,
    tuning: Tuning = _TUNING,
) -> Mask:
    """The kept files that may hold a row which makes every conjunct TRUE, by the range-sets of each column in turn."""
    columns = {column.id: column for column in scan.columns}
    for column, about in _by_column(predicate, columns):
        if not kept.any():
            break
        parts = subfiles_by(stats, column)
        if parts is None:
            continue
        tree = PruningTree(about, columns, settings, tuning)
        may = tree.entries(parts.stats, parts.marked(kept & ~parts.whole))
        after = kept & parts.whole
        after[parts.owner[may]] = True
        kept = after
    return kept


def _by_column(predicate: Predicate, columns: Columns) -> Iterator[tuple[ScanColumn, Predicate]]:
    """Each column with the conjuncts that speak of it; if it must not be NULL, and no more, counts tell as much."""
    named = [{part.id for part in walk(c) if isinstance(part, Column) and not part.path} for c in predicate]
    for id_ in dict.fromkeys(id_ for ids in named for id_ in sorted(ids)):
        about = tuple(c for c, ids in zip(predicate, named, strict=True) if id_ in ids)
        if id_ in columns and columns[id_].kind == "data" and not all(isinstance(c, IsNotNull) for c in about):
            yield columns[id_], about
