"""Implied predicates in Spark: fewer rows read from the files that are left, and the same answer over nasty values."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tools.spark_metrics import rows_read

import secateur
from secateur.passes.filter import implied_predicates
from tests.fixtures import Same
from tests.fuzz.regressions import settings
from tests.queries.nasty_values import SCHEMA, nasty_rows

ROWS = 4000
UTC = dt.timezone.utc


def sorted_table() -> pa.Table:
    """Every column grows, so that a row group holds a narrow range of each."""
    at = range(ROWS)
    return pa.table(
        {
            "unit": ["feet", "metres"] * (ROWS // 2),
            "altit": pa.array(at, pa.int32()),
            "height": pa.array([float(i) for i in at]),
            "ts": pa.array([dt.datetime(2023, 1, 1, tzinfo=UTC) + dt.timedelta(hours=5 * i) for i in at]),
            "n": pa.array([dt.datetime(2023, 1, 1) + dt.timedelta(hours=5 * i) for i in at]),
            "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in at]),
            "price": pa.array([Decimal(i) / 100 for i in at], pa.decimal128(9, 2)),
            "name": [f"{i:05}é" for i in at],
        }
    )


@pytest.fixture(autouse=True)
def small_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is implied is right of any file, also of those in which there is nothing to skip."""
    monkeypatch.setattr(implied_predicates, "PAGE_ROWS", -1)


@pytest.fixture
def trails(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> str:
    """One file of many row groups: nothing for the filter pass to skip."""
    (lake / "trails").mkdir()
    pq.write_table(sorted_table(), lake / "trails" / "0.parquet", row_group_size=100)
    secateur.collect(spark, str(lake / "trails"))
    spark.read.parquet(str(lake / "trails")).createOrReplaceTempView("trails")
    return str(lake / "trails")


@dataclass
class Read:
    off: int
    on: int
    summary: secateur.Summary


def read(pruner: secateur.Pruner, spark: SparkSession, condition: str) -> Read:
    """How many rows a query reads from its scan with and without secateur, after the answers were found equal."""
    query = f"SELECT * FROM trails WHERE {condition}"
    with pruner.paused():
        plain = spark.sql(query)
        expected = sorted(map(repr, plain.collect()))
        off = rows_read(plain)
    pruned = spark.sql(query)
    assert sorted(map(repr, pruned.collect())) == expected
    assert pruner.last is not None
    return Read(off, rows_read(pruned), pruner.last)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("IF(unit = 'feet', altit * 0.3048, altit) > 1500", 2500),
        ("CASE WHEN unit = 'feet' THEN height * 0.3048 ELSE height END < 90", 300),
        ("year(ts) = 2024", 1900),
        ("date_trunc('month', ts) = timestamp'2024-02-01'", 200),
        ("year(n) = 2024", ROWS),  # Spark hands no timestamps without time zone to Parquet
        ("year(day) = 2024", 500),
        ("altit + 5 < 10", 100),
        ("price * 2 > 60", 1000),
        ("substring(name, 1, 3) = '012'", 100),
        ("name LIKE '01_5%'", 1000),
        ("coalesce(altit, 7) < 5", 100),
        ("altit * 2 > 7000 OR altit - 1 < 100", 700),
    ],
)
def test_spark_reads_fewer_row_groups(
    spark: SparkSession, pruner: secateur.Pruner, trails: str, condition: str, rows: int
) -> None:
    found = read(pruner, spark, condition)
    assert (found.off, found.on) == (ROWS, rows)
    (scan,) = found.summary.scans
    assert scan.implied
    assert f"implied: {scan.implied[0]}" in str(found.summary)
    assert found.summary.to_dict()["scans"][0]["implied"] == list(scan.implied)
    assert "implied: " in found.summary._repr_html_()
    assert pruner.explain(f"SELECT * FROM trails WHERE {condition}").scans[0].implied == scan.implied


def test_the_pass_can_be_switched_off(spark: SparkSession, pruner: secateur.Pruner, trails: str) -> None:
    spark.conf.set("spark.secateur.passes", "filter")
    found = read(pruner, spark, "year(ts) = 2024")
    assert found.on == ROWS
    assert found.summary.scans[0].implied == ()


