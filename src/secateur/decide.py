"""The decider: takes a request from the JVM, answers with edits, and notes what it did for the summary.

It runs while a query is being planned, so it never calls the JVM, never waits for anyone, and answers every request: an
error becomes an answer with its reason, and the query runs as it would without secateur.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import Any

import numpy as np
import pyarrow.compute as pc

from secateur.bridge.wire import decode_query, encode_skip
from secateur.errors import OptionError, WireError
from secateur.options import Options, parse_option, parse_options
from secateur.passes import Decision, run_passes
from secateur.passes.contract import Limits
from secateur.query.plan import Query, Scan
from secateur.report.history import Draft, History
from secateur.report.summary import ScanSummary
from secateur.stats.filestats import Mask
from secateur.stats.readers import Table, decode_source
from secateur.stats.registry import Registry

log = logging.getLogger("secateur")


class Decider:
    """Answers the JVM's requests with the statistics of a :class:`Registry`."""

    def __init__(self, registry: Registry, history: History) -> None:
        self._registry = registry
        self._history = history

    def answer(self, text: str) -> str:
        """The answer to one request, whatever it is."""
        start = time.perf_counter_ns()
        try:
            request = json.loads(text)
            if request["op"] == "set":
                return json.dumps({"refused": refusal(request["key"], request["value"])})
            return json.dumps(self._decide(request, start))
        except OptionError as problem:
            return _failed("bad-option", f"{problem}. The query ran unpruned")
        except (WireError, RecursionError) as problem:
            log.warning("a query ran unpruned: %s", problem)
            return _failed("decode-failed", f"the query ran unpruned: {problem}")
        except Exception as problem:  # the query must go on, whatever broke
            log.warning("a query ran unpruned", exc_info=True)
            where = traceback.extract_tb(problem.__traceback__)[-1]
            said = f"{type(problem).__name__}: {problem} ({where.name}, line {where.lineno})"
            return _failed("decide-failed", f"the query ran unpruned, please report this: {said}")

    def _decide(self, request: dict[str, Any], start: int) -> dict[str, Any]:
        options = parse_options(request["options"])
        query = decode_query(request)
        open_scans = [s for s in query.scans() if s.listing and not s.declined and not s.decided]
        sources = [decode_source(wire, self._registry.source) for wire in request.get("listings", ())]
        need = self._registry.admit(sources, {s.listing for s in open_scans})
        if need:
            return {"need": sorted(need), "have": self._registry.relatives(need)}
        self._history.limit = options.history
        tables = {s.id: self._registry.table(s.listing, options) for s in open_scans}
        limits = Limits(options.filter_budget_ms / 1000, options.filter_file_ms / 1000)
        files = {id_: t.files for id_, t in tables.items()}
        decision = run_passes(query, files, enabled=options.passes, limits=limits)
        edits = [
            encode_skip(s, decision.kept[s.id], counted=s.id in decision.counted)
            for s in open_scans
            if not decision.kept[s.id].all()
        ]
        scans = {s.id: self._summary(query, s, tables[s.id], decision, options) for s in open_scans}
        self._history.note(request["call"], Draft(scans, time.perf_counter_ns() - start))
        return {"edits": edits}

    def _summary(self, query: Query, scan: Scan, table: Table, decision: Decision, options: Options) -> ScanSummary:
        kept = decision.kept[scan.id]
        reasons = decision.reasons.get(scan.id, ())
        if (waiting := self._registry.waiting(scan.listing, scan.table, options)) is not None:
            reasons = (waiting, *(r for r in reasons if r.code != "no-statistics"))
        groups_total, groups_kept = row_group_counts(query, scan, table, kept)
        return ScanSummary(
            scan.table,
            scan.format,
            scan.files,
            int(np.count_nonzero(kept)),
            scan.bytes,
            _sum_of(table.files.sizes, kept),
            _sum_of(table.files.rows, None),
            _sum_of(table.files.rows, kept),
            groups_total,
            groups_kept,
            decision.records.get(scan.id, ()),
            reasons,
        )


def row_group_counts(query: Query, scan: Scan, table: Table, kept: Mask) -> tuple[int | None, int | None]:
    """Row groups of the table and of the kept files that may match, None where a file's are unknown."""
    from secateur.passes.filter import filter_entries

    counts = table.row_group_counts
    total = _sum_of(counts, None)
    kept_count = _sum_of(counts, kept)
    files = int(np.count_nonzero(kept))
    if kept_count is None or kept_count == files or not files:
        return total, kept_count
    groups, _ = table.row_groups(np.flatnonzero(kept))
    return total, int(np.count_nonzero(filter_entries(query, scan, groups)))


def refusal(key: str, value: str) -> str | None:
    """Why a SET of this option is refused, None if it is fine."""
    try:
        parse_option(key, value)
    except OptionError as problem:
        return str(problem)
    return None


def _failed(code: str, text: str) -> str:
    return json.dumps({"code": code, "error": text})


def _sum_of(array: Any, mask: Mask | None) -> int | None:
    """The sum over the marked entries, None if one of them is unknown."""
    if mask is not None:
        array = array.filter(mask)
    return None if array.null_count else int(pc.sum(array, min_count=0).as_py())
