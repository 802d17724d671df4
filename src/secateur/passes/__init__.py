"""The techniques, in the order in which they run: one technique, one module, one public function, one line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from secateur.decision.merge import Decision, ScanDecision, check, merged, read_only
from secateur.decision.parts import Edit, Part
from secateur.decision.records import PassRecord
from secateur.passes.analysis import QueryAnalysis
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.filter import prune_by_filter
from secateur.passes.filter.implied_predicates import add_implied_predicates
from secateur.passes.filter.manifests import prune_manifests
from secateur.passes.filter.range_sets import prune_by_range_sets
from secateur.passes.filter.surviving_rows import SmallTables
from secateur.passes.joins.join_keys import ask_join_keys
from secateur.passes.joins.join_ranges import prune_by_join_ranges
from secateur.passes.limits.limit import prune_by_limit
from secateur.passes.limits.topk import prune_by_topk
from secateur.passes.limits.topk_probe import probe_topk
from secateur.passes.limits.window_topk import prune_by_window_topk
from secateur.passes.tuning import Tuning
from secateur.plan.columns import Mask
from secateur.plan.nodes import Query
from secateur.reasons import Reason
from secateur.stats.file_stats import FileStats


@dataclass(frozen=True, slots=True)
class Pass:
    """A technique: its name in options and summaries, its function, and the stages of a query in which it runs."""

    name: str
    run: Callable[[PassInput], PassResult]
    stages: tuple[str, ...] = ("early", "late")


PASSES: tuple[Pass, ...] = (
    Pass("manifests", prune_manifests),
    Pass("filter", prune_by_filter),
    Pass("range_sets", prune_by_range_sets),
    Pass("join_ranges", prune_by_join_ranges, ("late",)),
    Pass("limit", prune_by_limit),
    Pass("topk", prune_by_topk),
    Pass("window_topk", prune_by_window_topk, ("late",)),
    Pass("implied_predicates", add_implied_predicates),
    Pass("topk_probe", probe_topk, ("late",)),
    Pass("join_keys", ask_join_keys, ("late",)),
)
_TUNING = Tuning()


def run_passes(
    query: Query,
    stats: Mapping[int, FileStats],
    *,
    enabled: Collection[str] | None = None,
    passes: tuple[Pass, ...] = PASSES,
    tuning: Tuning = _TUNING,
    analysis: QueryAnalysis | None = None,
) -> Decision:
    """Run the enabled passes (None: all) one after the other, each on what the ones before it kept.

    A pass that raises, or returns something that does not narrow, is ignored: the files stay as they were (rule S1).

    >>> from secateur.plan.nodes import Scan
    >>> decision = run_passes(Query(1, "early", Scan(0, "trails", "parquet", "", ())), {})
    >>> [reason.code for reason in decision[0].reasons]
    ['no-filter']
    """
    analysis = analysis or QueryAnalysis(query)
    small_tables = SmallTables(analysis, stats, tuning)
    decision = {id_: ScanDecision() for id_ in analysis.scans}
    for scan in query.scans():
        if scan.id in stats:
            decision[scan.id] = ScanDecision(read_only(scan.kept(stats[scan.id].count)))
    for pass_ in passes:
        if query.stage not in pass_.stages or (enabled is not None and pass_.name not in enabled):
            continue
        kept = {id_: scan.kept for id_, scan in decision.items() if scan.kept is not None}
        result, ms = _run(pass_, PassInput(analysis, stats, kept, tuning, small_tables), decision)
        parts: dict[int, list[Part]] = {}
        for id_, part in result:
            parts.setdefault(id_, []).append(part)
        for id_, found in parts.items():
            decision[id_] = _recorded(merged(decision[id_], found), found, pass_.name, kept.get(id_), ms)
    return decision


def _recorded(after: ScanDecision, parts: list[Part], name: str, before: Mask | None, ms: float) -> ScanDecision:
    """The decision with a record of the pass, if that had anything to say about files which are known."""
    if after.kept is None or before is None or not any(isinstance(part, Edit | Reason) for part in parts):
        return after
    record = PassRecord(name, int(np.count_nonzero(before)), int(np.count_nonzero(after.kept)), ms)
    return replace(after, records=(*after.records, record))


def _run(pass_: Pass, known: PassInput, decision: Decision) -> tuple[PassResult, float]:
    """What a pass returns and how many milliseconds it took; if it fails, a reason that says so for every scan."""
    start = perf_counter()
    result: PassResult
    try:
        result = pass_.run(known)
        check(result, decision, known.analysis.order_sensitive)
    except Exception as error:  # the query must go on, whatever broke
        text = f"The pass {pass_.name} failed and was ignored: {type(error).__name__}: {error}. Please report this."
        result = tuple((id_, Reason("pass-failed", text)) for id_ in decision)
    return result, (perf_counter() - start) * 1000
