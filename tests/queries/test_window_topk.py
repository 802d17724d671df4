"""Windows of which the first rows are asked for: files of one group each are skipped behind the first rows of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import secateur
from tests.fixtures import Same

GROUPS, EACH, ROWS = 6, 4, 50
FILES = GROUPS * EACH + 2


def columns(i: int) -> dict[str, Any]:
    """File i: rows of group i % 6, from 1,000 (i // 6) on; the last two hold rows of all groups."""
    n = np.arange(ROWS)
    x = np.random.default_rng(i).permutation(n) + 1000 * (i // GROUPS)
    group = np.full(ROWS, i % GROUPS) if i < FILES - 2 else n % GROUPS
    mask = group == 5  # a group of NULLs
    values = x.astype(np.float64)
    values[3] = np.nan if i == 1 else -0.0 if i == 2 else values[3]
    return {
        "id": pa.array(x * 100 + i, pa.int64()),
        "g": pa.array(group, pa.int32(), mask=mask),
        "name": pa.array([None if m else f"group-{v}" for v, m in zip(group, mask, strict=True)], pa.string()),
        "x": pa.array(x, pa.int64(), mask=(n == 0) if i % 7 == 0 else n < 0),
        "tie": pa.array(x // 40, pa.int32()),
        "d": pa.array(values),
        "y": pa.array(x % 10, pa.int32()),
    }


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("windows")
    (folder / "t").mkdir()
    for i in range(FILES):
        pq.write_table(pa.table(columns(i)), folder / "t" / f"{i:02d}.parquet")
    secateur.collect(spark, str(folder / "t"))
    rows = spark.read.parquet(str(folder / "t"))
    rows.repartitionByRange(8, "x").write.format("delta").partitionBy("g").save(str(folder / "delta"))
    spark.sql(f"DELETE FROM delta.`{folder / 'delta'}` WHERE id % 300 = 203")
    rows.repartitionByRange(8, "x").writeTo("ice.tests.windows").partitionedBy(col("g")).using("iceberg").tableProperty(
        "write.distribution-mode", "none"
    ).tableProperty("write.spark.fanout.enabled", "true").createOrReplace()
    return folder


@pytest.fixture
def table(spark: SparkSession, pruner: secateur.Pruner, home: Path) -> Iterator[Path]:
    spark.read.parquet(str(home / "t")).createOrReplaceTempView("t")
    yield home / "t"
    spark.catalog.dropTempView("t")


def first(function: str, over: str, what: str = "id, x", where: str = "true", source: str = "t") -> str:
    window = f"{function}() OVER ({over})"
    return f"SELECT * FROM (SELECT {what}, {window} AS n FROM {source} WHERE {where}) WHERE n <= 3"


@pytest.mark.parametrize(
    ("sql", "files"),  # 6 files come first in their group; then NULLs in 3 others count, or two values in each file
    [
        (first("row_number", "PARTITION BY g ORDER BY x DESC, id"), 8),
        (first("row_number", "PARTITION BY name ORDER BY x, id"), 11),
        (first("rank", "PARTITION BY g ORDER BY x DESC NULLS FIRST"), 11),
        (first("rank", "PARTITION BY g, name ORDER BY tie"), 8),
        (first("dense_rank", "PARTITION BY g ORDER BY tie DESC"), 14),
        (first("dense_rank", "PARTITION BY g ORDER BY x NULLS LAST"), 14),
        (first("rank", "PARTITION BY g ORDER BY d DESC"), FILES),
        (first("rank", "PARTITION BY g ORDER BY d"), FILES),
        (first("rank", "ORDER BY x DESC"), 2),
        (first("dense_rank", "ORDER BY tie"), 12),
        (first("rank", "PARTITION BY g + 1 ORDER BY -x, id"), 11),
        (first("rank", "PARTITION BY g ORDER BY x DESC", where="x < 2500"), 7),
        (first("rank", "PARTITION BY g ORDER BY x DESC", where="y = 3"), FILES),
        (first("rank", "PARTITION BY y ORDER BY x DESC"), FILES),
        (first("row_number", "PARTITION BY g ORDER BY id", what="id, count(*) OVER (PARTITION BY g) AS c"), FILES),
        (first("row_number", "PARTITION BY d ORDER BY x, id"), FILES),
    ],
)
def test_the_first_rows_of_each_group(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, same: Same, sql: str, files: int
) -> None:
    found = same(lambda: spark.sql(sql))
    assert found.rows
    assert found.files == files, str(found.summary)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_every_format(spark: SparkSession, pruner: secateur.Pruner, home: Path, same: Same, adaptive: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    try:
        for source in (f"delta.`{home / 'delta'}`", "ice.tests.windows"):
            for where in ("true", "g > 1", "g IS NULL OR id >= 0"):  # Iceberg takes over what partitions tell
                sql = first("rank", "PARTITION BY g ORDER BY x DESC, id", source=source, where=where)
                found = same(lambda sql=sql: spark.sql(sql))  # type: ignore[misc]
                assert found.rows
                assert "window_topk" in {p.name for p in found.summary.scans[0].passes}
                assert found.files < found.plain_files / 2
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_views_and_cached_frames(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW firsts AS {first('rank', 'PARTITION BY g ORDER BY x DESC, id')}")
    with pruner.paused():
        expected = sorted(spark.table("firsts").collect())
    frame = spark.table("firsts")
    assert sorted(frame.collect()) == expected == sorted(frame.collect())
    assert pruner.last is not None
    assert pruner.last.files_kept == 8
    cached = spark.table("firsts").cache()
    try:
        assert sorted(cached.collect()) == expected
        assert cached.where("n = 1").count() == sum(row.n == 1 for row in expected)
        assert spark.sql("SELECT count(*) FROM firsts WHERE n > 1").first()[0] == sum(row.n > 1 for row in expected)  # type: ignore[index]
    finally:
        cached.unpersist(blocking=True)


def test_why_nothing_was_skipped(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    scan = pruner.explain(first("rank", "PARTITION BY y ORDER BY x")).scans[0]
    assert "window-not-selective" in {r.code for r in scan.reasons}
