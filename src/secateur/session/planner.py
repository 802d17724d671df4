"""The decider: takes a request from the JVM, answers with edits, and notes what it did for the summary.

It runs while a query is being planned, so it never calls the JVM, never waits for anyone, and answers every request: an
error becomes an answer with its reason, and the query runs as it would without secateur.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from secateur.bridge.wire import decode_query, encode_edit, encode_mask, encode_runtime
from secateur.errors import OptionError, SecateurError, WireError
from secateur.evaluate.constant_folding import Evaluated
from secateur.passes import Decision, run_passes
from secateur.passes.contract import Limits
from secateur.passes.filter.filter import filter_entries
from secateur.passes.filter.manifests import open_groups
from secateur.passes.filter.predicates import scan_predicate
from secateur.passes.joins.links import joining_columns
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Expression
from secateur.plan.expressions import walk as parts_of
from secateur.plan.nodes import Filter, GroupLimit, Project, Query, Scan, Settings, Sort, walk
from secateur.plan.wording import in_words
from secateur.report.history import Draft, History
from secateur.report.summary import RuntimeStep, ScanSummary
from secateur.report.text import size_text
from secateur.session.constant_folding import ConstantFolding
from secateur.session.options import Options, parse_option, parse_options
from secateur.session.runtime_answers import RuntimeAnswers, files_to_skip
from secateur.stats.file_stats import FileStats, sum_of
from secateur.stats.formats.readers import PartialTable, Table, decode_source
from secateur.stats.registry import Registry

log = logging.getLogger("secateur")
_CALLS = 64
"""How many calls of the JVM may be under way: it has 16 threads for them."""


class Planner:
    """Answers the JVM's requests with the statistics of a :class:`Registry`."""

    def __init__(self, registry: Registry, history: History) -> None:
        self._registry = registry
        self._history = history
        self._questions = ConstantFolding()
        self._awaited = RuntimeAnswers()
        self._calls: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, text: str) -> str:
        """The answer to one request, whatever it is."""
        start = time.perf_counter_ns()
        try:
            request = json.loads(text)
            if request["op"] == "set":
                return json.dumps({"refused": refusal(request["key"], request["value"])})
            if request["op"] == "files":
                return json.dumps(self._files(request))
            if request["op"] == "runtime":
                return json.dumps(self._runtime(request))
            return json.dumps(self._decide(self._whole(request), start))
        except OptionError as problem:
            return _failed("bad-option", f"{problem}. The query ran unpruned")
        except (WireError, RecursionError) as problem:
            log.warning("a query ran unpruned: %s", problem)
            return _failed("decode-failed", f"the query ran unpruned: {problem}")
        except SecateurError as problem:
            return _failed("runtime-failed", str(problem))
        except Exception as problem:  # the query must go on, whatever broke
            log.warning("a query ran unpruned", exc_info=True)
            where = traceback.extract_tb(problem.__traceback__)[-1]
            said = f"{type(problem).__name__}: {problem} ({where.name}, line {where.lineno})"
            return _failed("decide-failed", f"the query ran unpruned, please report this: {said}")

    def _whole(self, request: dict[str, Any]) -> dict[str, Any]:
        """The request with what the first one of its call said: the plan is sent once."""
        call: int = request["call"]
        with self._lock:
            first = self._calls.pop(call, {})
            whole = {**first, **request, "op": "decide"}
            self._calls[call] = {k: v for k, v in whole.items() if k not in ("listings", "parts")}
            while len(self._calls) > _CALLS:
                self._calls.popitem(last=False)
        return whole

    def _decide(self, request: dict[str, Any], start: int) -> dict[str, Any]:
        options = _options(tuple(request["options"].items()))
        query = decode_query(request)
        open_scans = [s for s in query.scans() if s.open]
        sources = [decode_source(wire, self._registry.source) for wire in request.get("listings", ())]
        need = self._registry.admit(sources, {s.listing for s in open_scans})
        if need:
            return {"need": sorted(need), "have": self._registry.relatives(need)}
        self._history.limit = options.history
        for part in request.get("parts", ()):
            self._registry.extend(part, options)
        tables = {s.id: self._registry.table(s.listing, options) for s in open_scans}
        parts = wanted_parts(query, [(s, tables[s.id]) for s in open_scans], options)
        if parts:
            return {"need": parts}
        stats = {id_: t.files for id_, t in tables.items()}
        evaluated, questions = self._evaluated(request, query, stats)
        if questions:
            return {"evaluate": questions}
        if evaluated:  # what is known of a query goes by its identity
            query = replace(query, settings=replace(query.settings, evaluated=evaluated))
        limits = Limits(
            filter_seconds=options.filter_budget_ms / 1000,
            file_seconds=options.filter_file_ms / 1000,
            ranges=options.join_ranges,
            driver_bytes=options.limit_driver_bytes,
        )
        decision = run_passes(query, stats, enabled=options.passes, limits=limits)
        edits = [
            encode_edit(
                s,
                decision.kept[s.id],
                decision.implied.get(s.id, ()),
                counted=s.id in decision.counted,
                relies=decision.relies.get(s.id, ()),
                runtime=self._asked(query, s, decision),
                first=decision.first.get(s.id),
                driver=s.id in decision.driver,
            )
            for s in open_scans
            if s.id in decision.implied
            or s.id in decision.runtime
            or s.id in decision.first
            or s.id in decision.driver
            or np.count_nonzero(decision.kept[s.id]) < np.count_nonzero(s.kept(len(decision.kept[s.id])))
        ]
        scans = {s.id: self._summary(query, s, tables[s.id], decision, options) for s in open_scans}
        self._history.note(request["call"], Draft(scans, time.perf_counter_ns() - start))
        return {"edits": edits}

    def _evaluated(
        self, request: dict[str, Any], query: Query, stats: Mapping[int, FileStats]
    ) -> tuple[Mapping[int, Evaluated], list[dict[str, Any]]]:
        """What Spark made of expressions over constants, or what it is to be asked first."""
        try:
            known = self._questions.of(query, stats)
            if "values" not in request and (open_ := self._questions.ask(request["call"], known)):
                return {}, open_
            answered = self._questions.answer(request["call"], request.get("values", ()))
            return {q.expression.ref: q.evaluated() for q in known} | answered, []
        except Exception:  # then the rules have to do
            log.warning("expressions over constants were not evaluated", exc_info=True)
            return {}, []

    def _files(self, request: dict[str, Any]) -> dict[str, Any]:
        """The files of a scan that hold none of the values that became known at run time."""
        table = self._registry.known(request["fp"])
        if table is None:
            return {}
        conf = request["conf"]
        settings = Settings(conf["time_zone"], conf["ansi"], conf["case_sensitive"])
        return {"fp": request["fp"], "skip": encode_mask(files_to_skip(table.files, request["lists"], settings))}

    def _asked(self, query: Query, scan: Scan, decision: Decision) -> dict[str, Any] | None:
        """What the scan is to ask while the query runs."""
        asked = decision.runtime.get(scan.id)
        if asked is None:
            return None
        return encode_runtime(self._awaited.remember(asked, scan, decision.kept[scan.id], query.settings), asked)

    def _runtime(self, request: dict[str, Any]) -> dict[str, Any]:
        """The files of a scan that are not needed, now that the values it waited for are known."""
        table = self._registry.known(request["fp"])
        if table is None or self._awaited.fingerprint(request["id"]) != request["fp"]:
            raise SecateurError("the statistics that the query was planned with are not in memory any more")
        skip, told = self._awaited.answer(request["id"], request["values"], table.files)
        return {"fp": request["fp"], "skip": encode_mask(skip), "skipped": int(np.count_nonzero(skip)), "told": told}

    def _summary(self, query: Query, scan: Scan, table: Table, decision: Decision, options: Options) -> ScanSummary:
        kept = decision.kept[scan.id]
        reasons = decision.reasons.get(scan.id, ())
        if (waiting := self._registry.waiting(scan.listing, scan.table, options)) is not None:
            reasons = (waiting, *(r for r in reasons if r.code != "no-statistics"))
        if not kept.all():  # another pass narrowed it
            reasons = tuple(r for r in reasons if r.code not in ("not-selective", "no-filter"))
        groups_total, groups_kept = row_group_counts(query, scan, table, kept)
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
            decision.records.get(scan.id, ()),
            reasons,
            tuple(in_words(each.predicate) for each in decision.implied.get(scan.id, ())),
            decision.joins.get(scan.id, ()),
            _steps(scan, decision, sum_of(table.files.sizes, kept)),
        )


