"""Joins skip files of the tables that join, before the query runs: real tables, on and off, and what is skipped."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from tests.fixtures import Same

FILES = 10
PARTS = 100


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """part in five files by key, brand by brand; lineitem in ten files by part key; orders by its own key."""
    lake = tmp_path_factory.mktemp("tpch")
    keys = np.arange(PARTS)
    part = {"p_partkey": keys, "p_brand": [f"Brand#{key // 20}" for key in keys], "p_container": ["MED BOX"] * PARTS}
    write(lake, "part", part, 5)
    items = np.arange(1000)
    lineitem = {
        "l_orderkey": (items * 7) % 300,
        "l_partkey": (items // 10).astype(np.int32),
        "l_quantity": (items % 50).astype(np.float64),
        "l_extendedprice": items * 1.5,
    }
    write(lake, "lineitem", lineitem, FILES)
    write(lake, "orders", {"o_orderkey": np.arange(300), "o_day": np.arange(300) // 30}, FILES)
    for name in ("part", "lineitem", "orders"):
        secateur.collect(spark, str(lake / name))
        spark.read.parquet(str(lake / name)).createOrReplaceTempView(name)
    return lake


def write(lake: Path, name: str, columns: dict[str, object], files: int) -> None:
    (lake / name).mkdir()
    table = pa.table(columns)
    size = -(-table.num_rows // files)
    for i in range(files):
        pq.write_table(table.slice(i * size, size), lake / name / f"{i}.parquet")


Q17 = """
    SELECT sum(l_extendedprice) / 7.0 FROM lineitem JOIN part ON p_partkey = l_partkey
    WHERE p_brand = 'Brand#3' AND p_container = 'MED BOX'
      AND l_quantity < (SELECT 0.8 * avg(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)"""


@pytest.mark.usefixtures("tpch")
def test_part_tells_both_uses_of_lineitem_what_it_holds(
    spark: SparkSession, pruner: secateur.Pruner, same: Same
) -> None:
    """TPC-H 17, figures 2 and 5 of the paper: past the join, sideways, and below the group-by."""
    compared = same(lambda: spark.sql(Q17))
    assert (compared.files, compared.plain_files) == (1 + 2 + 2, 5 + FILES + FILES)
    for summary in (compared.summary, pruner.explain(Q17)):
        told = [join for scan in summary.scans for join in scan.joins]
        assert [(j.column, j.ranges, j.files_before, j.files_after) for j in told] == [("l_partkey", 1, FILES, 2)] * 2
        assert all(j.sender.endswith("part") for j in told)
        assert "l_partkey in 1 range, 10 → 2 files" in str(summary)
        assert "l_partkey in 1 range, 10 → 2 files" in summary._repr_html_()
        assert [len(scan["joins"]) for scan in summary.to_dict()["scans"]].count(1) == 2


B1, B4 = "p_brand = 'Brand#1'", "p_brand = 'Brand#4'"
QUERIES = {
    "SELECT * FROM lineitem LEFT JOIN part ON p_partkey = l_partkey WHERE l_partkey < 10": 1 + 1,
    f"SELECT * FROM part LEFT JOIN lineitem ON p_partkey = l_partkey AND {B1}": 5 + FILES,
    "SELECT * FROM part FULL JOIN lineitem ON p_partkey = l_partkey": 5 + FILES,
    f"SELECT * FROM part WHERE {B1} AND p_partkey IN (SELECT l_partkey FROM lineitem)": 1 + 2,
    f"SELECT * FROM part WHERE {B1} AND p_partkey NOT IN (SELECT l_partkey FROM lineitem)": 1 + FILES,
    f"""SELECT * FROM part p WHERE {B1} AND NOT EXISTS
        (SELECT * FROM lineitem WHERE l_partkey = p.p_partkey AND l_quantity > 48)""": 1 + 2,
    f"SELECT * FROM part WHERE {B1} AND (p_partkey IN (SELECT l_partkey FROM lineitem) OR p_partkey = 25)": 1 + 2,
    f"SELECT * FROM lineitem JOIN part ON l_partkey + 60 = p_partkey WHERE {B4}": 2 + 1,
    "SELECT * FROM lineitem a JOIN lineitem b ON a.l_partkey = b.l_partkey + 10 WHERE a.l_partkey = 57": 1 + 1,
    f"""SELECT * FROM (SELECT * FROM lineitem ORDER BY l_quantity, l_extendedprice LIMIT 5)
        JOIN part ON l_partkey = p_partkey WHERE {B4}""": FILES + 1,
    f"SELECT count(*) FROM part JOIN (SELECT max(l_partkey) AS m FROM lineitem) ON m = p_partkey WHERE {B1}": 1 + FILES,
    f"""SELECT count(*) FROM part JOIN (SELECT p_partkey AS k FROM part UNION ALL SELECT l_partkey FROM lineitem)
        ON k = p_partkey WHERE {B1}""": 1 + 1 + 2,
    f"""SELECT count(*) FROM part JOIN lineitem ON p_partkey = l_partkey JOIN orders ON l_orderkey = o_orderkey
        WHERE {B1} AND o_day = 3""": 1 + 2 + 1,
    f"SELECT p_partkey FROM part WHERE {B1} INTERSECT SELECT l_partkey FROM lineitem": 1 + 2,
    f"SELECT l_partkey FROM lineitem EXCEPT SELECT p_partkey FROM part WHERE {B1}": FILES + 1,
}


@pytest.mark.usefixtures("tpch")
@pytest.mark.parametrize("sql", QUERIES)
def test_what_a_join_leaves_to_be_read(spark: SparkSession, same: Same, sql: str) -> None:
    compared = same(lambda: spark.sql(sql))
    assert compared.files == QUERIES[sql], compared.summary


@pytest.mark.usefixtures("tpch")
def test_no_predicate_stays_in_the_plan(spark: SparkSession, pruner: secateur.Pruner) -> None:
    """Section 3 of the paper: what tables told each other made scans smaller, and nothing is evaluated for it later."""
    spark.conf.set("spark.secateur.passes", "filter,join_ranges")

    def filters() -> list[str]:
        plan = spark.sql(Q17)._jdf.queryExecution().optimizedPlan().toString()
        return [re.sub(r"#\d+L?", "", line).strip(" +-:") for line in plan.splitlines() if "Filter" in line]

    with pruner.paused():
        plain = filters()
    assert filters() == plain
    assert pruner.last is not None
    assert any(scan.joins for scan in pruner.last.scans)


@pytest.mark.usefixtures("tpch")
def test_no_more_ranges_than_the_option_allows(spark: SparkSession, same: Same) -> None:
    """Parts 0 to 19 and 80 to 99 are two ranges, or one that holds all between."""
    query = "SELECT * FROM part JOIN lineitem ON p_partkey = l_partkey WHERE p_brand IN ('Brand#0', 'Brand#4')"
    for most, files in (("2", 2 + 4), ("1", 2 + FILES)):
        spark.conf.set("spark.secateur.join.ranges", most)
        assert same(lambda: spark.sql(query)).files == files


@pytest.mark.usefixtures("tpch")
def test_a_pass_that_is_off_tells_nothing(spark: SparkSession, same: Same) -> None:
    spark.conf.set("spark.secateur.passes", "filter")
    assert same(lambda: spark.sql(Q17)).files == 1 + FILES + FILES


@pytest.mark.usefixtures("tpch")
def test_smaller_sizes_make_a_broadcast_join(spark: SparkSession, pruner: secateur.Pruner, tpch: Path) -> None:
    """The optimizer picks join strategies after it knows what is left of each table."""
    sizes = {name: sum(f.stat().st_size for f in (tpch / name).glob("*.parquet")) for name in ("lineitem", "orders")}
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", min(sizes.values()) // 3)
    sql = """SELECT * FROM lineitem JOIN orders ON l_orderkey = o_orderkey JOIN days ON o_day = day
        WHERE season = 'spring'"""
    write(tpch, "days", {"day": [4, 8], "season": ["spring", "autumn"]}, 2)
    secateur.collect(spark, str(tpch / "days"))
    spark.read.parquet(str(tpch / "days")).createOrReplaceTempView("days")

    def broadcasts() -> int:
        plan: str = spark.sql(sql)._jdf.queryExecution().sparkPlan().toString()
        return plan.count("BroadcastHashJoin")

    try:
        with pruner.paused():
            plain = broadcasts()
        assert broadcasts() > plain
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_a_table_rewritten_in_place_tells_nothing(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path
) -> None:
    """Spark opens the new files of the one table under their old names: the old ones must not hide partners."""
    write(lake, "small", {"k": np.arange(5)}, 1)
    write(lake, "large", {"n": np.arange(100)}, 10)
    frames = {}
    for name in ("small", "large"):
        secateur.collect(spark, str(lake / name))
        frames[name] = spark.read.parquet(str(lake / name))

    def joined() -> DataFrame:
        return frames["small"].join(frames["large"], frames["small"]["k"] == frames["large"]["n"])

    assert same(joined).files == 1 + 1
    pq.write_table(pa.table({"k": np.arange(50, 56)}), lake / "small" / "0.parquet")
    found = same(joined)
    assert sorted(row.k for row in found.rows) == list(range(50, 56))
    assert found.files == 1 + 10
    assert "files-changed" in [reason.code for scan in found.summary.scans for reason in scan.reasons]


def test_dynamic_pruning_still_reuses_the_broadcast(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, lake: Path
) -> None:
    """Spark's copy of the dimension has to read the same files as the dimension, or it does not prune any more."""
    spark.range(100).selectExpr("id", "id % 10 AS p").write.partitionBy("p").parquet(str(lake / "fact"))
    keys = np.concatenate([np.arange(10), np.arange(100, 110)])
    write(lake, "dim", {"pk": keys, "color": ["red" if k % 5 == 1 else "blue" for k in keys]}, 2)
    for name in ("fact", "dim"):
        secateur.collect(spark, str(lake / name))
        spark.read.parquet(str(lake / name)).createOrReplaceTempView(name)
    sql = "SELECT id FROM fact JOIN dim ON p = pk WHERE color = 'red'"
    compared = same(lambda: spark.sql(sql))
    assert sorted(row.id % 10 for row in compared.rows)[::10] == [1, 6]
    assert [scan.files_kept for scan in compared.summary.scans if scan.table.endswith("dim")] == [1]
    frame = spark.sql(sql)
    frame.collect()
    plan: str = frame._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruningexpression" in plan
    assert "SubqueryBroadcast" in plan or "SubqueryAdaptiveBroadcast" in plan, plan


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_joins_of_other_formats(spark: SparkSession, same: Same, tmp_path: Path, format_: str) -> None:
    names = {}
    for name, frame in (("fact", spark.range(0, 80, 1, 8)), ("dim", spark.range(0, 40, 1, 4))):
        wide = frame.selectExpr(f"id AS {name}_key", "id DIV 10 AS tens")
        if format_ == "delta":
            wide.write.format("delta").save(str(tmp_path / name))
            names[name] = f"delta.`{tmp_path / name}`"
        else:
            names[name] = f"ice.tests.joined_{name}"
            wide.writeTo(names[name]).tableProperty("write.distribution-mode", "none").createOrReplace()
    sql = f"SELECT * FROM {names['fact']} f JOIN {names['dim']} d ON fact_key = dim_key WHERE d.tens = 2"
    compared = same(lambda: spark.sql(sql))
    assert len(compared.rows) == 10
    assert {scan.files_total: scan.files_kept for scan in compared.summary.scans} == {8: 1, 4: 1}


def test_keys_of_floats(spark: SparkSession, same: Same, lake: Path) -> None:
    """Spark wraps them, so that -0.0 meets 0.0 and NaN meets NaN."""
    nan = float("nan")
    few: list[object] = [[1.0, 2.0], [-0.0, -0.0], [nan, 7.5]]
    many: list[object] = [*([float(i), i + 0.5] for i in range(20)), [nan, 3.25]]
    for name, files in (("few", few), ("many", many)):
        flat: dict[str, object] = {"k": np.array(files).ravel(), "v": np.arange(len(files) * 2) // 2}
        write(lake, name, flat, len(files))
        spark.read.parquet(str(lake / name)).createOrReplaceTempView(name)
        secateur.collect(spark, str(lake / name), ranges=20)
    for query, rows, kept in (
        ("SELECT * FROM few JOIN many USING (k)", 6, 5),  # 0, 1, 2, 7 and what holds NaN
        ("SELECT * FROM few f JOIN many m ON f.k = m.k WHERE f.v = 1", 2, 1),
        ("SELECT * FROM few f JOIN many m ON f.k <=> m.k WHERE f.v = 2", 2, 2),
        ("SELECT * FROM many WHERE k IN (SELECT k FROM few WHERE v = 0)", 2, 2),
        ("SELECT * FROM few f LEFT JOIN many m ON f.k = m.k", 6, 5),
        ("SELECT * FROM many m LEFT ANTI JOIN few f ON f.k = m.k", 37, 21),
        ("SELECT k, count(*) FROM many GROUP BY k HAVING k IN (SELECT k FROM few WHERE v = 2)", 2, 2),
    ):
        found = same(lambda query=query: spark.sql(query))  # type: ignore[misc]
        files_kept = {scan.table[-4:]: scan.files_kept for scan in found.summary.scans}
        assert (len(found.rows), files_kept["many"]) == (rows, kept), query
