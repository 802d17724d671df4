"""The same eight files, as several writers write them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

FILES = 8


def numbers(i: int, rows: int = 50) -> pa.Table:
    """The i-th of eight files: every column holds a range of its own, with a NULL in each."""
    at = [i * 100 + r for r in range(rows)]

    def but_first(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None, *values[1:]], kind)

    return pa.table(
        {
            "id": pa.array(at, pa.int64()),
            "i": but_first(at, pa.int32()),
            "f": but_first([float(a) for a in at], pa.float32()),
            "d": but_first([a / 2 for a in at], pa.float64()),
            "m": but_first([Decimal(a) / 100 for a in at], pa.decimal128(12, 2)),
            "big": but_first([Decimal(a) * 10**20 for a in at], pa.decimal128(38, 3)),
            "s": but_first([f"n{a:05}" for a in at], pa.string()),
            "day": but_first([dt.date(2024, 1, 1) + dt.timedelta(a) for a in at], pa.date32()),
            "ts": but_first(
                [dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc) + dt.timedelta(hours=a) for a in at],
                pa.timestamp("us", "UTC"),
            ),
            "ntz": but_first([dt.datetime(2024, 1, 1) + dt.timedelta(hours=a) for a in at], pa.timestamp("us")),
            "b": but_first([i % 2 == 0] * rows, pa.bool_()),
            "st": pa.array([{"x": a, "y": str(a)} for a in at]),
            "l": pa.array([[a] for a in at]),
        }
    )


def by_pyarrow(folder: Path) -> None:
    folder.mkdir()
    for i in range(FILES):
        pq.write_table(numbers(i), folder / f"{i}.parquet", row_group_size=20)


def by_duckdb(folder: Path) -> None:
    folder.mkdir()
    connection = duckdb.connect()
    for i in range(FILES):
        connection.register("numbers", numbers(i))
        connection.execute(f"COPY numbers TO '{folder / f'{i}.parquet'}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    connection.close()


def without_statistics(folder: Path) -> None:
    folder.mkdir()
    for i in range(FILES):
        pq.write_table(numbers(i), folder / f"{i}.parquet", write_statistics=False)


def half_without_statistics(folder: Path) -> None:
    folder.mkdir()
    for i in range(FILES):
        pq.write_table(numbers(i), folder / f"{i}.parquet", write_statistics=i % 2 == 0)


def by_spark(spark: SparkSession, folder: Path) -> None:
    source = folder.with_name(folder.name + "-source")
    by_pyarrow(source)
    spark.read.parquet(str(source)).repartitionByRange(FILES, "id").write.parquet(str(folder))
