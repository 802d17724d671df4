"""Versions of a Delta table: a query reads the one that it pinned, whatever happens meanwhile."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tools.spark_metrics import files_read

import secateur
from tests.fixtures import Same
from tests.formats.delta import Alone, append, create, read, rows


def test_time_travel(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "t"
    append(rows(spark, 0, 3).select("id", "i"), path)
    time.sleep(1.1)
    after_first = time.time()
    time.sleep(0.5)
    append(rows(spark, 3, 2).select("id", "i"), path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 100").collect()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(after_first))
    for version, total in ((0, 3), (1, 5), (2, 4)):
        found = alone(lambda v=version: read(spark, path, "id IN (50, 350)", versionAsOf=v), path)  # type: ignore[misc]
        assert (found.summary.scans[0].files_total, found.files) == (total, {0: 1, 1: 2, 2: 1}[version])
    found = alone(lambda: read(spark, path, "id IN (50, 350)", timestampAsOf=stamp), path)
    assert (len(found.rows), found.files, found.summary.scans[0].files_total) == (1, 1, 3)
    assert alone(lambda: spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF 0 WHERE i = 50"), path).files == 1
    # Two versions of one table in one query.
    both = f"SELECT a.id FROM delta.`{path}` VERSION AS OF 1 a JOIN delta.`{path}` b ON a.id = b.id WHERE a.id = 350"
    assert len(alone(lambda: spark.sql(both), path).rows) == 1


@pytest.mark.long
def test_commits_one_after_the_other(spark: SparkSession, same: Same, lake: Path) -> None:
    """Each version comes from the one before; read anew from the log it is the same."""
    path = lake / "t"
    create(spark, path, "id BIGINT, i INT", "", enableDeletionVectors="true", checkpointInterval="3")
    steps = [
        lambda: append(rows(spark, 0, 4).select("id", "i"), path),
        lambda: append(rows(spark, 4, 1).select("id", "i"), path),
        lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 150").collect(),
        lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id BETWEEN 200 AND 299").collect(),
        lambda: spark.sql(f"UPDATE delta.`{path}` SET i = -5 WHERE id = 350").collect(),
        lambda: spark.sql(f"OPTIMIZE delta.`{path}`").collect(),
        lambda: spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 3").collect(),
        lambda: append(rows(spark, 5, 1).select("id", "i"), path),
    ]
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog  # type: ignore[union-attr]
    for step in steps:
        step()  # type: ignore[no-untyped-call]
        found = same(lambda: read(spark, path, "i < 0 OR id BETWEEN 140 AND 160"))
        snapshot = log.forTable(spark._jsparkSession, str(path)).unsafeVolatileSnapshot()
        assert found.summary.scans[0].files_total == snapshot.numOfFiles()
        assert found.summary.scans[0].bytes_total == snapshot.sizeInBytes()
        assert not found.summary.reasons


def test_a_table_that_changes_between_analysis_and_execution(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path
) -> None:
    path = lake / "t"
    append(rows(spark, 0, 2).select("id", "i"), path)
    frame = read(spark, path, "id IN (50, 250)")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (250, 250)").collect()
    # Delta pins the version when it plans, not when it analyzes.
    assert (len(frame.collect()), files_read(frame)) == (2, 2)
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (50, 50)").collect()
    # Planned once, a data frame goes on with its version.
    assert len(frame.collect()) == 2
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 50").collect()
    assert len(frame.collect()) == 2
    assert len(read(spark, path, "id IN (50, 250)").collect()) == 1


def test_a_schema_that_changes_between_analysis_and_execution(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path
) -> None:
    path = lake / "t"
    append(rows(spark, 0, 2).select("id", "i"), path)
    frame = read(spark, path, "id = 50")
    append(rows(spark, 2, 1).select("id", "i", "n"), path, mergeSchema="true")
    assert [row.asDict() for row in frame.collect()] == [{"id": 50, "i": 50}]


@pytest.mark.long
def test_a_writer_during_many_queries(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    """Each commit writes one k in as many rows as all others have, so that a mix of two versions shows."""
    path = lake / "t"
    create(spark, path, "k BIGINT, v BIGINT")
    stop = threading.Event()
    problems: list[BaseException] = []

    def write() -> None:
        try:
            for version in range(1, 9):
                if stop.is_set():
                    return
                frame = spark.range(4).selectExpr(f"{version}L AS k", f"id * 1000 + {version} AS v")
                frame.repartition(2).write.format("delta").mode("overwrite").save(str(path))
        except BaseException as problem:
            problems.append(problem)

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while writer.is_alive():
        query = f"""SELECT a.k AS a, b.k AS b, c.k AS c FROM delta.`{path}` a
            FULL JOIN delta.`{path}` b ON a.v = b.v AND b.k < 100
            FULL JOIN (SELECT max(k) AS k FROM delta.`{path}`) c ON true
            WHERE a.k > 0 OR a.k IS NULL"""
        for row in spark.sql(query).collect():
            if row.a is not None or row.b is not None:
                assert row.a == row.b == row.c
                seen.add(row.a)
    stop.set()
    writer.join()
    assert not problems
    assert len(seen) >= 2


@pytest.mark.long
def test_a_writer_during_a_hundred_queries(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    """Each commit replaces all rows by one more, numbered: a mix of two versions, or half of one, shows."""
    path = lake / "t"
    create(spark, path, "n BIGINT, total BIGINT")
    stop = threading.Event()
    problems: list[BaseException] = []

    def commit(rows: int) -> None:
        frame = spark.range(0, rows, 1, 2).selectExpr("id AS n", f"{rows}L AS total")
        frame.write.format("delta").mode("overwrite").save(str(path))

    def write() -> None:
        try:
            rows = 11
            while not stop.wait(1):
                commit(rows)
                rows += 1
        except BaseException as problem:
            problems.append(problem)

    commit(10)
    writer = threading.Thread(target=write)
    writer.start()
    totals = set()
    try:
        for _ in range(50):
            frame = spark.sql(
                f"SELECT count(*) AS c, max(n) AS m, max(total) AS t FROM delta.`{path}` WHERE n + 0 >= 0"
            )
            row = frame.collect()[0]
            assert row.c == row.t == row.m + 1
            totals.add(row.t)
            found = read(spark, path, f"total + 0 = {row.t} AND n * 2 = 0").collect()
            assert [r.n for r in found] in ([], [0])  # none if the writer was faster
    finally:
        stop.set()
        writer.join()
    assert not problems
    assert len(totals) > 2
    # Those of the writer are queries as well.
    assert not any(summary.reasons for summary in pruner.history)
