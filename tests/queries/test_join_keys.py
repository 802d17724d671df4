"""Join pruning at run time: the keys of one side choose the files of the other, and the answer stays the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.spark_metrics import rows_read

import secateur
from secateur.passes.joins import join_keys
from secateur.passes.limits.runtime_row_filter import row_filter as compared_rows
from secateur.report.summary import ScanSummary, Summary
from tests.fixtures import Same

FORMATS = ["parquet", "delta", "iceberg"]
FACT = 40


@pytest.fixture(autouse=True)
def always_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tables are too small for a subquery to pay."""
    monkeypatch.setattr(join_keys, "JOB_SECONDS", 0.0)
    monkeypatch.setattr(join_keys, "WORTH", 0.1)


@pytest.fixture(scope="module", params=FORMATS)
def star(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A fact of 40 files with 50 keys each, and a dimension of one file whose filter says nothing to zone maps."""
    home = tmp_path_factory.mktemp(f"star_{request.param}")
    frames = {
        "fact": spark.range(0, 2000, 1, FACT).selectExpr(
            "id AS f_key", "cast(id AS int) AS f_int", "date_add(DATE'2000-01-01', cast(id AS int)) AS f_day",
            "timestamp_micros(id * 1000000) AS f_ts", "lpad(id, 6, '0') AS f_text",
            "cast(id AS decimal(12,2)) AS f_dec",
            "if(id % 97 = 0, NULL, id) AS f_null", "cast(id AS double) AS f_double",
        ),
        "dim": spark.range(0, 2000, 1, 1).selectExpr(
            "id AS key", "cast(id AS int) AS k_int", "date_add(DATE'2000-01-01', cast(id AS int)) AS k_day",
            "timestamp_micros(id * 1000000) AS k_ts", "lpad(id, 6, '0') AS k_text",
            "cast(id AS decimal(12,2)) AS k_dec", "if(id % 3 = 0, NULL, id) AS k_null",
            "cast(id AS double) AS k_double", "reverse(cast(id AS string)) AS name",
        ),
    }  # fmt: skip
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")  # the usual ones have no statistics
    for name, frame in frames.items():
        if request.param == "iceberg":
            spark.sql(f"DROP TABLE IF EXISTS ice.tests.keys_{name}")
            frame.writeTo(f"ice.tests.keys_{name}").tableProperty("write.distribution-mode", "none").create()
            spark.table(f"ice.tests.keys_{name}").createOrReplaceTempView(name)
        else:
            frame.write.format(request.param).save(f"{home}/{name}")
            spark.read.format(request.param).load(f"{home}/{name}").createOrReplaceTempView(name)
        secateur.collect(spark, spark.table(name))
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    yield request.param
    for name in frames:
        spark.catalog.dropTempView(name)


def fact_of(summary: Summary) -> ScanSummary:
    (found,) = (scan for scan in summary.scans if scan.files_total == FACT)
    return found


def test_keys_choose_files(spark: SparkSession, same: Same, star: str) -> None:
    conditions = ["f_key = key", "f_text = k_text", "f_int + 1 = k_int"]
    if star == "parquet":
        conditions += ["f_int = k_int", "f_key = k_int", "f_int = key", "f_day = k_day", "f_ts = k_ts", "f_dec = k_dec",
                       "f_null = k_null"]  # fmt: skip
    for on in conditions:
        query = f"SELECT f_key, name FROM fact JOIN dim ON {on} WHERE name LIKE '%71%' AND name LIKE '9%'"
        row_filter = same(lambda query=query: spark.sql(query))  # type: ignore[misc]
        assert row_filter.rows, on
        (step,) = fact_of(row_filter.summary).runtime
        assert step.name == "join_keys"
        assert step.files_before == FACT
        assert step.files_after is not None
        assert 0 < step.files_after < FACT / 2, on
        assert row_filter.files <= step.files_after + 2, on  # and the dimension, twice


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_map_of_bits_tells_many_keys(
    spark: SparkSession, same: Same, star: str, adaptive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_keys, "FEW", 1)
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        for on in ("f_key = key", "f_day = k_day", "f_ts = k_ts"):
            query = f"SELECT f_key, name FROM fact JOIN dim ON {on} WHERE name LIKE '%71%' AND name LIKE '9%'"
            row_filter = same(lambda query=query: spark.sql(query))  # type: ignore[misc]
            assert row_filter.rows
            assert row_filter.files < FACT / 2
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", str(before))


def test_the_least_and_greatest_key_skip_row_groups(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, files in (("many", 20), ("few", 1)):
        (lake / name).mkdir()
        for i in range(files):
            k = np.arange(2000 // files) + i * 100
            pq.write_table(pa.table({"k": k, "h": k.astype("i4")}), lake / name / f"{i}.parquet", row_group_size=10)
        secateur.collect(spark, str(lake / name))
        spark.read.parquet(str(lake / name)).createOrReplaceTempView(name)
    few = "few.k % 1000 = 717 AND few.k % 100 = 17 AND few.k % 10 = 7"  # many conditions: few keys are expected
    for on in ("many.k = few.k", "many.h = few.h", "many.k = few.h"):
        read = []
        for way in (compared_rows, lambda *_: None):
            with monkeypatch.context() as patched:
                patched.setattr(join_keys, "row_filter", way)
                frame = spark.sql(f"SELECT many.k FROM many JOIN few ON {on} WHERE {few}")
                assert sorted(row.k for row in frame.collect()) == [717, 1717]
                read.append(rows_read(frame))
        assert read[1] - read[0] >= 80, on  # eight row groups lie behind the greatest key


def test_no_key_reads_no_file(spark: SparkSession, same: Same, star: str) -> None:
    query = "SELECT f_key, name FROM fact JOIN dim ON f_key = key WHERE name LIKE '%x%' AND name LIKE '9%'"
    row_filter = same(lambda: spark.sql(query))
    assert row_filter.rows == []
    (step,) = fact_of(row_filter.summary).runtime
    assert not step.files_after  # None: Spark saw that the other side is empty, and did not even ask
    assert row_filter.files <= 2  # the dimension, twice


@pytest.mark.parametrize("join", ["LEFT SEMI", "LEFT ANTI", "LEFT", "RIGHT", "FULL"])
def test_other_joins_give_the_same(spark: SparkSession, same: Same, star: str, join: str) -> None:
    columns = "f_key" if "SEMI" in join or "ANTI" in join else "f_key, name"
    small = "(SELECT * FROM dim WHERE name LIKE '%71%' AND name LIKE '9%')"
    told = fact_of(same(lambda: spark.sql(f"SELECT {columns} FROM fact {join} JOIN {small} ON f_key = key")).summary)
    if join in ("LEFT ANTI", "LEFT", "FULL"):
        assert not told.runtime


def test_what_may_differ_when_it_runs_again_tells_nothing(spark: SparkSession, same: Same, star: str) -> None:
    side = "(SELECT key, name FROM dim WHERE name LIKE '%7%' LIMIT 5000)"
    assert not fact_of(same(lambda: spark.sql(f"SELECT f_key FROM fact JOIN {side} ON f_key = key")).summary).runtime


def test_two_columns_by_one_side_are_two_questions(spark: SparkSession, same: Same, star: str) -> None:
    """The same files and the same subquery, but compared with different columns."""
    small = "(SELECT key FROM dim WHERE name LIKE '%71%' AND name LIKE '9%')"
    query = f"""SELECT a.f_key FROM fact a JOIN {small} ON a.f_key = key
        UNION ALL SELECT b.f_key FROM fact b JOIN {small} ON b.f_null + 500 = key"""
    row_filter = same(lambda: spark.sql(query))
    assert row_filter.rows


def test_a_chain_of_joins(spark: SparkSession, same: Same, star: str) -> None:
    query = """SELECT a.f_key, b.f_key, name FROM fact a JOIN fact b ON a.f_key = b.f_int + 700
        JOIN dim ON b.f_key = key
        WHERE name LIKE '%71%' AND name LIKE '9%'"""
    row_filter = same(lambda: spark.sql(query))
    assert sorted((a, b) for a, b, _ in row_filter.rows) == [(879, 179), (1879, 1179)]
    assert row_filter.files < row_filter.plain_files


def test_keys_of_one_table_feed_the_next(spark: SparkSession, same: Same, star: str, lake: Path) -> None:
    """A snowflake: regions choose files of shops, and the keys in these choose files of the fact."""
    (lake / "shops").mkdir()
    for i in range(10):
        ids = range(i * 200, i * 200 + 200)
        pq.write_table(pa.table({"shop": ids, "region": [n // 40 for n in ids]}), lake / "shops" / f"{i}.parquet")
    regions = pa.table({"id": range(50), "called": [f"{n * 7919 % 50}" for n in range(50)]})
    (lake / "regions").mkdir()
    pq.write_table(regions, lake / "regions" / "0.parquet")
    for name in ("shops", "regions"):
        secateur.collect(spark, str(lake / name))
        spark.read.parquet(str(lake / name)).createOrReplaceTempView(name)
    query = """SELECT f_key, called FROM fact JOIN shops ON f_key = shop JOIN regions ON region = regions.id
        WHERE called LIKE '%3' AND called LIKE '4%'"""
    row_filter = same(lambda: spark.sql(query))
    assert len(row_filter.rows) == 40
    steps = {scan.files_total: scan.runtime for scan in row_filter.summary.scans}
    assert [(step.files_before, step.files_after) for step in steps[10]] == [(10, 1)]
    assert [(step.files_before, step.files_after) for step in steps[FACT]] == [(FACT, 2)]
    assert row_filter.files == 2 + 2 * 1 + 2 * 1  # the others are read for their keys, too


def test_it_does_not_pay_for_small_tables(
    spark: SparkSession, same: Same, star: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(join_keys, "JOB_SECONDS", 0.15)
    monkeypatch.setattr(join_keys, "WORTH", 3)
    query = "SELECT f_key, name FROM fact JOIN dim ON f_key = key WHERE name LIKE '%71%' AND name LIKE '9%'"
    assert not fact_of(same(lambda: spark.sql(query)).summary).runtime


def test_when_nobody_answers_all_files_are_read(
    spark: SparkSession, same: Same, pruner: secateur.Pruner, star: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(join_keys.JoinKeys, "condition", broken)
    query = "SELECT f_key, name FROM fact JOIN dim ON f_key = key WHERE name LIKE '%71%' AND name LIKE '9%'"
    row_filter = same(lambda: spark.sql(query))
    assert "broken on purpose" in str(row_filter.summary)
    assert fact_of(row_filter.summary).files_kept == FACT


@pytest.mark.parametrize("few", [0, 1_000])
def test_a_file_without_statistics_is_read(
    spark: SparkSession, same: Same, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """The only partner lies in it, and beside all that is known of the other files."""
    monkeypatch.setattr(join_keys, "FEW", few)
    (tmp_path / "fact").mkdir()
    for at in range(6):
        ids = pa.table({"f_key": list(range(10 * at, 10 * at + 10))})
        pq.write_table(ids, tmp_path / "fact" / f"{at}.parquet")
    pq.write_table(pa.table({"f_key": [5_000]}), tmp_path / "fact" / "6.parquet", write_statistics=False)
    keys_of_dim = [key for key in (*range(1_000), 5_000) if key >= 60 or key % 7 != 2]
    dim = [{"key": key, "name": f"n{key % 7}"} for key in keys_of_dim]
    (tmp_path / "dim").mkdir()
    pq.write_table(pa.Table.from_pylist(dim), tmp_path / "dim" / "0.parquet")
    for name in ("fact", "dim"):
        secateur.collect(spark, f"{tmp_path}/{name}")
        spark.read.parquet(f"{tmp_path}/{name}").createOrReplaceTempView(name)
    query = "SELECT f_key FROM fact JOIN dim ON f_key = key WHERE name LIKE '%2' AND length(name) = 2"
    row_filter = same(lambda: spark.sql(query))
    assert [row.f_key for row in row_filter.rows] == [5_000]
    (scan,) = (s for s in row_filter.summary.scans if s.files_total == 7)
    (step,) = scan.runtime
    assert (step.files_before, step.files_after) == (7, 1)
