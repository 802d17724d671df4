"""Dates and timestamps against Spark: files by month, whose lines anyone can extend, and what only settings show."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from tests.fixtures import Same
from tests.fuzz.harness import Bench
from tests.fuzz.regressions import settings
from tests.fuzz.tables import SECOND, micros


def months_of_two_years() -> Sequence[pa.Table]:
    """A file for each month of 2023 and 2024: days from the first to the last, times two days inside of it."""
    files = []
    for month in range(24):
        first = dt.datetime(2023 + month // 12, month % 12 + 1, 1)
        last = (first + dt.timedelta(days=32)).replace(day=1) - dt.timedelta(days=1)
        inside = [first + dt.timedelta(days=2), first + dt.timedelta(days=14, hours=1), last - dt.timedelta(days=2)]
        files.append(
            pa.table(
                {
                    "d": pa.array([first.date(), (first + dt.timedelta(days=14)).date(), last.date()], pa.date32()),
                    "ts": pa.array(inside, pa.timestamp("us", "UTC")),
                    "n": pa.array(inside, pa.timestamp("us")),
                    "l": pa.array([micros(t.isoformat()) // SECOND for t in inside], pa.int64()),
                }
            )
        )
    return files


SHARP = """
year(ts) = 2024
year(n) = 2024
year(d) IN (2022, 2024)
year(d) > 2023 AND month(d) < 3
quarter(ts) = 2
month(d) = 3
month(ts) BETWEEN 5 AND 7
extract(YEAROFWEEK FROM ts) < 2024
date_trunc('month', ts) = timestamp'2024-03-01'
date_trunc('year', ts) = timestamp'2024-01-01'
date_trunc('quarter', n) = timestamp'2023-04-01'
trunc(d, 'MM') = date'2024-02-01'
trunc(ts, 'year') <> date'2024-01-01'
last_day(d) = date'2024-02-29'
next_day(d, 'MON') > date'2024-12-24'
to_date(ts) BETWEEN date'2024-03-01' AND date'2024-04-15'
cast(ts AS date) < date'2023-04-01'
cast(d AS timestamp) >= timestamp'2024-11-01'
cast(ts AS timestamp_ntz) < timestamp_ntz'2023-02-01'
cast(n AS timestamp) < timestamp'2023-02-01'
date_add(d, 7) > date'2024-12-30'
date_sub(d, 7) < date'2023-02-10'
d + interval '1' month = date'2024-03-29'
add_months(d, 12) <= date'2024-02-01'
datediff(date'2024-12-31', d) < 31
d - date'2023-01-01' > interval '700' day
ts + interval '3' hour < timestamp'2023-03-01'
ts - interval '1' month >= timestamp'2024-11-01'
timestampadd(DAY, 3, ts) < timestamp'2023-03-01'
timestampdiff(DAY, ts, timestamp'2024-12-31') < 29
ts - timestamp'2023-01-01' < interval '33' day
unix_timestamp(ts) < 1680000000
unix_seconds(ts) >= 1733000000
cast(ts AS bigint) < 1680000000
cast(ts AS double) < 1680000000.5D
timestamp_seconds(l) < timestamp'2023-03-01'
date_format(ts, 'yyyy-MM') = '2024-03'
date_format(d, 'yyyyMMdd') >= '20241115'
from_unixtime(l, 'yyyy') = '2023'
cast(d AS string) LIKE '2024-03%'
substring(cast(ts AS string), 1, 7) = '2023-12'
year(ts) <=> 2024
NOT (year(ts) = 2024)
year(ts) = 2024 OR year(ts) = 2023 AND month(ts) = 1
"""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_files_by_month_are_told_apart(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, zone: str) -> None:
    """For each line the evaluator keeps exactly the files that hold a match, as if it had read them."""
    bench = Bench(spark, pruner, tmp_path / "months", months_of_two_years())
    lines = SHARP.strip().splitlines()
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        judged = list(bench.judge(lines))
    assert [j.sql for j in judged] == lines
    blunt = [j.sql for j in judged if (j.may != j.some_true).any() or not 0 < j.may.sum() < 24]
    assert blunt == []
    assert not any(j.wrong_must for j in judged)


def test_a_query_keeps_the_time_zone_that_it_was_analysed_in(spark: SparkSession, same: Same, tmp_path: Path) -> None:
    folder = tmp_path / "hours"
    folder.mkdir()
    for hour in range(24):
        times = pa.array([dt.datetime(2024, 1, 15, hour, minute) for minute in (1, 59)], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": times}), folder / f"{hour}.parquet")
    secateur.collect(spark, str(folder))

    def query() -> DataFrame:
        with settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
            return spark.read.parquet(str(folder)).where("hour(ts) = 3")

    done = same(query)  # collects in UTC
    assert len(done.rows) == 2
    assert done.files == 1


def test_nothing_is_said_of_legacy_formats(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path) -> None:
    bench = Bench(spark, pruner, tmp_path / "legacy", months_of_two_years())
    with settings(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
        (judged,) = bench.judge(["date_format(ts, 'yyyy-MM') = '2024-03'"])
    assert judged.may.all()
