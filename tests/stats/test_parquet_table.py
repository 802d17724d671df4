"""Statistics reach the right file under the right type and name, or not at all."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from secateur.plan.columns import ScanColumn
from secateur.stats.formats.parquet import ParquetTable
from secateur.stats.listing import Listing
from tests.stats.lake import Lake, column, data, ordinals

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def highs(stats: ParquetTable, name: str = "c", kind: str = "bigint") -> list[Any]:
    found: list[Any] = column(stats.files, data(name, kind)).high.to_pylist()
    return found


def reordered(listing: Listing, order: list[int]) -> Listing:
    at = ordinals(*order)
    return Listing("x", listing.roots, listing.paths.take(pa.array(at)), listing.lengths[at], listing.mtimes[at], {})


def test_alignment_follows_the_listing(files: Lake) -> None:
    for i in range(4):
        files.write(f"{i}.parquet", {"c": [i, 10 + i]}, row_group_size=1)
    files.collect()
    order = [2, 0, 3, 1]
    assert highs(ParquetTable.load(reordered(files.listing(), order), [files.store()])) == [12, 10, 13, 11]
    (files.root / "1.parquet").unlink()
    files.write("00.parquet", {"c": [99]})
    stats = ParquetTable.load(files.listing(), [files.store()])
    assert stats.missing.tolist() == [False, True, False, False]
    assert highs(stats) == [10, None, 12, 13]
    assert stats.files.rows.to_pylist() == [2, None, 2, 2]
    assert stats.files.row_groups is not None
    assert stats.files.row_groups.to_pylist() == [2, None, 2, 2]


def test_an_overwritten_file_is_unknown_until_collected(files: Lake) -> None:
    path = files.write("f.parquet", {"c": [1]})
    os.utime(path, (1_000_000, 1_000_000))
    assert highs(files.stats()) == [1]
    files.write("f.parquet", {"c": [2]})
    os.utime(path, (2_000_000, 2_000_000))
    assert ParquetTable.load(files.listing(), [files.store()]).missing.all()
    assert highs(files.stats()) == [2]
    os.utime(path, (1_000_000, 1_000_000))  # whoever fakes times gets the statistics of that time
    files.write("f.parquet", {"c": [3, 4]})
    os.utime(path, (1_000_000, 1_000_000))
    assert highs(files.stats()) == [4]


def test_same_path_and_time_but_another_length_is_unknown(files: Lake) -> None:
    files.write("f.parquet", {"c": [1]})
    files.collect()
    listing = files.listing()
    other = Listing("x", listing.roots, listing.paths, listing.lengths + 1, listing.mtimes, {})
    assert ParquetTable.load(other, [files.store()]).missing.all()


def test_nothing_known(files: Lake) -> None:
    empty = ParquetTable.load(files.listing(), [files.store()])
    assert (empty.files.count, empty.files.column(data("c", "int"))) == (0, None)
    assert empty.files.blocks.count == 0
    files.write("f.parquet", {"c": [1]})
    stats = ParquetTable.load(files.listing(), [files.store()])
    assert stats.missing.tolist() == [True]
    assert stats.files.column(data("c", "bigint")) is None
    assert stats.row_groups(ordinals(0))[0].count == 0
    assert stats.files.rows.type == pa.int64()


FAMILIES = [
    ("tinyint", pa.int8(), True),
    ("tinyint", pa.int16(), False),
    ("tinyint", pa.uint8(), False),
    ("smallint", pa.uint8(), True),
    ("smallint", pa.int32(), False),
    ("int", pa.uint16(), True),
    ("int", pa.uint32(), False),
    ("int", pa.int64(), False),
    ("bigint", pa.int8(), True),
    ("bigint", pa.uint32(), True),
    ("bigint", pa.uint64(), False),
    ("double", pa.float32(), True),
    ("float", pa.float64(), False),
    ("double", pa.int32(), False),
    ("decimal(12,2)", pa.decimal128(10, 2), True),
    ("decimal(9,2)", pa.decimal128(10, 2), False),
    ("decimal(12,3)", pa.decimal128(10, 2), False),
    ("decimal(12,0)", pa.int32(), False),
    ("timestamp", pa.timestamp("us", "UTC"), True),
    ("timestamp", pa.timestamp("us"), False),
    ("timestamp_ntz", pa.timestamp("ms"), True),
    ("timestamp_ntz", pa.timestamp("ms", "UTC"), False),
    ("date", pa.date32(), True),
    ("date", pa.int32(), False),
    ("int", pa.date32(), False),
    ("boolean", pa.bool_(), True),
    ("string", pa.string(), True),
    ("string", pa.binary(), False),
    ("string collate UNICODE", pa.string(), False),
    ("binary", pa.binary(), False),
]

_SAMPLES = {
    pa.uint8(): 2**8 - 1,
    pa.uint16(): 2**16 - 1,
    pa.uint32(): 2**32 - 1,
    pa.int8(): -128,
    pa.bool_(): True,
    pa.string(): "1",
    pa.binary(): b"1",
}


@pytest.mark.parametrize(("kind", "stored", "used"), FAMILIES)
def test_only_types_that_spark_reads_value_for_value(files: Lake, kind: str, stored: pa.DataType, used: bool) -> None:
    values = pa.array([_SAMPLES.get(stored, 1)], stored)
    files.write("f.parquet", {"c": values})
    assert (files.stats().files.column(data("c", kind)) is not None) == used


@pytest.mark.parametrize(("kind", "stored"), [f[:2] for f in FAMILIES if f[2]])
def test_spark_does_read_those_types_value_for_value(
    spark: SparkSession, files: Lake, kind: str, stored: pa.DataType
) -> None:
    """The greatest value of the file type, where a wrong reading would show."""
    files.write("f.parquet", {"c": pa.array([_SAMPLES.get(stored, 1)], stored)})
    same = "c" if kind in ("string", "double") or kind.startswith("decimal") else _NUMBER.get(kind, "bigint(c)")
    row = spark.read.schema(f"c {kind}").parquet(str(files.root)).selectExpr(f"{same} x").first()
    assert row is not None
    found = column(files.stats().files, data("c", kind)).high.to_pylist()[0]
    assert found == (row.x.encode() if kind == "string" else row.x)


_NUMBER = {
    "date": "datediff(c, date'1970-01-01')",
    "timestamp": "unix_micros(c)",
    "timestamp_ntz": "unix_micros(cast(c as timestamp))",
}


def test_mixed_schemas_are_put_together(files: Lake) -> None:
    files.write("1.parquet", {"c": pa.array([1], pa.int32())})
    files.write("2.parquet", {"c": pa.array([2], pa.int64()), "d": [1]})
    files.collect()
    files.write("3.parquet", {"c": ["three"]})
    files.write("4.parquet", {"C": pa.array([4, None], pa.int16())})
    files.write("5.parquet", {"c": [5], "C": [6]})
    files.write("6.parquet", {"x": [1, 2]})
    files.write("7.parquet", {"c": [[7]]})
    stats = files.stats().files
    loaded = column(stats, data("c", "bigint"))
    assert loaded.low.to_pylist() == [1, 2, None, 4, None, None, None]
    assert loaded.nulls.to_pylist() == [0, 0, None, 1, None, 2, None]
    assert loaded.low_exact.tolist() == [True, True, False, True, False, False, False]
    exactly = column(stats, data("c", "bigint", case_sensitive=True))
    assert exactly.low.to_pylist() == [1, 2, None, None, 5, None, None]
    assert exactly.nulls.to_pylist() == [0, 0, None, 2, 0, 2, None]
    defaulted = column(stats, data("c", "bigint", has_default=True))
    assert defaulted.nulls.to_pylist() == [0, 0, None, 1, None, None, None]


def test_spark_reads_an_absent_column_as_null(spark: SparkSession, files: Lake) -> None:
    files.write("1.parquet", {"A": pa.array([1, 2], pa.int32())})
    files.write("2.parquet", {"a": pa.array([3], pa.int32()), "b": ["x"]})
    rows = spark.read.schema("a bigint, b string").parquet(str(files.root)).collect()
    assert sorted((r.a, r.b) for r in rows if r.b is None) == [(1, None), (2, None)]
    assert column(files.stats().files, data("B", "string")).nulls.to_pylist() == [2, 0]
    assert column(files.stats().files, data("a", "bigint")).high.to_pylist() == [2, 3]


@pytest.mark.parametrize("name", ["\u212a", "\u017f", "É", "İ"], ids=["kelvin", "long s", "É", "İ"])
def test_letters_that_languages_fold_differently_are_unclear(files: Lake, name: str) -> None:
    files.write("1.parquet", {name: [1]})
    for asked in (name.lower(), name.upper(), name.casefold()):
        if asked != name:
            assert files.stats().files.column(data(asked, "bigint")) is None, asked
    assert column(files.stats().files, data(name, "bigint")).high.to_pylist() == [1]


def test_row_groups(files: Lake) -> None:
    files.write("1.parquet", {"c": [1, 2, 3, 4, 5]}, row_group_size=2)
    files.write("2.parquet", {"c": [6, 7]})
    files.write("3.parquet", pa.table({"c": pa.array([], pa.int64())}))
    files.write("4.parquet", {"c": [8, None]}, row_group_size=1)
    files.collect()
    files.write("5.parquet", {"c": [9]})
    stats = ParquetTable.load(files.listing(), [files.store()])
    groups, owner = stats.row_groups(ordinals(3, 0, 4, 1, 2))
    assert owner.tolist() == [3, 3, 0, 0, 0, 1, 2]
    assert groups.rows.to_pylist() == [1, 1, 2, 2, 1, 2, 0]
    loaded = column(groups, data("c", "bigint"))
    assert loaded.low.to_pylist() == [8, None, 1, 3, 5, 6, None]
    assert loaded.nulls.to_pylist() == [0, 1, 0, 0, 0, 0, 0]
    assert min(groups.sizes.to_pylist()) > 0 or groups.rows.to_pylist()[-1] == 0


def test_partition_values_are_exact_constants(files: Lake) -> None:
    files.write("p=1/f.parquet", {"c": [1, 2, 3, 4]}, row_group_size=2)
    files.write("p=2/f.parquet", {"c": [1]})
    files.write("p=3/f.parquet", pa.table({"c": pa.array([], pa.int64())}))
    files.collect()
    files.write("p=4/f.parquet", {"c": [1]})
    files.write("p=5/f.parquet", {"c": [1]})
    values = {"p=1": [7.0, "a"], "p=2": [None, None], "p=3": ["NaN", "b"], "p=4": [None, "c"], "p=5": ["NaN", ""]}
    listing = files.listing([("d", "double"), ("s", "string")], values)
    stats = ParquetTable.load(listing, [files.store()])
    d = column(stats.files, data("d", "double", where="partition"))
    assert d.low.to_pylist() == d.high.to_pylist() == [7.0, None, None, None, None]
    assert d.nulls.to_pylist() == [0, 1, 0, None, 0]
    assert d.nans.to_pylist() == [0, 0, 0, 0, None]
    s = column(stats.files, data("s", "string", where="partition"))
    assert s.low.to_pylist() == [b"a", None, b"b", b"c", b""]
    assert s.low_exact.tolist() == [True, True, False, False, False]  # a file without rows has no such value
    groups, _ = stats.row_groups(ordinals(1, 0))
    assert column(groups, data("s", "string", where="partition")).high.to_pylist() == [None, b"a", b"a"]
    assert stats.files.column(data("d", "float", where="partition")) is None
    assert stats.files.column(data("x", "string", where="partition")) is None
    assert stats.files.column(data("d", "double", where="hidden")) is None


def test_blocks_hold_what_their_files_hold(files: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secateur.stats.file_stats.BLOCK", 3)
    for i in range(8):
        files.write(f"{i}.parquet", {"c": [i, None], "d": [float(i), math.nan]})
    blocks = files.stats().files.blocks
    assert blocks.rows.to_pylist() == [6, 6, 4]
    loaded = column(blocks, data("c", "bigint"))
    assert loaded.low.to_pylist() == [0, 3, 6]
    assert loaded.high.to_pylist() == [2, 5, 7]
    assert loaded.nulls.to_pylist() == [3, 3, 2]
    assert column(blocks, data("d", "double")).nans.to_pylist() == [None, None, None]


def test_a_file_listed_twice_is_known_at_least_once(files: Lake) -> None:
    files.write("f.parquet", {"c": [1]})
    files.collect()
    twice = reordered(files.listing(), [0, 0])
    stats = ParquetTable.load(twice, [files.store()])
    assert stats.missing.sum() <= 1
    assert set(highs(stats)) <= {1, None}


def test_int96_has_null_counts_only(files: Lake) -> None:
    values = pa.array([0, None], pa.timestamp("us", "UTC"))
    files.write("f.parquet", {"t": values}, use_deprecated_int96_timestamps=True)
    loaded = column(files.stats().files, ScanColumn(1, "t", data("t", "timestamp").type))
    assert loaded.low.to_pylist() == [None]
    assert loaded.nulls.to_pylist() in ([1], [None])
    assert loaded.low_exact.dtype == np.bool_
