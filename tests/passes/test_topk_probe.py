"""Which files come first, whether that pays, and what their rows tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from secateur.decision.parts import AskAtRuntime
from secateur.passes.contract import PassInput
from secateur.passes.limits.sorted_scans import SortedScan, below_sort, sorted_scans
from secateur.passes.limits.topk_probe import TopKProbe, probe_topk
from secateur.passes.tuning import Tuning
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Alias, And, Call, Column, Compare, Expression, Literal, Opaque, Or
from secateur.plan.nodes import (
    PRUNING_COPY,
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Query,
    Scan,
    Sort,
    SortKey,
    Union,
)
from secateur.plan.nodes import Opaque as OpaquePlan
from secateur.plan.propagation import Propagation
from secateur.plan.types import BOOLEAN, parse_type
from secateur.reasons import Reason
from secateur.session.runtime_answers import RuntimeAnswers
from secateur.stats.file_stats import ColumnStats, FileStats
from tests.passes.results import parts

INT, DOUBLE = parse_type("int"), parse_type("double")
X, Y = Column(1, "x", INT), Column(2, "y", INT)
SCAN = Scan(0, "t", "parquet", "fp", (ScanColumn(1, "x", INT), ScanColumn(2, "y", INT)))
OTHER = Scan(1, "u", "parquet", "fu", (ScanColumn(8, "k", INT),))
ODD = Compare("=", Call("Pmod", (Y, Literal(2, INT)), INT), Literal(1, INT))
SLOW = Tuning(0.5, 1.0)


def top(child: Plan, count: int = 10, key: Expression = X, *, descending: bool = True) -> Plan:
    return Limit(count, Sort((SortKey(key, descending, nulls_first=not descending),), child, ref=0))


def files(low: Sequence[int | None], high: Sequence[int | None], rows: Sequence[int | None]) -> FileStats:
    zeros, flags = pa.array([0] * len(low)), np.ones(len(low), np.bool_)
    known = ColumnStats(pa.array(low, pa.int64()), pa.array(high, pa.int64()), zeros, zeros, flags, flags)
    sizes = pa.array([1000] * len(low))
    return FileStats(pa.array(rows, pa.int64()), sizes, lambda column: known if column.name == "x" else None)


def probes(plan: Plan, stats: FileStats) -> tuple[TopKProbe | None, list[str]]:
    known = PassInput.of(Query(1, "late", plan), {0: stats}, {0: np.ones(stats.count, np.bool_)}, SLOW)
    outcome = probe_topk(known)
    asking = parts(outcome, AskAtRuntime).get(0)
    probe = None if asking is None else asking.predicate
    assert probe is None or isinstance(probe, TopKProbe)
    return probe, [part.code for _, part in outcome if isinstance(part, Reason)]


STEPS = list(range(0, 40_000, 1000))


def test_the_files_whose_worst_value_comes_first() -> None:
    stats = files(STEPS, [v + 999 for v in STEPS], [1000] * 40)
    probe, reasons = probes(top(Filter(ODD, SCAN)), stats)
    assert probe is not None
    assert np.flatnonzero(probe.files).tolist() == [36, 37, 38, 39]
    assert not reasons
    probe, _ = probes(top(Filter(ODD, SCAN), descending=False), stats)
    assert probe is not None
    assert np.flatnonzero(probe.files).tolist() == [0, 1, 2, 3]
    probe, _ = probes(top(SCAN), stats)  # nothing is filtered: one file holds enough rows
    assert probe is not None
    assert np.flatnonzero(probe.files).tolist() == [39]


def test_no_probe_where_it_does_not_pay() -> None:
    spanning = files([0] * 40, [40_000] * 40, [1000] * 40)
    assert probes(top(Filter(ODD, SCAN)), spanning) == (None, ["probe-not-worth"])
    unknown = files([None] * 40, [None] * 40, [1000] * 40)
    assert probes(top(Filter(ODD, SCAN)), unknown) == (None, ["probe-not-worth"])
    stats = files(STEPS, [v + 999 for v in STEPS], [1000] * 40)
    assert probes(top(Filter(ODD, SCAN), 9000), stats) == (None, ["probe-not-worth"])
    assert probes(top(Filter(ODD, SCAN), 10**6), stats) == (None, ["probe-too-large"])
    assert probes(top(Filter(ODD, SCAN), 0), stats) == (None, [])
    assert probes(top(Filter(ODD, SCAN), key=Y), stats) == (None, ["probe-not-worth"])


def test_rows_that_nobody_counted_are_taken_to_be_as_many_as_elsewhere() -> None:
    stats = files(STEPS, [v + 999 for v in STEPS], [1000] * 20 + [None] * 20)
    probe, _ = probes(top(Filter(ODD, SCAN)), stats)
    assert probe is not None
    assert np.flatnonzero(probe.files).tolist() == [36, 37, 38, 39]


UDF = Opaque("PythonUDF", "the user's", BOOLEAN, (X,))
HIT = Compare("=", X, Column(8, "k", INT))
GROUPED = Aggregate((X,), (X, Alias(9, "n", Opaque("AggregateExpression", "", INT), INT)), SCAN)


PRUNES = Opaque("DynamicPruningSubquery", "its value is not known before the query runs", BOOLEAN, (X,))


def pruned_by(other: Plan, side: Plan) -> Filter:
    """One side of a join as Spark prunes it, by a copy of the other."""
    return Filter(And(PRUNES, ODD), side, (OpaquePlan(PRUNING_COPY, (other,)),))


@pytest.mark.parametrize(
    ("below", "found"),
    [
        (SCAN, True),
        (Project((X, Alias(5, "z", ODD, BOOLEAN)), Filter(ODD, SCAN)), True),
        (Project((X,), SCAN, deterministic=False), False),
        (Filter(UDF, SCAN), False),
        (Filter(ODD, SCAN, subqueries=(OTHER,)), False),
        (Join("Inner", HIT, SCAN, OTHER), True),
        (Join("Inner", HIT, OTHER, SCAN), True),
        (Join("Inner", HIT, SCAN, Filter(UDF, OTHER)), False),
        (Join("Inner", HIT, SCAN, Limit(5, OTHER)), False),
        (Join("Inner", HIT, SCAN, replace(OTHER, declined="it is none of ours")), False),
        (Join("LeftOuter", HIT, SCAN, OTHER), True),
        (Join("LeftOuter", HIT, OTHER, SCAN), False),
        (Join("RightOuter", HIT, OTHER, SCAN), True),
        (Join("RightOuter", HIT, SCAN, OTHER), False),
        (Join("FullOuter", HIT, SCAN, OTHER), False),
        (Join("LeftSemi", HIT, SCAN, OTHER), True),
        (Join("LeftAnti", HIT, SCAN, OTHER), True),
        (Join("LeftSingle", HIT, SCAN, OTHER), False),
        (Join("Inner", HIT, pruned_by(OTHER, SCAN), OTHER), True),
        (Join("Inner", HIT, SCAN, pruned_by(SCAN, OTHER)), True),
        (Join("Inner", HIT, pruned_by(pruned_by(SCAN, OTHER), SCAN), OTHER), True),
        (Join("Inner", HIT, pruned_by(Filter(UDF, OTHER), SCAN), OTHER), False),
        (Join("Inner", HIT, SCAN, pruned_by(Limit(5, SCAN), OTHER)), False),
        (Join("Inner", HIT, replace(pruned_by(OTHER, SCAN), subqueries=(OTHER,)), OTHER), False),
        (Join("Inner", HIT, replace(pruned_by(OTHER, SCAN), condition=Or(PRUNES, UDF)), OTHER), False),
        (GROUPED, True),
        (Filter(Compare(">", Column(9, "n", INT), Literal(1, INT)), GROUPED), False),
        (Join("Inner", HIT, GROUPED, OTHER), False),
        (Join("LeftOuter", HIT, GROUPED, OpaquePlan("LocalRelation", ())), False),
        (Join("LeftOuter", HIT, SCAN, OpaquePlan("LocalRelation", ())), True),
        (Aggregate((Y,), (Y,), SCAN), False),
        (Union((1,), ((1,), (8,)), (SCAN, OTHER)), False),
        (Limit(100, SCAN), False),
    ],
)
def test_what_a_probe_can_be_taken_through(below: Plan, found: bool) -> None:
    one = below_sort(below, SortedScan(10, 0, SortKey(X, descending=True, nulls_first=False)), Propagation())
    assert isinstance(one, SortedScan) == found, one
    if isinstance(one, SortedScan):
        assert one.scan.id == 0


def test_a_filter_between_the_limit_and_the_sort_is_not_passed() -> None:
    sort = top(SCAN)
    assert isinstance(sort, Limit)
    assert list(sorted_scans(Limit(10, Filter(ODD, sort.child)), Propagation())) == []
    assert len(list(sorted_scans(Limit(10, Project((X,), sort.child)), Propagation()))) == 1


@pytest.mark.parametrize(
    ("descending", "nulls_first", "values", "condition"),
    [
        (True, False, [10, 10, 7], "(x#1 >= 7)"),
        (False, False, [10, 10, 7], "(x#1 <= 7)"),
        (False, True, [10, 4, 7], "((x#1 <= 7) OR x#1 IS NULL)"),
        (True, True, [10, 0, None], "x#1 IS NULL"),
        (True, False, [9, 9, 7], "None"),
        (True, False, [10, 9, 7], "None"),
        (True, False, [10, 10, None], "None"),
        (True, False, [], "None"),
        (True, False, ["10", None, 7], "None"),
    ],
)
def test_what_the_probe_tells(descending: bool, nulls_first: bool, values: list[object], condition: str) -> None:
    probe = TopKProbe(0, 10, SortKey(X, descending, nulls_first), np.ones(1, np.bool_))
    assert str(probe.condition(values)) == condition


def test_nan_as_the_last_value_rules_out_nothing() -> None:
    key = SortKey(Column(1, "x", DOUBLE), descending=False, nulls_first=False)
    flags, zeros = np.ones(2, np.bool_), pa.array([0, 0])
    known = ColumnStats(pa.array([1.0, 5.0]), pa.array([2.0, 6.0]), zeros, zeros, flags, flags)
    stats = FileStats(pa.array([5, 5]), pa.array([1, 1]), lambda column: known)
    scan = Scan(0, "t", "parquet", "fp", (ScanColumn(1, "x", DOUBLE),))
    awaited = RuntimeAnswers()
    for value, skipped in ((3.5, [False, True]), ("NaN", [False, False]), ("-Infinity", [True, True])):
        id_ = awaited.remember(TopKProbe(0, 3, key, flags), scan, flags, Query(1, "late", scan).settings)
        assert awaited.answer(id_, [3, 3, value], stats)[0].tolist() == skipped
