"""Summaries of past queries, put together from what Python decided and what the JVM recorded.

The JVM has the last word: it knows whether a decision arrived in time and was applied. A query may be looked at several
times (its subqueries, the early and the late step); the parts share the query's number.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from secateur.report.summary import PlanningTime, Reason, ScanSummary, Summary

_DRAFTS = 2000


@dataclass(frozen=True, slots=True)
class Draft:
    """What Python decided in one call: a summary by scan id, and the time it took."""

    scans: Mapping[int, ScanSummary]
    python_ns: int


class History:
    """The last ``limit`` summaries, oldest first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._drafts: OrderedDict[int, Draft] = OrderedDict()
        self._summaries: OrderedDict[int, Summary] = OrderedDict()
        self._explained: OrderedDict[int, Summary] = OrderedDict()

    def note(self, call: int, draft: Draft) -> None:
        """Keeps what was decided until the JVM tells what became of it."""
        with self._lock:
            self._drafts[call] = draft
            while len(self._drafts) > _DRAFTS:
                self._drafts.popitem(last=False)

    def absorb(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Takes in the JVM's records, in order."""
        with self._lock:
            for record in records:
                kept = self._explained if record.get("explained") else self._summaries
                query = record["query"]
                before = kept.pop(query, None) or Summary(query)
                kept[query] = _extended(before, record, self._drafts.pop(record["call"], None))
            for summaries in (self._summaries, self._explained):
                while len(summaries) > self.limit:
                    summaries.popitem(last=False)

    def add(self, summary: Summary) -> None:
        """Adds a summary that no record stands for."""
        with self._lock:
            self._summaries[summary.query] = summary

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Oldest first."""
        with self._lock:
            return tuple(self._summaries.values())

    def explained(self, query: int) -> Summary:
        """The summary of a query that was explained, once."""
        with self._lock:
            return self._explained.pop(query, None) or Summary(query)


def _extended(before: Summary, record: Mapping[str, Any], draft: Draft | None) -> Summary:
    code = record.get("code", "")
    reasons = before.reasons
    if code and (failure := Reason(code, record["text"])) not in reasons:
        reasons = (*reasons, failure)
    drafted = draft.scans if draft and not code else {}
    changed = dict(enumerate(record.get("changed", ())))
    scans = before.scans
    for wire in record["scans"]:
        scan = drafted.get(wire["id"]) or unpruned(wire, code, record.get("text", ""))
        if changed.get(wire["id"]):
            scan = _with_changed(scan, changed[wire["id"]])
        # A scan that is left alone is met again by the late step: mentioned once.
        if not wire.get("declined") or scan not in scans:
            scans = (*scans, scan)
    return Summary(before.query, scans, _longer(before.planning, record, draft), reasons)


def unpruned(wire: Mapping[str, Any], code: str, text: str) -> ScanSummary:
    """A scan that Spark reads as it would without secateur, with the reason."""
    declined = wire.get("declined", "")
    reason = (
        Reason("unsupported-scan", f"{wire['table']} is left alone: {declined}") if declined else Reason(code, text)
    )
    files, size = wire.get("files"), wire.get("bytes")
    return ScanSummary(
        wire["table"], wire["format"], files, files, size, size, reasons=(reason,) if reason.code else ()
    )


def _with_changed(scan: ScanSummary, count: int) -> ScanSummary:
    text = f"{count:,} files are not as they were listed any more and are read; refresh the table to prune them again"
    kept = None if scan.files_kept is None else scan.files_kept + count
    return replace(
        scan, files_kept=kept, bytes_kept=None, rows_kept=None, row_groups_kept=None,
        reasons=(*scan.reasons, Reason("files-changed", text)),
    )  # fmt: skip


def _longer(before: PlanningTime, record: Mapping[str, Any], draft: Draft | None) -> PlanningTime:
    total, asking = record.get("total_ns", 0) / 1e6, record.get("asking_ns", 0) / 1e6
    python = min(draft.python_ns / 1e6, asking) if draft else 0.0
    return PlanningTime(
        round(before.total + total, 3),
        round(before.jvm + total - asking, 3),
        round(before.wire + asking - python, 3),
        round(before.python + python, 3),
    )
