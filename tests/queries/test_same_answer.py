"""The promise: the same rows with secateur as without, over tables of every kind, and fewer files read."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tools.spark_metrics import files_read

import secateur
from tests.fixtures import Same
from tests.queries.writers import (
    FILES,
    by_duckdb,
    by_pyarrow,
    by_spark,
    half_without_statistics,
    without_statistics,
)

PREDICATES = [
    "id = 310",
    "id BETWEEN 120 AND 130",
    "id IN (5, 705, 10000)",
    "i < 30",
    "NOT (i >= 30)",
    "i <=> 710",
    "i IS NULL AND id < 150",
    "i IS NOT NULL AND id >= 700",
    "f > 700",
    "f <= 20.5",
    "d = 210.5",
    "d < 10",
    "m > 7.20",
    "m = 3.33",
    "big < 1000000000000000000000.000",
    "s = 'n00707'",
    "s LIKE 'n007%'",
    "s LIKE 'n0070_'",
    "startswith(s, 'n000')",
    "s > 'n0073' OR id = 5",
    "s IN ('n00101', 'n00102', 'zzz')",
    "day = DATE '2024-01-20'",
    "day < DATE '2024-01-20' AND i > 5",
    "ts >= TIMESTAMP '2024-01-30 00:00:00'",
    "ntz < TIMESTAMP_NTZ '2024-01-01 12:00:00'",
    "b",
    "NOT b AND id < 300",
    "b = true AND id > 500",
    "id + 1 = 311",
    "st.x = 205",
    "l[0] = 205",
    "id > 10000",
    "id % 7 = 3",
    "1 = 1",
    "id > 700 AND rand() >= 0",
    "(id < 10 OR id > 740) AND (s LIKE 'n000%' OR d > 1000)",
    "id = (SELECT max(id) FROM t)",
    "id IN (SELECT id FROM t WHERE s = 'n00205')",
    "EXISTS (SELECT 1 FROM t u WHERE u.id = t.id AND u.i < 20)",
    "id NOT IN (SELECT id FROM t WHERE id < 700)",
    "i > CAST('700' AS INT)",
    "input_file_name() LIKE '%3.parquet'",
]
"""Add a line to test a predicate over every writer's files."""


def sql(spark: SparkSession, query: str) -> Callable[[], DataFrame]:
    return lambda: spark.sql(query)


def given(make: Callable[[str], DataFrame], predicate: str) -> Callable[[], DataFrame]:
    return lambda: make(predicate)


@pytest.mark.parametrize(
    "writer",
    [
        by_pyarrow,
        by_duckdb,
        by_spark,
        pytest.param(without_statistics, marks=pytest.mark.long),
        half_without_statistics,
    ],
)
def test_predicates_over_files_of_every_writer(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path, writer: Callable[..., None]
) -> None:
    table = lake / "t"
    if writer is by_spark:
        by_spark(spark, table)
    else:
        writer(table)
    secateur.collect(spark, str(table))
    spark.read.parquet(str(table)).createOrReplaceTempView("t")
    saved = 0
    for number, predicate in enumerate(PREDICATES):
        columns = "count(*)" if number % 3 == 0 else "*"
        result = same(sql(spark, f"SELECT {columns} FROM t WHERE {predicate}"))
        assert result.files <= result.plain_files, predicate
        saved += result.plain_files - result.files
    assert saved == 0 if writer is without_statistics else saved > 100


SELECTIVE = [
    ("id = 310", 1),
    ("i < 30", 1),
    ("f <= 20.5", 1),
    ("d = 210.5", 1),
    ("m = 3.33", 1),
    ("big < 1000000000000000000000.000", 1),
    ("s = 'n00707'", 1),
    ("s LIKE 'n007%'", 1),
    ("day = DATE '2024-01-20'", 1),
    ("ts >= TIMESTAMP '2024-01-30 00:00:00'", 1),
    ("ntz < TIMESTAMP_NTZ '2024-01-01 12:00:00'", 1),
    ("b AND id < 300", 2),
    ("id IN (5, 705, 10000)", 2),
    ("id > 10000", 0),
]


