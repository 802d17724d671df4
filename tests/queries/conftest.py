"""Tables that several modules of this folder query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from tests.queries.probe_table import FILES, ROWS, columns


@pytest.fixture(scope="module")
def home(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows in three formats, Delta with deletion vectors, Iceberg with delete files."""
    folder = tmp_path_factory.mktemp("probed")
    (folder / "t").mkdir()
    for i in range(FILES):
        pq.write_table(pa.table(columns(i)), folder / "t" / f"{i:02d}.parquet")
    secateur.collect(spark, str(folder / "t"))
    rows = spark.read.parquet(str(folder / "t")).repartitionByRange(FILES, "id")
    spark.sql(
        f"CREATE TABLE delta.`{folder / 'delta'}` USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        "'delta.columnMapping.mode' = 'name') AS SELECT * FROM parquet.`{}` WHERE false".format(folder / "t")
    )
    rows.write.format("delta").mode("append").save(str(folder / "delta"))
    spark.sql(f"DELETE FROM delta.`{folder / 'delta'}` WHERE id % 300 = 203")
    rows.writeTo("ice.tests.probed").using("iceberg").tableProperty("format-version", "2").tableProperty(
        "write.delete.mode", "merge-on-read"
    ).createOrReplace()
    spark.sql("DELETE FROM ice.tests.probed WHERE id % 300 = 203")
    few = pa.table({"k": pa.array(range(0, FILES * ROWS, 150)), "label": [f"l{v % 5}" for v in range(267)]})
    (folder / "few").mkdir()
    pq.write_table(few, folder / "few" / "0.parquet")
    secateur.collect(spark, str(folder / "few"))
    return folder


@pytest.fixture
def table(spark: SparkSession, pruner: secateur.Pruner, home: Path) -> Iterator[Path]:
    """Files are reckoned to be slow, so that a probe pays."""
    spark.conf.set("spark.secateur.filter.file.ms", "1000")
    spark.read.parquet(str(home / "t")).createOrReplaceTempView("t")
    spark.read.parquet(str(home / "few")).createOrReplaceTempView("few")
    yield home / "t"
    for key in ("spark.sql.adaptive.enabled", "spark.sql.autoBroadcastJoinThreshold"):
        spark.conf.unset(key)
