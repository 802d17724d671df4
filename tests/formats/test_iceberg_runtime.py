"""Values that become known while a query runs, and what Spark does with two scans of one table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tools.spark_metrics import files_read

from secateur.plan.types import parse_type
from secateur.session.runtime_answers import files_to_skip
from secateur.stats.file_stats import ColumnStats, FileStats
from tests.formats.conftest import Ice, IceTables


@pytest.fixture(scope="module")
def fact(ice_tables: IceTables) -> str:
    """Forty files in one commit, ten ids each."""
    name = ice_tables.table("id bigint, v string", write__distribution_mode="none")
    frame = ice_tables.sql("SELECT id, concat('v', id) AS v FROM range(0, 400, 1, 40)")
    frame.writeTo(name).append()
    ice_tables.sql("SELECT id, id % 7 AS kind FROM range(400)").createOrReplaceTempView("numbers")
    return name


@pytest.fixture(scope="module")
def dimension(ice_tables: IceTables) -> str:
    name = ice_tables.table("key bigint, label string")
    ice_tables.insert(name, "SELECT id AS key, concat('l', id) AS label FROM range(400)")
    return name


def test_a_broadcast_join_hands_its_keys_to_the_scan(ice: Ice, fact: str, dimension: str) -> None:
    query = f"SELECT f.v, d.label FROM {fact} f JOIN {dimension} d ON f.id = d.key WHERE d.label = 'l123'"
    with ice.pruner.paused():
        expected = ice.sql(query).collect()
    frame = ice.sql(query)
    assert frame.collect() == expected
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in text.lower()
    assert files_read(frame) == 2  # one file of each table


def test_files_of_two_formats_and_keys_that_leave_one(ice: Ice, dimension: str) -> None:
    """Rows are read one by one if not all files are Parquet, also when only such files are left at run time."""
    name = ice.table("id bigint, v string", write__distribution_mode="none")
    ice.sql("SELECT id, 'parquet' AS v FROM range(0, 380, 1, 38)").writeTo(name).append()
    ice.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='orc')")
    ice.insert(name, "SELECT id, 'orc' AS v FROM range(380, 400)")
    for label in ("l123", "l390"):
        query = f"SELECT f.v, d.label FROM {name} f JOIN {dimension} d ON f.id = d.key WHERE d.label = '{label}'"
        with ice.pruner.paused():
            expected = ice.sql(query).collect()
        frame = ice.sql(query)
        assert frame.collect() == expected
        assert files_read(frame) == 2  # one file of each table


def test_many_joins_are_still_planned(ice: Ice, fact: str, dimension: str) -> None:
    """Each of Spark's subqueries for keys would hold those of the tables below it, and so on."""
    joins = " ".join(f"JOIN {dimension} d{i} ON f.id = d{i}.key AND d{i}.label LIKE '%12%'" for i in range(10))
    query = f"SELECT f.v, d9.label FROM {fact} f {joins}"
    with ice.pruner.paused():
        expected = sorted(ice.sql(query).collect())
    frame = ice.sql(query)
    assert sorted(frame.collect()) == expected
    assert "dynamicpruning" not in frame._jdf.queryExecution().optimizedPlan().toString().lower()


def test_planning_broadcasts_nothing(ice: Ice, fact: str) -> None:
    """Iceberg sends the table out whenever Spark asks for partitions, which it does as often as it copies a node."""

    def sent() -> int:
        number: int = ice.spark.sparkContext._jsc.broadcast(ice.spark._jvm.java.util.ArrayList()).id()  # type: ignore[union-attr]
        return number

    frame = ice.sql(f"SELECT v FROM {fact} WHERE id + 0 = 123")
    before = sent()
    frame._jdf.queryExecution().executedPlan()
    assert sent() == before + 1
    assert [row.v for row in frame.collect()] == ["v123"]


def test_values_of_a_list_give_files() -> None:
    flags = np.ones(3, np.bool_)
    known = ColumnStats(
        pa.array([1, 6, None]), pa.array([5, 9, None]), pa.array([0, 0, 0]), pa.nulls(3, pa.int64()), flags, flags
    )
    stats = FileStats(pa.array([10, 10, 10]), pa.array([1, 1, 1]), lambda column: known if column.name == "x" else None)
    assert files_to_skip(stats, [["x", "bigint", [3]]]).tolist() == [False, True, False]
    assert files_to_skip(stats, [["x", "bigint", [3, 7]]]).tolist() == [False, False, False]
    assert files_to_skip(stats, [["x", "bigint", [3, None]]]).tolist() == [False, True, False]
    assert files_to_skip(stats, [["x", "bigint", [3]], ["y", "string", ["a"]]]).tolist() == [False, True, False]
    assert files_to_skip(stats, [["x", "bigint", []]]).tolist() == [False, False, False]
    assert files_to_skip(stats, []).tolist() == [False, False, False]
    assert parse_type("bigint").domain == pa.int64()


