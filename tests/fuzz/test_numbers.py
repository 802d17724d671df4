"""Arithmetic, casts and conditionals against Spark: the altitudes of the README, and lines that anyone can extend."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.harness import Bench
from tests.fuzz.lenses import lens


@pytest.fixture(params=["ansi", "legacy"])
def mode(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", str(request.param == "ansi").lower())
    yield request.param
    spark.conf.set("spark.sql.ansi.enabled", before or "true")


def _altitudes(unit: list[str | None], altit: list[int | None]) -> pa.Table:
    return pa.table({"unit": pa.array(unit, pa.string()), "altit": pa.array(altit, pa.int32())})


ALTITUDES = [
    # file                                                       rows above 1500 m: skipped, kept, or kept as a whole
    (_altitudes(["feet", "feet"], [1000, 4921]), "skipped"),
    (_altitudes(["feet", "feet"], [1000, 4922]), "kept"),
    (_altitudes(["feet", "feet"], [4922, 9000]), "whole"),
    (_altitudes(["feet", "feet"], [4922, None]), "kept"),
    (_altitudes(["metres", None], [100, 1500]), "skipped"),
    (_altitudes(["metres", None], [100, 1501]), "kept"),
    (_altitudes([None, None], [1501, 1501]), "whole"),
    (_altitudes(["feet", "metres"], [1500, 1200]), "skipped"),
    (_altitudes(["feet", "metres"], [1501, 1200]), "kept"),
    (_altitudes(["feet", "metres"], [4922, 4922]), "whole"),
    (_altitudes(["feet", "metres"], [None, None]), "skipped"),
]


def test_a_condition_picks_the_branch_file_by_file(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, mode: str
) -> None:
    bench = Bench(spark, pruner, tmp_path / f"altitudes_{mode}", [table for table, _ in ALTITUDES])
    predicates = [
        "IF(unit = 'feet', altit * 0.3048, altit) > 1500",
        "CASE WHEN unit = 'feet' THEN altit * 0.3048 ELSE altit END > 1500",
        "coalesce(IF(unit = 'feet', altit * 0.3048, NULL), altit) > 1500",
        "altit * IF(unit = 'feet', 0.3048, 1) > 1500",
    ]
    judged = list(bench.judge(predicates))
    assert [j.sql for j in judged] == predicates
    for j in judged:
        assert not j.wrong_skip, j.sql
        assert not j.wrong_must, j.sql
    for j in judged[:2]:
        found = ["whole" if must else "kept" if may else "skipped" for may, must in zip(j.may, j.must, strict=True)]
        assert found == [expected for _, expected in ALTITUDES], j.sql


_BIG = 2**63 - 1
_NAN, _INF = float("nan"), float("inf")


def _file(i: list[int], big: list[int], d: list[float], p: list[str], w: list[str]) -> pa.Table:
    return pa.table(
        {
            "i": pa.array(i, pa.int32()),
            "b": pa.array([v % 100 for v in i], pa.int8()),
            "l": pa.array(big, pa.int64()),
            "d": pa.array(d, pa.float64()),
            "r": pa.array(d, pa.float32()),
            "p": pa.array([Decimal(v) for v in p], pa.decimal128(9, 2)),
            "w": pa.array([Decimal(v) for v in w], pa.decimal128(38, 10)),
        }
    )


_MOST = "9999999999999999999999999999.9999990000"  # negating more digits is an error
REGRESSIONS = [
    _file([1, 5], [1, 5], [1.5, 5.0], ["1.25", "5.00"], ["1.0", "5.0"]),
    _file([7, 9], [7, 9], [7.0, 9.5], ["7.00", "9.99"], ["7.0", "9.9999999999"]),
    _file([-5, -1], [-5, -1], [-5.5, -0.5], ["-5.00", "-0.01"], ["-5.0", "-0.5"]),
    _file([-3, 0, 4], [-3, 0, 4], [-3.0, 0.0, 4.0], ["-3.00", "0.00", "4.00"], ["-3.0", "0", "4.0"]),
    _file([0, 0], [0, 0], [0.0, -0.0], ["0.00", "0.00"], ["0", "0"]),
    _file([100, 120], [6, 7], [5e-324, 1e-300], ["99.99", "100.00"], ["0.0000000001", "0.0000000002"]),
    _file([2**31 - 1, 2**31 - 2], [_BIG, _BIG - 1], [1e308, 1.7e308], ["9999999.99", "9999999.98"], [_MOST, _MOST]),
    _file([-(2**31), -(2**31)], [-_BIG - 1, -_BIG - 1], [-1e308, -_INF], ["-9999999.99", "1"], ["-" + _MOST, "1"]),
    _file([2, 3], [2**53 + 1, 2**53 + 3], [_NAN, 1.0], ["2.50", "3.50"], ["1234567890123456789012345678.5", "1"]),
    _file([10, 11], [4, 4], [_INF, _INF], ["0.05", "0.15"], ["0.9999999999", "1.9999999999"]),
    _file([0, 1], [0, 1], [_NAN, _NAN], ["0.00", "1.00"], ["1234567890123456789012345678.1234567891"] * 2),
]
TAME = 6
EXACT = [
    # On the tame files, the first: only those that hold a matching row are kept, and those that match as a whole known.
    "i + 1 > 8",
    "i - 10 < -12",
    "i * -2 > 5",
    "-i < -8",
    "i % 4 < -4",
    "pmod(i, 1000) IS NULL",
    "CAST(i AS bigint) * 3 >= 27",
    "CAST(i AS decimal(12,2)) * 1.5 > 15",
    "p + 1.00 > 10.98",
    "p * 2 <= -9999999",
    "p * 0.1 > 9.9",
    "round(p, 1) > 99.9",
    "floor(p) = 7 OR ceil(p) = 6",
    "CAST(p AS int) = 100",
    "CAST(i AS double) / 2 < -2.4",
    "CAST(l AS double) > 9007199254740990D",
    "greatest(i, 3) < 4",
    "least(i, 3) > 2",
    "coalesce(i, 1) > 99",
    "IF(i > 6, i, -i) < -4",
    "CAST(i AS boolean)",
    "NOT CAST(p AS boolean)",
    "sqrt(abs(i)) > 10",
    "exp(i) < 0.01",
    "i div 3 = 3",
    "CASE WHEN i > 100 THEN 1 WHEN i < 0 THEN 2 END = 2",
    "abs(p) < 0.16",
]
SOUND = [
    # What was once wrong, or could be: -0.0, wrapped integers, digits that Spark rounds away, NaN from numbers, …
    "1 / d > 0",
    "i / i IS NULL",
    "d / i IS NULL",
    "i div i IS NULL",
    "isnan(d - d)",
    "isnan(d + d - d)",
    "isnan(pmod(d, 3))",
    "pmod(i, 3) > 0",
    "pmod(d, 3) > 0.1D",
    "round(d) = 10",
    "CAST(p AS decimal(9,1)) = 0.2",
    "p * 0.1 * 0.1 = 0.0015",
    "-w < -1234567890123456789012345678.1234567895",
    "abs(-w) > 1234567890123456789012345678.1234567895",
    "w / 3 > 411522630041152263004115226",
    "w / 3 < 411522630041152263004115227",
    "CAST(w AS double) > 1234567890123456700000000000D",
    "-w < 0",
    "-w = -1234567890123456789012345678.5",
    "abs(w) > 1234567890123456789012345678.4",
    "w + w IS NULL",
    "w * w IS NOT NULL",
    "w / 3 > 0",
    "CAST(w AS int) = 2",
    "CAST(w AS int) IS NULL",
    "CAST(CAST(w AS double) AS decimal(38,10)) = w",
    "l + 1 < 0",
    "l * 2 < 0",
    "-l < 0",
    "abs(l) < 0",
    "l div -1 < 0",
    "try_add(i, 1) IS NULL",
    "try_multiply(l, 2) IS NULL",
    "try_cast(l AS int) IS NULL",
    "CAST(i AS tinyint) < 0",
    "b + b < 0",
    "CAST(d AS int) = 0",
    "CAST(d AS bigint) > 9000000000000000000",
    "floor(d) = 0",
    "floor(d) > 9000000000000000000",
    "CAST(d AS decimal(20,2)) IS NULL",
    "CAST(d AS boolean)",
    "CAST(d AS float) = CAST('Infinity' AS float)",
    "d * 0 > 1",
    "d - d > 1",
    "d / d > 1",
    "d % 3 > 2.9",
    "pmod(d, 3) > 2.9",
    "pmod(d, -3) < 0",
    "pow(d, 0) = 1",
    "pow(d, -1) < 0",
    "pow(CAST(1 AS double), d) > 1",
    "sqrt(d) > 1e300",
    "sqrt(i) > 10",
    "ln(d) IS NULL",
    "log1p(i) IS NULL",
    "log(i, 10) < 0",
    "isnan(sqrt(i))",
    "isnan(d * 0)",
    "nanvl(d, 3) = 3",
    "greatest(d, 3) > 1e300",
    "least(d, 3) > 1e300",
    "least(d, CAST('NaN' AS double)) < 2",
    "round(d, 2) < 0",
    "round(i, -1) < 0",
    "round(i, -9) < 0",
    "bround(p, 0) = 2",
    "round(w, -3) > 1",
    "CAST(l AS float) > 9007199254740992",
    "CAST(l AS double) = 9007199254740992",
    "r + r > 1",
    "r * r = CAST('Infinity' AS float)",
    "r * 3 < 1",
    "nullif(i, 0) IS NULL",
    "CAST(p AS decimal(3,2)) IS NULL",
    "CAST(p AS decimal(5,1)) = 0.1",
    "p % 0 IS NULL",
    "i % i IS NULL",
    "IF(d > 1, i, NULL) IS NULL",
]


def test_lines(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, mode: str) -> None:
    # In ANSI mode the rest would only raise errors.
    files = REGRESSIONS if mode == "legacy" else REGRESSIONS[:TAME]
    counted = lens("nans", [table.to_pydict() for table in files])
    bench = Bench(spark, pruner, tmp_path / f"lines_{mode}", files, counted)
    judged = list(bench.judge(EXACT + SOUND, batch=20))
    assert [j.sql for j in judged if j.wrong_skip] == []
    assert [j.sql for j in judged if j.wrong_must] == []
    assert {j.sql for j in judged} >= set(EXACT)
    assert len(judged) >= (len(EXACT) + len(SOUND)) * 0.8
    loose = [
        f"{j.sql}, seen as {j.seen}: {j.may[:TAME]} for {j.some_true[:TAME]}, {j.must[:TAME]} for {j.all_true[:TAME]}"
        for j in judged
        if j.sql in EXACT and ((j.may != j.some_true)[:TAME].any() or (j.must != j.all_true)[:TAME].any())
    ]
    assert loose == []
