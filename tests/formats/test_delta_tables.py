"""Delta tables of every feature: the same rows, and the files that are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fixtures import Same
from tests.formats.conftest import Alone

FILES = 8


def rows(spark: SparkSession, first: int = 0, files: int = FILES, columns: str = "") -> None:
    """A data frame of a hundred rows a file, each file with a range of its own."""
    frame = spark.range(first * 100, (first + files) * 100, 1, 1)
    return frame.selectExpr(
        "id",
        "CAST(id AS INT) AS i",
        "id / 2 AS d",
        "CAST(id AS FLOAT) / 3 AS f",
        "CAST(id AS DECIMAL(12, 2)) / 7 AS m",
        "concat('n', lpad(id, 6, '0'), repeat('x', 40)) AS s",
        "date_add(DATE '2024-01-01', CAST(id AS INT)) AS day",
        "timestamp_seconds(1704067200 + id * 3600) + INTERVAL '123456' MICROSECOND AS ts",
        "CAST(timestamp_seconds(1704067200 + id * 3600) AS TIMESTAMP_NTZ) AS ntz",
        "id % 200 < 100 AS b",
        "IF(id % 10 = 0, NULL, id) AS n",
        "named_struct('x', id) AS st",
        *([columns] if columns else []),
    )


def write(frame, path: Path, **options: str) -> None:
    writer = frame.write.format("delta").mode("append").option("maxRecordsPerFile", "100")
    for key, value in options.items():
        writer = writer.option(key, value)
    writer.save(str(path))


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("delta") / "plain"
    write(rows(spark), path)
    return path


CASES = [
    ("id = 250", 1),
    ("i BETWEEN 150 AND 250", 2),
    ("d < 20", 1),
    ("f < 30", 1),
    ("m > 100", 1),
    ("s = concat('n000450', repeat('x', 40))", 1),
    ("s LIKE 'n0003%'", 1),
    ("day = DATE '2024-01-03'", 1),
    ("year(day) = 2026", 1),
    ("ts = timestamp_seconds(1704067200 + 399 * 3600) + INTERVAL '123456' MICROSECOND", 1),
    ("ts > timestamp_seconds(1704067200 + 699 * 3600) + INTERVAL '123455' MICROSECOND", 2),
    ("ntz >= TIMESTAMP_NTZ '2024-02-03 00:00:00'", 1),
    ("b", 8),
    ("n IS NULL AND id > 650", 2),
    ("n + 5 < 20", 1),
    ("IF(b, id * 2, id) > 1500", 1),
    ("st.x = 5", 8),
    ("id = 5 OR id = 405", 2),
    ("id > 10000", 0),
    ("id IS NULL", 0),
]


@pytest.mark.parametrize(("condition", "files"), CASES, ids=[c for c, _ in CASES])
def test_a_plain_table(spark: SparkSession, alone: Alone, plain: Path, condition: str, files: int) -> None:
    found = alone(lambda: spark.read.format("delta").load(str(plain)).where(condition), plain)
    assert found.files == files
    assert found.summary.scans[0].format == "delta"
    assert found.summary.scans[0].files_total == FILES
