"""ORDER BY … LIMIT at run time: a probe of a few files tells where the first rows end, and the rest is hardly read."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.spark_metrics import rows_read

import secateur
from secateur.passes.limits import topk_probe
from secateur.passes.limits.runtime_row_filter import row_filter as compared_rows
from tests.fixtures import Same
from tests.queries.probe_table import FILES, columns, row_filter, step


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
@pytest.mark.parametrize("nulls", ["FIRST", "LAST"])
def test_every_type_and_order(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, direction: str, nulls: str
) -> None:
    for key in ("x", "d", "t", "s", "day", "n", "ts", "tie", "-x"):
        sql = f"SELECT {key} FROM t WHERE y = 3 ORDER BY {key} {direction} NULLS {nulls} LIMIT 5"
        rows, read = row_filter(spark, pruner, sql)
        assert len(rows) == 5
        done = step(pruner)
        if key in ("s", "day", "n", "ts") or (key in ("x", "-x") and nulls == "LAST"):
            assert done is not None, sql
            assert done.files_after == 1, sql
            assert read <= 3
            assert done.condition


@pytest.mark.parametrize("name", ["t", "delta", "iceberg"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_every_format(spark: SparkSession, pruner: secateur.Pruner, table: Path, name: str, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    source = {"t": "t", "delta": f"delta.`{table.parent / 'delta'}`", "iceberg": "ice.tests.probed"}[name]
    for sql in (
        f"SELECT * FROM {source} WHERE y = 3 ORDER BY id DESC LIMIT 5",
        f"SELECT s, ts FROM {source} WHERE y * 2 = 6 ORDER BY ts, s LIMIT 3 OFFSET 2",
        f"SELECT count(*), sum(id) FROM (SELECT id FROM {source} WHERE y < 2 ORDER BY s DESC LIMIT 4)",
    ):
        _, read = row_filter(spark, pruner, sql)
        done = step(pruner)
        assert done is not None, sql
        assert (done.files_before, done.files_after) == (FILES, 1), sql
        assert 2 <= read <= 6
        assert pruner.last is not None
        assert pruner.last.files_kept == 1
        assert "at run time, where " in str(pruner.last)


@pytest.mark.parametrize(
    ("sql", "after"),
    [
        ("SELECT x FROM t WHERE y = 3 ORDER BY x DESC NULLS LAST LIMIT 1", 1),
        ("SELECT x FROM t WHERE y = 3 ORDER BY x DESC NULLS LAST LIMIT 20", 2),
        ("SELECT x FROM t WHERE y = 3 ORDER BY x DESC NULLS LAST LIMIT 100000", None),
        ("SELECT x FROM t WHERE y = 3 ORDER BY x DESC NULLS LAST LIMIT 2000000000", None),
        ("SELECT tie, id FROM t WHERE y = 3 ORDER BY tie DESC, id LIMIT 5", 4),
        ("SELECT tie FROM t WHERE y = 3 AND id < 16000 ORDER BY tie LIMIT 5", 4),
        ("SELECT x FROM t WHERE y = 3 AND id >= 39000 ORDER BY x LIMIT 5", None),
        ("SELECT id FROM t WHERE y = 3 AND id % 1000 = 37 ORDER BY id DESC LIMIT 5", FILES),
        ("SELECT x FROM t WHERE y = 3 AND id % 1000 = 37 ORDER BY x DESC NULLS LAST LIMIT 50", FILES),
        ("SELECT x FROM t WHERE y = 3 AND id % 1000 = 37 ORDER BY x NULLS LAST LIMIT 50", FILES),
        ("SELECT r FROM t WHERE y = 3 ORDER BY r LIMIT 5", None),
        ("SELECT id FROM t WHERE y = 3 AND rand() + y > 2.9 ORDER BY id LIMIT 5", None),
        ("SELECT id FROM t WHERE id > (SELECT min(k) FROM few) ORDER BY id LIMIT 5", None),
    ],
)
def test_how_many_files_are_left(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, sql: str, after: int | None
) -> None:
    row_filter(spark, pruner, sql)
    done = step(pruner)
    assert (done.files_after if done else None) == after


@pytest.mark.parametrize("broadcast", ["10MB", "-1"])
@pytest.mark.parametrize(
    ("sql", "probes"),
    [
        ("SELECT id, label FROM t JOIN few ON id = k WHERE label > 'l1' ORDER BY id DESC LIMIT 3", True),
        ("SELECT id, label FROM t LEFT JOIN few ON id = k WHERE y = 3 ORDER BY id DESC LIMIT 3", True),
        ("SELECT id FROM t LEFT JOIN few ON id = k WHERE label IS NULL AND y = 3 ORDER BY s LIMIT 3", True),
        ("SELECT id, k FROM few RIGHT JOIN t ON id = k WHERE y = 3 ORDER BY id LIMIT 3", True),
        ("SELECT id FROM t LEFT SEMI JOIN few ON id = k ORDER BY id DESC LIMIT 3", True),
        ("SELECT id FROM t LEFT ANTI JOIN few ON id = k WHERE y = 3 ORDER BY id DESC LIMIT 3", True),
        ("SELECT id, k FROM t FULL JOIN few ON id = k WHERE y = 3 OR y IS NULL ORDER BY id DESC LIMIT 3", False),
        ("SELECT k, id FROM few LEFT JOIN t ON id = k AND y > 3 ORDER BY id DESC, k LIMIT 1", False),
        ("SELECT id, c FROM t JOIN (SELECT k, count(*) AS c FROM few GROUP BY k) ON id = k ORDER BY id LIMIT 3", False),
    ],
)
def test_joins(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, sql: str, probes: bool, broadcast: str
) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
    row_filter(spark, pruner, sql)
    done = step(pruner)
    assert (done is not None) == probes, str(pruner.last)
    if done is not None:
        assert done.files_after is not None
        assert done.files_after <= 2


@pytest.mark.parametrize(("adaptive", "broadcast"), [("true", "10485760"), ("true", "-1"), ("false", "10485760")])
@pytest.mark.parametrize("name", ["t", "iceberg"])
def test_spark_prunes_by_the_other_side(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, name: str, broadcast: str, adaptive: str
) -> None:
    """A probe is read with the subqueries that Spark adds for dynamic pruning, as the query is."""
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", broadcast)
    source, by = ("ice.tests.probed", "id = k") if name == "iceberg" else ("parts", "part = k DIV 10000")
    if name == "t" and not (table.parent / "parts").exists():
        rows = spark.read.parquet(str(table)).selectExpr("*", "id DIV 10000 AS part").repartitionByRange(8, "id")
        rows.write.partitionBy("part").parquet(str(table.parent / "parts"))
        secateur.collect(spark, str(table.parent / "parts"))
    if name == "t":
        spark.read.parquet(str(table.parent / "parts")).createOrReplaceTempView("parts")
    sql = f"SELECT id, label FROM {source} JOIN few ON {by} WHERE label = 'l1' AND y < 90 ORDER BY id DESC, k LIMIT 1"
    frame = spark.sql(sql)
    assert "dynamicpruning" in frame._jdf.queryExecution().optimizedPlan().toString()
    row_filter(spark, pruner, sql)
    done = step(pruner)
    assert done is not None, str(pruner.last)
    assert done.files_after == 1
    assert "DynamicPruning" not in str(pruner.last)


@pytest.mark.parametrize(
    ("sql", "probes"),
    [
        ("SELECT day, count(*), max(y) FROM t WHERE y < 50 GROUP BY day ORDER BY day DESC LIMIT 3", True),
        ("SELECT day, tie, sum(id) FROM t WHERE y < 50 GROUP BY day, tie ORDER BY day, tie LIMIT 3", True),
        ("SELECT DISTINCT day FROM t WHERE y = 3 ORDER BY day DESC LIMIT 3", True),
        ("SELECT day, count(*) FROM t WHERE y = 3 GROUP BY day HAVING count(*) > 1 ORDER BY day LIMIT 3", False),
        ("SELECT tie, max(id) AS m FROM t WHERE y = 3 GROUP BY tie ORDER BY m DESC LIMIT 3", False),
        ("SELECT id, row_number() OVER (ORDER BY s) AS n FROM t WHERE y = 3 ORDER BY id DESC LIMIT 3", False),
        ("(SELECT id FROM t WHERE y = 3 UNION ALL SELECT k FROM few) ORDER BY id DESC LIMIT 3", False),
        ("SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY tie ORDER BY s) AS n FROM t) WHERE n < 3", False),
    ],
)
def test_groups_and_others(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, same: Same, sql: str, probes: bool
) -> None:
    same(lambda: spark.sql(sql))
    done = step(pruner)
    assert (done is not None) == probes, str(pruner.last)
    if done is not None:
        assert done.files_after == 1
    elif "LIMIT" in sql:
        assert pruner.last is not None
        assert "probe-not-possible" in {r.code for scan in pruner.last.scans for r in scan.reasons}


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("SELECT id, label FROM t LEFT JOIN few ON id = k ORDER BY id DESC LIMIT 3", 1),
        ("SELECT id, label FROM few RIGHT JOIN t ON id = k ORDER BY id LIMIT 3", 1),
        ("SELECT id, label FROM t LEFT JOIN few ON id = k WHERE label IS NOT NULL ORDER BY id DESC LIMIT 3", None),
        ("SELECT day, count(*) FROM t GROUP BY day ORDER BY day DESC LIMIT 3", 3),
        ("SELECT DISTINCT tie FROM t ORDER BY tie LIMIT 2", 8),
        ("SELECT tie, count(*) FROM t GROUP BY tie HAVING count(*) > 1000000 ORDER BY tie LIMIT 2", None),
    ],
)
def test_what_metadata_tell_already(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, same: Same, sql: str, files: int | None
) -> None:
    spark.conf.set("spark.secateur.passes", "filter,topk")
    same(lambda: spark.sql(sql))
    assert pruner.last is not None
    assert next(scan.files_kept for scan in pruner.last.scans if scan.files_total == FILES) == (files or FILES)


def test_the_boundary_skips_row_groups(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(FILES):
        pq.write_table(pa.table(columns(i)).sort_by("id"), lake / f"{i:02d}.parquet", row_group_size=100)
    secateur.collect(spark, str(lake))
    spark.read.parquet(str(lake)).createOrReplaceTempView("t")
    for key, compares in (
        ("id DESC", True), ("ts", True), ("day", True), ("n DESC", True), ("x NULLS FIRST", True), ("s", False),
        ("d DESC", False), ("id - 1", False),
    ):  # fmt: skip
        read = []
        for way in (compared_rows, lambda *_: None):
            with monkeypatch.context() as patched:
                patched.setattr(topk_probe, "row_filter", way)
                frame = spark.sql(f"SELECT * FROM t WHERE y = 3 ORDER BY {key} LIMIT 3")
                read.append((frame.collect(), rows_read(frame)))
        assert read[0][0] == read[1][0], key
        assert (read[0][1] < read[1][1]) == compares, key
    spark.conf.set("spark.sql.execution.reuseSubquery", "false")
    try:
        rows, files = row_filter(spark, pruner, "SELECT * FROM t WHERE y = 3 ORDER BY id DESC LIMIT 3")
        assert len(rows) == files == 3
    finally:
        spark.conf.unset("spark.sql.execution.reuseSubquery")


def test_minus_zero_is_no_group_of_its_own(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, lake: Path, same: Same
) -> None:
    for i, values in enumerate(([0.0, -0.0], [-1.0], [-2.0])):
        pq.write_table(pa.table({"v": values}), lake / f"{i}.parquet")
    secateur.collect(spark, str(lake))
    found = same(lambda: spark.read.parquet(str(lake)).groupBy("v").count().orderBy("v", ascending=False).limit(2))
    assert len(found.rows) == 2


def test_no_rows_at_all(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    assert spark.sql("SELECT x FROM t WHERE y = 3 ORDER BY x LIMIT 0").collect() == []
    row_filter(spark, pruner, "SELECT id FROM t WHERE y = 3 AND id < 0 ORDER BY id LIMIT 5")


def test_explained_but_not_run(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    scan = pruner.explain("SELECT * FROM t WHERE y = 3 ORDER BY id DESC LIMIT 5").scans[0]
    assert [(s.name, s.files_after) for s in scan.runtime] == [("topk_probe", None)]
    assert "2 files are read first" in scan.runtime[0].plan
    assert scan.files_kept == FILES
    spark.conf.set("spark.secateur.filter.file.ms", "1")
    scan = pruner.explain("SELECT * FROM t WHERE y = 3 ORDER BY id DESC LIMIT 5").scans[0]
    assert not scan.runtime
    assert "probe-not-worth" in {r.code for r in scan.reasons}


def test_the_hidden_column_stays_hidden(spark: SparkSession, pruner: secateur.Pruner, table: Path, same: Same) -> None:
    rows = spark.read.parquet(str(table)).selectExpr("*", "_metadata.file_name AS f").where("y = 3")
    found = same(lambda: rows.orderBy("id", ascending=False).limit(5))
    assert set(found.rows[0].asDict()) == {*columns(0), "f"}
    assert step(pruner) is not None


def test_partitioned_and_bucketed_tables(spark: SparkSession, pruner: secateur.Pruner, table: Path, same: Same) -> None:
    with pruner.paused():
        spark.sql("DROP TABLE IF EXISTS probed_p")
        spark.sql("DROP TABLE IF EXISTS probed_b")
        rows = spark.table("t").select("id", "y", "s", "tie")
        rows.repartitionByRange(20, "id").write.partitionBy("tie").saveAsTable("probed_p")
        rows.repartitionByRange(10, "id").write.bucketBy(2, "id").saveAsTable("probed_b")
    try:
        for name in ("probed_p", "probed_b"):
            secateur.collect(spark, name)
            sql = f"SELECT id, s, tie FROM {name} WHERE y = 3 AND tie > 1 ORDER BY s DESC LIMIT 3"
            found = same(partial(spark.sql, sql))
            assert len(found.rows) == 3
            done = step(pruner)
            assert done is not None
            assert done.files_after is not None
            assert done.files_before is not None
            assert done.files_after < done.files_before
    finally:
        spark.sql("DROP TABLE probed_p")
        spark.sql("DROP TABLE probed_b")


def test_a_file_without_statistics_is_read(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, same: Same
) -> None:
    late = table / "late.parquet"
    pq.write_table(pa.table(columns(1000)), late)
    try:
        found = same(lambda: spark.read.parquet(str(table)).where("y = 3").orderBy("id", ascending=False).limit(5))
        assert min(row.id for row in found.rows) > 999_999
        done = step(pruner)
        assert done is not None
        assert done.files_after == 2
    finally:
        late.unlink()
