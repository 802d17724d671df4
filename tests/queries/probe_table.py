"""The table of the tests of probes: forty files, sorted by one column and in no order by others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from tools.spark_metrics import files_read

import secateur

FILES, ROWS = 40, 1000


def columns(i: int) -> dict[str, Any]:
    """File i: values from 1,000 i on, in no order; ``y = 3`` in one row of a hundred."""
    x = np.random.default_rng(i).permutation(np.arange(i * ROWS, (i + 1) * ROWS))
    nans = (x % 17 == 3) & (i in (4, 9))
    return {
        "id": pa.array(x, pa.int64()),
        "x": pa.array([None] * ROWS if i == FILES - 1 else x, pa.int64()),
        "y": pa.array(x * 7919 % 100, pa.int32()),
        "d": pa.array(np.where(nans, math.nan, x * -1.5), pa.float64()),
        "t": pa.array([None if v % 11 == 0 else int(v) for v in x], pa.int32()),
        "s": pa.array([f"{'é' if v > 20000 else 'e'}-{v:06d}-{'z' * 80}" for v in x], pa.string()),
        "day": pa.array(19000 + x // 7, pa.int32()).cast(pa.date32()),
        "n": pa.array([f"{v}.{v % 100:02d}" for v in x]).cast(pa.decimal128(9, 2)),
        "ts": pa.array(1_700_000_000_000_000 + x * 1001, pa.timestamp("us", "UTC")),
        "tie": pa.array(x // 4000, pa.int32()),
        "r": pa.array(np.random.default_rng(i).integers(0, 10**9, ROWS), pa.int64()),
    }


def step(pruner: secateur.Pruner) -> secateur.RuntimeStep | None:
    """What was done at run time to the first scan that waited."""
    assert pruner.last is not None
    return next((step for scan in pruner.last.scans for step in scan.runtime), None)


def row_filter(spark: SparkSession, pruner: secateur.Pruner, sql: str) -> tuple[list[Any], int]:
    """The rows with secateur, in order, after they were found to be those without; and the files that were read."""
    with pruner.paused():
        expected = spark.sql(sql).collect()
    frame = spark.sql(sql)
    rows = frame.collect()
    assert repr(rows) == repr(expected), sql
    return rows, files_read(frame)
