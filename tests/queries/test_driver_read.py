"""LIMIT over few small files: the driver reads the rows itself, and gives what a job would have given."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tools.spark_metrics import rows_read

import secateur

FILES, ROWS = 8, 50
COLUMNS = """
    id,
    IF(id % 7 = 0, NULL, CAST(id AS INT)) AS i,
    CAST(id % 100 AS TINYINT) AS tiny,
    id / 3 AS d,
    IF(id % 11 = 0, CAST('NaN' AS FLOAT), CAST(id AS FLOAT)) AS f,
    CAST(id AS DECIMAL(9, 2)) AS small,
    CAST(id AS DECIMAL(38, 10)) * 1000000007 AS large,
    concat('é', id, repeat('x', 40)) AS s,
    CAST(concat('bin', id) AS BINARY) AS raw,
    id % 2 = 0 AS even,
    date_add(DATE'2024-01-01', CAST(id AS INT)) AS day,
    timestamp_seconds(1704067200 + id * 3600) + INTERVAL '123456' MICROSECOND AS ts,
    CAST(timestamp_seconds(1704067200 + id * 3600) AS TIMESTAMP_NTZ) AS ntz,
    named_struct('x', id, 'y', named_struct('z', concat('z', id))) AS st,
    array(named_struct('k', id, 't', CAST(id AS STRING)), NULL) AS list,
    map(CAST(id AS STRING), array(id, NULL)) AS dict,
    array(array(named_struct('q', id)), array(), NULL) AS deep,
    map('k', named_struct('q', array(map('p', id)))) AS deeper,
    CAST(NULL AS STRING) AS nothing,
    CAST(id DIV 200 AS INT) AS part
"""
FORMATS = ("parquet", "delta", "iceberg")
_groups = itertools.count()


def jobs(spark: SparkSession, run: Callable[[], Any]) -> tuple[Any, int]:
    """What something returns, and how many Spark jobs it started."""
    group = f"driver-{next(_groups)}"
    spark.sparkContext.setJobGroup(group, "")
    try:
        result = run()
        return result, len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def write(spark: SparkSession, folder: Path, format_: str, files: int = FILES) -> str:
    """A table of some files with so many rows each, as SQL names it."""
    frame = spark.range(0, files * ROWS, 1, files).selectExpr(*_split(COLUMNS))
    if format_ == "iceberg":
        name = f"ice.tests.driver{next(_groups)}"
        frame.writeTo(name).partitionedBy(F.col("part")).tableProperty("write.distribution-mode", "none").create()
        return name
    frame.write.format(format_).partitionBy("part").save(str(folder))
    if format_ == "parquet":
        secateur.collect(spark, str(folder))
    return f"{format_}.`{folder}`"


def _split(columns: str) -> list[str]:
    return [line.strip().removesuffix(",") for line in columns.strip().splitlines()]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("driver")
    return {format_: write(spark, home / format_, format_) for format_ in FORMATS}


def by_driver(pruner: secateur.Pruner) -> bool:
    """Whether the driver read the last query's rows itself."""
    assert pruner.last is not None
    steps = [step for scan in pruner.last.scans for step in scan.runtime if step.name == "driver"]
    return any(step.ms is not None for step in steps)


QUERIES = (
    ("SELECT * FROM {t} LIMIT 10", 10),
    ("SELECT * FROM {t} WHERE id >= 100 LIMIT 50", 50),
    ("SELECT * FROM {t} WHERE id >= 100 LIMIT 10 OFFSET 30", 10),
    ("SELECT * FROM {t} WHERE part = 1 AND id < 390 LIMIT 100", 100),
    ("SELECT id, part, st.y.z, list[0].t, dict, CAST(ts AS STRING), upper(s), id + 1 AS j FROM {t} LIMIT 7", 7),
    ("SELECT id, d + f, large * 2, date_trunc('MONTH', day), even AND i > 5 FROM {t} WHERE s > 'a' LIMIT 60", 60),
    ("SELECT id, struct(st, list) AS both, size(dict) AS n FROM {t} WHERE id BETWEEN 50 AND 349 LIMIT 120", 120),
)


