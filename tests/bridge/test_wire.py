"""Requests decode into values; what is not modelled becomes opaque with a reason, and nonsense becomes a WireError."""

from __future__ import annotations

import base64
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import secateur
from secateur.bridge.decode import decode_expression, decode_query
from secateur.bridge.encode import encode_edit
from secateur.decision.merge import ScanDecision, merged
from secateur.decision.parts import Keep
from secateur.errors import WireError
from secateur.passes.analysis import QueryAnalysis
from secateur.plan.expressions import And, Call, Column, In, Literal, Opaque, conjuncts, walk
from secateur.plan.nodes import Query, Scan
from secateur.plan.types import parse_type
from secateur.plan.values import decode_value
from secateur.session import planner

BIGINT = parse_type("bigint")
A: dict[str, Any] = {"a": 1, "n": "a", "t": "bigint"}


def five(value: int = 5) -> dict[str, Any]:
    return {"v": value, "t": "bigint"}


def call(function: str, *children: Any, **more: Any) -> dict[str, Any]:
    return {"f": function, "t": "boolean", "c": list(children), **more}


DECODED = [
    (call("LessThan", A, five()), "(a#1 < 5)"),
    (call("EqualNullSafe", five(), A), "(5 <=> a#1)"),
    (call("Not", call("EqualTo", A, five())), "NOT (a#1 = 5)"),
    (call("In", A, five(1), five(2)), "a#1 IN (1, 2)"),
    (call("InSet", A, vs=[1, None, 3]), "a#1 IN (1, NULL, 3)"),
    (call("IsNotNull", A), "a#1 IS NOT NULL"),
    (call("StartsWith", {"a": 2, "n": "s", "t": "string"}, {"v": "ab", "t": "string"}), "startswith(s#2, 'ab')"),
    (call("Like", {"a": 2, "n": "s", "t": "string"}, {"v": "a_c%", "t": "string"}, e="\\"), "s#2 LIKE 'a_c%'"),
    (call("Rand", d=0), "?Rand()"),
    (
        call("Or", call("IsNull", A), call("IsNull", A), call("IsNull", A)),
        "(a#1 IS NULL OR (a#1 IS NULL OR a#1 IS NULL))",
    ),
    (
        call("Or", call("EqualTo", A, five(1)), call("IsNull", A), call("EqualTo", A, five(2))),
        "(a#1 IN (1, 2) OR a#1 IS NULL)",
    ),
    (call("Or", call("EqualTo", A, five(1)), call("EqualTo", {**A, "a": 2}, five(2))), "((a#1 = 1) OR (a#2 = 2))"),
    ({"f": "Abs", "t": "bigint", "c": [A]}, "abs(a#1)"),
    ({"f": "ScalarSubquery", "t": "bigint", "c": []}, "?ScalarSubquery()"),
    (call("GreaterThan", A, {"v": {"other": "CalendarInterval"}, "t": "interval"}), "(a#1 > ?literal())"),
]


@pytest.mark.parametrize(("wire", "text"), DECODED)
def test_an_expression_decodes(wire: dict[str, Any], text: str) -> None:
    assert str(decode_expression(wire)) == text


@pytest.mark.parametrize(
    ("wire", "type_", "value"),
    [
        (True, "boolean", 1),
        (-7, "date", -7),
        (5, "double", 5.0),
        ("-Infinity", "double", float("-inf")),
        ("1.50", "decimal(3,2)", "1.50"),
        ("é", "string", "é".encode()),
        ({"hex": "ff00"}, "string", b"\xff\x00"),
        (None, "interval", None),
    ],
)
def test_a_value_arrives_in_its_domain(wire: object, type_: str, value: object) -> None:
    decoded = decode_value(wire, parse_type(type_))
    assert (str(decoded) if type_.startswith("decimal") else decoded) == value


def test_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(WireError, match="array<int>"):
        decode_value(5, parse_type("array<int>"))


def test_a_chain_of_a_thousand_conjuncts_is_shallow() -> None:
    parts = [call("GreaterThan", A, five(i)) for i in range(5000)]
    decoded = decode_expression(call("And", *parts))
    assert isinstance(decoded, And)
    assert [str(c) for c in conjuncts(decoded)] == [f"(a#1 > {i})" for i in range(5000)]


def test_a_call_with_other_children_than_expected_stays_a_call() -> None:
    assert isinstance(decode_expression(call("In", A, A)), Call)
    assert isinstance(decode_expression(call("IsNull", A, A)), Call)


@pytest.mark.parametrize(
    "broken", [{}, {"conf": {}}, {"conf": {"time_zone": "UTC", "ansi": True, "case_sensitive": False}}]
)
def test_nonsense_is_a_wire_error(broken: dict[str, Any]) -> None:
    with pytest.raises(WireError, match="could not be decoded"):
        decode_query(broken)


@given(st.lists(st.booleans(), max_size=70))
def test_the_skipped_files_survive_the_encoding(keep: list[bool]) -> None:
    decision = merged(ScanDecision(np.ones(len(keep), np.bool_)), [Keep(np.array(keep, dtype=np.bool_))])
    edit = encode_edit(Scan(3, "t", "parquet", "fp", ()), decision)
    assert edit is not None
    bits = np.unpackbits(np.frombuffer(base64.b64decode(edit["skip"]), np.uint8), bitorder="little")
    assert [not k for k in keep] == [bool(b) for b in bits[: len(keep)]]
    assert not bits[len(keep) :].any()
    assert (edit["scan"], edit["fp"], edit["skipped"]) == (3, "fp", keep.count(False))


