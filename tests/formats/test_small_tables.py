"""Small tables of Delta and Iceberg, known row by row: which files of a joining table matter, also after deletions."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fixtures import Same
from tests.formats.conftest import Ice
from tests.formats.delta import append, create

DAYS = (
    "SELECT CAST(id AS INT) AS day, CAST(id % 7 AS INT) AS weekday, IF(id = 33, 'feast', NULL) AS name FROM range(60)"
)


@pytest.fixture
def sales(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> str:
    """Six Parquet files of ten days each."""
    spark.conf.set("spark.secateur.passes", "manifests,filter,range_sets,join_ranges")
    path = str(lake / "sales")
    for i in range(6):
        spark.range(i * 10, i * 10 + 10, 1, 1).selectExpr("CAST(id AS INT) AS sold").write.mode("append").parquet(path)
    secateur.collect(spark, path)
    return path


def check(spark: SparkSession, same: Same, sales: str, days: str, delete: str) -> None:
    """Of Delta and Iceberg alike: what is told before rows are deleted, after it, and after all were."""

    def read(condition: str) -> int | None:
        sql = f"SELECT * FROM parquet.`{sales}` JOIN {days} ON sold = day WHERE {condition}"
        summary = same(lambda: spark.sql(sql)).summary
        return next(scan.files_kept for scan in summary.scans if "sales" in scan.table)

    assert read("name = 'feast'") == 6
    report = secateur.collect(spark, days.replace("delta.", "").strip("`"), ranges=20)
    assert report.files_ranged == 1, report
    assert read("name = 'feast'") == 1
    assert read("name IS NOT NULL OR weekday = 5 AND day < 7") == 2
    spark.sql(f"{delete} {days} WHERE day IN (33, 34)").collect()
    assert read("name = 'feast'") == 6  # which rows are left is not known any more
    spark.sql(f"{delete} {days} WHERE day < 50").collect()
    read("weekday = 4")


def test_delta(spark: SparkSession, same: Same, sales: str, lake: Path) -> None:
    path = lake / "days"
    create(spark, path, "day INT, weekday INT, name STRING", enableDeletionVectors="true")
    append(spark.sql(DAYS).coalesce(1), path)
    check(spark, same, sales, f"delta.`{path}`", "DELETE FROM")


@pytest.mark.parametrize("version", [2, 3])
def test_iceberg(spark: SparkSession, same: Same, sales: str, ice: Ice, version: int) -> None:
    days = ice.table("day INT, weekday INT, name STRING", format_version=version, write__delete__mode="merge-on-read")
    ice.insert(days, DAYS)
    check(spark, same, sales, days, "DELETE FROM")