@pytest.mark.parametrize("format_", FORMATS)
def test_the_rows_are_those_that_a_job_gives(
    spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str], format_: str
) -> None:
    for sql, count in QUERIES:
        text = sql.format(t=tables[format_])
        with pruner.paused():
            whole = {row.id: repr(row) for row in spark.sql(text.split(" LIMIT ", maxsplit=1)[0]).collect()}
        frame = spark.sql(text)
        rows, started = jobs(spark, frame.collect)
        assert len({row.id for row in rows}) == len(rows) == count, text
        assert all(repr(row) == whole[row.id] for row in rows), text
        assert started == 0, text
        assert by_driver(pruner), str(pruner.last)
        again, _ = jobs(spark, frame.collect)
        assert repr(again) == repr(rows)


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_deleted_rows_do_not_come_back(spark: SparkSession, pruner: secateur.Pruner, lake: Path, format_: str) -> None:
    """Readers then give more columns than were asked for: where a row is, or whether it was deleted."""
    table = f"delta.`{lake / 'deleted'}`" if format_ == "delta" else f"ice.tests.driver{next(_groups)}"
    properties = "'delta.enableDeletionVectors' = 'true', 'format-version' = '3', 'write.delete.mode' = 'merge-on-read'"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, s STRING) USING {format_} TBLPROPERTIES ({properties})")
    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, concat('s', id) FROM range(1000)").collect()
    spark.sql(f"DELETE FROM {table} WHERE id % 2 = 0").collect()
    for columns in ("*", "s, id", "id", "id + 1 AS id, upper(s) AS s"):
        rows, started = jobs(spark, spark.sql(f"SELECT {columns} FROM {table} WHERE id >= 0 LIMIT 300").collect)
        assert len(set(rows)) == 300
        assert all(len(row) == (1 if columns == "id" else 2) for row in rows)
        assert {row.id % 2 for row in rows} == {0 if "+" in columns else 1}
        assert by_driver(pruner), str(pruner.last)
        assert started == 0


def test_values_made_up_while_reading(spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str]) -> None:
    rows = spark.sql(f"SELECT id, _metadata.file_name AS f, _metadata.row_index AS r FROM {tables['parquet']} LIMIT 9")
    found = rows.collect()
    with pruner.paused():
        sql = f"SELECT id, _metadata.file_name AS f, _metadata.row_index AS r FROM {tables['parquet']}"
        whole = {row.id: row for row in spark.sql(sql).collect()}
    assert len(found) == 9
    assert all(row == whole[row.id] for row in found)


@pytest.mark.parametrize(
    "ask",
    [
        lambda frame: frame.take(5),
        lambda frame: frame.head(5),
        lambda frame: [frame.first()],
        lambda frame: frame.limit(5).collect(),
        lambda frame: frame.limit(9).limit(5).collect(),
        lambda frame: frame.offset(3).limit(5).collect(),
        lambda frame: frame.limit(5).toArrow()["id"].to_pylist(),
        lambda frame: list(frame.limit(5).toLocalIterator()),
        lambda frame: frame.limit(5).rdd.collect(),
        lambda frame: frame.limit(5).repartition(2).collect(),
        lambda frame: frame.limit(5).sort("id").collect(),
        lambda frame: frame.limit(5).union(frame.limit(3)).collect(),
        lambda frame: frame.limit(50).tail(2),
    ],
)
@pytest.mark.parametrize("format_", FORMATS)
def test_however_it_is_asked_for(
    pruner: secateur.Pruner,
    spark: SparkSession,
    tables: dict[str, str],
    format_: str,
    ask: Callable[[DataFrame], list[Any]],
) -> None:
    frame = spark.sql(f"SELECT id FROM {tables[format_]} WHERE id >= 200")
    with pruner.paused():
        expected = ask(frame)
    ids = [row if isinstance(row, int) else row[0] for row in ask(frame)]
    assert len(ids) == len(expected)
    assert all(200 <= id_ < 400 for id_ in ids)


def test_shown_cached_and_written(
    spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str], lake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.sql(f"SELECT id, ts, list FROM {tables['parquet']} WHERE id >= 300").limit(5)
    _, started = jobs(spark, lambda: frame.show(truncate=False))
    shown = capsys.readouterr().out
    assert started == 0
    assert shown.count("2024-01-1") == 5
    with pruner.paused():
        frame.show(truncate=False)
    assert len(capsys.readouterr().out) == len(shown)
    cached = frame.cache()
    try:
        assert cached.count() == 5
        assert cached.collect() == cached.collect()
    finally:
        cached.unpersist(blocking=True)
    frame.write.parquet(str(lake / "written"))
    assert spark.read.parquet(str(lake / "written")).count() == 5


