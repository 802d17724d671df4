"""Manifest pruning: skip whole groups of files by what the table's metadata says of each group.

Before and after, with the files of the first manifest in partitions 1 to 5 and those of the second in 6 to 9::

    Filter (day > 5)        kept: [True, True, True]    ->    kept: [False, False, True]
      Scan t [day]          manifests: [0, 0, 1]

The statistics of files in a manifest that is ruled out need not even be read. Of formats without such groups nothing is
said.
"""

from __future__ import annotations

import numpy as np

from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.filter import filter_entries
from secateur.passes.filter.predicates import order_sensitive_scans
from secateur.plan.columns import Mask
from secateur.plan.nodes import Query, Scan
from secateur.stats.file_stats import Groups


def prune_manifests(known: PassInput) -> PassResult:
    """Keep of every scan the files of the groups that may hold a row which all Filters right above it let through."""
    kept: dict[int, Mask] = {}
    for scan in {scan.id: scan for scan in known.query.scans()}.values():
        stats = known.stats.get(scan.id)
        if scan.declined or scan.decided or stats is None or stats.groups is None:
            continue
        opened = open_groups(known.query, scan, stats.groups)
        if not opened.all():
            kept[scan.id] = known.kept[scan.id] & opened[stats.groups.of]
    return PassResult(kept)


def open_groups(query: Query, scan: Scan, groups: Groups) -> Mask:
    """The groups of a scan that may hold a row which the Filters right above it let through."""
    silent = all(groups.stats.column(column) is None for column in scan.columns)  # as in a table without partitions
    if silent or scan.id in order_sensitive_scans(query):
        return np.ones(groups.stats.count, np.bool_)
    return filter_entries(query, scan, groups.stats)
