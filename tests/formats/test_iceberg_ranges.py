"""Range-sets of Iceberg tables: gaps that the bounds in manifests do not show, columns known by their ids."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import secateur
from tests.formats.conftest import Ice
from tests.formats.delta import append

SELECT = """SELECT CAST(x AS INT) AS x, CAST(x AS FLOAT) AS f, CAST(x AS DECIMAL(9, 2)) AS m,
    concat('n', lpad(x, 3, '0')) AS s FROM"""
ROWS = f"{SELECT} (SELECT id AS x FROM range(100))"
GAP = f"{ROWS} WHERE x < 10 OR x >= 90"
ENDS = f"{SELECT} VALUES (0), (NULL), (99) AS t (x)"


def test_columns_come_go_and_are_promoted(spark: SparkSession, ice: Ice) -> None:
    table = ice.table("x INT, f FLOAT, m DECIMAL(9, 2), s STRING", write__delete__mode="merge-on-read")
    ice.insert(table, GAP, ROWS, ENDS)

    def files(condition: str) -> int:
        return ice.same(f"SELECT * FROM {table} WHERE {condition}", table).files

    def changed(*changes: str) -> None:
        for change in changes:
            ice.sql(f"ALTER TABLE {table} {change}")

    report = secateur.collect(spark, table, ranges=20)
    assert (report.files_total, report.files_read, report.files_ranged, report.problem) == (3, 0, 3, "")
    assert "_secateur" in report.store_text
    assert secateur.collect(spark, table, ranges=10, columns=["S"]).files_ranged == 0
    changed("ALTER COLUMN f TYPE double", "ALTER COLUMN m TYPE decimal(12, 2)", "ALTER COLUMN x TYPE bigint")
    for condition, many in {
        "x = 43": 1,
        "x = 43 OR x IS NULL": 2,
        "f > 40.5 AND f < 45": 1,
        "m * 2 = 86": 1,
        "s LIKE 'n04%'": 1,
    }.items():
        assert files(condition) == many, condition
    ice.sql(f"DELETE FROM {table} WHERE x IN (43, 44)")
    assert files("x = 43") == 1  # the file still has the value, the table has not
    changed("RENAME COLUMN x TO y", "ADD COLUMN x INT", "DROP COLUMN s", "ADD COLUMN s STRING")
    assert files("x IS NULL AND s IS NULL") == 3  # what used to be x and s has no NULL in the first two files
    assert files("y = 45") == 1
    ice.insert(table, "SELECT y, 1D AS f, 1BD AS m, 45 AS x, 's' AS s FROM VALUES (0L), (99L) AS t (y)")
    assert files("y = 45") == 2  # nobody has looked into the new file
    assert secateur.collect(spark, table, ranges=20, columns=["y"]).files_ranged == 1
    assert files("y = 45") == 1
    assert files("x = 44 OR y = 3000000000") == 3
    changed("SET TBLPROPERTIES ('write.format.default'='orc')")
    ice.insert(table, "SELECT 50L AS y, 1D AS f, 1BD AS m, 45 AS x, 's' AS s")
    report = secateur.collect(spark, table, ranges=20, columns=["y"])
    assert (report.files_ranged, report.problem) == (0, "1 files are not Parquet, so they have no range sets")
    assert files("y = 50") == 2


def test_files_of_other_writers(spark: SparkSession, ice: Ice, lake: Path) -> None:
    """They may have no ids, lie elsewhere, and one may come back by the same name and length with other values."""
    table = ice.table("x BIGINT")
    known = pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "1"})
    for name, field in {"with": known, "without": pa.field("x", pa.int64())}.items():
        written(lake / name, field, [0, 42, 99])
        commit(ice, table, "newAppend", lake / name)
    report = secateur.collect(spark, table, ranges=20)
    assert (report.files_ranged, report.problem) == (2, "")

    def found() -> tuple[int, int]:
        compared = ice.same(f"SELECT * FROM {table} WHERE x = 43", table)
        return len(compared.rows), compared.files

    assert found() == (0, 1)
    commit(ice, table, "newDelete", lake / "with")
    size, time = os.stat(lake / "with").st_size, os.stat(lake / "with").st_mtime_ns
    written(lake / "with", known, [0, 43, 99])
    os.utime(lake / "with", ns=(time, time))
    assert os.stat(lake / "with").st_size == size
    commit(ice, table, "newAppend", lake / "with")
    assert found() == (1, 2)


def written(path: Path, field: pa.Field, values: list[int]) -> None:
    pq.write_table(pa.table([values], schema=pa.schema([field])), path, use_dictionary=False, compression="NONE")


def commit(ice: Ice, table: str, how: str, path: Path) -> None:
    java = ice.java(table)
    builder: Any = ice.spark._jvm.org.apache.iceberg.DataFiles.builder(java.spec())  # type: ignore[union-attr]
    file = builder.withPath(f"file:{path}").withFormat("parquet").withFileSizeInBytes(path.stat().st_size)
    file = file.withRecordCount(3).build()
    operation = getattr(java, how)()
    (operation.appendFile(file) if how == "newAppend" else operation.deleteFile(file)).commit()
    ice.sql(f"REFRESH TABLE {table}")


def test_a_join_through_gaps(spark: SparkSession, ice: Ice, lake: Path) -> None:
    """The files of a Delta table that a filter leaves say which keys matter; an Iceberg table has some in a gap."""
    dim, fact = lake / "dim", ice.table("key INT")
    append(spark.sql("SELECT * FROM VALUES (1L, 'a'), (900L, 'a') AS t (k, label)").coalesce(1), dim)
    append(spark.sql("SELECT * FROM VALUES (400L, 'b'), (500L, 'b') AS t (k, label)").coalesce(1), dim)
    ice.insert(fact, *(f"SELECT CAST(id AS INT) AS key FROM range({i * 300}, {i * 300 + 300})" for i in range(3)))
    ice.insert(fact, "SELECT * FROM VALUES (0), (5), (999) AS t (key)", "SELECT 900 AS key")
    query = f"SELECT * FROM {fact} JOIN delta.`{dim}` ON key = k WHERE label = 'a'"
    spark.conf.set("spark.secateur.passes", "filter,range_sets,join_ranges")

    def asked() -> int:
        compared = ice.same(query, fact)
        return sum(scan.files_kept or 0 for scan in compared.summary.scans if scan.table == fact)

    assert asked() == 5
    assert secateur.collect(spark, str(dim), ranges=20).files_ranged == 2
    assert asked() == 3
    assert secateur.collect(spark, spark.table(fact), ranges=20).files_ranged == 5
    assert asked() == 2