@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.parquet.enableVectorizedReader": "false", "spark.sql.iceberg.vectorization.enabled": "false"},
        {"spark.sql.codegen.wholeStage": "false"},
        {"spark.sql.adaptive.forceApply": "true"},
        {"spark.sql.adaptive.enabled": "false", "spark.sql.columnVector.offheap.enabled": "true"},
        {"spark.sql.session.timeZone": "Asia/Kolkata", "spark.sql.files.maxPartitionBytes": "1000"},
    ],
    ids=lambda s: next(iter(s)).removeprefix("spark.sql."),
)
def test_settings_of_the_session_hold(
    spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str], settings: dict[str, str]
) -> None:
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        for table in tables.values():
            sql = f"SELECT *, CAST(ts AS STRING) AS text, hour(ts) AS h FROM {table} WHERE id >= 130"
            with pruner.paused():
                whole = {row.id: repr(row) for row in spark.sql(sql).collect()}
            rows = spark.sql(f"{sql} LIMIT 60").collect()
            assert len({row.id for row in rows}) == 60
            assert all(repr(row) == whole[row.id] for row in rows)
            assert by_driver(pruner)
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_error_of_the_query_is_that_of_plain_spark(
    spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str], ansi: str
) -> None:
    sql = f"SELECT CAST(s AS INT) AS n FROM {tables['delta']} LIMIT 5"
    before = str(spark.conf.get("spark.sql.ansi.enabled"))
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        if ansi == "false":
            assert [row.n for row in spark.sql(sql).collect()] == [None] * 5
            return
        with pruner.paused(), pytest.raises(PySparkException) as plain:
            spark.sql(sql).collect()
        with pytest.raises(PySparkException) as ours:
            spark.sql(sql).collect()
        assert type(ours.value) is type(plain.value)
        assert ours.value.getCondition() == plain.value.getCondition()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_what_is_left_to_a_job(spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str]) -> None:
    twice = F.udf(lambda v: v * 2, "bigint")
    table = spark.sql(f"SELECT * FROM {tables['parquet']}")
    frames = {
        "a user's function": table.select(twice("id")).limit(5),
        "something random": table.select("id", F.rand()).limit(5),
        "the name of the file": table.select("id", F.input_file_name()).limit(5),
        "a subquery": spark.sql(
            f"SELECT id, (SELECT max(id) FROM {tables['delta']}) AS m FROM {tables['parquet']} LIMIT 5"
        ),
        "an order": table.orderBy("id").limit(5),
        "a join": table.join(table.select("id").withColumnRenamed("id", "k"), F.expr("id = k"), "left").limit(5),
        "groups": table.groupBy("part").count().limit(5),
        "conditions that not all rows meet": table.where("id % 3 = 0").limit(5),
        "higher-order functions": table.select(F.expr("transform(list, e -> e.k)")).limit(5),
    }
    for what, frame in frames.items():
        rows, started = jobs(spark, frame.collect)
        assert 1 <= len(rows) <= 5, what
        assert not by_driver(pruner), what
        assert started > 0, what


def test_only_what_is_small(spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str], lake: Path) -> None:
    sql = f"SELECT * FROM {tables['parquet']} LIMIT 10"
    size = pruner.explain(sql).scans[0].bytes_kept
    assert size is not None
    for limit, wanted in ((size, True), (size - 1, False), (0, False)):
        spark.sql(f"SET spark.secateur.limit.driver.bytes={limit}").collect()
        rows, started = jobs(spark, spark.sql(sql).collect)
        assert len(rows) == 10
        assert by_driver(pruner) is wanted
        assert (started == 0) is wanted
    spark.sql("SET spark.secateur.limit.driver.bytes=1000000").collect()
    with pytest.raises(Exception, match="a number of bytes, 0 or more"):
        spark.sql("SET spark.secateur.limit.driver.bytes=-1").collect()
    spark.range(0, 300_000, 1, 1).selectExpr("1 AS one").write.parquet(str(lake / "many"))
    secateur.collect(spark, str(lake / "many"))
    many = spark.read.parquet(str(lake / "many")).limit(5)
    assert len(many.collect()) == 5
    assert by_driver(pruner)
    assert rows_read(many) <= 5000  # it stops after the first batch


