"""Summaries of past queries, put together from what Python decided and what the JVM recorded.

The JVM has the last word: it knows whether a decision arrived in time and was applied. A query may be looked at several
times (its subqueries, the early and the late step); the parts share the query's number.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from secateur.reasons import OF_BOUNDARIES, OF_FILTERS, Reason
from secateur.report.summary import PlanningTime, ScanSummary, Summary

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
        self._stories: OrderedDict[int, _Story] = OrderedDict()
        self._explained: OrderedDict[int, _Story] = OrderedDict()

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
                if "runtime" in record:  # of a query that was planned before
                    if record["query"] in self._stories:
                        self._stories[record["query"]] = _ran(self._stories[record["query"]], record["runtime"])
                    continue
                kept = self._explained if record.get("explained") else self._stories
                query = record["query"]
                story = kept.pop(query, None) or _Story()
                kept[query] = _extended(story, record, self._drafts.pop(record["call"], None))
            for stories in (self._stories, self._explained):
                while len(stories) > self.limit:
                    stories.popitem(last=False)

    def add(self, summary: Summary) -> None:
        """Adds a summary that no record stands for."""
        with self._lock:
            self._stories[summary.query] = _Story({}, summary.planning, summary.reasons)

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """Oldest first."""
        with self._lock:
            return tuple(story.summary(query) for query, story in self._stories.items())

    def explained(self, query: int) -> Summary:
        """The summary of a query that was explained, once."""
        with self._lock:
            return (self._explained.pop(query, None) or _Story()).summary(query)


@dataclass(frozen=True, slots=True)
class _Story:
    """A summary while it grows; a scan is named by its table and the attribute id that Spark gave this use of it."""

    scans: Mapping[tuple[str, int], ScanSummary] = field(default_factory=dict)
    planning: PlanningTime = field(default_factory=PlanningTime)
    reasons: tuple[Reason, ...] = ()

    def summary(self, query: int) -> Summary:
        return Summary(query, tuple(self.scans.values()), self.planning, self.reasons)


def _extended(story: _Story, record: Mapping[str, Any], draft: Draft | None) -> _Story:
    code = record.get("code", "")
    reasons = story.reasons
    if code and (failure := Reason(code, record["text"])) not in reasons:
        reasons = (*reasons, failure)
    drafted = draft.scans if draft and not code else {}
    changed = dict(enumerate(record.get("changed", ())))
    scans = dict(story.scans)
    for wire in record["scans"]:
        before = story.scans.get((wire["table"], wire["use"])) if wire.get("decided") else None
        scan = drafted.get(wire["id"]) or before or unpruned(wire, code, record.get("text", ""))
        if before is not None and scan is not before:
            scan = _continued(before, scan)
        if changed.get(wire["id"]):
            scan = _with_changed(scan, changed[wire["id"]])
        if wire["id"] in record.get("dropped", ()):
            scan = replace(scan, implied=())
        if scan.runtime and wire["id"] not in record.get("narrowed", ()):
            scan = _not_asked(scan)
        scans[wire["table"], wire["use"]] = scan
    if "left" in record:
        scans = {key: scan if key[1] in record["left"] else _removed(scan) for key, scan in scans.items()}
    return _Story(scans, _longer(story.planning, record, draft), reasons)


def _continued(before: ScanSummary, late: ScanSummary) -> ScanSummary:
    """A scan that both steps looked at; once the late one narrowed it, it does not matter that filters did not."""
    narrowed = late.files_kept != before.files_kept or late.runtime
    moot = (OF_FILTERS if narrowed else ()) + (OF_BOUNDARIES if late.runtime else ())
    earlier = tuple(r for r in before.reasons if r.code not in moot)
    return replace(
        late,
        passes=(*before.passes, *late.passes),
        reasons=(*earlier, *(r for r in late.reasons if r not in earlier)),
        joins=(*before.joins, *late.joins),
        implied=(*before.implied, *late.implied),
    )


def _not_asked(scan: ScanSummary) -> ScanSummary:
    if scan.runtime[-1].name == "driver":  # a job reads the same files
        return replace(scan, runtime=scan.runtime[:-1])
    text = f"{scan.table} cannot be narrowed at run time: its scan, or something above it, cannot wait for a value"
    return replace(scan, runtime=(), reasons=(*scan.reasons, Reason("not-asked", text)))


def _ran(story: _Story, done: Mapping[str, Any]) -> _Story:
    """The story with what a scan was told while the query ran."""
    key = (done["table"], done["use"])
    before = story.scans.get(key)
    if before is None or not before.runtime:
        return story
    if "driver" in done:
        return replace(story, scans={**story.scans, key: _read_by_driver(before, done)})
    told = json.loads(done["told"]) if done["told"] else {}
    step = replace(
        before.runtime[-1],
        condition=told.get("condition", ""),
        files_before=before.files_kept,
        files_after=done["kept"],
        ms=round(done["ns"] / 1e6, 3),
    )
    scan = replace(before, runtime=(*before.runtime[:-1], step), files_kept=done["kept"])
    if step.condition:
        scan = replace(scan, bytes_kept=told.get("bytes"), rows_kept=told.get("rows"), row_groups_kept=None)
    if done["changed"]:
        scan = _with_changed(replace(scan, files_kept=done["kept"] - done["changed"]), done["changed"])
    if done["failed"]:
        text = f"{scan.table} was not narrowed at run time: {done['failed']}"
        scan = replace(scan, reasons=(*scan.reasons, Reason("runtime-failed", text)))
    elif not step.condition:
        text = f"{scan.table} was not narrowed at run time: the files that were read first hold too few rows"
        scan = replace(scan, reasons=(*scan.reasons, Reason("probe-too-few", text)))
    return replace(story, scans={**story.scans, key: scan})


def _read_by_driver(scan: ScanSummary, done: Mapping[str, Any]) -> ScanSummary:
    """The scan after the driver read its rows, or tried to."""
    if not done["failed"]:
        return replace(scan, runtime=(*scan.runtime[:-1], replace(scan.runtime[-1], ms=round(done["ns"] / 1e6, 3))))
    text = f"{scan.table} was read by a Spark job, since the driver could not read it: {done['failed']}"
    return replace(scan, runtime=scan.runtime[:-1], reasons=(*scan.reasons, Reason("runtime-failed", text)))


def _removed(scan: ScanSummary) -> ScanSummary:
    """A scan that is not in the final plan; one that was emptied is gone as well, but tells of its passes already."""
    if not scan.files_kept:
        return scan
    text = f"{scan.table} is not read at all: another part of the query is empty, so Spark removed this scan"
    return replace(
        scan,
        files_kept=0,
        bytes_kept=0,
        rows_kept=0,
        row_groups_kept=0,
        reasons=(Reason("not-needed", text),),
        implied=(),
    )


def unpruned(wire: Mapping[str, Any], code: str, text: str) -> ScanSummary:
    """A scan that Spark reads as it would without secateur, with the reason."""
    declined = wire.get("declined", "")
    reason = (
        Reason("unsupported-scan", f"{wire['table']} is left to Spark: {declined}") if declined else Reason(code, text)
    )
    files, size = wire.get("files"), wire.get("bytes")
    return ScanSummary(
        wire["table"], wire["format"], files, files, size, size, reasons=(reason,) if reason.code else ()
    )


def _with_changed(scan: ScanSummary, count: int) -> ScanSummary:
    text = (
        f"{count:,} files that could be skipped are read, since files changed after Spark listed them; run REFRESH "
        "TABLE, or read the path anew"
    )
    kept = None if scan.files_kept is None else scan.files_kept + count
    return replace(
        scan, files_kept=kept, bytes_kept=None, rows_kept=None, row_groups_kept=None,
        reasons=(*scan.reasons, Reason("files-changed", text)),
    )  # fmt: skip


def _longer(before: PlanningTime, record: Mapping[str, Any], draft: Draft | None) -> PlanningTime:
    total, asking = record.get("total_ns", 0) / 1e6, record.get("python_ns", 0) / 1e6
    python = min(draft.python_ns / 1e6, asking) if draft else 0.0
    return PlanningTime(
        round(before.total + total, 3),
        round(before.jvm + total - asking, 3),
        round(before.wire + asking - python, 3),
        round(before.python + python, 3),
    )
