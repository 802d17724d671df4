"""The summary as a few lines of text that read like sentences."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from secateur.report.summary import PlanningTime, ScanSummary, Summary

_WIDTH = 110
_SCANS = 12


def render_text(summary: Summary) -> str:
    """The text form.

    >>> from secateur.report.summary import *
    >>> scan = ScanSummary("lake.trails", "parquet", 120, 3, 52_000_000, 1_300_000, 90_000, 2_000,
    ...                    passes=(PassRecord("filter", 120, 3, 0.4),))
    >>> print(Summary(7, (scan,), PlanningTime(2.1, 0.9, 0.7, 0.5)))
    Query 7 reads 3 of 120 files (1.3 MB of 52.0 MB).
      lake.trails (parquet): 3 of 120 files, 2,000 of 90,000 rows
        filter: 120 → 3 files in 0.4 ms
      Deciding took 2.1 ms: 0.9 in the JVM, 0.7 on the wire, 0.5 in Python.
    """
    lines = [_headline(summary)]
    for reason in summary.reasons:
        lines += _wrapped(f"{reason.text} [{reason.code}]", "  ")
    for scan in summary.scans[:_SCANS]:
        lines += _scan(scan)
    if len(summary.scans) > _SCANS:
        lines.append(f"  … and {len(summary.scans) - _SCANS} more scans")
    if summary.scans:
        lines.append(_time(summary.planning))
    return "\n".join(lines)


def _headline(summary: Summary) -> str:
    known = [s for s in summary.scans if s.files_total is not None]
    if not known:
        return f"Query {summary.query}: nothing that secateur could prune."
    total, kept = summary.files_total, summary.files_kept
    size = (
        f"({size_text(sum(s.bytes_kept or 0 for s in known))} of {size_text(sum(s.bytes_total or 0 for s in known))})"
    )
    if kept == total:
        return f"Query {summary.query} reads all {total:,} files {size}."
    if kept == 0:
        return f"Query {summary.query} reads none of {total:,} files: no row can match."
    return f"Query {summary.query} reads {kept:,} of {total:,} files {size}."


def _scan(scan: ScanSummary) -> list[str]:
    facts = []
    if scan.files_total is not None and scan.files_kept is not None:
        facts.append(f"{scan.files_kept:,} of {scan.files_total:,} files")
    if (
        scan.row_groups_total is not None
        and scan.row_groups_total != scan.files_total
        and scan.row_groups_kept is not None
    ):
        facts.append(f"{scan.row_groups_kept:,} of {scan.row_groups_total:,} row groups")
    if scan.rows_total is not None and scan.rows_kept is not None:
        facts.append(f"{scan.rows_kept:,} of {scan.rows_total:,} rows")
    lines = [f"  {scan.table} ({scan.format})" + (": " + ", ".join(facts) if facts else "")]
    lines += [
        f"    {done.name}: {done.files_before:,} → {done.files_after:,} files in {done.ms:.1f} ms"
        for done in scan.passes
        if done.files_after < done.files_before
    ]
    lines += [f"    {told}" for told in join_lines(scan)]
    for condition in scan.implied:
        lines += _wrapped(f"implied: {condition}", "    ")
    for step in scan.runtime:
        took = f", in {step.ms:.1f} ms" if step.ms is not None and step.files_after is None else ""
        lines += _wrapped(f"{step.name}: {step.plan}{took}", "    ")
        if step.files_before is not None and step.files_after is not None:
            lines += _wrapped(
                f"{step.name}: {step.files_before:,} → {step.files_after:,} files at run time"
                + (f", where {step.condition}" if step.condition else ""), "    ",
            )  # fmt: skip
    for reason in scan.reasons:
        lines += _wrapped(f"{reason.text} [{reason.code}]", "    ")
    return lines


def join_lines(scan: ScanSummary) -> list[str]:
    """What the tables that it joins with told a scan, and what came of it.

    >>> from secateur.report.summary import *
    >>> join_lines(ScanSummary("lineitem", "parquet", joins=(JoinRecord("part", "l_partkey", 14, 1000, 50),)))
    ['part → lineitem, l_partkey in 14 ranges, 1,000 → 50 files']
    """
    return [
        f"{join.sender} → {scan.table}, {join.column} in {join.ranges:,} range{'s' * (join.ranges != 1)}, "
        f"{join.files_before:,} → {join.files_after:,} files"
        for join in scan.joins
    ]


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _time(t: PlanningTime) -> str:
    return (
        f"  Deciding took {t.total:.1f} ms: {t.jvm:.1f} in the JVM, {t.wire:.1f} on the wire, {t.python:.1f} in Python."
    )


def size_text(size: int) -> str:
    """A size for people.

    >>> size_text(999), size_text(52_000_000), size_text(3_100_000_000_000)
    ('999 B', '52.0 MB', '3.1 TB')
    """
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1000
        if value < 1000 or unit == "TB":
            break
    return f"{value:.1f} {unit}"