@pytest.mark.parametrize(("predicate", "files"), SELECTIVE)
def test_only_the_files_that_can_match_are_opened(
    spark: SparkSession, same: Same, tmp_path_factory: pytest.TempPathFactory, predicate: str, files: int
) -> None:
    """Skipped files are moved away while the query is planned and run: opening one by mistake fails it."""
    table = tmp_path_factory.getbasetemp() / "selective"
    if not table.exists():
        by_pyarrow(table)
    secateur.collect(spark, str(table))
    result = same(given(spark.read.parquet(str(table)).where, predicate))
    assert (result.files, result.plain_files) == (files, FILES)
    pruned = spark.read.parquet(str(table)).where(predicate)
    kept = {Path(name.removeprefix("file:")).name for name in pruned.inputFiles()}
    assert len(kept) == files
    executed = pruned._jdf.queryExecution().executedPlan()  # decided while all files were in place
    assert executed is not None
    away = [f for f in table.glob("*.parquet") if f.name not in kept]
    for file in away:
        file.rename(file.with_suffix(".away"))
    try:
        assert sorted(map(repr, pruned.collect())) == sorted(map(repr, result.rows))
    finally:
        for file in away:
            file.with_suffix(".away").rename(file)


def test_the_hive_partitions_and_the_statistics_prune_together(spark: SparkSession, same: Same, lake: Path) -> None:
    source = lake / "source"
    by_pyarrow(source)
    table = lake / "hive"
    frame = spark.read.parquet(str(source)).drop("l", "st")
    frame = frame.withColumn("year", F.year("ts")).withColumn(
        "kind", F.when(F.col("b"), "ä/b=%").otherwise(F.lit(None))
    )
    frame.repartitionByRange(4, "id").write.partitionBy("kind", "year").parquet(str(table))
    report = secateur.collect(spark, str(table))
    assert report.files_read == report.files_total > 8
    for predicate in (
        "kind = 'ä/b=%' AND id < 50",
        "kind IS NULL AND id BETWEEN 300 AND 310",
        "kind IS NOT NULL",
        "kind <=> NULL AND year = 2024 AND s > 'n0070'",
        "year = 2024 AND (id < 50 OR kind IS NULL)",
        "year > 2030",
        "kind = 'nothing'",
    ):
        result = same(given(spark.read.parquet(str(table)).where, predicate))
        assert result.files <= result.plain_files, predicate
    assert same(lambda: spark.read.parquet(str(table)).where("kind = 'ä/b=%' AND id < 20")).files == 1


def test_a_catalog_table_with_partitions_is_pruned_late(spark: SparkSession, same: Same, lake: Path) -> None:
    by_pyarrow(lake / "source")
    halves = spark.read.parquet(str(lake / "source")).selectExpr("*", "id DIV 400 AS half").repartitionByRange(4, "id")
    halves.write.partitionBy("half").format("parquet").saveAsTable("halves")
    try:
        report = secateur.collect(spark, "halves")
        assert report.files_read == report.files_total > 2
        one = same(lambda: spark.sql("SELECT * FROM halves WHERE id = 310"))
        assert one.files < one.plain_files
        two = same(lambda: spark.sql("SELECT * FROM halves WHERE half = 1 AND id = 710"))
        assert two.files <= two.plain_files
        none = same(lambda: spark.sql("SELECT * FROM halves h JOIN halves g USING (id) WHERE h.id = -5"))
        assert none.files == 0
        spark.sql("ANALYZE TABLE halves COMPUTE STATISTICS")
        same(lambda: spark.sql("SELECT count(*) FROM halves h JOIN halves g USING (id) WHERE h.id = 310"))
    finally:
        spark.sql("DROP TABLE halves")


def test_columns_that_come_go_and_change(spark: SparkSession, same: Same, lake: Path) -> None:
    table = lake / "t"
    table.mkdir()
    pq.write_table(pa.table({"a": [1, 2], "old": ["x", "y"]}), table / "0.parquet")
    pq.write_table(pa.table({"a": [11, 12], "new": [1.5, None]}), table / "1.parquet")
    pq.write_table(pa.table({"A": pa.array([21, 22], pa.int64())}), table / "2.parquet")
    pq.write_table(pa.table({"a": pa.array([31, 32], pa.int32()), "new": [7.5, 8.5]}), table / "3.parquet")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), table / "4.parquet")
    secateur.collect(spark, str(table))
    schema = "a bigint, old string, new double"
    for predicate, files in (
        ("a > 20", 2),
        ("a < 10", 1),
        ("old = 'x'", 1),
        ("old IS NULL", 3),
        ("new IS NOT NULL", 2),
        ("new > 100", 2),  # NaN cannot be ruled out by this writer's statistics
        ("new < 5", 1),
        ("a IS NULL", 0),
    ):
        result = same(given(spark.read.schema(schema).parquet(str(table)).where, predicate))
        assert result.files == files, (predicate, result.summary)
    merged = same(
        lambda: (
            spark.read.option("mergeSchema", True)
            .parquet(str(table / "0.parquet"), str(table / "1.parquet"))
            .where("new = 1.5")
        )
    )
    assert merged.files == 1


