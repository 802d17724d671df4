"""The techniques, in the order in which they run: one technique, one module, one public function, one line here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from secateur.decision.records import JoinRecord, PassRecord
from secateur.passes.contract import Implied, Limits, PassInput, PassResult, RuntimePredicate
from secateur.passes.filter.filter import prune_by_filter
from secateur.passes.filter.implied_predicates import add_implied_predicates
from secateur.passes.filter.manifests import prune_manifests
from secateur.passes.filter.predicates import order_sensitive_scans
from secateur.passes.filter.range_sets import prune_by_range_sets
from secateur.passes.joins.join_keys import ask_join_keys
from secateur.passes.joins.join_ranges import prune_by_join_ranges
from secateur.passes.limits.limit import prune_by_limit
from secateur.passes.limits.topk import prune_by_topk
from secateur.passes.limits.topk_probe import probe_topk
from secateur.passes.limits.window_topk import prune_by_window_topk
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


_LIMITS = Limits()
_NOTHING = PassResult()
PASSES: tuple[Pass, ...] = (
    Pass("manifests", prune_manifests),
    Pass("filter", prune_by_filter),
    Pass("range_sets", prune_by_range_sets),
    Pass("join_ranges", prune_by_join_ranges, stages=("late",)),
    Pass("limit", prune_by_limit),
    Pass("topk", prune_by_topk),
    Pass("window_topk", prune_by_window_topk, ("late",)),
    Pass("implied_predicates", add_implied_predicates),
    Pass("topk_probe", probe_topk, ("late",)),
    Pass("join_keys", ask_join_keys, ("late",)),
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What all passes decided, by scan id: which files stay, what each pass did, and why it did not do more.

    A scan without statistics has no mask and no records, only reasons. The time in a record is that of the whole pass.
    """

    kept: Mapping[int, Mask]
    records: Mapping[int, tuple[PassRecord, ...]]
    reasons: Mapping[int, tuple[Reason, ...]]
    counted: frozenset[int] = frozenset()
    """Scans whose masks rest on the rows of the files that are kept."""
    implied: Mapping[int, tuple[Implied, ...]] = field(default_factory=dict)
    """Predicates to be put right above a scan, for whoever reads its files."""
    joins: Mapping[int, tuple[JoinRecord, ...]] = field(default_factory=dict)
    """What scans were told by those that they join with."""
    relies: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """For a narrowed scan, others whose files have to be as they were listed."""
    runtime: Mapping[int, RuntimePredicate] = field(default_factory=dict)
    """What scans are narrowed by while the query runs."""
    first: Mapping[int, Mask] = field(default_factory=dict)
    """Files to be read before the others, where Spark reads on only until it has enough rows."""
    driver: frozenset[int] = frozenset()
    """Scans that the driver may read itself, without a Spark job."""


def run_passes(
    query: Query,
    stats: Mapping[int, FileStats],
    *,
    enabled: Collection[str] | None = None,
    passes: tuple[Pass, ...] = PASSES,
    limits: Limits = _LIMITS,
) -> Decision:
    """Run the enabled passes (None: all) one after the other, each on what the ones before it kept.

    A pass that raises, or returns something that does not narrow, is ignored: the files stay as they were (rule S1).

    >>> from secateur.plan.nodes import Scan
    >>> decision = run_passes(Query(1, "early", Scan(0, "trails", "parquet", "", ())), {})
    >>> [reason.code for reason in decision.reasons[0]]
    ['no-filter']
    """
    scans = tuple(dict.fromkeys(scan.id for scan in query.scans()))
    kept = {scan.id: _read_only(scan.kept(stats[scan.id].count)) for scan in query.scans() if scan.id in stats}
    records: dict[int, tuple[PassRecord, ...]] = dict.fromkeys(kept, ())
    reasons: dict[int, tuple[Reason, ...]] = dict.fromkeys(scans, ())
    counted: frozenset[int] = frozenset()
    implied: dict[int, tuple[Implied, ...]] = {}
    joins: dict[int, tuple[JoinRecord, ...]] = {}
    relies: dict[int, frozenset[int]] = {}
    runtime: dict[int, RuntimePredicate] = {}
    first: dict[int, Mask] = {}
    driver: frozenset[int] = frozenset()
    shared: dict[object, Any] = {}
    for pass_ in passes:
        if query.stage not in pass_.stages or (enabled is not None and pass_.name not in enabled):
            continue
        before = dict(kept)
        outcome, ms = _run(pass_, PassInput(query, stats, before, limits, shared), scans)
        if outcome == _NOTHING:
            continue
        for id_, mask in outcome.kept.items():
            kept[id_] = _read_only(mask)
        counted |= outcome.counted
        for id_, reason in outcome.reasons:
            reasons[id_] += (reason,)
        for id_, predicates in outcome.implied.items():
            implied[id_] = implied.get(id_, ()) + predicates
        for id_, record in outcome.joins:
            joins[id_] = (*joins.get(id_, ()), record)
        for id_, others in outcome.relies.items():
            relies[id_] = relies.get(id_, frozenset()) | others
        first.update(outcome.first)
        driver |= outcome.driver
        runtime = {**outcome.runtime, **runtime}  # a scan waits for one thing, the first that it was given
        concerned = {*outcome.kept, *outcome.implied, *outcome.runtime, *(id_ for id_, _ in outcome.reasons)}
        for id_, mask in kept.items():
            if id_ not in concerned:
                continue
            records[id_] += (PassRecord(pass_.name, _count(before[id_]), _count(mask), ms),)
    return Decision(kept, records, reasons, counted, implied, joins, relies, runtime, first, driver)


def _run(pass_: Pass, known: PassInput, scans: tuple[int, ...]) -> tuple[PassResult, float]:
    """What a pass returns and how many milliseconds it took; if it fails, an outcome that says so for every scan."""
    start = perf_counter()
    try:
        outcome = pass_.run(known)
        _check(outcome, known, scans)
    except Exception as error:  # the query must go on, whatever broke
        text = f"The pass {pass_.name} failed and was ignored, please report this: {type(error).__name__}: {error}"
        outcome = PassResult(reasons=tuple((id_, Reason("pass-failed", text)) for id_ in scans))
    return outcome, (perf_counter() - start) * 1000


def _check(outcome: PassResult, known: PassInput, scans: tuple[int, ...]) -> None:
    """Refuse an outcome that is not a narrowing of what was kept before."""
    if not {id_ for id_, _ in outcome.reasons} <= set(scans):
        raise ValueError("it gave a reason for a scan that is not in the query")
    kept, order_sensitive = known.kept, order_sensitive_scans(known.query)
    for id_ in (*outcome.kept, *outcome.implied, *outcome.runtime, *outcome.first, *outcome.driver):
        if id_ in order_sensitive:
            raise ValueError(f"it narrowed scan {id_}, which is below something random")
        if id_ not in kept:
            raise ValueError(f"it narrowed scan {id_}, of which no statistics were given")
    for id_, mask in outcome.kept.items():
        if mask.dtype != np.bool_ or mask.shape != kept[id_].shape:
            raise ValueError(f"it kept {mask.dtype} {mask.shape} of scan {id_}, which has {kept[id_].shape} files")
        if (mask > kept[id_]).any():
            raise ValueError(f"it brought back files of scan {id_} that an earlier pass had ruled out")


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _read_only(mask: Mask) -> Mask:
    mask.flags.writeable = False
    return mask
