"""Which plans the driver may read itself: a LIMIT at the end, small files, and nothing but Spark's own in between."""

from __future__ import annotations

import pytest

from secateur.decision.parts import ReadOnDriver
from secateur.passes import run_passes
from secateur.passes.tuning import Tuning
from secateur.plan.expressions import Alias, Call, Expression
from secateur.plan.expressions import Opaque as OpaqueExpression
from secateur.plan.nodes import Filter, Limit, Opaque, Plan, Project, Query, Scan
from tests.evaluate.language import columns_of, entry, file_stats, predicate, references
from tests.passes.results import kept

COLUMNS = columns_of("x int")
SCAN = Scan(1, "t", "parquet", "", COLUMNS)
STATS = file_stats([entry(f"x: {i}..{i + 5} | rows=10", COLUMNS) for i in range(0, 50, 10)], COLUMNS)  # a byte each
REFERENCES = references(COLUMNS)
X = REFERENCES["x"]
FILTERED = Filter(predicate("x >= 20", REFERENCES), SCAN)


def ending(plan: Plan, count: int = 5) -> Plan:
    return Opaque("GlobalLimit", (Limit(count, plan),))


def computing(e: Expression, child: Plan = SCAN) -> Plan:
    return ending(Project((Alias(9, "y", e, X.type),), child))


def of_spark(*args: Expression) -> Expression:
    return Call("Upper", args, X.type, ref=3)


PLANS: dict[str, tuple[Plan, bool]] = {
    "LIMIT": (ending(SCAN), True),
    "with a condition": (ending(FILTERED), True),
    "with OFFSET": (Opaque("GlobalLimit", (Opaque("Offset", (Limit(5, FILTERED),)),)), True),
    "with a column computed": (computing(of_spark(X), FILTERED), True),
    "with a field of a struct": (computing(Call("GetStructField", (of_spark(X),), X.type)), True),
    "with a user's function": (computing(Call("ScalaFunction", (X,), X.type)), False),
    "the same within one of Spark's": (computing(of_spark(Call("ScalaFunction", (X,), X.type))), False),
    "with something unknown": (computing(OpaqueExpression("PythonUDF", "it is Python", X.type, (X,))), False),
    "with a subquery": (ending(Project((X,), SCAN, subqueries=(Scan(2, "u", "parquet", "", ()),))), False),
    "in the middle": (Opaque("Join", (ending(FILTERED), Scan(2, "u", "parquet", "", ()))), False),
    "below a group-by": (Opaque("Aggregate", (ending(FILTERED),)), False),
    "of each partition only": (Limit(5, FILTERED), False),
    "rows are too few": (ending(FILTERED, 31), False),
}


@pytest.mark.parametrize("name", PLANS)
def test_shapes(name: str) -> None:
    plan, expected = PLANS[name]
    assert (run_passes(Query(1, "early", plan), {1: STATS})[1].one(ReadOnDriver) is not None) is expected


@pytest.mark.parametrize(("count", "most", "expected"), [(10, 1, True), (20, 1, False), (20, 2, True), (10, 0, False)])
def test_sizes(count: int, most: int, expected: bool) -> None:
    decision = run_passes(Query(1, "early", ending(SCAN, count)), {1: STATS}, tuning=Tuning(driver_bytes=most))
    assert (decision[1].one(ReadOnDriver) is not None) is expected
    assert int(kept(decision).sum()) == count // 10
