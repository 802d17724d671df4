"""Range-sets in queries: the same rows with and without, and files skipped through gaps that bounds do not show."""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.errors import SecateurError
from tests.fixtures import Same

NAN = float("nan")
DAY = datetime.date
UTC = datetime.timezone.utc
SCHEMA = pa.schema(
    {
        "x": pa.int32(),
        "y": pa.int64(),
        "f": pa.float64(),
        "m": pa.decimal128(12, 2),
        "d": pa.date32(),
        "t": pa.timestamp("us", "UTC"),
        "s": pa.string(),
    }
)


def row(x: int, f: float | None = None) -> dict[str, object]:
    """A row whose columns all say the same in their own way."""
    return {
        "x": x,
        "y": x % 7,
        "f": float(x) if f is None else f,
        "m": Decimal(x),
        "d": DAY(2024, 1, 1) + datetime.timedelta(x),
        "t": datetime.datetime(2024, 1, 1, tzinfo=UTC) + datetime.timedelta(hours=x),
        "s": f"city {x:03d}",
    }


@pytest.fixture(scope="module")
def gaps(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table whose files all reach from 0 to 99: of x = 40 … 60 the first has none, the second has all."""
    folder = tmp_path_factory.mktemp("gaps")
    files = [
        [row(x) for x in (*range(40), *range(61, 100))],
        [row(x) for x in range(100)],
        [row(x, f=NAN) for x in (0, 99)] + [row(0, f=-0.0)],
        [dict.fromkeys(SCHEMA.names), row(0), row(99)],
    ]
    for i, rows in enumerate(files):
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / f"{i}.parquet")
    report = secateur.collect(spark, str(folder), ranges=20)
    assert (report.files_ranged, report.files_failed, report.problem) == (4, 0, "")
    spark.read.parquet(str(folder)).createOrReplaceTempView("gaps")
    return str(folder)


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("x = 43", 1),
        ("x IN (43, 50, 60)", 1),
        ("x > 40 AND x < 45", 1),
        ("x BETWEEN 41 AND 59 AND y >= 0", 1),
        ("x + 1 = 44", 1),
        ("x = 43 OR x = 50", 1),
        ("x = 39", 2),
        ("x IS NULL", 1),
        ("x = 43 OR x IS NULL", 2),
        ("x <=> NULL", 1),
        ("NOT (x <= 40 OR x >= 60)", 1),
        ("NOT (x = 43)", 4),
        ("f > 40.5D AND f < 60.5D", 1),
        ("f > 99D", 1),
        ("f = 0.0D", 4),
        ("f = double('NaN')", 1),
        ("f >= 50.5D AND f <= 60D", 1),
        ("m = 43", 1),
        ("m > 40.5 AND m < 45.25", 1),
        ("d = DATE'2024-02-13'", 1),
        ("year(d) = 2024 AND month(d) = 2 AND day(d) = 15", 1),
        ("d BETWEEN DATE'2024-02-12' AND DATE'2024-02-20'", 1),
        ("t > TIMESTAMP'2024-01-02 17:00:00' AND t < TIMESTAMP'2024-01-03 10:00:00'", 1),
        ("s = 'city 043'", 1),
        ("s LIKE 'city 04%'", 1),
        ("s BETWEEN 'city 041' AND 'city 049'", 1),
        ("CASE WHEN x > 50 THEN x ELSE x - 1 END = 42", 1),
        ("x = 43 AND y = 1", 1),
        ("(x = 43 AND y = 1) OR x = 44", 1),
    ],
)
def test_a_gap_skips_a_file(gaps: str, same: Same, spark: SparkSession, condition: str, files: int) -> None:
    compared = same(lambda: spark.sql(f"SELECT * FROM gaps WHERE {condition}"))
    assert compared.files == files
    if files < 4:
        with_bounds = compared.summary.scans[0].passes[0]
        assert (with_bounds.name, compared.summary.files_kept) == ("filter", files)


def test_the_pass_can_be_left_out(gaps: str, same: Same, spark: SparkSession) -> None:
    spark.conf.set("spark.secateur.passes", "filter")
    assert same(lambda: spark.sql("SELECT * FROM gaps WHERE x = 43")).files == 4
    spark.conf.set("spark.secateur.passes", "filter,range_sets")
    compared = same(lambda: spark.sql("SELECT * FROM gaps WHERE x = 43"))
    assert compared.files == 1
    assert "range_sets" in str(compared.summary)


def test_nothing_random_is_narrowed(gaps: str, same: Same, spark: SparkSession) -> None:
    query = "SELECT * FROM (SELECT x, monotonically_increasing_id() AS id FROM gaps) WHERE x = 43"
    assert same(lambda: spark.sql(query)).files == 4


def test_files_that_changed_or_came_later_are_read(spark: SparkSession, lake: Path, same: Same) -> None:
    folder = lake / "t"
    folder.mkdir()
    for i in range(3):
        pq.write_table(pa.table({"x": [0, 99]}), folder / f"{i}.parquet")
    assert secateur.collect(spark, str(folder), ranges=4, columns=["X"]).files_ranged == 3

    def asked() -> int:
        return same(lambda: spark.read.parquet(str(folder)).where("x = 43")).files

    assert asked() == 0
    pq.write_table(pa.table({"x": [0, 43, 99]}), folder / "1.parquet")
    os.utime(folder / "1.parquet", (2_000_000_000, 2_000_000_000))
    assert asked() == 1
    pq.write_table(pa.table({"x": [0, 42, 99]}), folder / "new.parquet")
    assert asked() == 2
    secateur.collect(spark, str(folder))
    assert asked() == 2  # bounds do not show the gap
    assert secateur.collect(spark, str(folder), ranges=4, columns=["x"]).files_ranged == 2
    assert asked() == 1


def test_a_spark_job_makes_them(spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = lake / "t"
    folder.mkdir()
    for i in range(7):
        pq.write_table(pa.table({"x": [0, i, 99], "s": ["a", None, "z"]}), folder / f"{i}.parquet")
    (folder / "broken.parquet").write_bytes(b"PAR1 no PAR1")
    monkeypatch.setattr("secateur.stats.collect.collector._read_here", None)
    pq.read_table(folder / "1.parquet")
    monkeypatch.setattr("secateur.stats.registry.collect_listing", _on_executors)
    report = secateur.collect(spark, spark.read.schema("x long, s string").parquet(str(folder)), ranges=3)
    assert (report.files_total, report.files_ranged, report.files_failed) == (8, 7, 1)
    assert "range-sets made of 7" in str(report)
    assert "broken.parquet" in report.failures[0]


def _on_executors(*args: object, **options: object) -> object:
    from secateur.stats.collect.collector import collect_listing

    return collect_listing(*args, **options, direct_limit=0)  # type: ignore[arg-type]


def test_arguments_that_cannot_be_meant(spark: SparkSession, gaps: str) -> None:
    with pytest.raises(SecateurError, match="no column z; its columns are x, y"):
        secateur.collect(spark, gaps, ranges=20, columns=["x", "z"])
    with pytest.raises(SecateurError, match="needs ranges="):
        secateur.collect(spark, gaps, columns=["x"])
    with pytest.raises(SecateurError, match="ranges=0 is not a number of ranges from 1 to 1000"):
        secateur.collect(spark, gaps, ranges=0)
    with pytest.raises(SecateurError, match=r"write columns=\['x'\]"):
        secateur.collect(spark, gaps, ranges=2, columns="x")


def test_a_join_sees_the_gaps_of_both_sides(spark: SparkSession, lake: Path, same: Same) -> None:
    dim, fact = lake / "dim", lake / "fact"
    dim.mkdir()
    fact.mkdir()
    pq.write_table(pa.table({"k": [1, 2, 900, 901], "label": ["a"] * 4}), dim / "0.parquet")
    pq.write_table(pa.table({"k": [400, 500], "label": ["b"] * 2}), dim / "1.parquet")
    for i in range(10):
        keys = [100 * i + j for j in range(100)] if i else [0, 5, 99]  # the first has neither 1 nor 2
        pq.write_table(pa.table({"key": pa.array(keys, pa.int32())}), fact / f"{i}.parquet")
    for folder in (dim, fact):
        secateur.collect(spark, str(folder))

    def asked() -> int:
        left, right = (spark.read.parquet(str(folder)) for folder in (fact, dim))
        compared = same(lambda: left.join(right, left["key"] == right["k"]).where("label = 'a'"))
        return sum(scan.files_kept or 0 for scan in compared.summary.scans if "fact" in scan.table)

    spark.conf.set("spark.secateur.passes", "filter,range_sets,join_ranges")
    assert asked() == 10
    secateur.collect(spark, str(dim), ranges=20)
    assert asked() == 2
    secateur.collect(spark, str(fact), ranges=20)
    assert asked() == 1
