"""Filter pruning: skip the files in which no row can satisfy the WHERE clause.

Before and after, with x between 1 and 5 in the first file and between 6 and 9 in the second::

    Filter (x > 5)          kept: [True, True]    ->    kept: [False, True]
      Scan t [x]

Each conjunct is put to the evaluator on its own (a file is out if one of them cannot be TRUE), in steps that grow with
what survives, not with the table: first blocks of files, then the files of the blocks that are left, and each further
conjunct only on what the ones before it left, if that is little.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from secateur.passes.contract import Known, Outcome
from secateur.passes.predicates import Predicate, random_scans, scan_predicate, scan_predicates
from secateur.query.expressions import Column, IsNotNull, walk
from secateur.query.plan import Query, Scan, Settings
from secateur.reason.evaluate import evaluate
from secateur.reason.obstacles import obstacles
from secateur.reason.ranges import Columns
from secateur.report.summary import Reason
from secateur.stats.filestats import BLOCK, FileStats, Mask

_DEFAULTS = Settings()
SPARSE = 0.03
"""Picking out the entries that are left pays if they are at most this share (measured at a million files)."""


def filter_files(known: Known) -> Outcome:
    """Keep of every scan the files that may hold a row which all Filters right above the scan let through."""
    predicates, random = scan_predicates(known.query), random_scans(known.query)
    kept: dict[int, Mask] = {}
    reasons: list[tuple[int, Reason]] = []
    for scan in {scan.id: scan for scan in known.query.scans()}.values():
        if scan.declined or scan.decided:
            continue
        predicate, stats = predicates[scan.id], known.stats.get(scan.id)
        if scan.id in random:
            reasons.append((scan.id, _random(scan)))
        elif not predicate:
            reasons.append((scan.id, _no_filter(scan)))
        elif stats is None:
            reasons.append((scan.id, _no_statistics(scan)))
        else:
            before = known.kept[scan.id]
            if not before.any():
                reasons.append((scan.id, Reason("nothing-left", f"No file of {scan.table} was left to look at.")))
                continue
            columns = {column.id: column for column in scan.columns}
            after = narrow(predicate, stats, columns, before, known.query.settings)
            if np.count_nonzero(after) < np.count_nonzero(before):
                kept[scan.id] = after
            else:
                reasons += [(scan.id, reason) for reason in _why_not(scan, predicate, stats, columns)]
    return Outcome(kept, tuple(reasons))


def filter_entries(query: Query, scan: Scan, entries: FileStats) -> Mask:
    """The entries of a scan (row groups, say) that may hold a row which the Filters right above it let through."""
    columns = {column.id: column for column in scan.columns}
    everything = np.ones(entries.count, dtype=np.bool_)
    return narrow(scan_predicate(query, scan), entries, columns, everything, query.settings)


def narrow(
    predicate: Predicate, stats: FileStats, columns: Columns, kept: Mask, settings: Settings = _DEFAULTS
) -> Mask:
    """The kept files that may hold a row which makes every conjunct TRUE."""
    alive = kept
    if stats.count > 2 * BLOCK:
        blocks = stats.blocks
        starts = np.arange(0, stats.count, BLOCK)
        open_blocks = _survivors(predicate, blocks, columns, np.logical_or.reduceat(kept, starts), settings)
        if np.count_nonzero(open_blocks) < blocks.count:
            alive = kept & np.repeat(open_blocks, BLOCK)[: stats.count]
    return _survivors(predicate, stats, columns, alive, settings)


def _survivors(predicate: Predicate, stats: FileStats, columns: Columns, alive: Mask, settings: Settings) -> Mask:
    """The entries that are alive and may satisfy every conjunct."""
    here: FileStats = stats
    where: npt.NDArray[np.int64] | None = None  # the entries of ``stats`` that ``here`` holds, None if all
    for conjunct in predicate:
        left = int(np.count_nonzero(alive))
        if left == 0:
            break
        if left <= SPARSE * len(alive):
            picked = np.flatnonzero(alive)
            where = picked if where is None else where[picked]
            here, alive = stats.take(where), np.ones(left, dtype=np.bool_)
        alive = alive & evaluate(conjunct, here, columns, settings).may
    if where is None:
        return alive
    whole = np.zeros(stats.count, dtype=np.bool_)
    whole[where] = alive
    return whole


def _why_not(scan: Scan, predicate: Predicate, stats: FileStats, columns: Columns) -> Iterator[Reason]:
    # Spark adds IS NOT NULL by itself, for a join or a comparison.
    asked = tuple(c for c in predicate if not isinstance(c, IsNotNull)) or predicate
    found = dict.fromkeys(reason for conjunct in asked for reason in obstacles(conjunct, stats, columns))
    yield from found
    if not found and all(isinstance(c, IsNotNull) for c in predicate):
        yield _no_filter(scan)
    elif not found:
        names = ", ".join(
            dict.fromkeys(part.name for conjunct in predicate for part in walk(conjunct) if isinstance(part, Column))
        )
        yield Reason(
            "not-selective",
            f"Every file of {scan.table} may hold matching rows: in each, the values of {names or 'every column'} "
            f"overlap the filter. Sort or cluster the table by {names or 'a filtered column'}, "
            "so that a file holds a narrow range of it.",
        )


def _random(scan: Scan) -> Reason:
    return Reason(
        "non-deterministic",
        f"Above {scan.table} the query uses something like rand(seed), monotonically_increasing_id() or TABLESAMPLE, "
        "whose result depends on all rows that are read; apply it to a table that holds the filtered rows.",
    )


def _no_filter(scan: Scan) -> Reason:
    return Reason(
        "no-filter",
        f"No filter reaches the files of {scan.table}; if not all are needed, add a WHERE condition on a column.",
    )


def _no_statistics(scan: Scan) -> Reason:
    return Reason(
        "no-statistics",
        f"Nothing is known of the files of {scan.table}; have its writer record statistics, or collect them.",
    )
