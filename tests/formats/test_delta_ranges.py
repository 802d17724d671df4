"""Range-sets of Delta tables: gaps that the log's bounds do not show, whatever happens to the table's columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fixtures import Same
from tests.formats.delta import Alone, append, create, read

GAP = "x < 10 OR x >= 90"


def write(spark: SparkSession, path: Path, condition: str = "true", p: str = "'b'", x: str = "x") -> None:
    """One file with x from 0 to 99 as far as a condition leaves it."""
    values = (f"CAST({x} AS INT) AS x", "CAST(x AS DOUBLE) AS f", "concat('n', lpad(x, 3, '0')) AS s", f"{p} AS p")
    append(spark.range(0, 100, 1, 1).toDF("x").where(condition).selectExpr(*values), path)


def test_columns_come_go_and_widen(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, alone: Alone, lake: Path
) -> None:
    path = lake / "t"
    properties = {"enableTypeWidening": "true", "enableDeletionVectors": "true"}
    create(spark, path, "x INT, f DOUBLE, s STRING, p STRING", "PARTITIONED BY (p)", **properties)
    write(spark, path, GAP, p="'a %/é'")
    write(spark, path)
    write(spark, path, "x IN (0, 50, 99)", x="IF(x = 50, NULL, x)", p="CAST(NULL AS STRING)")

    def files(condition: str) -> int:
        return same(lambda: read(spark, path, condition)).files

    report = secateur.collect(spark, str(path), ranges=20)
    assert (report.files_total, report.files_read, report.files_ranged, report.problem) == (3, 0, 3, "")
    assert "_secateur" in report.store_text
    again = secateur.collect(spark, str(path), ranges=10, columns=["X"])
    assert (again.files_ranged, again.problem) == (0, "")
    assert alone(lambda: read(spark, path, "x = 43"), path).files == 1
    for condition, many in {
        "x = 43 OR x IS NULL": 2,
        "x + 1 IN (44, 45) AND p = 'a %/é'": 0,
    }.items():
        assert files(condition) == many, condition
    spark.sql(f"DELETE FROM delta.`{path}` WHERE x IN (43, 44)").collect()
    assert files("x = 43") == 1  # the file still has the value, the table has not
    for change in (
        "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "RENAME COLUMN x TO y",
        "ADD COLUMN x INT",
        "ALTER COLUMN y TYPE BIGINT",
    ):
        spark.sql(f"ALTER TABLE delta.`{path}` {change}").collect()
    assert files("x IS NULL") == 3  # what used to be x has no NULL in the first two files
    assert files("y = 45") == 1
    append(
        spark.sql("SELECT 45 AS x, y, 1D AS f, 's' AS s, 'b' AS p FROM VALUES (0L), (99L) AS t (y)").coalesce(1), path
    )
    assert files("y = 45") == 2  # nobody has looked into the new file
    assert files("x = 44 OR y = 3000000000") == 3
    assert secateur.collect(spark, str(path), ranges=20, columns=["y"]).files_ranged == 1
    assert files("y = 45") == 1
    old = same(lambda: read(spark, path, "x = 43", versionAsOf=3))
    assert (len(old.rows), old.files) == (1, 1)


@pytest.mark.long
def test_columns_by_id_and_files_of_another_table(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path
) -> None:
    path, clone = lake / "ids", lake / "clone"
    create(spark, path, "x INT, f DOUBLE, s STRING, p STRING", **{"columnMapping.mode": "id"})
    write(spark, path, GAP)
    write(spark, path)
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{path}`").collect()
    for folder in (path, clone):
        assert secateur.collect(spark, str(folder), ranges=20, columns=["x"]).files_ranged == 2
        assert same(lambda folder=folder: read(spark, folder, "x = 43")).files == 1  # type: ignore[misc]
    for change in ("RENAME COLUMN x TO y", "ADD COLUMN x INT"):
        spark.sql(f"ALTER TABLE delta.`{path}` {change}").collect()
    assert same(lambda: read(spark, path, "y = 43")).files == 1
    assert same(lambda: read(spark, path, "x IS NULL")).files == 2


@pytest.mark.long
def test_vacuum_leaves_them_alone(spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path) -> None:
    path = lake / "t"
    write(spark, path, GAP)
    secateur.collect(spark, str(path), ranges=20)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS").collect()
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert list((path / "_secateur" / "v1").iterdir())
    assert same(lambda: read(spark, path, "x = 43")).files == 0
