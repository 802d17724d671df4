"""Joins skip files of the tables that join, before the query runs: real tables, on and off, and what is skipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

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
def test_part_tells_both_uses_of_lineitem_what_it_holds(spark: SparkSession, same: Same) -> None:
    compared = same(lambda: spark.sql(Q17))
    print(compared.summary)
    assert (compared.files, compared.plain_files) == (1 + 2 + 2, 5 + FILES + FILES)
