"""LIMIT and ORDER BY … LIMIT: as few files as hold the rows, and rows that plain Spark could have given as well."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tools.spark_metrics import files_read, rows_read

import secateur

FILES, ROWS = 20, 50
NULLS = (None,) * ROWS


def columns(i: int) -> dict[str, Any]:
    """File i: x from 50 i on, NULL in the last file; d with NaNs in two files; t with NULLs in every file."""
    x = np.arange(i * ROWS, (i + 1) * ROWS)
    last = i == FILES - 1
    rng = np.random.default_rng(i)
    return {
        "x": pa.array(NULLS if last else x, pa.int64()),
        "d": pa.array(np.where((x % 17 == 3) & (i in (4, 9)), math.nan, x * -1.5), pa.float64()),
        "t": pa.array([None if v % 11 == 0 else int(v) for v in x], pa.int32()),
        "s": pa.array([f"{'é' if i % 2 else 'e'}-{v:05d}-{'z' * 80}" for v in x], pa.string()),
        "day": pa.array([19000 + int(v) // 7 for v in x], pa.date32()),
        "n": pa.array([f"{v}.{v % 100:02d}" for v in x]).cast(pa.decimal128(9, 2)),
        "r": pa.array(rng.integers(0, 10**6, ROWS), pa.int64()),
        "g": pa.array([i % 3] * ROWS, pa.int32()),
        "tie": pa.array([i // 4] * ROWS, pa.int32()),
    }


@pytest.fixture
def table(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> Path:
    folder = lake / "t"
    folder.mkdir()
    for i in range(FILES):
        pq.write_table(pa.table(columns(i)), folder / f"{i:02d}.parquet")
    secateur.collect(spark, str(folder))
    spark.read.parquet(str(folder)).createOrReplaceTempView("t")
    return folder


def pruned(query: Callable[[], DataFrame]) -> tuple[list[Any], int]:
    frame = query()
    return frame.collect(), files_read(frame)


@pytest.mark.parametrize(
    ("sql", "needed", "files"),
    [
        ("SELECT * FROM t LIMIT 10", 10, 1),
        ("SELECT x + 1 FROM t WHERE x >= 500 LIMIT 10", 10, 1),
        ("SELECT x FROM t WHERE x >= 475 AND x < 700 LIMIT 120", 120, 3),
        ("SELECT x FROM t WHERE x >= 475 AND x < 700 LIMIT 60 OFFSET 60", 60, 3),
        ("SELECT x FROM t WHERE x % 2 = 0 LIMIT 10", 10, 19),
        ("SELECT x FROM t WHERE g = 1 AND s IS NOT NULL LIMIT 51", 51, 2),
        ("SELECT x FROM t LIMIT 0", 0, 0),
        ("SELECT x FROM t LIMIT 1000000", 1000, 20),
        ("(SELECT x FROM t WHERE x < 200 UNION ALL SELECT r FROM t WHERE g = 2) LIMIT 30", 30, 2),
    ],
)
def test_as_few_files_as_hold_the_rows(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, sql: str, needed: int, files: int
) -> None:
    with pruner.paused():
        everything = spark.sql(sql.split("LIMIT", maxsplit=1)[0]).collect()
        plain = spark.sql(sql).collect()
    rows, read = pruned(lambda: spark.sql(sql))
    assert len(rows) == needed == len(plain)
    left = list(everything)
    for row in rows:
        left.remove(row)  # each row is one of the whole answer, none twice
    assert read <= files
    if files not in (0, FILES, 19):
        assert pruner.last is not None
        assert pruner.last.files_kept == files


def test_the_rows_below_the_preserved_side_of_a_join(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    spark.createDataFrame([(i, i * i) for i in range(0, 400, 3)], "k int, v int").createOrReplaceTempView("other")
    rows, _ = pruned(lambda: spark.sql("SELECT x, v FROM t LEFT JOIN other ON t.x = other.k WHERE x >= 100 LIMIT 5"))
    assert len(rows) == 5
    expected = [x * x if x % 3 == 0 and x < 400 else None for x, _ in rows]
    assert [v for _, v in rows] == expected
    assert pruner.last is not None
    assert pruner.last.scans[0].files_kept == 1
    count, _ = pruned(lambda: spark.sql("SELECT x, v FROM t JOIN other ON t.x = other.k WHERE x >= 100 LIMIT 500"))
    assert len(count) == 100


@pytest.mark.parametrize("call", ["show", "take", "head", "first", "limit"])
def test_where_the_user_wrote_it(spark: SparkSession, pruner: secateur.Pruner, table: Path, call: str) -> None:
    frame = spark.table("t").where("x >= 500").select("x")
    match call:
        case "show":
            frame.show(5)
        case "take":
            assert len(frame.take(5)) == 5
        case "head":
            assert len(frame.head(5)) == 5
        case "first":
            assert frame.first() is not None
        case "limit":
            assert frame.limit(5).count() == 5
    assert pruner.last is not None
    assert pruner.last.scans[0].files_kept == 1
    assert [p.name for p in pruner.last.scans[0].passes] == ["filter", "limit"]


def test_not_below_what_reduces_rows(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    for sql, expected in (
        ("SELECT DISTINCT g FROM t LIMIT 10", 3),
        ("SELECT g, count(*) FROM t GROUP BY g LIMIT 10", 3),
        ("SELECT * FROM (SELECT x FROM t LIMIT 60) WHERE x IS NOT NULL OR x IS NULL", 60),
        ("SELECT x FROM t WHERE x IN (SELECT max(x) FROM t GROUP BY g) LIMIT 3", 3),
        ("SELECT x FROM t WHERE rand() < 2 LIMIT 70", 70),
    ):
        assert len(spark.sql(sql).collect()) == expected, sql


def test_a_filter_above_the_sort_is_counted_with(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    """Spark leaves it there if it is random: about half of the rows of the best file do not arrive."""
    sql = "SELECT x FROM (SELECT * FROM t ORDER BY x DESC NULLS LAST) WHERE rand() < 0.5 LIMIT 45"
    assert len(spark.sql(sql).collect()) == 45


def test_files_that_may_be_passed_over_are_not_counted_on(
    spark: SparkSession, pruner: secateur.Pruner, table: Path
) -> None:
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert pruner.explain("SELECT * FROM t LIMIT 10").files_kept == FILES
        assert pruner.explain("SELECT * FROM t ORDER BY x DESC LIMIT 10").files_kept == FILES
    finally:
        spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    frame = spark.read.option("ignoreMissingFiles", "true").parquet(str(table)).limit(10)
    assert pruner.explain(frame).files_kept == FILES
    assert pruner.explain("SELECT * FROM t LIMIT 10").files_kept == 1


def test_a_kept_file_that_was_rewritten_voids_the_choice(
    spark: SparkSession, pruner: secateur.Pruner, table: Path
) -> None:
    frame = spark.read.parquet(str(table)).where("x >= 500")
    assert pruner.explain(frame.limit(5)).files_kept == 1
    for i in range(10, FILES - 1):  # whichever was chosen: now one row each, of the same name
        pq.write_table(pa.table(columns(i)).slice(0, 1), table / f"{i:02d}.parquet")
        os.utime(table / f"{i:02d}.parquet", (1, 1))
    assert len(frame.limit(5).collect()) == 5


TYPES = ["x", "d", "t", "s", "day", "n", "r", "tie"]


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("nulls", ["FIRST", "LAST"])
def test_the_first_rows_of_every_type(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, direction: str, nulls: str
) -> None:
    for key in TYPES:
        for where, k in (("", 60), ("WHERE x >= 300 AND x < 900", 7), ("WHERE x % 3 = 0", 5000)):
            sql = f"SELECT {key} FROM t {where} ORDER BY {key} {direction} NULLS {nulls} LIMIT {k}"
            with pruner.paused():
                expected = spark.sql(sql).collect()
            assert repr(spark.sql(sql).collect()) == repr(expected), sql


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("SELECT * FROM t ORDER BY x DESC LIMIT 10", 1),
        ("SELECT * FROM t ORDER BY x ASC NULLS LAST LIMIT 10", 1),
        ("SELECT x FROM t ORDER BY x ASC NULLS FIRST LIMIT 60", 3),
        ("SELECT * FROM t WHERE g = 0 ORDER BY x DESC NULLS LAST LIMIT 60", 2),
        ("SELECT * FROM t ORDER BY d DESC, x LIMIT 3", 20),
        ("SELECT * FROM t ORDER BY d LIMIT 3", 3),
        ("SELECT s FROM t ORDER BY s DESC LIMIT 3", 1),
        ("SELECT s FROM t ORDER BY day DESC, s LIMIT 3", 2),
        ("SELECT s FROM t ORDER BY n LIMIT 3 OFFSET 50", 2),
        ("SELECT s FROM t ORDER BY tie, s LIMIT 10", 4),
        ("SELECT s FROM t ORDER BY -x NULLS LAST LIMIT 10", 1),
        ("SELECT s FROM t ORDER BY date_trunc('MONTH', day), s LIMIT 10", 4),
        ("SELECT x AS y FROM (SELECT x + 1 AS x FROM t WHERE x < 400) ORDER BY y DESC LIMIT 3", 1),
    ],
)
def test_files_of_the_first_rows(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, sql: str, files: int
) -> None:
    with pruner.paused():
        expected = spark.sql(sql).collect()
    rows, read = pruned(lambda: spark.sql(sql))
    assert repr(rows) == repr(expected)
    assert read <= files


def test_a_file_without_statistics_is_read_and_bounds_nothing(
    spark: SparkSession, pruner: secateur.Pruner, table: Path
) -> None:
    pq.write_table(pa.table(columns(100)), table / "late.parquet")
    spark.catalog.refreshTable("t")
    spark.read.parquet(str(table)).createOrReplaceTempView("t")
    rows, read = pruned(lambda: spark.sql("SELECT x FROM t ORDER BY x DESC LIMIT 3"))
    assert [r.x for r in rows] == [5049, 5048, 5047]
    assert read == 2


def test_why_nothing_was_skipped(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    said = pruner.explain("SELECT * FROM t WHERE x % 2 = 0 LIMIT 10").scans[0].reasons
    assert "limit-not-covered" in {r.code for r in said}
    said = pruner.explain("SELECT * FROM t WHERE x % 2 = 0 ORDER BY x LIMIT 10").scans[0].reasons
    assert "no-boundary" in {r.code for r in said}
    said = pruner.explain("SELECT * FROM t ORDER BY r LIMIT 1000").scans[0].reasons
    assert "boundary-not-selective" in {r.code for r in said}


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_adaptive_execution(spark: SparkSession, pruner: secateur.Pruner, table: Path, aqe: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    try:
        rows, read = pruned(lambda: spark.sql("SELECT x FROM t ORDER BY x DESC NULLS LAST LIMIT 3"))
        assert [r.x for r in rows] == [949, 948, 947]
        assert read == 1
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_views_and_cached_frames(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    spark.sql("CREATE OR REPLACE TEMP VIEW few AS SELECT x, g FROM t WHERE x >= 500 LIMIT 10")
    spark.sql("CREATE OR REPLACE TEMP VIEW top AS SELECT x FROM t ORDER BY x DESC NULLS LAST LIMIT 3")
    rows, read = pruned(lambda: spark.sql("SELECT count(*) AS c, min(x) AS low FROM few WHERE g >= 0"))
    assert (rows[0].c, read) == (10, 1)
    assert rows[0].low >= 500
    cached = spark.table("top").cache()
    try:
        assert [r.x for r in cached.collect()] == [949, 948, 947]
        assert cached.where("x < 949").count() == 2
        assert [r.x for r in spark.sql("SELECT x FROM top ORDER BY x LIMIT 1").collect()] == [947]
    finally:
        cached.unpersist(blocking=True)


@pytest.mark.parametrize("format_", ["parquet", "delta", "iceberg"])
def test_files_that_match_fully_are_read_first(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path, format_: str
) -> None:
    """Too few rows are in such files: all files stay, but Spark need not look for rows in most of the others."""
    (lake / "t").mkdir()
    for i in range(20):
        low, high = (100, 130) if i in (7, 13) else (0, 1000)  # two files have thirty rows each, and all of them match
        x = np.arange(low, high) % 1000
        x = x if i in (7, 13) else np.where(x < 2, 100 + x, x % 100)  # in the others two rows match
        pq.write_table(pa.table({"x": x, "i": [i] * len(x)}), lake / "t" / f"{i:02d}.parquet")
    settings = {"spark.sql.files.maxPartitionBytes": "4096", "spark.sql.files.openCostInBytes": "4096"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        frame = spark.read.parquet(str(lake / "t"))
        if format_ == "delta":
            frame.write.format("delta").save(str(lake / "d"))
            frame = spark.read.format("delta").load(str(lake / "d"))
        elif format_ == "iceberg":
            options = {"write.distribution-mode": "none", "read.split.target-size": "4096"}
            writer = frame.writeTo("ice.tests.first").option("fanout-enabled", "true")
            for key, value in options.items():
                writer = writer.tableProperty(key, value)
            writer.createOrReplace()
            frame = spark.table("ice.tests.first")
        secateur.collect(spark, frame)
        for limit, needed in ((64, 64), (10_000, 60 + 18 * 2)):
            query = frame.where("x >= 100").select("i", (frame.x + 1).alias("y")).limit(limit)
            rows = query.collect()
            assert len(rows) == needed
            assert all(row.y > 100 for row in rows)
            assert sum(row.i in (7, 13) for row in rows) == 60
            read = rows_read(query)
            assert files_read(query) == 20
            assert "limit-not-covered" in {r.code for r in pruner.last.scans[0].reasons}  # type: ignore[union-attr]
            with pruner.paused():
                plain = frame.where("x >= 100").select("i", (frame.x + 1).alias("y")).limit(limit)
                assert len(plain.collect()) == needed
            assert read == rows_read(plain) if limit > needed else read < rows_read(plain) / 2
    finally:
        for key in settings:
            spark.conf.unset(key)
