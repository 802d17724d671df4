"""What the log says of values that are hard to bound: no row is lost."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tools.spark_metrics import files_read

import secateur
from secateur.plan.columns import ScanColumn
from secateur.plan.types import parse_type
from secateur.stats.formats.delta import DeltaSource, DeltaTable, Field
from tests.formats.delta import Alone, append, read


def table(type_: str, low: list[object], high: list[object], **given: object) -> DeltaTable:
    """Files of ten rows with these bounds, as they come from the log."""
    from secateur.stats.formats.delta import _facts

    count = len(low)
    kind = parse_type(type_)
    wire = {"bigint": pa.int64(), "int": pa.int64(), "double": pa.float64(), "float": pa.float64()}
    columns = {
        "size": pa.array([1] * count, pa.int64()),
        "deleted": pa.array(given.get("deleted", [0] * count), pa.int64()),
        "rows": pa.array(given.get("rows", [10] * count), pa.int64()),
        "wide": pa.array(given.get("wide", [False] * count)),
        "partition": pa.array([0] * count, pa.int32()),
        "low0": pa.array(low, wire.get(type_, pa.large_string())),
        "high0": pa.array(high, wire.get(type_, pa.large_string())),
        "nulls0": pa.array(given.get("nulls", [0] * count), pa.int64()),
    }
    fields = (Field(("x",), kind, bool(given.get("widened", False))),)
    return DeltaTable(DeltaSource("f@1", ("t",), fields, (), _facts(columns, fields, (), [[]])))


def bounds(type_: str, low: object, high: object, **given: object) -> tuple[object, object]:
    stats = table(type_, [low], [high], **{k: [v] for k, v in given.items() if k != "widened"}).files.column(
        ScanColumn(1, "x", parse_type(type_))
    )
    assert stats is not None
    return stats.low[0].as_py(), stats.high[0].as_py()


MS = 1_704_067_200_000_000


@pytest.mark.parametrize(
    ("type_", "low", "high", "expected"),
    [
        ("timestamp", "2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00.000Z", (MS, MS + 999)),
        ("timestamp", "2024-01-01T01:00:00.000+01:00", "2023-12-31T16:00:00.000-08:00", (MS, MS + 999)),
        ("timestamp", "1969-12-31T00:53:00.000+00:53", "1970-01-01T00:00:00.000Z", (-86_400_000_000 - 60_000_000, 999)),
        ("timestamp", "2024-01-01 00:00:00", "+10000-01-01T00:00:00.000Z", (None, None)),
        ("timestamp", "2024-02-30T00:00:00.000Z", "2024-03-01T00:00:00.000Z", (None, 1_709_251_200_000_999)),
        ("timestamp_ntz", "2024-01-01T00:00:00.000", "2024-01-01", (MS, MS + 999)),
        ("date", "2024-01-01", "2024-01-01T00", (19723, None)),
        ("string", "a", "b\ufffd", (b"a", None)),
        ("string", "\ufffd", "z", (None, b"z")),
        ("decimal(38,18)", "1E-18", "1.000000000000000001", ("1E-18", "1.000000000000001001")),
        ("decimal(10,2)", "1.234", "1E+2", (None, "100.00")),
        ("bigint", 5, 4, (None, None)),
    ],
)
def test_bounds(type_: str, low: object, high: object, expected: tuple[object, object]) -> None:
    found = bounds(type_, low, high)
    assert tuple(str(v) if type_.startswith("decimal") and v is not None else v for v in found) == expected


def test_deleted_rows() -> None:
    column = ScanColumn(1, "x", parse_type("bigint"))
    tested = table("bigint", [1, 1, None, 1], [9, 9, None, 9], deleted=[0, 4, 4, 11], nulls=[3, 3, 10, 0])
    stats = tested.files.column(column)
    assert stats is not None
    assert tested.files.rows.to_pylist() == [10, 6, 6, None]
    assert stats.nulls.to_pylist() == [3, None, 6, 0]
    assert stats.low_exact.tolist() == [True, False, False, False]
    wide = table("bigint", [1], [9], wide=[True], nulls=[3]).files.column(column)
    assert wide is not None
    assert (wide.nulls.to_pylist(), wide.low_exact.tolist()) == ([None], [False])


def test_counts_that_cannot_be_right() -> None:
    stats = table("bigint", [1, 1, 1], [9, 9, 9], nulls=[11, 10, -1]).files.column(
        ScanColumn(1, "x", parse_type("bigint"))
    )
    assert stats is not None
    assert stats.low.null_count == stats.high.null_count == stats.nulls.null_count == 3


def test_rounded_decimals_of_files_with_deletes() -> None:
    column = ScanColumn(1, "x", parse_type("decimal(38,2)"))
    stats = table("decimal(38,2)", ["1", "1"], ["2", "2"], wide=[False, True]).files.column(column)
    assert stats is not None
    assert stats.low.is_valid().to_pylist() == [True, False]


def test_decimals_that_a_double_cannot_hold_are_no_values() -> None:
    """Of sixteen digits and more, either side: a bound that was moved back below that is none either."""
    texts: list[object] = ["999999999999999", "1000000000000000", "-1000000000000000"]
    stats = table("decimal(38,0)", texts, texts).files.column(ScanColumn(1, "x", parse_type("decimal(38,0)")))
    assert stats is not None
    assert (stats.low_exact.tolist(), stats.high_exact.tolist()) == ([True, False, False], [True, False, False])


NASTY = {
    "d DOUBLE": [
        ("CAST('NaN' AS DOUBLE)", "1.0D"),
        ("1.0D", "2.0D"),
        ("-0.0D", "0.0D"),
        ("CAST('Infinity' AS DOUBLE)", "5.0D"),
        ("CAST('-Infinity' AS DOUBLE)", "NULL"),
        ("1e300D", "4.9E-324D"),
    ],
    "f FLOAT": [("CAST(0.1 AS FLOAT)", "CAST(0.3 AS FLOAT)"), ("CAST('NaN' AS FLOAT)", "NULL")],
    "m DECIMAL(38, 18)": [("0.000000000000000001", "NULL"), ("99999999999999999999.999999999999999999", "-1")],
    "s STRING": [
        ("repeat('é', 40)", "'a'"),
        ("concat(repeat('a', 32), '\U0010ffff', repeat('z', 9))", "repeat('a', 32)"),
        ("concat(repeat('\U0001f600', 33), 'x')", "''"),
        ("repeat('\U0010ffff', 70)", "'b'"),
        ("CAST(X'FF41' AS STRING)", "'c'"),
        ("CAST(X'80' AS STRING)", "'d\\\\n\"q'"),
    ],
    "ts TIMESTAMP": [
        ("TIMESTAMP '2024-01-01 00:00:00.123999'", "NULL"),
        ("TIMESTAMP '1880-06-01 00:00:00.5'", "TIMESTAMP '1880-06-01 00:00:31'"),
        ("TIMESTAMP '0001-01-01 00:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"),
        ("TIMESTAMP '2024-10-27 02:30:00'", "TIMESTAMP '2024-10-27 01:30:00'"),
    ],
}


@pytest.mark.long
@pytest.mark.parametrize("column", list(NASTY), ids=[c.split()[0] for c in NASTY])
def test_hard_values(spark: SparkSession, pruner: secateur.Pruner, lake: Path, column: str) -> None:
    """Every value is looked for by every comparison, equal and just at the edge, and compared with what the files hold.

    Not with what Delta finds: its own skipping loses a row with bytes that are no UTF-8.
    """
    name, kind = column.split(" ", 1)
    path = lake / name
    if name == "ts":
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        for pair in NASTY[column]:
            both = ", ".join(f"(CAST({v} AS {kind}))" for v in pair)
            append(spark.sql(f"SELECT * FROM VALUES {both} AS t({name})").coalesce(1), path)
        values = [v for pair in NASTY[column] for v in pair if v != "NULL"]
        conditions = [f"{name} {op} CAST({v} AS {kind})" for v in values for op in ("=", ">=", "<=")]

        def counts(table: str) -> DataFrame:
            parts = (f"SELECT {n} AS c, count(*) AS k FROM {table} WHERE {c}" for n, c in enumerate(conditions))
            return spark.sql(" UNION ALL ".join(parts))

        expected = counts(f"parquet.`{path}/*.parquet`").collect()
        frame = counts(f"delta.`{path}`")
        found = frame.collect()
        assert sorted(found) == sorted(expected)
        assert files_read(frame) <= len(conditions) * len(NASTY[column])
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_nan_is_not_lost(spark: SparkSession, alone: Alone, lake: Path) -> None:
    append(spark.sql("SELECT * FROM VALUES (1.0D), (2.0D) AS t(d)").coalesce(1), lake / "n")
    append(spark.sql("SELECT * FROM VALUES (CAST('NaN' AS DOUBLE)), (3.0D) AS t(d)").coalesce(1), lake / "n")
    assert len(alone(lambda: read(spark, lake / "n", "d > 100"), lake / "n").rows) == 1
    assert len(alone(lambda: read(spark, lake / "n", "isnan(d)"), lake / "n").rows) == 1
    assert alone(lambda: read(spark, lake / "n", "d < 1.5"), lake / "n").files == 1
    # As Delta does: the greatest value is known, and it is no NaN.
    for condition, files in (
        ("d > 2.5D", 1),
        ("2 <= d", 2),
        ("d >= 2.5D", 1),
        ("NOT (d <= 2.5D)", 2),
        ("abs(d) > 2.5D", 2),
    ):
        assert alone(lambda c=condition: read(spark, lake / "n", c), lake / "n").files <= files  # type: ignore[misc]


RUST: dict[str, tuple[pa.DataType, str, str, list[Any]]] = {
    # values, one for each file, how a literal of them is made, and an expression that Delta does not skip files by
    "w": (
        pa.decimal128(25, 2),
        "{}BD",
        "w * 1",
        ["12345678901234567890.05", "-12345678901234567891.99", "3.07", "10000000000000000.01"],
    ),
    "n": (pa.decimal128(38, 0), "{}BD", "abs(n)", ["9" * 38, "1000123", "9" * 15, "1000000000000001"]),
    "f": (pa.float32(), "CAST('{}' AS FLOAT)", "f * 1", [0.1, 16777217.0, -0.0, 3.4e38]),
    "d": (pa.float64(), "CAST('{}' AS DOUBLE)", "d * 1", [0.1, 1e300, float("nan"), 5e-324]),
    "l": (pa.int64(), "{}L", "l + 0", [2**62 + 1, -(2**62) - 1, 0, 2**53 + 1]),
    "s": (pa.string(), "'{}'", "substr(s, 1)", ["é" * 80, "\U0010ffff" * 70, "a" * 64 + "b", ""]),
    "ts": (
        pa.timestamp("us", "UTC"),
        "timestamp_micros({})",
        "ts + INTERVAL '0' HOUR",
        [1_704_067_200_123_456, -500, 0, 1_704_067_200_123_999],
    ),
    "ntz": (
        pa.timestamp("us"),
        "CAST(timestamp_micros({}) AS TIMESTAMP_NTZ)",
        "ntz + INTERVAL '0' HOUR",
        [1_704_067_200_123_456, -500, 0, 1_704_067_200_123_999],
    ),
    "day": (pa.date32(), "date_from_unix_date({})", "date_add(day, 0)", [19_000, -1, 0, 2_932_896]),
}


def test_a_table_that_delta_rs_wrote(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    """It puts decimals down as doubles, and cuts texts and times in its own way."""
    for i in range(4):
        columns = {
            name: pa.array([Decimal(v[i]) if pa.types.is_decimal(kind) else v[i]], kind)
            for name, (kind, _, _, v) in RUST.items()
        }
        deltalake.write_deltalake(str(lake / "t"), pa.table(columns), mode="append")
    conditions = [
        f"{e} {op} {literal.format(value)}"
        for kind, literal, e, values in RUST.values()
        for value in values
        for op in (("=", ">=", "<=") if pa.types.is_decimal(kind) else ("=",))
    ]

    def query(source: str) -> DataFrame:
        parts = [f"SELECT {n} AS c, count(*) AS k FROM {source} WHERE {c}" for n, c in enumerate(conditions)]
        parts += [
            f"SELECT {-n} AS c, l AS k FROM (SELECT l FROM {source} ORDER BY {name} {how}, l LIMIT 1)"
            for n, (name, how) in enumerate(product(RUST, ("ASC", "DESC")), 1)
        ]
        return spark.sql(" UNION ALL ".join(parts))

    expected = {row.c: row.k for row in query(f"parquet.`{lake / 't'}/*.parquet`").collect()}
    frame = query(f"delta.`{lake / 't'}`")
    found = {row.c: row.k for row in frame.collect()}
    assert {conditions[c] if c >= 0 else c for c in expected if found[c] != expected[c]} == set()
    assert files_read(frame) < 4 * len(expected) * 0.6
