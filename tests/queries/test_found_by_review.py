"""Wrong answers that a review found, each with the query that showed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Observation, SparkSession, functions
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


def write(folder: Path, *files: Mapping[str, Any]) -> str:
    folder.mkdir(parents=True)
    for i, columns in enumerate(files):
        pq.write_table(pa.table(dict(columns)), folder / f"{i}.parquet")
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


def test_two_functions_that_differ_in_what_is_no_argument(spark: SparkSession, same: Same, lake: Path) -> None:
    """Python took them for one: the join by the one told the table that is joined by the other."""
    names = {i: f"x{i}" for i in range(1, 9)}
    for name, rows in (
        ("a", [{"x": [i], "s": [s], "ts": [datetime(2000 + i, 3, 5)]} for i, s in names.items()]),
        ("b", [{"k": [i], "s": [s], "ts": [datetime(2000 + i, 4, 5)]} for i, s in names.items()]),
        ("c", [{"k": [i + 100], "s": [f"'{s}'"], "ts": [datetime(2000 + i, 5, 5)]} for i, s in names.items()]),
    ):
        spark.read.parquet(write(lake / name, *rows)).createOrReplaceTempView(name)
        secateur.collect(spark, str(lake / name))
    pairs = [", ".join(f"'{s}', {i + more}L" for i, s in names.items()) for more in (0, 100)]
    either = "IF(a.x > 0, struct(a.x AS one, a.x + 100 AS other), struct(-a.x AS one, 0L AS other))"
    for to_b, to_c in (
        (f"map({pairs[0]})[a.s] = b.k", f"map({pairs[1]})[a.s] = c.k"),  # literals of a type without bounds
        ("a.ts + make_interval(0, 1) = b.ts", "a.ts + make_interval(0, 2) = c.ts"),
        ("url_encode(a.s) = b.s", "quote(a.s) = c.s"),  # both call a method
        ("ice.system.years(a.ts) - 30 = b.k", "ice.system.months(a.ts) - 362 = 12 * (c.k - 100)"),
        (f"{either}.one = b.k", f"{either}.other = c.k"),
    ):
        for join in ("JOIN", "LEFT JOIN"):
            query = f"SELECT * FROM a JOIN b ON {to_b} {join} c ON {to_c}"
            rows = same(lambda query=query: spark.sql(query)).rows  # type: ignore[misc]
            assert len(rows) == 8
            assert None not in {value for row in rows for value in row}, query


def test_zero_and_minus_zero_are_two_arguments(spark: SparkSession, same: Same, lake: Path) -> None:
    """They are equal to Python, as literals are; to pow they are not."""
    for name, keys in (("a", [-1.0]), ("b", ["Infinity", "0", "1"]), ("c", ["-Infinity", "Infinity", "5"])):
        spark.read.parquet(write(lake / name, *({"k": [key]} for key in keys))).createOrReplaceTempView(name)
        secateur.collect(spark, str(lake / name))
    zeros = [f"CAST(pow({zero}, a.k) AS STRING)" for zero in ("0.0D", "-0.0D")]
    query = f"SELECT * FROM a JOIN b ON {zeros[0]} = b.k JOIN c ON {zeros[1]} = c.k"
    assert [tuple(row) for row in same(lambda: spark.sql(query)).rows] == [(-1.0, "Infinity", "-Infinity")]
    assert same(lambda: spark.sql("SELECT * FROM a WHERE k = -0.0D")).files == 0


def test_values_of_one_function_are_not_those_of_another(spark: SparkSession, same: Same, lake: Path) -> None:
    """What Spark made of constants was remembered by a text that left out a set, an option or a field."""
    files = [{"i": [i, i], "s": [f"x{i}"] * 2, "d": [f"0{i}/0{i + 1}/2024"] * 2} for i in range(1, 9)]
    spark.read.parquet(write(lake / "t", *files)).createOrReplaceTempView("t")
    secateur.collect(spark, str(lake / "t"))
    more = [f"x{i}" for i in range(20, 32)]  # so many that Spark makes a set of them
    lists = [", ".join(f"struct({s[1:]}L, '{s}')" for s in (*more, *some)) for some in (["x1"], ["x2"])]
    bytes_ = [", ".join(f"X'{s.encode().hex()}'" for s in (*more, *some)) for some in (["x1"], ["x2"])]
    either = "IF(i > 0, struct(s AS one, d AS other), struct(d AS one, s AS other))"
    for conditions in (
        [f"struct(i, s) IN ({some})" for some in lists],
        [f"encode(s, 'utf-8') IN ({some})" for some in bytes_],
        [f"collate(s, 'UTF8_LCASE') IN ({', '.join(map(repr, (*more, some)))})" for some in ("X1", "X2")],
        [f"month(from_csv(d, 'd DATE', map('dateFormat', '{f}')).d) = 3" for f in ("dd/MM/yyyy", "MM/dd/yyyy")],
        [f"upper({either}.one) = 'X3'", f"upper({either}.other) = '03/04/2024'"],
    ):
        for condition in conditions:
            query = f"SELECT * FROM t WHERE {condition}"
            found = same(lambda query=query: spark.sql(query))  # type: ignore[misc]
            assert (len(found.rows), found.files) == (2, 1), query


def test_metrics_of_rows_that_meet_nothing(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    """A join with an empty side was removed from the plan, and the metrics of its other side with it.

    In a session of its own: once a session has observed something, Delta cannot serialize it any more.
    """
    spark = spark.newSession()
    for name, files in (("a", [{"k": [i, i]} for i in range(5)]), ("b", [{"k": [i], "z": [i]} for i in range(5)])):
        spark.read.parquet(write(lake / name, *files)).createOrReplaceTempView(name)
        secateur.collect(spark, str(lake / name))
    with setting(spark, "spark.sql.adaptive.enabled", "false"):  # with it Spark may forget them on its own
        for seen, other, rows in (("a", "b WHERE z > 9", 10), ("a WHERE k > 9", "b", 0), ("b WHERE z > 9", "a", 0)):
            observation = Observation()
            frame = spark.sql(f"SELECT * FROM {seen}").observe(observation, functions.count("*").alias("rows"))
            assert frame.join(spark.sql(f"SELECT * FROM {other}"), "k").collect() == []
            assert observation.get == {"rows": rows}
    assert pruner.last is not None
    assert pruner.last.scans[0].files_kept == 0