def _steps(scan: Scan, decision: Decision, size: int | None) -> tuple[RuntimeStep, ...]:
    """What is going to happen to a scan while the query runs."""
    asked = decision.runtime.get(scan.id)
    steps = () if asked is None else (RuntimeStep(asked.name, asked.describe()),)
    if scan.id not in decision.driver or size is None:
        return steps
    files = int(np.count_nonzero(decision.kept[scan.id]))
    what = f"{files:,} file{'' if files == 1 else 's'} of {size_text(size)}"
    return (*steps, RuntimeStep("driver", f"{what}, read by the driver itself, without a Spark job"))


def wanted_parts(query: Query, scans: Sequence[tuple[Scan, Table]], options: Options) -> list[dict[str, Any]]:
    """What the JVM has to send of tables that are loaded in parts, one request a table."""
    if all(table.partial is None for _, table in scans):
        return []
    opened: dict[str, Mask] = {}
    filtered: dict[str, bool] = {}
    known: dict[str, PartialTable] = {}
    names: dict[str, set[str]] = {}
    judged = judged_columns(query)
    if query.stage == "late" and {"join_ranges", "join_keys"} & set(options.passes):
        judged |= joining_columns(query)
    for scan, table in scans:
        partial, asked = table.partial, {c.name for c in scan.columns if c.id in judged}
        if partial is None or not partial.lacks(asked):
            continue
        groups = table.files.groups
        mask = np.ones(0 if groups is None else groups.stats.count, np.bool_)
        if groups is None:
            pass
        elif scan.decided:
            mask = np.bincount(groups.of[scan.kept(len(groups.of))], minlength=len(mask)) > 0
        elif "manifests" in options.passes:
            mask = open_groups(query, scan, groups)
        known[scan.listing] = partial
        opened[scan.listing] = opened.get(scan.listing, np.zeros_like(mask)) | mask
        filtered[scan.listing] = filtered.get(scan.listing, False) or scan.decided or bool(scan_predicate(query, scan))
        names.setdefault(scan.listing, set()).update(asked)
    wanted = (table.wanted(opened[fp], names[fp], filtered=filtered[fp]) for fp, table in known.items())
    return [part for part in wanted if part is not None]