def test_values_are_what_they_say() -> None:
    decoded = decode_expression(call("In", A, five(1), five(2)))
    assert decoded == In(Column(1, "a", BIGINT), (1, 2))
    assert decode_expression({"v": None, "t": "bigint"}) == Literal(None, BIGINT)
    assert isinstance(decode_expression(call("Rand", d=0)), Opaque)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Query]:
    """The queries that the planner decodes from now on."""
    seen: list[Query] = []
    real = decode_query

    def remember(request: dict[str, Any]) -> Query:
        seen.append(real(request))
        return seen[-1]

    monkeypatch.setattr(planner, "decode_query", remember)
    return seen


def test_time_zones_and_units_travel_with_the_query(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Any, decoded: list[Query]
) -> None:
    spark.sql("SELECT now() AS ts").coalesce(1).write.parquet(str(tmp_path / "t"))
    spark.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("timed")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        pruner.explain("SELECT * FROM timed WHERE timestampadd(HOUR, 3, ts) > now() AND hour(ts) = 3")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    (predicate,) = QueryAnalysis(decoded[0]).predicates.values()
    calls = {e.function: e for conjunct in predicate for e in walk(conjunct) if isinstance(e, Call)}
    assert calls["Hour"].zone == calls["TimestampAdd"].zone == "America/New_York"
    assert calls["TimestampAdd"].unit == "HOUR"
    zone = decoded[0].settings.zones["America/New_York"]
    assert (zone.offsets[0], zone.offsets[-1], list(zone.rest)) == (-17762, -18000, [-18000, -14400])
    assert zone.changes[0] == -2717650800
    assert len(zone.changes) == len(zone.offsets)


SHAPES = {
    "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND t.b > u.b": """
        0 Scan t [a, b]
        1 Scan u [a, b]
        2 Filter (a IS NOT NULL AND b IS NOT NULL) <- 1
        3 LeftOuter Join ((a = a) AND (b > b)) <- 0, 2
        4 Project a <- 3""",
    "SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a)": """
        0 Scan t [a]
        1 Scan u [a]
        2 Project a <- 1
        3 Filter ?Exists(a, (a = a)) <- 0, 2
        4 Project a <- 3""",
    "SELECT a + 1 AS k, sum(b) AS s FROM t GROUP BY a + 1": """
        0 Scan t [a, b]
        1 Project b, add(a, 1) AS _groupingexpression <- 0
        2 Aggregate [_groupingexpression] _groupingexpression AS k, ?AggregateExpression(sum(b)) AS s <- 1""",
    "SELECT a FROM t UNION ALL SELECT b FROM u": """
        0 Scan t [a]
        1 Project a <- 0
        2 Scan u [b]
        3 Project b <- 2
        4 Union <- 1, 3""",
    "SELECT a, row_number() OVER (PARTITION BY a ORDER BY b) AS r FROM t": """
        0 Scan t [a]
        1 Window [a] <- 0
        2 Project a, r <- 1""",
    "SELECT a, count(*) AS n FROM t GROUP BY ROLLUP (a)": """
        0 Scan t [a]
        1 Project a <- 0
        2 Expand: a, 0 | NULL, 1 <- 1
        3 Aggregate [a, spark_grouping_id] a, ?AggregateExpression(count(1)) AS n <- 2""",
    "SELECT a, e FROM t LATERAL VIEW explode(sequence(1, b)) AS e": """
        0 Scan t []
        1 Generate <- 0""",
    "SELECT /*+ REPARTITION(3, a) */ a FROM t SORT BY b": """
        0 Scan t [a, b]
        1 RepartitionByExpression <- 0
        2 Sort <- 1
        3 Project a <- 2""",
}


@pytest.fixture(scope="module")
def two_tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("t", "u"):
        folder = str(tmp_path_factory.mktemp(name))
        spark.createDataFrame([(1, 2)], "a int, b int").coalesce(1).write.mode("overwrite").parquet(folder)
        spark.read.parquet(folder).createOrReplaceTempView(name)


@pytest.mark.usefixtures("two_tables")
def test_the_nodes_of_spark_arrive_as_values(pruner: secateur.Pruner, decoded: list[Query]) -> None:
    seen = {}
    for sql in SHAPES:
        decoded.clear()
        pruner.explain(sql)
        text = re.sub(r"Scan file:/\S*/(t|u)\d+ parquet files=1 \[(.*)\]", r"Scan \1 [\2]", str(decoded[0]))
        text = re.sub(r"(,? ?)#\d+", "", re.sub(r"(\w)#\d+( int)?", r"\1", text))
        seen[sql] = "".join(f"\n        {line}" for line in re.sub(r" +", " ", text).splitlines())
    assert seen == SHAPES


def test_a_plan_of_spark_prints_as_flat_text(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Any, decoded: list[Query]
) -> None:
    spark.createDataFrame([("Marked-A", 1600)], "name string, altit int").coalesce(1).write.parquet(str(tmp_path / "t"))
    spark.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("seen")
    pruner.explain("SELECT name FROM seen WHERE altit > 1500")
    numbered = re.sub(r"#\d+", "", str(decoded[0]).replace(str(tmp_path), ""))
    assert numbered == (
        "0 Scan file:/t parquet files=1 [name string, altit int]\n"
        "1 Filter (altit IS NOT NULL AND (altit > 1500)) <- 0\n"
        "2 Project name <- 1"
    )
