"""A small table in one file tells which rows its conditions leave, before the query runs: on and off, what is read."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.passes.joins import join_keys
from tests.fixtures import Same

FILES = 20
NAN = float("nan")


@pytest.fixture(scope="module")
def star(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """sales in twenty files by day, ten days in each; days, shops and regions in a file each."""
    lake = tmp_path_factory.mktemp("star")
    for name in ("sales", "days", "shops", "regions"):
        (lake / name).mkdir()
    for i in range(FILES):
        rows = {"day": [i * 10 + d for d in range(10)] * 2, "shop": [i * 5 + s % 5 for s in range(20)]}
        pq.write_table(pa.table(rows), lake / "sales" / f"{i:02}.parquet")
    key = list(range(FILES * 10))
    write_days(lake, key)
    shops = {"shop_id": list(range(FILES * 5)), "region": [s % 4 if s % 9 else None for s in range(FILES * 5)]}
    pq.write_table(pa.table(shops), lake / "shops" / "0.parquet")
    pq.write_table(
        pa.table({"region_id": [0, 1, 2, 3], "name": ["east", "west", None, "south"]}), lake / "regions" / "0.parquet"
    )
    for name in ("sales", "days", "shops", "regions"):
        secateur.collect(spark, str(lake / name), ranges=None if name == "sales" else 20)
        spark.read.parquet(str(lake / name)).createOrReplaceTempView(name)
    return lake


def write_days(lake: Path, key: list[int]) -> None:
    days = {
        "day_id": pa.array(key, pa.int64()),
        "weekday": pa.array([k % 7 for k in key], pa.int32()),
        "season": [("spring", "summer", "autumn", None)[k % 4] for k in key],
        "heat": [NAN if k == 33 else k / 2 for k in key],
        "feast": [f"feast {k}" if k in (41, 77, 78) else None for k in key],
    }
    pq.write_table(pa.table(days), lake / "days" / "0.parquet")


@pytest.fixture(autouse=True)
def before_the_query_runs(spark: SparkSession, pruner: secateur.Pruner) -> None:
    spark.conf.set("spark.secateur.passes", "filter,range_sets,join_ranges")


BY_DAY = "SELECT * FROM sales JOIN days ON day = day_id WHERE "
QUERIES = {
    BY_DAY + "feast IS NOT NULL": 2,
    BY_DAY + "feast LIKE 'feast 7%'": 1,
    BY_DAY + "feast = 'feast 41' OR weekday = 9": 1,
    BY_DAY + "weekday = 3 AND season = 'spring' AND heat <= 12": 1,  # day 24 alone
    BY_DAY + "heat = double('NaN')": 1,
    BY_DAY + "heat > 99": 2,  # days 33, which is NaN, and 199
    BY_DAY + "weekday = 8": 0,
    "SELECT * FROM sales LEFT JOIN days ON day = day_id AND feast IS NOT NULL": FILES,
    "SELECT * FROM days LEFT JOIN sales ON day = day_id WHERE feast IS NOT NULL": 2,
    "SELECT * FROM sales WHERE day IN (SELECT day_id FROM days WHERE feast IS NOT NULL)": 2,
    "SELECT * FROM sales WHERE day NOT IN (SELECT day_id FROM days WHERE feast IS NOT NULL)": FILES,
    "SELECT * FROM sales WHERE NOT EXISTS (SELECT * FROM days WHERE day_id = day AND feast IS NOT NULL)": FILES,
    "SELECT * FROM sales JOIN days ON day = day_id + 100 WHERE feast = 'feast 41'": 1,
    """SELECT * FROM sales JOIN shops ON shop = shop_id JOIN regions ON region = region_id
        WHERE name = 'east' AND shop_id < 9""": 2,  # shops 4 and 8
    # shop 18 is the only one of its file with region 2, and its region is not known
    "SELECT * FROM sales JOIN shops ON shop = shop_id JOIN regions ON region <=> region_id WHERE name IS NULL": 19,
    # shops 81, 90 and 99
    "SELECT count(*) FROM sales JOIN shops ON shop = shop_id WHERE region IS NULL AND shop_id > 80": 3,
}


@pytest.mark.usefixtures("star")
@pytest.mark.parametrize("sql", QUERIES)
def test_a_small_table_tells_the_keys_of_its_rows(spark: SparkSession, same: Same, sql: str) -> None:
    compared = same(lambda: spark.sql(sql))
    read = {scan.table.rsplit("/", 1)[-1]: scan.files_kept for scan in compared.summary.scans}
    assert read["sales"] == QUERIES[sql], compared.summary


@pytest.mark.usefixtures("star")
def test_a_small_table_is_not_read_if_no_row_of_it_matches(spark: SparkSession, same: Same) -> None:
    """Each condition is met by some row, but no row meets both: of shops 0 to 3 the first has no region."""
    for sql, files in {
        "SELECT * FROM shops WHERE region = 0 AND shop_id < 4": 0,
        "SELECT * FROM shops WHERE region = 1 AND shop_id < 4": 1,
        "SELECT * FROM days WHERE weekday = 3 AND season = 'spring' AND heat < 12": 0,  # day 24 has 12
        "SELECT * FROM days WHERE weekday = 3 AND season = 'spring' AND heat <= 12": 1,
    }.items():
        assert same(partial(spark.sql, sql)).summary.files_kept == files, sql


@pytest.mark.usefixtures("star")
def test_nobody_asks_for_keys_that_were_told(spark: SparkSession, same: Same, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is not sure which rows match."""
    monkeypatch.setattr(join_keys, "JOB_SECONDS", 0.0)
    monkeypatch.setattr(join_keys, "WORTH", 0.0)
    spark.conf.unset("spark.secateur.passes")
    told = same(lambda: spark.sql(BY_DAY + "feast LIKE 'feast 7%'")).summary
    asked = same(lambda: spark.sql(BY_DAY + "soundex(season) = 'S165' AND weekday < 2")).summary
    assert [scan.runtime for scan in told.scans] == [(), ()]
    assert any(scan.runtime for scan in asked.scans), str(asked)


@pytest.mark.usefixtures("star")
def test_the_summary_tells_what_was_sent(pruner: secateur.Pruner) -> None:
    text = str(pruner.explain(BY_DAY + "feast IS NOT NULL"))
    assert "day in 2 ranges, 20 → 2 files" in text


def test_a_file_that_changed_is_not_believed(spark: SparkSession, same: Same, star: Path) -> None:
    """Rule S8: other rows, the same name, be it that the view knows of it or not."""
    sql = BY_DAY + "weekday = 3 AND season = 'spring' AND heat <= 12"
    file, folder = star / "days" / "0.parquet", str(star / "days")
    assert same(lambda: spark.sql(sql)).summary.files_kept == 1 + 1
    try:
        write_days(star, list(range(FILES * 10 + 1)))
        os.utime(file, ns=(1, file.stat().st_mtime_ns + 5_000_000_000))
        summary = same(lambda: spark.sql(sql)).summary
        assert summary.files_kept == FILES + 1
        assert "files-changed" in {reason.code for scan in summary.scans for reason in scan.reasons}
        spark.read.parquet(folder).createOrReplaceTempView("days")
        assert same(lambda: spark.sql(sql)).summary.files_kept == FILES + 1
    finally:
        write_days(star, list(range(FILES * 10)))
        spark.read.parquet(folder).createOrReplaceTempView("days")
    secateur.collect(spark, folder, ranges=20)
    assert same(lambda: spark.sql(sql)).summary.files_kept == 1 + 1