def test_a_file_of_another_type_behaves_as_without_secateur(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path
) -> None:
    table = lake / "t"
    table.mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), table / "0.parquet")
    pq.write_table(pa.table({"a": ["one", "two"]}), table / "1.parquet")
    secateur.collect(spark, str(table))
    query = "a = 1"
    with pruner.paused(), pytest.raises(Exception, match=r"(?i)parquet"):
        spark.read.schema("a bigint").parquet(str(table)).where(query).collect()
    with pytest.raises(Exception, match=r"(?i)parquet"):
        spark.read.schema("a bigint").parquet(str(table)).where(query).collect()


def test_metadata_columns(spark: SparkSession, same: Same, lake: Path) -> None:
    by_pyarrow(lake / "t")
    secateur.collect(spark, str(lake / "t"))

    def rows(predicate: str) -> Callable[[], DataFrame]:
        names = ("file_path", "file_name", "file_size", "file_modification_time", "row_index")
        columns = [f"_metadata.{name}" for name in names]
        return lambda: (
            spark.read.parquet(str(lake / "t")).where(predicate).selectExpr("id", "input_file_name()", *columns)
        )

    assert same(rows("id = 705")).files == 1
    assert same(rows("_metadata.file_name = '3.parquet' AND id < 500")).files == 1
    assert same(rows("_metadata.file_name = '3.parquet' AND id > 500")).files == 0
    assert same(rows("_metadata.row_index = 5 AND id < 150")).files == 2


