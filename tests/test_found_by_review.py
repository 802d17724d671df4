"""Wrong answers that a review found, each with the query that showed it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

import secateur
from tests.fixtures import Same


@contextmanager
def setting(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.unset(key)


def write(folder: Path, *files: dict[str, list[int]]) -> str:
    folder.mkdir(parents=True)
    for i, columns in enumerate(files):
        pq.write_table(pa.table(columns), folder / f"{i}.parquet")
    return str(folder)


def test_two_partitions_in_one_folder(spark: SparkSession, same: Same, lake: Path) -> None:
    """A file is found again by its path, which both partitions share: skipped in one, it was lost in the other."""
    folder = write(lake / "shared", {"k": [1, 2, 3]})
    keys = write(lake / "keys", {"k": [1, 2, 3]})
    spark.read.parquet(keys).createOrReplaceTempView("keys")
    spark.sql("CREATE TABLE shared (k bigint, p int) USING parquet PARTITIONED BY (p)")
    try:
        for p in (1, 2, 3):
            spark.sql(f"ALTER TABLE shared ADD PARTITION (p={p}) LOCATION '{folder}'")
        secateur.collect(spark, "shared")
        for p in (1, 2, 3):
            # The condition reaches the table only after Spark has pruned partitions.
            query = f"SELECT * FROM shared WHERE EXISTS (SELECT 1 FROM keys WHERE keys.k = shared.k AND shared.p = {p})"
            assert len(same(lambda query=query: spark.sql(query)).rows) == 3  # type: ignore[misc]
        assert same(lambda: spark.sql("SELECT * FROM shared WHERE k > 5")).rows == []
    finally:
        spark.sql("DROP TABLE shared")


def test_a_cloned_session_has_settings_of_its_own(spark: SparkSession, same: Same, lake: Path) -> None:
    """Streams, foreachBatch and the cache run in clones, which inherit the late rule of their parent."""
    for p in (1, 2):
        write(lake / "upper" / f"p={p}", {"A": [p, p]})
    spark.sql(f"CREATE TABLE upper (a bigint, p int) USING parquet PARTITIONED BY (p) LOCATION '{lake / 'upper'}'")
    try:
        spark.sql("MSCK REPAIR TABLE upper")
        secateur.collect(spark, "upper")
        clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
        with setting(clone, "spark.sql.caseSensitive", "true"):
            assert len(same(lambda: clone.sql("SELECT * FROM upper WHERE a IS NULL")).rows) == 4
        with setting(spark, "spark.sql.caseSensitive", "true"):
            assert len(same(lambda: clone.sql("SELECT * FROM upper WHERE a = 2")).rows) == 2
        rules = clone._jsparkSession.experimental().extraOptimizations()
        assert [rules.apply(i).ruleName() for i in range(rules.size())] == ["secateur.Late"]
    finally:
        spark.sql("DROP TABLE upper")


def test_a_correlated_count_of_no_rows_is_zero(spark: SparkSession, same: Same, lake: Path) -> None:
    spark.read.parquet(write(lake / "t", {"k": [1, 2]})).createOrReplaceTempView("t")
    spark.read.parquet(write(lake / "s", {"k": [1, 1], "x": [1, 2]})).createOrReplaceTempView("s")
    for name in "ts":
        secateur.collect(spark, str(lake / name))
    for guard in ("true", "false"):  # Spark's own guard against this, off as in releases before 4.0
        with setting(spark, "spark.sql.optimizer.decorrelateSubqueryPreventConstantHoldingForCountBug.enabled", guard):
            counts = "SELECT k, (SELECT count(*) FROM s WHERE s.k = t.k AND s.x > 9) AS c FROM t"
            assert {row.c for row in same(lambda counts=counts: spark.sql(counts)).rows} == {0}  # type: ignore[misc]


def test_metadata_only_queries_see_empty_files(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    """With this setting Spark answers from the partitions that have files, rows or not; no scan is left to prune."""
    for p, rows in ((1, [1]), (2, [2]), (3, [])):
        folder = lake / "parts" / f"p={p}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": pa.array(rows, pa.int64())}), folder / "0.parquet")
    secateur.collect(spark, str(lake / "parts"))
    with setting(spark, "spark.sql.optimizer.metadataOnly", "true"):
        frame = spark.read.parquet(str(lake / "parts")).where("p > 1")
        with pruner.paused():
            assert frame.selectExpr("max(p)").collect()[0][0] == 3
        assert frame.selectExpr("max(p)").collect()[0][0] == 3


def test_field_ids_switched_on_in_hadoops_configuration(spark: SparkSession, same: Same, lake: Path) -> None:
    ids = [pa.field(n, pa.int64(), metadata={b"PARQUET:field_id": i}) for n, i in (("x", b"1"), ("y", b"2"))]
    (lake / "ids").mkdir()
    pq.write_table(pa.table({"x": [1, 2], "y": [100, 200]}, schema=pa.schema(ids)), lake / "ids" / "0.parquet")
    schema = StructType([StructField("x", LongType(), True, {"parquet.field.id": 2})])
    secateur.collect(spark, str(lake / "ids"))
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("spark.sql.parquet.fieldId.read.enabled", "true")
    try:
        with setting(spark, "spark.sql.parquet.filterPushdown", "false"):
            frame = same(lambda: spark.read.schema(schema).parquet(str(lake / "ids")).where("x > 50"))
        assert [row.x for row in frame.rows] == [100, 200]
    finally:
        hadoop.unset("spark.sql.parquet.fieldId.read.enabled")


def test_case_sensitivity_is_that_of_the_session_that_made_the_relation(
    spark: SparkSession, same: Same, lake: Path
) -> None:
    """A global temporary view is read with the settings of the session that created it."""
    write(lake / "upper", {"A": [1, 1]}, {"A": [2, 2]})
    frame = spark.read.schema("a bigint").parquet(str(lake / "upper"))
    secateur.collect(spark, frame)
    frame.createOrReplaceGlobalTempView("upper_view")
    other = spark.newSession()
    with setting(other, "spark.sql.caseSensitive", "true"):
        found = same(lambda: other.sql("SELECT * FROM global_temp.upper_view WHERE a = 2"))
        assert (len(found.rows), found.files) == (2, 1)
    with setting(spark, "spark.sql.caseSensitive", "true"):
        found = same(lambda: other.sql("SELECT * FROM global_temp.upper_view WHERE a IS NULL"))
        assert len(found.rows) == 4


def test_a_random_column_above_a_subquery(spark: SparkSession, same: Same, lake: Path) -> None:
    """Fewer files of the subquery's table would turn the sort-merge join into a broadcast join, with another order."""
    files = ({"k": list(range(i * 1000, i * 1000 + 1000))} for i in range(8))
    spark.read.parquet(write(lake / "inner", *files)).createOrReplaceTempView("inner_")
    outer = [{"k": list(range(i, 8000, 3))} for i in range(2)]
    spark.read.parquet(write(lake / "outer", *outer)).createOrReplaceTempView("outer_")
    for name in ("inner", "outer"):
        secateur.collect(spark, str(lake / name))
    size = sum(f.stat().st_size for f in (lake / "inner").glob("*.parquet"))
    with (
        setting(spark, "spark.sql.adaptive.enabled", "false"),
        setting(spark, "spark.sql.autoBroadcastJoinThreshold", str(size // 4)),
    ):
        for query in (
            "SELECT k, rand(42) FROM outer_ WHERE k IN (SELECT k FROM inner_ WHERE k > 7500)",
            "SELECT k, monotonically_increasing_id() FROM outer_ "
            "WHERE EXISTS (SELECT 1 FROM inner_ WHERE inner_.k = outer_.k AND inner_.k > 7500)",
            "SELECT k, rand(42), (SELECT max(k) FROM inner_ i WHERE i.k = o.k AND i.k > 7500) FROM outer_ o",
        ):
            same(lambda query=query: spark.sql(query))  # type: ignore[misc]


def test_a_condition_that_iceberg_took_over_in_a_subquery(spark: SparkSession, same: Same) -> None:
    """Iceberg plans subqueries first, and a condition on partitions does not show in the plan any more: LIMIT and
    ORDER BY … LIMIT counted on rows of other partitions."""
    rows = spark.range(0, 40, 1, 4).selectExpr("id", "CAST(id DIV 20 AS int) AS g")
    spark.sql("CREATE TABLE ice.tests.taken (id bigint, g int) USING iceberg PARTITIONED BY (g)")
    rows.writeTo("ice.tests.taken").option("distribution-mode", "none").append()
    first = "SELECT id FROM ice.tests.taken WHERE g = 0 ORDER BY id DESC LIMIT 3"
    for query, files in (
        (f"SELECT id FROM range(100) WHERE id IN ({first})", 1),
        ("SELECT (SELECT count(*) FROM (SELECT id FROM ice.tests.taken WHERE g = 0 LIMIT 3))", 1),
        (f"SELECT (SELECT max(id) FROM ({first}))", 1),
        ("SELECT (SELECT count(*) FROM (SELECT id FROM ice.tests.taken WHERE g = 0 LIMIT 15))", 2),
    ):
        found = same(lambda query=query: spark.sql(query))  # type: ignore[misc]
        assert found.rows
        assert found.summary.scans[0].files_kept == files, query
