"""A probe whose query runs again, meets changed files, or whose way to Python breaks; and one of a Connect client."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from secateur.session.runtime_answers import RuntimeAnswers
from tests.fixtures import SparkProcess
from tests.queries.probe_table import FILES, ROWS, columns, row_filter


def planned(frame: DataFrame) -> DataFrame:
    frame._jdf.queryExecution().executedPlan()
    return frame


SQL = "SELECT id, s FROM t WHERE y = 3 ORDER BY id DESC LIMIT 5"


def test_a_data_frame_that_runs_again_and_one_that_is_cached(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, lake: Path
) -> None:
    rows, _ = row_filter(spark, pruner, SQL)
    frame = spark.sql(SQL)
    assert frame.collect() == rows == frame.collect()
    assert frame.count() == 5
    assert frame.selectExpr("max(id)").collect()[0][0] == rows[0].id
    cached = spark.sql(SQL).cache()
    try:
        assert cached.collect() == rows == cached.orderBy("id", ascending=False).collect()
    finally:
        cached.unpersist(blocking=True)
    spark.sql(SQL).write.parquet(str(lake / "copy"))
    assert sorted(spark.read.parquet(str(lake / "copy")).collect()) == sorted(rows)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW top AS {SQL}")
    both = spark.sql("SELECT a.id FROM top a JOIN top b ON a.id = b.id ORDER BY a.id DESC").collect()
    assert [row.id for row in both] == [row.id for row in rows]
    pq.write_table(pa.table({**columns(0), "id": pa.array(np.full(ROWS, 10**9))}), table / "more.parquet")
    try:
        spark.read.parquet(str(table)).createOrReplaceTempView("t")
        assert spark.sql(SQL).first().id == 10**9  # type: ignore[union-attr]
    finally:
        (table / "more.parquet").unlink()


def test_a_rewritten_file_is_read(spark: SparkSession, pruner: secateur.Pruner, table: Path, lake: Path) -> None:
    for i in range(FILES):
        pq.write_table(pa.table(columns(i)), lake / f"{i:02d}.parquet")
    secateur.collect(spark, str(lake))
    frame = planned(spark.read.parquet(str(lake)).where("y = 3").orderBy("id", ascending=False).limit(5))
    pq.write_table(pa.table({**columns(5), "id": pa.array(np.arange(ROWS) + 10**9)}), lake / "05.parquet")
    assert min(row.id for row in frame.collect()) >= 10**9
    assert pruner.last is not None
    assert "files-changed" in {r.code for r in pruner.last.scans[0].reasons}


@pytest.mark.parametrize("name", ["t", "delta", "iceberg"])
@pytest.mark.parametrize("broken", ["detached", "paused", "raises", "nonsense", "late", "forgotten"])
def test_whatever_breaks_at_run_time_the_query_runs(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch, broken: str, name: str
) -> None:
    source = {"t": "t", "delta": f"delta.`{table.parent / 'delta'}`", "iceberg": "ice.tests.probed"}[name]
    sql = f"SELECT id, s FROM {source} WHERE y = 3 ORDER BY id DESC LIMIT 5"
    with pruner.paused():
        expected = spark.sql(sql).collect()
    frame = planned(spark.sql(sql))

    def instead(self: RuntimeAnswers, id_: str, values: Any, stats: Any) -> tuple[Any, str]:
        if broken == "raises":
            raise RuntimeError("broken on purpose")
        if broken == "late":
            time.sleep(1)
        return np.ones(FILES * 2, np.bool_), "{}"

    match broken:
        case "detached":
            pruner.detach()
        case "forgotten":
            for entry in pruner._registry._entries.values():
                pruner._registry._entries.pop(entry.source.fingerprint)
        case "raises" | "nonsense" | "late":
            monkeypatch.setattr(RuntimeAnswers, "answer", instead)
    if broken == "late":
        spark.conf.set("spark.secateur.budget.ms", "100")
    if broken == "paused":
        with pruner.paused():
            assert frame.collect() == expected
    else:
        assert frame.collect() == expected
    if broken in ("raises", "nonsense", "late", "forgotten"):
        assert pruner.last is not None
        assert "runtime-failed" in {r.code for r in pruner.last.scans[0].reasons}
        assert pruner.last.scans[0].files_kept == FILES


CONNECTED = {
    # a query of a Spark Connect client, and of how many of the files it reads
    "SELECT id FROM parquet.`{}` WHERE id < 1000 LIMIT 1000": 1,
    "SELECT id, s FROM parquet.`{}` ORDER BY id DESC LIMIT 3": 1,
    "SELECT id FROM parquet.`{}` WHERE y = 3 ORDER BY id DESC LIMIT 3": 1,
    "SELECT * FROM (SELECT id, rank() OVER (PARTITION BY tie ORDER BY id) AS n FROM parquet.`{}`) WHERE n <= 3": 10,
    "SELECT id FROM ice.tests.probed WHERE y = 3 ORDER BY id LIMIT 3": 1,
}


def test_a_spark_connect_client(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, connect_port: int, spark_process: SparkProcess
) -> None:
    queries = {sql.format(table): files for sql, files in CONNECTED.items()}
    with pruner.paused():
        expected = [sorted(row[0] for row in spark.sql(sql).collect()) for sql in queries]
    code = f"""
        import warnings; warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.remote("sc://127.0.0.1:{connect_port}").getOrCreate()
        spark.conf.set("spark.secateur.filter.file.ms", "1000")
        spark.conf.set("spark.secateur.budget.ms", "30000")
        print("ROWS", [sorted(row[0] for row in spark.sql(sql).collect()) for sql in {list(queries)!r}])
    """
    before = pruner.history[-1].query if pruner.history else 0
    done = spark_process(code)
    assert f"ROWS {expected}" in done.stdout, done.stdout + done.stderr
    kept = [summary.files_kept for summary in pruner.history if summary.query > before and summary.scans]
    assert kept == list(queries.values())