def test_two_prunings_of_one_table_are_not_taken_for_one(ice: Ice, fact: str) -> None:
    """Expressions that Iceberg cannot push, so that its own scans are equal."""
    compared = ice.same(
        f"SELECT count(*) FROM {fact} WHERE id + 0 = 5 UNION ALL SELECT count(*) FROM {fact} WHERE id + 0 = 300 "
        f"UNION ALL SELECT count(*) FROM {fact} WHERE id + 0 < 0",
        fact,
    )
    assert sorted(row[0] for row in compared.rows) == [0, 1, 1]
    assert compared.files == 2


def test_equal_prunings_share_an_exchange(ice: Ice, fact: str) -> None:
    part = f"SELECT id % 3 AS k, count(*) AS n FROM {fact} WHERE id + 0 < 20 GROUP BY id % 3"
    query = f"{part} UNION ALL {part}"
    plans = []
    for attached in (False, True):
        if attached:
            frame = ice.sql(query)
            frame.collect()
        else:
            with ice.pruner.paused():
                frame = ice.sql(query)
                frame.collect()
        plans.append(frame._jdf.queryExecution().executedPlan().toString().count("ReusedExchange"))
    assert plans[0] == plans[1] > 0
    assert ice.same(query, fact).summary.files_kept <= 4


def test_subqueries(ice: Ice, fact: str, dimension: str) -> None:
    compared = ice.same(
        f"SELECT v FROM {fact} WHERE id = (SELECT max(key) FROM {dimension} WHERE key + 0 < 50) AND id + 0 < 100", fact
    )
    assert len(compared.rows) == 1
    compared = ice.same(
        f"SELECT count(*) FROM {dimension} WHERE key IN (SELECT id FROM {fact} WHERE id + 0 BETWEEN 5 AND 12)", fact
    )
    assert compared.rows[0][0] == 8
    scans = {scan.table: scan for scan in compared.summary.scans}
    assert scans[fact].files_kept == 2


def test_aggregates_and_limits_that_iceberg_answers(ice: Ice, fact: str) -> None:
    for query in (
        f"SELECT count(*), min(id), max(id) FROM {fact}",
        f"SELECT count(*) FROM {fact} WHERE id < 20",
        f"SELECT count(*) FROM (SELECT * FROM {fact} WHERE id + 0 < 200 LIMIT 5)",
    ):
        ice.same(query, fact)
    plan = ice.sql(f"SELECT count(*), min(id), max(id) FROM {fact}")._jdf.queryExecution().executedPlan().toString()
    assert "LocalTableScan" in plan or "LocalScan" in plan


def test_storage_partitioned_joins_stay(ice: Ice) -> None:
    names = [ice.table("id bigint, v bigint", "bucket(4, id)") for _ in range(2)]
    for name in names:
        ice.sql("SELECT id, id * 2 AS v FROM range(100)").writeTo(name).append()
    settings = {
        "spark.sql.sources.v2.bucketing.enabled": "true",
        "spark.sql.iceberg.planning.preserve-data-grouping": "true",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
    }
    for key, value in settings.items():
        ice.spark.conf.set(key, value)
    try:
        query = f"SELECT a.id, b.v FROM {names[0]} a JOIN {names[1]} b ON a.id = b.id WHERE a.v + 0 < 100"
        compared = ice.same(query, *names)
        assert len(compared.rows) == 50
        plan = ice.sql(query)._jdf.queryExecution().executedPlan().toString()
        assert "Exchange" not in plan
    finally:
        for key in settings:
            ice.spark.conf.unset(key)


def test_a_recursive_query(ice: Ice) -> None:
    """Spark analyzes the recursive part once more for every step, and takes no dynamic pruning there."""
    name = ice.table("k BIGINT, parent BIGINT")
    ice.insert(name, *(f"SELECT id AS k, id + 10 AS parent FROM range({i * 10}, {i * 10 + 10})" for i in range(4)))
    query = f"""
        WITH RECURSIVE up(k, parent, n) AS (
          SELECT k, parent, 1 FROM {name} WHERE k = 3
          UNION ALL SELECT t.k, t.parent, n + 1 FROM up JOIN {name} t ON t.k = up.parent WHERE t.k % 7 <> 1)
        SELECT * FROM up"""
    found = ice.same(query)
    assert sorted(row.k for row in found.rows) == [3, 13, 23, 33]