def test_no_statistics_are_needed(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    (lake / "trails").mkdir()
    pq.write_table(sorted_table(), lake / "trails" / "0.parquet", row_group_size=100)
    spark.read.parquet(str(lake / "trails")).createOrReplaceTempView("trails")
    assert read(pruner, spark, "altit + 5 < 10").on == 100
    assert read(pruner, spark, "year(ts) = 2024").on == 1900


def test_tables_of_the_catalog_and_projections(spark: SparkSession, pruner: secateur.Pruner, trails: str) -> None:
    spark.sql("DROP TABLE IF EXISTS stages")
    spark.sql("CREATE TABLE stages (altit INT, part INT) USING parquet PARTITIONED BY (part)")
    try:
        spark.sql("INSERT INTO stages SELECT altit, altit % 2 FROM trails WHERE altit < 50")
        query = "SELECT count(*), sum(z) FROM (SELECT altit + 5 AS z FROM stages WHERE part = 1) WHERE z < 10"
        with pruner.paused():
            expected = spark.sql(query).collect()
        assert spark.sql(query).collect() == expected
        assert pruner.last is not None
        assert pruner.last.scans[0].implied == ("altit < 5 OR altit > 2147483642",)
    finally:
        spark.sql("DROP TABLE stages")


def test_it_is_added_once(spark: SparkSession, pruner: secateur.Pruner, trails: str) -> None:
    frame = spark.sql("SELECT * FROM trails WHERE altit + 5 < 10")
    optimized = frame._jdf.queryExecution().optimizedPlan()
    assert optimized.toString().count("2147483642") == 1
    again = DataFrame(
        spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, optimized),  # type: ignore[union-attr]
        spark,
    )
    assert again._jdf.queryExecution().optimizedPlan().toString().count("2147483642") == 1
    assert [row.altit for row in again.collect()] == [0, 1, 2, 3, 4]


def test_reuse_and_subqueries(spark: SparkSession, same: Same, trails: str) -> None:
    """Both sides of a join read the same; Spark exchanges them once, with secateur as without."""
    side = "(SELECT unit, count(*) AS c FROM trails WHERE altit + 5 < 500 GROUP BY unit)"

    def exchanges(frame: DataFrame) -> int:
        plan: str = frame._jdf.queryExecution().executedPlan().toString()
        return plan.count("ReusedExchange")

    def query() -> DataFrame:
        return spark.sql(f"SELECT * FROM {side} a JOIN {side} b ON a.unit = b.unit")

    with settings(spark, {"spark.sql.adaptive.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"}):
        found = same(query)
        assert exchanges(query()) == 1
    assert all(scan.implied for scan in found.summary.scans)
    same(lambda: spark.sql("SELECT * FROM trails WHERE altit = (SELECT max(altit) FROM trails WHERE altit + 5 < 10)"))
    same(lambda: spark.sql("SELECT * FROM trails WHERE altit IN (SELECT altit + 1 FROM trails WHERE year(ts) = 2024)"))
    cached = spark.sql("SELECT * FROM trails WHERE altit + 5 < 500").cache()
    try:
        assert cached.count() == 495
        assert spark.sql("SELECT count(*) FROM trails WHERE altit + 5 < 500").collect()[0][0] == 495
    finally:
        cached.unpersist()


def test_random_and_limited_scans_are_left_alone(spark: SparkSession, pruner: secateur.Pruner, trails: str) -> None:
    for query in (
        "SELECT *, rand(42) AS x FROM trails WHERE altit + 5 < 10",
        "SELECT * FROM (SELECT * FROM trails LIMIT 10) WHERE altit + 5 < 10",
        "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY altit) AS x FROM trails) WHERE altit + 5 < 10",
        "SELECT * FROM trails a LEFT JOIN trails b ON a.altit = b.altit AND b.altit + 5 < 10 WHERE a.altit = 3",
    ):
        summary = pruner.explain(query)
        if "LEFT JOIN" not in query:
            assert [scan.implied for scan in summary.scans] == [()], query


# The same answer ------------------------------------------------------------------------------------------------------

CONDITIONS = """
i + 5 < 10
i - 5 > 10
i * 2 > 9
i * i > 100
-i > 0
abs(i) > 5
abs(i) < 6
i div 3 = 1
i % 7 = 3
coalesce(i, 0) < 5
coalesce(i, 0) <=> 0
nvl(i, 5) = 5 OR i + 1 = 7
CAST(i AS DOUBLE) * 0.3048 > 1500
IF(s = 'a', i * 0.3048, i) > 4
IF(s = 'a', x * 0.3048, x) > 1500
IF(s = 'a', y * 0.3048, y) > 1500
x * 2 < 3000
y * 2 < 3000
y * 2 > 3000
y + 1 >= 0
x * 1 = 0
y * 1 = 0
x * 1 >= 0
x * 1 <= -0.0D
abs(y) > 1
abs(y) < 1
sqrt(y) > 1
sqrt(y) < 2
NOT (y * 2 < 3)
NOT (y * 2 > 3)
isnan(y) OR y * 2 < 0
nanvl(y, 1.0D) * 2 > 1
coalesce(y, 3.0D) > 2
year(ts) = 2024
year(ts) <= 1582
year(day) = 2024
year(day) < 1600
year(day) IN (1, 1582, 9999)
month(ts) = 3
to_date(ts) = date'2024-03-31'
CAST(ts AS DATE) > date'2024-03-09'
date_trunc('day', ts) = timestamp'2024-03-31 00:00:00'
date_trunc('hour', ts) < timestamp'2024-10-27 02:00:00'
date_add(day, 5) < date'1582-10-20'
unix_timestamp(ts) > 1704063599
unix_micros(ts) < 1735685999999501
hour(ts) < 2
date_format(ts, 'yyyy-MM') = '2024-03'
substring(s, 1, 2) = 'ab'
s LIKE 'ab_%'
s LIKE 'é_'
left(s, 1) >= 'é'
concat(s, 'x') < 'abx'
length(s) > 3
coalesce(s, 'abd') LIKE 'a_d'
m * 2 > 100
m + 0.01 > 50
abs(m) >= 50
CAST(m AS INT) = 50
round(m) = 50
CAST(x AS INT) = 1
CAST(s AS INT) > 0
try_cast(s AS INT) > 0
100 / i > 3
try_divide(100, i) > 3
i + 5 < 10 AND 100 / i > 3
i + i < 10 AND abs(x) < 2 AND year(ts) < 2024
"""