def row_group_counts(query: Query, scan: Scan, table: Table, kept: Mask) -> tuple[int | None, int | None]:
    """Row groups of the table and of the kept files that may match, None where a file's are unknown."""
    counts = table.files.row_groups
    if counts is None or 0 < counts.null_count == len(counts):
        return None, None
    total, kept_count = sum_of(counts), sum_of(counts, kept)
    files = int(np.count_nonzero(kept))
    if kept_count is None or kept_count == files or not files:
        return total, kept_count
    groups, _ = table.row_groups(np.flatnonzero(kept))
    return total, int(np.count_nonzero(filter_entries(query, scan, groups)))


def judged_columns(query: Query) -> set[int]:
    """The columns that conditions and sort orders refer to, also by way of a computed column."""
    found: list[Expression] = []
    for node in walk(query.plan):
        match node:
            case Filter():
                found.append(node.condition)
            case Sort():
                found.extend(key.expression for key in node.keys)
            case GroupLimit():
                found.extend((*node.partition, *(key.expression for key in node.keys)))
            case Project():
                found.extend(e for e in node.outputs if not isinstance(e, Column))
            case _:
                pass
    return {part.id for e in found for part in parts_of(e) if isinstance(part, Column)}


def _bytes(files: FileStats) -> int | None:
    return sum_of(files.sizes)


def _rows(files: FileStats) -> int | None:
    """The rows of all files, by what is known of groups of them where not every file was looked at."""
    whole = None if files.groups is None else sum_of(files.groups.stats.rows)
    return sum_of(files.rows) if whole is None else whole


@lru_cache(maxsize=4)
def _options(settings: tuple[tuple[str, str], ...]) -> Options:
    return parse_options(dict(settings))


def refusal(key: str, value: str) -> str | None:
    """Why a SET of this option is refused, None if it is fine."""
    try:
        parse_option(key, value)
    except OptionError as problem:
        return str(problem)
    return None


def _failed(code: str, text: str) -> str:
    return json.dumps({"code": code, "error": text})
