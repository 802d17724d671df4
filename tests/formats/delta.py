"""Delta tables for the tests, and the comparison of a query with its skipped files out of reach."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from tests.fixtures import Compared, compare

FILES = 8


def rows(spark: SparkSession, first: int = 0, files: int = FILES) -> DataFrame:
    """The rows of some files, a column of every type that the log has bounds for and some of others."""
    return spark.range(first * 100, (first + files) * 100, 1, 1).selectExpr(
        "id",
        "CAST(id AS INT) AS i",
        "id / 2 AS d",
        "CAST(id AS FLOAT) AS f",
        "CAST(id AS DECIMAL(12, 2)) / 7 AS m",
        "concat('n', lpad(id, 6, '0'), repeat('x', 40)) AS s",
        "date_add(DATE '2024-01-01', CAST(id AS INT)) AS day",
        "timestamp_seconds(1704067200 + id * 3600) + INTERVAL '123456' MICROSECOND AS ts",
        "CAST(timestamp_seconds(1704067200 + id * 3600) AS TIMESTAMP_NTZ) AS ntz",
        "id % 200 < 100 AS b",
        "IF(id % 10 = 0, NULL, id) AS n",
        "named_struct('x', id) AS st",
    )


def append(frame: DataFrame, path: Path, **options: str) -> None:
    """One commit, with at most a hundred rows a file."""
    writer = frame.write.format("delta").mode("append").option("maxRecordsPerFile", "100")
    for key, value in options.items():
        writer = writer.option(key, value)
    writer.save(str(path))


def create(spark: SparkSession, path: Path, columns: str, how: str = "", **properties: str) -> None:
    """An empty table with properties such as ``delta.columnMapping.mode``, given with ``_`` for the dots."""
    given = ", ".join(f"'delta.{key}' = '{value}'" for key, value in properties.items())
    extra = f" TBLPROPERTIES ({given})" if given else ""
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {how}{extra}").collect()


def read(spark: SparkSession, path: Path, condition: str = "true", **options: object) -> DataFrame:
    """The rows that a condition leaves."""
    reader = spark.read.format("delta")
    for key, value in options.items():
        reader = reader.option(key, value)  # type: ignore[arg-type]
    return reader.load(str(path)).where(condition)


Alone = Callable[[Callable[[], DataFrame], Path], Compared]


@contextmanager
def out_of_reach(folder: Path, kept: set[str]) -> Iterator[int]:
    """Hides the table's data files that are not kept: reading one of them fails."""
    away = [f for f in folder.rglob("*.parquet") if "_delta_log" not in f.parts and str(f) not in kept]
    for file in away:
        os.rename(file, f"{file}.away")
    try:
        yield len(away)
    finally:
        for file in away:
            os.rename(f"{file}.away", file)


@pytest.fixture
def alone(pruner: secateur.Pruner) -> Alone:
    """Compares a query on and off, with every file that secateur skips moved away while it runs."""

    def without_skipped(frame: DataFrame, folder: Path) -> AbstractContextManager[int]:
        kept = {path.removeprefix("file:") for path in frame.inputFiles()}  # Delta's index does not encode them
        return out_of_reach(folder, kept)

    return lambda query, folder: compare(pruner, query, lambda frame: without_skipped(frame, folder))
