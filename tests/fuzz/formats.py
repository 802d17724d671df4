"""The tables of :mod:`tests.fuzz.tables` as a lake: Parquet, Delta and Iceberg, each with what is awkward about it.

All rows of some files are put in one order and dealt out anew, so that the files of a table are clustered by one column
or by none; some are empty. Some columns come in addition: ``id`` numbers the rows, those of :data:`RISING` follow it
with ties and NULLs, ``g`` is one group in most of the files, and ``v`` says nothing about them. Parquet files have
several row groups; some have no statistics, or none of some columns, or none were collected. Rows of Delta and Iceberg
are deleted by deletion vectors and delete files.
"""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import secateur
from tests.fuzz.regressions import settings
from tests.fuzz.tables import COLUMNS, arrow, column, tables

RISING = {"x": "bigint", "y": "double", "z": "string", "c": "decimal(12,3)", "day": "date", "at": "timestamp"}
KINDS = {**COLUMNS, **RISING, "id": "bigint", "g": "int", "v": "int"}
NAMES = ("parquet_t", "delta_t", "iceberg_t")
"""The views of the three tables."""
_CLUSTERED = ("i", "l", "d", "q", "s", "da", "ts", "n", "k", "id", "id", "id")


def write_lake(spark: SparkSession, folder: Path, rng: Random, *, nasty: bool, files: int = 20) -> None:
    """The three tables, below a folder of their own."""
    folder.mkdir(parents=True)
    for name, write in zip(NAMES, (_parquet, _delta, _iceberg), strict=True):
        rows = _dealt(rng, nasty=nasty, files=files, text=name != "parquet_t")
        write(spark, folder / name, rng, rows).createOrReplaceTempView(name)


