"""The summary of one scan, made of what was decided about it and of what is known of its files."""

from __future__ import annotations

import numpy as np

from secateur.decision.merge import ScanDecision
from secateur.decision.parts import AddPredicate, AskAtRuntime, ReadOnDriver
from secateur.passes.analysis import QueryAnalysis
from secateur.passes.filter.filter import filter_entries
from secateur.plan.columns import Mask
from secateur.plan.nodes import Scan
from secateur.plan.wording import in_words
from secateur.reasons import OF_BOUNDARIES, OF_FILTERS, Reason
from secateur.report.summary import RuntimeStep, ScanSummary
from secateur.report.text import size_text
from secateur.stats.file_stats import FileStats, sum_of
from secateur.stats.formats.readers import Table


def scan_summary(
    analysis: QueryAnalysis, scan: Scan, table: Table, decision: ScanDecision, waiting: Reason | None
) -> ScanSummary:
    """What is going to be read of a scan; ``waiting`` says why files have no statistics."""
    kept = decision.kept
    assert kept is not None
    reasons = decision.reasons
    if waiting is not None:
        reasons = (waiting, *(r for r in reasons if r.code != "no-statistics"))
    waits = bool(decision.all(AskAtRuntime))
    joined = any(r.code == "join-not-selective" for r in reasons)  # so a condition does reach it
    moot = (OF_FILTERS if waits or not kept.all() else OF_FILTERS[:1] if joined else ()) + OF_BOUNDARIES * waits
    reasons = tuple(r for r in reasons if r.code not in moot)
    groups_total, groups_kept = row_group_counts(analysis, scan, table, kept)
    return ScanSummary(
        scan.table,
        scan.format,
        scan.files,
        int(np.count_nonzero(kept)),
        scan.bytes or table.files.once(_bytes),  # a snapshot of Iceberg need not tell
        sum_of(table.files.sizes, kept),
        table.files.once(_rows),
        sum_of(table.files.rows, kept),
        groups_total,
        groups_kept,
        decision.records,
        reasons,
        tuple(in_words(edit.predicate) for edit in decision.all(AddPredicate)),
        decision.joins,
        tuple(_steps(decision)),
    )


def _steps(decision: ScanDecision) -> list[RuntimeStep]:
    """What is going to happen to a scan while the query runs."""
    steps = [RuntimeStep(edit.predicate.name, edit.predicate.describe()) for edit in decision.all(AskAtRuntime)]
    for read in decision.all(ReadOnDriver):
        what = f"{read.files:,} file{'' if read.files == 1 else 's'} of {size_text(read.bytes)}"
        steps.append(RuntimeStep("driver", f"{what}, read by the driver itself, without a Spark job"))
    return steps


def row_group_counts(
    analysis: QueryAnalysis, scan: Scan, table: Table, kept: Mask
) -> tuple[int | None, int | None]:  # fmt: skip
    """Row groups of the table and of the kept files that may match, None where a file's are unknown."""
    counts = table.files.row_groups
    if counts is None or 0 < counts.null_count == len(counts):
        return None, None
    total, kept_count = sum_of(counts), sum_of(counts, kept)
    files = int(np.count_nonzero(kept))
    if kept_count is None or kept_count == files or not files:
        return total, kept_count
    groups, _ = table.row_groups(np.flatnonzero(kept))
    matching = filter_entries(analysis.predicate(scan), scan, groups, analysis.query.settings)
    return total, int(np.count_nonzero(matching))


def _bytes(files: FileStats) -> int | None:
    return sum_of(files.sizes)


def _rows(files: FileStats) -> int | None:
    """The rows of all files, by what is known of groups of them where not every file was looked at."""
    whole = None if files.groups is None else sum_of(files.groups.stats.rows)
    return sum_of(files.rows) if whole is None else whole