def test_the_summary_tells(spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str]) -> None:
    sql = f"SELECT * FROM {tables['delta']} WHERE id >= 200 LIMIT 10"
    planned = pruner.explain(sql).scans[0].runtime[-1]
    assert planned.name == "driver"
    assert "read by the driver itself, without a Spark job" in planned.plan
    assert planned.ms is None
    frame = spark.sql(sql)
    frame.collect()
    assert "DriverLimit 10" in frame._jdf.queryExecution().executedPlan().toString()
    assert pruner.last is not None
    assert "without a Spark job, in" in str(pruner.last)
    assert pruner.last.scans[0].runtime[-1].ms
    assert pruner.last.scans[0].files_kept == 1


def test_a_file_that_is_gone_is_the_same_error(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    write(spark, lake / "t", "parquet", 2)
    frame = spark.read.parquet(str(lake / "t")).limit(5)
    frame._jdf.queryExecution().executedPlan()
    for file in (lake / "t").rglob("*.parquet"):
        file.unlink()
    for context in (nullcontext(), pruner.paused()):
        with context, pytest.raises(Py4JJavaError, match=r"FAILED_READ_FILE\.FILE_NOT_EXIST"):
            frame.collect()
    assert pruner.last is not None
    assert "runtime-failed" in {r.code for r in pruner.last.scans[0].reasons}


def test_whatever_fails_in_the_driver_a_job_reads(
    spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str]
) -> None:
    """A node that it does not know, as another extension of Spark might put there."""
    frame = spark.sql(f"SELECT id FROM {tables['parquet']} LIMIT 5")
    plan = frame._jdf.queryExecution().executedPlan()
    other = spark.range(100).sort("id").select("id")._jdf.queryExecution().executedPlan()
    seq = spark._jvm.PythonUtils.toSeq([other])  # type: ignore[union-attr]
    assert len(plan.withNewChildren(seq).executeCollect()) == 5
    assert pruner.last is not None
    reasons = {r.code: r.text for r in pruner.last.scans[0].reasons}
    assert "cannot be evaluated in the driver" in reasons["runtime-failed"]
    assert not by_driver(pruner)


def test_detached_and_paused(spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str]) -> None:
    frame = spark.sql(f"SELECT id FROM {tables['delta']} LIMIT 5")
    frame._jdf.queryExecution().executedPlan()
    with pruner.paused():
        rows, started = jobs(spark, frame.collect)
    assert (len(rows), started) == (5, 1)
    pruner.detach()
    assert len(frame.collect()) == 5
    assert "DriverLimit" not in spark.sql(f"SELECT id FROM {tables['delta']} LIMIT 5")._jdf.queryExecution().toString()


def test_functions_that_hold_buffers_in_many_threads(
    spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str]
) -> None:
    """The same data frame, collected at the same time: each task has copies of its own, and so has each of these."""
    changed = "regexp_replace(repeat(s, 20), concat('[', id % 10, ']'), concat('<', id, '>'))"
    frame = spark.sql(f"SELECT id, {changed} AS c FROM {tables['delta']} WHERE part = 1")
    with pruner.paused():
        whole = {row.id: row for row in frame.collect()}
    few = frame.limit(50)
    few.collect()
    assert by_driver(pruner)
    with ThreadPoolExecutor(6) as pool:
        for rows in pool.map(lambda _: few.collect(), range(60)):
            assert len(rows) == 50
            assert all(row == whole[row.id] for row in rows)


def test_many_at_once_and_no_file_stays_open(
    spark: SparkSession, pruner: secateur.Pruner, tables: dict[str, str], lake: Path
) -> None:
    vectors = f"delta.`{lake / 'deleted'}`"
    spark.sql(f"CREATE TABLE {vectors} (id BIGINT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.range(0, 4000, 1, 1).write.format("delta").mode("append").save(str(lake / "deleted"))
    spark.sql(f"DELETE FROM {vectors} WHERE id % 2 = 0").collect()

    def few(table: str) -> int:
        return len({row.id for row in spark.sql(f"SELECT * FROM {table} LIMIT 7").collect()})

    asked = [*tables.values(), vectors] * 6
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(few, asked)) == [7] * len(asked)
    rows, started = jobs(spark, spark.sql(f"SELECT id FROM {vectors} LIMIT 7").collect)
    assert started == 0
    assert all(row.id % 2 for row in rows)
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    handles = Path(f"/proc/{pid}/fd")
    if handles.exists():
        opened = [os.readlink(h) for h in handles.iterdir() if h.is_symlink()]
        assert not [path for path in opened if path.endswith(".parquet")]
