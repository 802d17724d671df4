"""Files of which the log has no statistics: their footers are collected, as those of plain Parquet tables are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fixtures import Same
from tests.formats.delta import Alone, append, create, read


@contextmanager
def without_statistics(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        yield
    finally:
        spark.conf.unset("spark.databricks.delta.stats.collect")


def test_by_path_by_name_and_in_the_background(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, alone: Alone, lake: Path
) -> None:
    path = lake / "t"
    append(spark.range(0, 200, 1, 1), path)
    report = secateur.collect(spark, str(path))
    assert (report.files_total, report.files_read, report.problem) == (2, 0, "")
    assert "own metadata" in str(report)
    with without_statistics(spark):
        append(spark.range(200, 400, 1, 1), path)
    found = same(lambda: read(spark, path, "id = 50"))
    assert found.files == 3
    assert "2 of 4 files" in found.summary.scans[0].reasons[0].text
    assert "secateur.collect" in found.summary.scans[0].reasons[0].text
    spark.sql(f"CREATE TABLE delta_bare USING delta LOCATION '{path}'").collect()
    try:
        report = secateur.collect(spark, "delta_bare")
        assert (report.files_total, report.files_read, report.problem) == (4, 2, "")
        assert alone(lambda: spark.table("delta_bare").where("id + 0 IN (50, 250)"), path).files == 2
    finally:
        spark.sql("DROP TABLE delta_bare")
    report = secateur.collect(spark, f"{path}/")
    assert (report.files_total, report.files_read, report.problem) == (4, 0, "")
    with without_statistics(spark):
        append(spark.range(400, 500, 1, 1), path)
    spark.conf.set("spark.secateur.stats.auto", "true")
    read(spark, path, "id = 50").collect()
    pruner.wait_for_statistics()
    assert same(lambda: read(spark, path, "id = 50")).files == 1


def test_names_deletes_and_later_versions(
    spark: SparkSession, pruner: secateur.Pruner, alone: Alone, lake: Path
) -> None:
    """Columns have other names in the files, partitions odd values; rows go, a column is renamed, one is widened."""
    path = lake / "bare"
    create(
        spark, path, "id BIGINT, w INT, f FLOAT, `a b` STRING, st STRUCT<x: BIGINT>, p STRING", "PARTITIONED BY (p)",
        **{"columnMapping.mode": "name", "enableTypeWidening": "true", "enableDeletionVectors": "true"},
    )  # fmt: skip
    values = ("id", "CAST(id AS INT) AS w", "CAST(id AS FLOAT) AS f", "concat('n', lpad(id, 4, '0')) AS `a b`")
    with without_statistics(spark):
        frame = spark.range(0, 400, 1, 1).selectExpr(*values, "named_struct('x', id) AS st", "'x %/é' AS p")
        append(frame, path)
    assert secateur.collect(spark, str(path)).files_read == 4
    for condition, files in {
        "`a b` = 'n0150' OR st.x + 0 = 250": 2,
        "f > 310": 1,  # Spark's files say that there is no NaN
        "p = 'x %/é' AND id >= 200 AND f * 2 < 500": 1,
    }.items():
        assert alone(lambda condition=condition: read(spark, path, condition), path).files == files, condition  # type: ignore[misc]
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 150").collect()
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN w TYPE BIGINT").collect()
    with without_statistics(spark):
        append(spark.range(400, 410, 1, 1).selectExpr("id", "id + 3000000000 AS w", "'y' AS p"), path)
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN `a b` TO c").collect()
    assert secateur.collect(spark, str(path)).files_read == 1
    found = alone(lambda: read(spark, path, "id IN (150, 151) OR w > 2147483647"), path)
    assert (len(found.rows), found.files) == (11, 2)
    found = alone(lambda: read(spark, path, "c = 'n0250' OR c IS NULL"), path)
    assert (len(found.rows), found.files) == (11, 2)


def test_files_of_other_writers(spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path) -> None:
    """They leave NaN out of the bounds, and may write a column's name in other letters."""
    path = lake / "converted"
    path.mkdir()
    for at, (name, values) in enumerate({"x": [1.0, float("nan")], "X": [2.0, float("nan")], "y": [9.0]}.items()):
        pq.write_table(pa.table({"id": pa.array(range(len(values))), name: values}), path / f"{at}.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` NO STATISTICS").collect()
    with pruner.paused():
        assert len(read(spark, path).columns) == 3
    assert secateur.collect(spark, str(path)).files_read == 3
    name = next(c for c in read(spark, path).columns if c.lower() == "x")
    same(lambda: read(spark, path, f"{name} IS NULL OR isnan({name}) OR y > 8"))
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")  # or Parquet loses the NaN by the bounds of row groups
    try:
        found = same(lambda: read(spark, path, f"{name} > 5"))
    finally:
        spark.conf.unset("spark.sql.parquet.filterPushdown")
    assert (len(found.rows), found.files) == (2, 3)  # of the third file it is not known that it lacks the column


@pytest.mark.long
def test_files_by_id_and_elsewhere(spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path) -> None:
    """Columns found by id may have any name in a file, and files of another table are not this one's to collect."""
    create(spark, lake / "ids", "id BIGINT", **{"columnMapping.mode": "id"})
    with without_statistics(spark):
        append(spark.range(0, 200, 1, 1), lake / "ids")
        append(spark.range(0, 200, 1, 1), lake / "t")
    spark.sql(f"CREATE TABLE delta.`{lake / 'clone'}` SHALLOW CLONE delta.`{lake / 't'}`").collect()
    for path in (lake / "ids", lake / "clone"):
        report = secateur.collect(spark, str(path))
        assert (report.files_read, report.problem[:7]) == (0, "2 files")
        found = same(lambda path=path: read(spark, path, "id = 50"))  # type: ignore[misc]
        assert (found.files, found.summary.scans[0].reasons[0].code) == (2, "no-statistics")