@pytest.fixture
def nasty(spark: SparkSession, pruner: secateur.Pruner, lake: Path, writer: str) -> str:
    """A row in each row group or file, by several writers, so that Parquet can skip every row on its own."""
    folder = lake / "nasty"
    rows = nasty_rows()
    table = pa.Table.from_pylist(rows, SCHEMA)
    if writer.startswith("pyarrow"):
        folder.mkdir()
        if "millis" in writer:
            table = table.set_column(4, "ts", table["ts"].cast(pa.timestamp("ms", "UTC"), safe=False))
        for at in (0, 10):
            part = table.slice(at, 10 if at == 0 else len(rows))
            pq.write_table(part, folder / f"{at}.parquet", row_group_size=1)
    else:
        pq.write_table(table, lake / "source.parquet", row_group_size=1)
        legacy = "LEGACY" if "legacy" in writer else "CORRECTED"
        written = {
            "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
            "spark.sql.parquet.datetimeRebaseModeInWrite": legacy,
        }
        with settings(spark, written), pruner.paused():
            frame = spark.read.parquet(str(lake / "source.parquet"))
            frame.repartition(len(rows)).write.parquet(str(folder))
    secateur.collect(spark, str(folder))
    spark.read.parquet(str(folder)).createOrReplaceTempView("nasty")
    return str(folder)


def answer(spark: SparkSession, condition: str) -> list[str] | str:
    """The rows, or the class of the error that the query raises."""
    try:
        rows = spark.sql(f"SELECT * FROM nasty WHERE {condition}").collect()
    except (PySparkException, ValueError) as problem:
        return type(problem).__name__
    return sorted(map(repr, rows))


@pytest.mark.parametrize(
    ("writer", "zone", "ansi"),
    [
        pytest.param("pyarrow", "UTC", "true", marks=pytest.mark.long),
        pytest.param("pyarrow millis", "America/New_York", "false", marks=pytest.mark.long),
        pytest.param("spark", "Europe/Berlin", "false", marks=pytest.mark.long),
        ("spark legacy", "America/New_York", "true"),
    ],
)
def test_nasty_values(spark: SparkSession, pruner: secateur.Pruner, nasty: str, zone: str, ansi: str) -> None:
    spark.conf.set("spark.secateur.passes", "implied_predicates")
    conditions = CONDITIONS.strip().split("\n")
    said = 0
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        for condition in conditions:
            with pruner.paused():
                expected = answer(spark, condition)
            found = answer(spark, condition)
            assert pruner.last is not None
            said += any(scan.implied for scan in pruner.last.scans)
            if isinstance(expected, list):
                assert found == expected, (condition, pruner.last.scans[0].implied)
            # An error may disappear with the row that raised it, as it does with Spark's own row-group skipping (S5).
    assert said > len(conditions) / 3


def test_a_file_that_got_a_nan_since(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    """Rests on the count of NaNs, so a file that was rewritten in place makes it unsayable."""
    folder = lake / "t"
    source = spark.createDataFrame([(float(i),) for i in range(100)], "x double").coalesce(1)
    source.write.parquet(str(folder))
    secateur.collect(spark, str(folder))
    frame = spark.read.parquet(str(folder))
    assert frame.where("x * 2 > 100").count() == 49
    assert _implied(pruner) == ("x > 49.99999999999999",)
    (path,) = folder.glob("*.parquet")
    with_nan = pa.table({"x": [1.0, float("nan"), 2.0]})
    pq.write_table(with_nan, path)
    os.utime(path, ns=(1, 1_000_000_000_000_000_000))
    # Spark reads the new file under the old name; its checksum is none of Parquet's business.
    crc = path.with_name(f".{path.name}.crc")
    crc.unlink(missing_ok=True)
    assert frame.where("x * 2 > 100").count() == 1
    assert _implied(pruner) == ()


def _implied(pruner: secateur.Pruner) -> tuple[str, ...]:
    assert pruner.last is not None
    return pruner.last.scans[0].implied


@pytest.fixture(autouse=True)
def _zone(spark: SparkSession) -> Iterator[None]:
    with settings(spark, {"spark.sql.session.timeZone": "UTC"}):
        yield
