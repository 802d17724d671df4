"""The summary as a small table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from secateur.report.text import join_lines, size_text

if TYPE_CHECKING:
    from secateur.report.summary import ScanSummary, Summary

_HEAD = "<tr><th>table</th><th>files</th><th>bytes</th><th>rows</th><th>how</th></tr>"


def render_html(summary: Summary) -> str:
    """A self-contained fragment: the sentence, then a row per scan.

    >>> from secateur.report.summary import ScanSummary, Summary
    >>> "3 of 120" in render_html(Summary(7, (ScanSummary("t<1>", "parquet", 120, 3, 9, 1),)))
    True
    """
    first, _, _ = str(summary).partition("\n")
    notes = "".join(f"<p>{escape(r.text)} <code>{escape(r.code)}</code></p>" for r in summary.reasons)
    rows = "".join(map(_row, summary.scans))
    return f"<div><p><b>{escape(first)}</b></p>{notes}<table>{_HEAD}{rows}</table></div>"


def _row(scan: ScanSummary) -> str:
    how = [f"{p.name}: {p.files_before:,} → {p.files_after:,}" for p in scan.passes if p.files_after < p.files_before]
    how += join_lines(scan)
    how += [f"implied: {condition}" for condition in scan.implied]
    for step in scan.runtime:
        done = "" if step.files_after is None else f", {step.files_before:,} → {step.files_after:,} at run time"
        how.append(f"{step.name}: {step.plan}{done}" + (f", where {step.condition}" if step.condition else ""))
    how += [f"{r.text} [{r.code}]" for r in scan.reasons]
    cells = (
        f"{scan.table} ({scan.format})",
        _of(scan.files_kept, scan.files_total, "{:,}".format),
        _of(scan.bytes_kept, scan.bytes_total, size_text),
        _of(scan.rows_kept, scan.rows_total, "{:,}".format),
    )
    return (
        "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in cells) + "<td>" + "<br>".join(map(escape, how)) + "</td></tr>"
    )


def _of(kept: int | None, total: int | None, show: object) -> str:
    assert callable(show)
    return "unknown" if kept is None or total is None else f"{show(kept)} of {show(total)}"
