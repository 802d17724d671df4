"""Filter pruning: skip the files in which no row can satisfy the WHERE clause.

Before and after, with x between 1 and 5 in the first file and between 6 and 9 in the second::

    Filter (x > 5)          kept: [True, True]    ->    kept: [False, True]
      Scan t [x]

Each conjunct is put to the evaluator on its own (a file is out if one of them cannot be TRUE), in steps that grow with
what survives, not with the table: first blocks of files, then the files of the blocks that are left. In which order,
and when a conjunct is given up, is the business of :mod:`secateur.passes.filter.tree`.

For each conjunct that ruled out nothing one reason says what stood in its way, also if others did rule out files.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc

from secateur.decision.parts import Keep, Part
from secateur.evaluate.expression_ranges import Columns
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.predicates import Predicate
from secateur.passes.filter.tree import PruningTree
from secateur.passes.filter.why_not import no_filter, why_not
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Compare, Literal
from secateur.plan.nodes import Scan, Settings
from secateur.reasons import Reason
from secateur.stats.file_stats import BLOCK, FileStats

_DEFAULTS = Settings()


def prune_by_filter(known: PassInput) -> PassResult:
    """Keep of every scan the files that may hold a row which all Filters right above the scan let through."""
    analysis = known.analysis
    parts: list[tuple[int, Part]] = []
    seconds = known.tuning.filter_seconds
    for scan in analysis.scans.values():
        if scan.declined or scan.decided:
            continue
        predicate, stats = analysis.predicate(scan), known.stats.get(scan.id)
        if scan.id in analysis.order_sensitive:
            parts.append((scan.id, _random(scan)))
        elif not predicate:
            parts.append((scan.id, no_filter(scan)))
        elif stats is None:
            parts.append((scan.id, _no_statistics(scan)))
        else:
            before = known.kept[scan.id]
            if not before.any():
                parts.append(
                    (scan.id, Reason("nothing-left", f"Earlier techniques had ruled out every file of {scan.table}."))
                )
                continue
            columns = {column.id: column for column in scan.columns}
            tuning = replace(known.tuning, filter_seconds=seconds)
            tree = PruningTree(predicate, columns, known.query.settings, tuning)
            after = prune(tree, stats, before)
            seconds -= tree.seconds
            trusted = out_of_reach(predicate, stats, columns)
            if trusted is not None:
                after = after & ~trusted
            skipped = np.count_nonzero(after) < np.count_nonzero(before)
            if skipped:
                parts.append((scan.id, Keep(after)))
            if after.any():
                why = why_not(tree, scan, stats, columns, skipped=bool(skipped))
                parts += [(scan.id, r) for r in why if trusted is None or r.code != "nan-unknown"]
    return parts


def filter_entries(predicate: Predicate, scan: Scan, entries: FileStats, settings: Settings) -> Mask:
    """The entries of a scan (row groups, say) that may hold a row which satisfies a predicate."""
    columns = {column.id: column for column in scan.columns}
    return narrow(predicate, entries, columns, np.ones(entries.count, dtype=np.bool_), settings)


def narrow(
    predicate: Predicate, stats: FileStats, columns: Columns, kept: Mask, settings: Settings = _DEFAULTS
) -> Mask:
    """The kept files that may hold a row which makes every conjunct TRUE."""
    return prune(PruningTree(predicate, columns, settings), stats, kept) if predicate else kept


def prune(tree: PruningTree, stats: FileStats, kept: Mask) -> Mask:
    """The same with a tree at hand, which tells afterwards what each conjunct did."""
    alive = kept
    if stats.count > 2 * BLOCK:
        starts = np.arange(0, stats.count, BLOCK)
        open_blocks = tree.blocks(stats.blocks, np.logical_or.reduceat(kept, starts))
        if not open_blocks.all():
            alive = kept & np.repeat(open_blocks, BLOCK)[: stats.count]
    return tree.entries(stats, alive)


def out_of_reach(predicate: Predicate, stats: FileStats, columns: Columns) -> Mask | None:
    """The files that the table's own planner skips for ``x > v`` on a float column because the maximum is too small.

    It takes NaN as the greatest value, so a NaN that some writer left out of the maximum is lost without secateur, too:
    the answer stays the same. That holds only for a conjunct of this very form; elsewhere a NaN may be found (rule S5).
    None if there is no such conjunct, or if the planner does not do so.
    """
    if not stats.nan_is_greatest:
        return None
    skipped: Mask | None = None
    for conjunct in predicate:
        match conjunct:
            case Compare(">" | ">=" as op, Column() as column, Literal(float(value))) if not math.isnan(value):
                pass
            case Compare("<" | "<=" as op, Literal(float(value)), Column() as column) if not math.isnan(value):
                pass
            case _:
                continue
        source = columns.get(column.id)
        if source is None or column.path or not source.type.is_float or column.type != source.type:
            continue
        found = stats.column(source)
        if found is None:
            continue
        below = pc.less(found.high, value) if op in (">=", "<=") else pc.less_equal(found.high, value)
        flags: Mask = below.fill_null(False).to_numpy(zero_copy_only=False)
        skipped = flags if skipped is None else skipped | flags
    return skipped


def _random(scan: Scan) -> Reason:
    return Reason(
        "non-deterministic",
        f"The query applies rand(seed), monotonically_increasing_id(), TABLESAMPLE or the like to {scan.table}, whose "
        "result depends on all rows that are read. Write the filtered rows to a table first, and apply it to that.",
    )


def _no_statistics(scan: Scan) -> Reason:
    return Reason(
        "no-statistics",
        f"The files of {scan.table} have no statistics; run secateur.collect, or have its writer record them.",
    )