@pytest.fixture
def t(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> str:
    """A view of eight files with statistics."""
    by_pyarrow(lake / "t")
    secateur.collect(spark, str(lake / "t"))
    spark.read.parquet(str(lake / "t")).createOrReplaceTempView("t")
    return "t"


SHAPES = [
    ("SELECT id FROM (SELECT id, s AS name FROM t) WHERE name = 'n00505'", 1),
    ("WITH c AS (SELECT * FROM t WHERE id < 150) SELECT a.id FROM c a JOIN c b ON a.id = b.id + 1", None),
    ("SELECT id FROM t WHERE id < 20 UNION ALL SELECT id FROM t WHERE id > 730", 2),
    ("SELECT id FROM t WHERE id < 20 UNION SELECT id FROM t WHERE id > 730", 2),
    ("SELECT a.id, b.id FROM t a JOIN t b ON a.id + 500 = b.id WHERE a.id < 20 AND b.id > 500", None),
    ("SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.id < 20 WHERE a.id < 130", None),
    ("SELECT a.id, b.id FROM t a FULL JOIN t b ON a.id = b.id AND b.id < 20", None),
    ("SELECT a.id FROM t a LEFT ANTI JOIN t b ON a.id = b.id AND b.id < 720 WHERE a.id > 640", None),
    ("SELECT * FROM (SELECT * FROM t ORDER BY id LIMIT 60) WHERE id > 40", 2),
    ("SELECT * FROM (SELECT *, row_number() OVER (ORDER BY id) AS r FROM t) WHERE r = 310", 8),
    ("SELECT b, count(*), sum(d) FROM t WHERE id >= 600 GROUP BY b HAVING count(*) > 1", 2),
    ("SELECT (SELECT max(s) FROM t WHERE id < 20) AS top, id FROM t WHERE id = 700", 2),
    ("SELECT id FROM t WHERE id > (SELECT min(id) + 700 FROM t WHERE id >= 0)", None),
    ("SELECT input_file_name(), id FROM t WHERE id = 705", 1),
    ("SELECT explode(l) FROM t WHERE id = 705", 1),
    ("SELECT id FROM t WHERE s IN (SELECT s FROM t WHERE id BETWEEN 10 AND 20)", None),
    ("SELECT DISTINCT b FROM t WHERE id < 120", 2),
    ("SELECT * FROM t WHERE id = 1 INTERSECT SELECT * FROM t WHERE id < 5", None),
    ("SELECT a.id FROM t a, t b WHERE a.id = b.id AND a.id > 5000", 0),
    ("SELECT max(id) FROM t WHERE id > 5000", 0),
    ("SELECT id, monotonically_increasing_id() AS n FROM t WHERE id > 700", 8),
    ("SELECT id, rand(42) AS n FROM t WHERE id > 700", 8),
    ("SELECT id FROM (SELECT * FROM t WHERE id > 300) TABLESAMPLE (30 PERCENT) REPEATABLE (7)", 8),
    ("SELECT id, collect_list(s) FROM t WHERE id > 740 GROUP BY id", 1),
]
"""Query, and how many files it reads (None: not the point)."""


@pytest.mark.parametrize(("query", "files"), SHAPES)
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_shapes(spark: SparkSession, same: Same, t: str, query: str, files: int | None, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        result = same(lambda: spark.sql(query))
        assert result.files <= result.plain_files
        assert files is None or result.files == files, result.summary
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_views_cached_frames_inserts_and_ctas(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, t: str, lake: Path
) -> None:
    spark.sql("CREATE OR REPLACE TEMP VIEW high AS SELECT id, s FROM t WHERE id >= 600")
    assert same(lambda: spark.sql("SELECT * FROM high WHERE id < 650")).files == 1
    frame = spark.sql("SELECT id, s FROM t WHERE id >= 600").cache()
    try:
        assert frame.count() == 100
        assert frame.where("id < 610").count() == 10
        with pruner.paused():
            assert frame.where("id < 610").count() == 10
            assert spark.sql("SELECT id, s FROM t WHERE id >= 600").count() == 100
    finally:
        frame.unpersist()
    for name, paused in (("plain", True), ("pruned", False)):
        if paused:
            with pruner.paused():
                spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT id, s FROM t WHERE id >= 720")
                spark.sql(f"INSERT INTO {name} SELECT id, s FROM t WHERE id < 30")
                spark.sql(f"INSERT INTO {name} SELECT id, s FROM t WHERE id > 90000")
        else:
            spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT id, s FROM t WHERE id >= 720")
            spark.sql(f"INSERT INTO {name} SELECT id, s FROM t WHERE id < 30")
            spark.sql(f"INSERT INTO {name} SELECT id, s FROM t WHERE id > 90000")
    try:
        assert sorted(spark.table("plain").collect()) == sorted(spark.table("pruned").collect())
        assert spark.table("pruned").count() == 60
        spark.sql("INSERT OVERWRITE pruned SELECT id, s FROM t WHERE id = 5")
        assert spark.table("pruned").count() == 1
    finally:
        spark.sql("DROP TABLE plain")
        spark.sql("DROP TABLE pruned")


def test_six_threads_at_once(spark: SparkSession, pruner: secateur.Pruner, t: str) -> None:
    queries = [f"SELECT count(*), max(s) FROM t WHERE id BETWEEN {low} AND {low + 20}" for low in range(0, 720, 20)]
    with pruner.paused():
        expected = [spark.sql(q).collect() for q in queries]
    with ThreadPoolExecutor(6) as pool:
        frames = list(pool.map(lambda q: (f := spark.sql(q), f.collect()), queries))
    assert [rows for _, rows in frames] == expected
    assert all(files_read(frame) <= 1 for frame, _ in frames)
    assert len(pruner.history) >= 36


def test_the_reduced_size_turns_a_join_into_a_broadcast_join(
    spark: SparkSession, pruner: secateur.Pruner, t: str
) -> None:
    one_file = pruner.explain("SELECT * FROM t WHERE id < 20").scans[0].bytes_kept
    assert one_file is not None
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(one_file * 2))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        frame = spark.sql(
            "SELECT * FROM t a JOIN t b ON a.id = b.id WHERE b.id < 20 AND a.l IS NOT NULL AND b.l IS NOT NULL"
        )
        assert "BroadcastHashJoin" in frame._jdf.queryExecution().executedPlan().toString()
        with pruner.paused():
            frame = spark.sql(
                "SELECT * FROM t a JOIN t b ON a.id = b.id WHERE b.id < 20 AND a.l IS NOT NULL AND b.l IS NOT NULL"
            )
            assert "SortMergeJoin" in frame._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        spark.conf.unset("spark.sql.adaptive.enabled")
