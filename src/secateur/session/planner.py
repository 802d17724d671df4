"""The decider: takes a request from the JVM, answers with edits, and notes what it did for the summary.

It runs while a query is being planned, so it never calls the JVM, never waits for anyone, and answers every request: an
error becomes an answer with its reason, and the query runs as it would without secateur.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from secateur.bridge.decode import decode_query
from secateur.bridge.encode import encode_edit, encode_mask
from secateur.decision.merge import Decision
from secateur.decision.parts import AskAtRuntime
from secateur.errors import OptionError, SecateurError, WireError
from secateur.evaluate.constant_folding import Evaluated
from secateur.passes import run_passes
from secateur.passes.analysis import QueryAnalysis
from secateur.plan.nodes import Query, Scan, Settings
from secateur.recent import Recent
from secateur.report.history import Draft, History
from secateur.report.scan_summary import scan_summary
from secateur.session.constant_folding import ConstantFolding
from secateur.session.options import Options, parse_option, parse_options
from secateur.session.runtime_answers import RuntimeAnswers, files_to_skip
from secateur.session.wanted_parts import wanted_parts
from secateur.stats.file_stats import FileStats
from secateur.stats.formats.readers import Table, decode_source
from secateur.stats.registry import Registry

log = logging.getLogger("secateur")

_CALLS = 256
"""How many planning steps may wait for what they asked the JVM for."""


@dataclass(slots=True)
class PlanningCall:
    """One planning step of a query: the plan is sent and decoded once, then only what is new is sent."""

    id: int
    analysis: QueryAnalysis
    options: Options
    evaluated: dict[int, Evaluated] = field(default_factory=dict)
    """What Spark made of expressions over constants."""
    was_evaluated: bool = False
    tables: dict[int, Table] = field(default_factory=dict)
    """What is known of the files of each open scan, by its id."""
    python_ns: int = 0

    @property
    def query(self) -> Query:
        return self.analysis.query

    @property
    def open_scans(self) -> list[Scan]:
        """The scans whose files can be narrowed."""
        return [scan for scan in self.query.scans() if scan.open]


class Planner:
    """Answers the JVM's requests with the statistics of a :class:`Registry`."""

    def __init__(self, registry: Registry, history: History) -> None:
        self._registry = registry
        self._history = history
        self._calls: Recent[int, PlanningCall] = Recent(_CALLS)
        self._constants = ConstantFolding()
        self._runtime_answers = RuntimeAnswers()

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
            return json.dumps(self._decide(request, start))
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

    def _decide(self, request: dict[str, Any], start: int) -> dict[str, Any]:
        """What is still needed to decide, or else the edits."""
        if request["op"] == "decide":
            options = _options(tuple(request["options"].items()))
            call = PlanningCall(request["call"], QueryAnalysis(decode_query(request)), options)
        else:
            known = self._calls.pop(request["call"])
            if known is None:
                raise WireError("too many queries are being planned at once, so the plan of this one was forgotten")
            call = known
        needed = self._needed(call, request)
        if needed is not None:
            call.python_ns += time.perf_counter_ns() - start
            self._calls.put(call.id, call)
            return needed
        return {"edits": self._edits(call, start)}

    def _needed(self, call: PlanningCall, request: dict[str, Any]) -> dict[str, Any] | None:
        """What the JVM has to send or to evaluate before this call can be decided, None if nothing."""
        scans, settings = call.open_scans, call.options.statistics
        if "values" in request:  # they come once, even if a listing was forgotten meanwhile
            self._take_in(call, request["values"])
        sources = [decode_source(wire, self._registry.source) for wire in request.get("listings", ())]
        missing = self._registry.admit(sources, {scan.listing for scan in scans})
        if missing:
            return {"need": sorted(missing), "have": self._registry.relatives(missing)}
        for part in request.get("parts", ()):
            self._registry.extend(part, settings)
        call.tables = {scan.id: self._registry.table(scan.listing, settings) for scan in scans}
        parts = wanted_parts(call.analysis, [(scan, call.tables[scan.id]) for scan in scans], call.options.passes)
        if parts:
            return {"need": parts}
        stats = {id_: table.files for id_, table in call.tables.items()}
        questions = self._evaluated(call, stats)
        return {"evaluate": questions} if questions else None

    def _edits(self, call: PlanningCall, start: int) -> list[dict[str, Any]]:
        """Decides, and notes for the summary what was decided."""
        self._history.limit = call.options.history
        scans, options, analysis = call.open_scans, call.options, call.analysis
        if call.evaluated:  # what follows from a query may follow from these, too
            analysis = analysis.under(replace(call.query.settings, evaluated=call.evaluated))
        tables = call.tables
        stats = {id_: table.files for id_, table in tables.items()}
        decision = run_passes(
            analysis.query, stats, enabled=options.passes, tuning=options.tuning, analysis=analysis
        )  # fmt: skip
        edits = [self._edit(analysis.query, scan, decision) for scan in scans]
        waiting = {scan.id: self._registry.waiting(scan.listing, scan.table) for scan in scans}
        summaries = {s.id: scan_summary(analysis, s, tables[s.id], decision[s.id], waiting[s.id]) for s in scans}
        self._history.note(call.id, Draft(summaries, call.python_ns + time.perf_counter_ns() - start))
        return [edit for edit in edits if edit is not None]

    def _edit(self, query: Query, scan: Scan, decision: Decision) -> dict[str, Any] | None:
        """What the JVM is to change about a scan."""
        decided = decision[scan.id]
        asking, id_ = decided.one(AskAtRuntime), ""
        if asking is not None and decided.kept is not None:
            id_ = self._runtime_answers.remember(asking.predicate, scan, decided.kept, query.settings)
        return encode_edit(scan, decided, id_)

    def _take_in(self, call: PlanningCall, values: list[Any]) -> None:
        """What Spark made of expressions over constants; it is not asked twice."""
        call.was_evaluated = True
        try:
            call.evaluated = self._constants.answer(call.id, values)
        except Exception:  # then the rules have to do
            log.warning("values of expressions over constants were not understood", exc_info=True)

    def _evaluated(self, call: PlanningCall, stats: Mapping[int, FileStats]) -> list[dict[str, Any]]:
        """What Spark is to be asked of expressions over constants; nothing if all that it may be asked is known."""
        try:
            known = self._constants.of(call.analysis, stats)
            if not call.was_evaluated and (open_ := self._constants.ask(call.id, known)):
                return open_
            call.evaluated = {q.expression.ref: q.evaluated() for q in known} | call.evaluated
        except Exception:  # then the rules have to do
            log.warning("expressions over constants were not evaluated", exc_info=True)
        return []

    def _files(self, request: dict[str, Any]) -> dict[str, Any]:
        """The files of a scan that hold none of the values that became known at run time."""
        table = self._registry.known(request["fp"])
        if table is None:
            return {}
        conf = request["conf"]
        settings = Settings(conf["time_zone"], conf["ansi"], conf["case_sensitive"])
        return {"fp": request["fp"], "skip": encode_mask(files_to_skip(table.files, request["lists"], settings))}

    def _runtime(self, request: dict[str, Any]) -> dict[str, Any]:
        """The files of a scan that are not needed, now that the values it waited for are known."""
        table = self._registry.known(request["fp"])
        if table is None or self._runtime_answers.fingerprint(request["id"]) != request["fp"]:
            raise SecateurError("the statistics that the query was planned with are not in memory any more")
        skip, told = self._runtime_answers.answer(request["id"], request["values"], table.files)
        return {"fp": request["fp"], "skip": encode_mask(skip), "skipped": int(np.count_nonzero(skip)), "told": told}


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
