"""Some queries of TPC-H and TPC-DS on small tables, with and without secateur; `make bench-check` has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.tpc.check import compare
from bench.tpc.data import laid_out
from bench.tpc.queries import queries
from bench.tpc.tables import register
from pyspark.sql import SparkSession

import secateur

CHOSEN = {("tpch", "date"): (3, 10, 20), ("tpcds", "date"): (35, 40, 92)}


@pytest.mark.parametrize(("name", "layout"), CHOSEN)
def test_the_rows_are_the_same(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, name: str, layout: str
) -> None:
    folder = laid_out(name, layout, 0.01, 20, tmp_path)
    register(spark, folder, "parquet", tmp_path)
    texts = queries(name)
    for number in CHOSEN[name, layout]:
        result = compare(spark, pruner, f"{name} {number}", texts[number], plain_first=False)
        assert not result.problem
        assert result.after < result.before
    for path in folder.iterdir():
        spark.catalog.dropTempView(path.name)
