"""LIMIT and ORDER BY … LIMIT over tables with deleted rows: only rows that are left are counted on (rule S4)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tools.spark_metrics import files_read, planned_files

import secateur
from tests.formats.conftest import IceTables, away, local
from tests.formats.delta import append, create, out_of_reach
from tests.formats.test_iceberg_statistics import write_equality_delete

ROWS = "CAST(id AS INT) AS id, CAST(IF(id % 10 = 1, 1000 + id DIV 10, 10 - id DIV 10) AS INT) AS v"
KINDS = {
    # which of the numbers of QUERIES holds: rows that are left are counted, or not where some were deleted, or nowhere
    "delta with deletion vectors": 0,
    "iceberg with deletion vectors": 0,
    "iceberg with position deletes": 1,
    "iceberg with equality deletes": 2,
}


@dataclass(frozen=True)
class Deleted:
    """A table with deleted rows."""

    kind: str
    name: str
    folder: Path
    files: tuple[Path, ...] = ()

    def without_skipped(self, frame: DataFrame) -> AbstractContextManager[Any]:
        """For a while the files that a query skips are not there."""
        if self.kind.startswith("delta"):
            return out_of_reach(self.folder, {path.removeprefix("file:") for path in frame.inputFiles()})
        kept = {local(location) for location in planned_files(frame)}
        return away([path for path in self.files if path not in kept])


@pytest.fixture(scope="module", params=KINDS)
def table(
    request: pytest.FixtureRequest, spark: SparkSession, ice_tables: IceTables, tmp_path_factory: pytest.TempPathFactory
) -> Deleted:
    """Six files of ten rows; of the last four the odd ids were deleted, and with them the greatest v of each."""
    kind: str = request.param
    deleted = [id_ for id_ in range(20, 60) if id_ % 2]
    if kind.startswith("delta"):
        path = tmp_path_factory.mktemp("limits") / "t"
        create(spark, path, "id INT, v INT", enableDeletionVectors="true")
        for i in range(6):
            append(spark.range(i * 10, i * 10 + 10, 1, 1).selectExpr(*ROWS.split(", ", 1)), path)
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= 20 AND id % 2 = 1").collect()
        return Deleted(kind, f"delta.`{path}`", path)
    version = 3 if "vectors" in kind else 2
    name = ice_tables.table("id int, v int", format_version=version, write__delete__mode="merge-on-read")
    ice_tables.insert(name, *[f"SELECT {ROWS} FROM range({i * 10}, {i * 10 + 10})" for i in range(6)])
    if "equality" in kind:
        write_equality_delete(ice_tables, name, deleted)
    else:
        ice_tables.sql(f"DELETE FROM {name} WHERE id >= 20 AND id % 2 = 1")
    return Deleted(kind, name, local(ice_tables.java(name).location()), tuple(ice_tables.files(name)))


QUERIES = {
    # how many rows come out, and the files that are read where rows are known, where not, and where of no file
    "SELECT id FROM {t} LIMIT 12": (12, 2, 2, 6),
    "SELECT id FROM {t} WHERE id >= 0 LIMIT 12": (12, 2, 2, 6),
    "SELECT id FROM {t} WHERE id >= 20 LIMIT 12": (12, 3, 4, 4),
    "SELECT id FROM {t} WHERE id >= 20 LIMIT 20": (20, 4, 4, 4),
    "SELECT id FROM {t} WHERE id >= 20 LIMIT 21": (20, 4, 4, 4),
    "SELECT id FROM {t} WHERE id >= 20 LIMIT 6 OFFSET 6": (6, 3, 4, 4),
    "SELECT id FROM {t} WHERE id >= 20 ORDER BY id DESC LIMIT 8": (8, 2, 4, 4),
    "SELECT id FROM {t} WHERE id >= 20 ORDER BY id LIMIT 5": (5, 1, 4, 4),
    # The greatest v of each file was deleted: as a boundary it would rule out the file with the row that is wanted.
    "SELECT v, id FROM {t} WHERE id >= 20 ORDER BY v DESC, id LIMIT 1": (1, 4, 4, 4),
    "SELECT v, id FROM {t} ORDER BY v DESC, id LIMIT 2": (2, 6, 6, 6),
}


@pytest.mark.parametrize("sql", QUERIES)
def test_only_rows_that_are_left_count(spark: SparkSession, pruner: secateur.Pruner, table: Deleted, sql: str) -> None:
    count, files = QUERIES[sql][0], QUERIES[sql][1:][KINDS[table.kind]]
    text = sql.format(t=table.name)
    with pruner.paused():
        plain = spark.sql(text).collect()
        whole = spark.sql(text.split(" LIMIT ", maxsplit=1)[0]).collect()
    frame = spark.sql(text)
    with table.without_skipped(frame):
        rows = frame.collect()
    assert pruner.last is not None
    assert pruner.last.files_kept == files, str(pruner.last)
    assert files_read(frame) <= files
    assert len(rows) == len(plain) == count
    if "ORDER BY" in sql:
        assert rows == plain
    for row in rows:
        whole.remove(row)  # each is one of the whole answer, none twice
