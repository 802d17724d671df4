"""Tables change between two queries: the answer is that of the files as they are."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fixtures import Same


def write(path: Path, low: int, rows: int = 10) -> None:
    pq.write_table(pa.table({"a": list(range(low, low + rows))}), path)


@pytest.fixture
def table(lake: Path, spark: SparkSession, pruner: secateur.Pruner) -> Path:
    folder = lake / "t"
    folder.mkdir()
    for i in range(4):
        write(folder / f"{i}.parquet", i * 100)
    secateur.collect(spark, str(folder))
    return folder


def test_a_file_appended(spark: SparkSession, same: Same, table: Path) -> None:
    assert same(lambda: spark.read.parquet(str(table)).where("a = 405")).files == 0
    write(table / "4.parquet", 400)
    found = same(lambda: spark.read.parquet(str(table)).where("a = 405"))
    assert (len(found.rows), found.files) == (1, 1)
    assert "no-statistics" in [r.code for r in found.summary.scans[0].reasons]


def test_a_file_deleted(spark: SparkSession, same: Same, table: Path) -> None:
    (table / "2.parquet").unlink()
    assert same(lambda: spark.read.parquet(str(table)).where("a >= 200")).files == 1


def test_a_file_overwritten_in_place(spark: SparkSession, same: Same, table: Path) -> None:
    before = (table / "2.parquet").stat()
    write(table / "2.parquet", 900)
    assert (table / "2.parquet").stat().st_size == before.st_size
    found = same(lambda: spark.read.parquet(str(table)).where("a = 905"))
    assert (len(found.rows), found.files) == (1, 1)


def test_a_file_overwritten_under_a_data_frame_that_listed_it_before(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, table: Path
) -> None:
    """Spark opens the new file under the old name, so the statistics of the old one must not hide it."""
    frame = spark.read.parquet(str(table))
    assert same(lambda: frame.where("a = 205")).files == 1
    time.sleep(0.02)
    write(table / "2.parquet", 900)
    found = same(lambda: frame.where("a = 905"))
    assert len(found.rows) == 1
    assert "files-changed" in [r.code for r in found.summary.scans[0].reasons]
    assert found.summary.scans[0].files_kept == found.files


def test_a_missing_file_fails_as_without_secateur(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    frame = spark.read.parquet(str(table))
    (table / "2.parquet").unlink()
    with pruner.paused(), pytest.raises(Exception, match=r"2\.parquet"):
        frame.where("a = 5").collect()
    with pytest.raises(Exception, match=r"2\.parquet"):
        frame.where("a = 5").collect()


def test_the_same_length_and_another_time_is_another_file(spark: SparkSession, same: Same, table: Path) -> None:
    later = (table / "1.parquet").stat().st_mtime + 5
    os.utime(table / "1.parquet", (later, later))
    found = same(lambda: spark.read.parquet(str(table)).where("a = 305"))
    assert found.files == 2


def test_refresh_table(spark: SparkSession, same: Same, table: Path) -> None:
    spark.sql(f"CREATE TABLE refreshed USING parquet LOCATION '{table}'")
    try:
        assert same(lambda: spark.sql("SELECT * FROM refreshed WHERE a = 405")).files == 0
        write(table / "4.parquet", 400)
        spark.sql("REFRESH TABLE refreshed")
        found = same(lambda: spark.sql("SELECT * FROM refreshed WHERE a = 405"))
        assert (len(found.rows), found.files) == (1, 1)
        spark.sql("INSERT INTO refreshed VALUES (505), (506)")
        assert len(same(lambda: spark.sql("SELECT * FROM refreshed WHERE a > 500")).rows) == 2
    finally:
        spark.sql("DROP TABLE refreshed")


def test_background_collection_on_first_sight(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path
) -> None:
    folder = lake / "fresh"
    folder.mkdir()
    for i in range(4):
        write(folder / f"{i}.parquet", i * 100)
    spark.conf.set("spark.secateur.stats.auto", "true")
    first = same(lambda: spark.read.parquet(str(folder)).where("a = 5"))
    assert first.files == 4
    assert "collecting" in [r.code for r in first.summary.scans[0].reasons]
    pruner.wait_for_statistics()
    assert same(lambda: spark.read.parquet(str(folder)).where("a = 5")).files == 1
    assert (folder / "_secateur").is_dir()
    again = secateur.collect(spark, str(folder))
    assert (again.files_total, again.files_read) == (4, 0)