def _dealt(rng: Random, *, nasty: bool, files: int, text: bool) -> list[pa.Table]:
    """The rows of a table, file by file. ``text``: strings are UTF-8, which logs and manifests are made of."""
    rows = pa.concat_tables([arrow(file) for file in tables(rng, nasty=nasty, files=files * 3)])
    if text:
        st = rows["st"].combine_chunks()
        nested = pa.StructArray.from_arrays(
            [st.field("x"), _readable(st.field("y")), st.field("z")], ["x", "y", "z"], mask=st.is_null()
        )
        for name, values in (("s", _readable(rows["s"])), ("t", _readable(rows["t"])), ("st", nested)):
            rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    by = rng.choice(_CLUSTERED)
    if by != "id":
        rows = rows.take(pc.sort_indices(rows, sort_keys=[(by, rng.choice(("ascending", "descending")))]))
    count = len(rows)
    in_order = by == "id" or rng.random() < 0.8
    ids = np.arange(count) if in_order else np.random.default_rng(rng.randrange(99)).permutation(count)
    rows = rows.append_column("id", pa.array(ids, pa.int64()))
    ties = rng.choice((1, 4, 12, 30))
    rising = {
        "x": [n - 100 for n in ids // ties],
        "y": [{7: math.nan, 11: -0.0, 13: 0.0}.get(n % 40, (n - 120) / 2) for n in (ids // ties).tolist()],
        "z": [f"{'common' * 6}{n:04}".encode() for n in ids // ties],
        "c": [Decimal(int(n)) / 8 for n in ids // ties],
        "day": [19_000 + int(n) for n in ids // ties],
        "at": [1_700_000_000_000_000 + 1001 * int(n) for n in ids // ties],
    }
    for name, values in rising.items():
        rows = rows.append_column(name, column([None if rng.random() < 0.03 else v for v in values], RISING[name]))
    # Delta has statistics of the first columns only.
    rows = rows.select(["id", *RISING, *(name for name in rows.column_names if name not in ("id", *RISING))])
    ends = sorted([0, count, *(rng.randrange(count) for _ in range(files - 2))])
    parts = [rows.slice(start, end - start) for start, end in pairwise(ends)] + [rows.slice(0, 0)]
    return [_numbered(rng, part, i) for i, part in enumerate(parts)]


def _readable(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    raw = texts.cast(pa.binary()).to_pylist()
    return pa.array([None if v is None else v.decode("utf-8", "replace") for v in raw], pa.string())


def _numbered(rng: Random, part: pa.Table, number: int) -> pa.Table:
    group = rng.choice((0, 0, 0, 1, 1, 1, 2, None, "mixed"))
    groups = [rng.choice((0, 1, 2, None)) if group == "mixed" else group for _ in range(len(part))]
    part = part.add_column(1, "g", pa.array(groups, pa.int32()))
    for name, type_ in RISING.items():
        if rng.random() < 0.08:
            part = part.set_column(part.schema.get_field_index(name), name, column([None] * len(part), type_))
    part = part.append_column("v", pa.array([rng.randrange(5) for _ in range(len(part))], pa.int32()))
    return part.append_column("f", pa.array([number] * len(part), pa.int32()))


def _parquet(spark: SparkSession, folder: Path, rng: Random, files: list[pa.Table]) -> DataFrame:
    folder.mkdir()

    def write(part: pa.Table, number: int) -> None:
        known = rng.choice((True, True, True, True, False, ["id", "g", "i", "ts", "s"]))
        pq.write_table(
            part, folder / f"{number:02}.parquet", row_group_size=rng.choice((2, 3, 1000)), write_page_index=True,
            data_page_size=64, write_statistics=known,
        )  # fmt: skip

    late = rng.randrange(len(files) * 2)
    for number, part in enumerate(files):
        if number != late:
            write(part, number)
    secateur.collect(spark, str(folder), progress=False)
    if late < len(files):
        write(files[late], late)
    return spark.read.parquet(str(folder))


def _plain(spark: SparkSession, folder: Path, files: list[pa.Table]) -> DataFrame:
    """The rows to be written by a connector, a file for each file."""
    source = folder.with_name(folder.name + "_rows.parquet")
    pq.write_table(pa.concat_tables(files), source)
    return spark.read.parquet(str(source))


_ROW_GROUPS = {"parquet.block.row.count.limit": "3", "parquet.page.row.count.limit": "2"}


def _delta(spark: SparkSession, folder: Path, rng: Random, files: list[pa.Table]) -> DataFrame:
    rows = _plain(spark, folder, files)
    rows.createOrReplaceTempView("rows_of_delta")
    by = rng.choice(("", "", "PARTITIONED BY (g)"))
    spark.sql(
        f"CREATE TABLE delta.`{folder}` USING delta {by} TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', "
        f"'delta.dataSkippingNumIndexedCols' = '{rng.choice((32, 32, 14))}') AS SELECT * FROM rows_of_delta WHERE false"
    )
    alone = rng.choice((-1, rng.randrange(len(files))))
    rows.where(col("f") != alone).repartitionByRange(len(files), "f").write.format("delta").mode("append").options(
        **_ROW_GROUPS
    ).save(str(folder))
    if alone >= 0:
        with settings(spark, {"spark.databricks.delta.stats.collect": "false"}):
            rows.where(col("f") == alone).write.format("delta").mode("append").save(str(folder))
    spark.sql(f"DELETE FROM delta.`{folder}` WHERE {rng.choice(_DELETED)}")
    return spark.read.format("delta").load(str(folder))


_DELETED = (
    "id % 7 = 3", "f IN (1, 4) AND id % 3 > 0", "f IN (0, 18) AND v <> 3", "f = 1 AND v <> 3", "id < 10 AND v > 2",
)  # fmt: skip


def _iceberg(spark: SparkSession, folder: Path, rng: Random, files: list[pa.Table]) -> DataFrame:
    name = f"ice.fuzz.{folder.parent.name.replace('-', '_')}"
    # Iceberg has no integers of less than 32 bits.
    rows = _plain(spark, folder, files).withColumns({"a": col("a").cast("int"), "b": col("b").cast("int")})
    writer = rows.repartitionByRange(len(files), "f").writeTo(name).using("iceberg")
    properties = {
        "format-version": "2",
        "write.delete.mode": "merge-on-read",
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
        "write.parquet.row-group-size-bytes": "64",
        "write.parquet.row-group-check-min-record-count": "2",
        "write.metadata.metrics.default": rng.choice(("truncate(16)", "truncate(2)", "full", "truncate(16)")),
        f"write.metadata.metrics.column.{rng.choice(('i', 'ts', 's', 'l'))}": rng.choice(("none", "counts")),
    }
    for key, value in properties.items():
        writer = writer.tableProperty(key, value)
    by = rng.choice(("", "", "g"))
    (writer.partitionedBy(col(by)) if by else writer).createOrReplace()
    spark.sql(f"DELETE FROM {name} WHERE {rng.choice(_DELETED)}")
    return spark.table(name)
