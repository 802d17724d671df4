"""Manifest pruning: skip whole groups of files by what the table's metadata says of each group.

Before and after, with the files of the first manifest in partitions 1 to 5 and those of the second in 6 to 9::

    Filter (day > 5)        kept: [True, True, True]    ->    kept: [False, False, True]
      Scan t [day]          manifests: [0, 0, 1]

The statistics of files in a manifest that is ruled out need not even be read. Of formats without such groups nothing is
said.
"""

from __future__ import annotations

import numpy as np

from secateur.decision.parts import Keep
from secateur.passes.analysis import QueryAnalysis
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.filter import filter_entries
from secateur.plan.columns import Mask
from secateur.plan.nodes import Scan
from secateur.stats.file_stats import Groups


def prune_manifests(known: PassInput) -> PassResult:
    """Keep of every scan the files of the groups that may hold a row which all Filters right above it let through."""
    parts: list[tuple[int, Keep]] = []
    for scan in known.analysis.scans.values():
        stats = known.stats.get(scan.id)
        if scan.declined or scan.decided or stats is None or stats.groups is None:
            continue
        opened = open_groups(known.analysis, scan, stats.groups)
        before = known.kept[scan.id]
        after = before & opened[stats.groups.of]
        if np.count_nonzero(after) < np.count_nonzero(before):
            parts.append((scan.id, Keep(after)))
    return parts


def open_groups(analysis: QueryAnalysis, scan: Scan, groups: Groups) -> Mask:
    """The groups of a scan that may hold a row which the Filters right above it let through."""
    silent = all(groups.stats.column(column) is None for column in scan.columns)  # as in a table without partitions
    if silent or scan.id in analysis.order_sensitive:
        return np.ones(groups.stats.count, np.bool_)
    return filter_entries(analysis.predicate(scan), scan, groups.stats, analysis.query.settings)
