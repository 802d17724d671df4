"""What is believed of a footer, writer by writer: each trap of Parquet statistics with a real file."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from secateur.stats.collect.footers import read_footers
from tests.stats.lake import Lake, cells, describe

D = decimal.Decimal
NAN = math.nan
MODERN = dt.datetime(2020, 1, 1)
MODERN_MICROS = 1_577_836_800_000_000

# PySpark leaves the socket of a collect() to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def known(low: Any, high: Any, nulls: int | None = 0, nans: int | None = 0, exact: bool = True) -> dict[str, Any]:
    return {"min": low, "max": high, "nulls": nulls, "nans": nans, "minexact": exact, "maxexact": exact}


def unbounded(nulls: int | None = 0, nans: int | None = 0) -> dict[str, Any]:
    return known(None, None, nulls, nans, exact=False)


PYARROW = [
    ("int8", pa.array([-1, 5], pa.int8()), "int8", known(-1, 5)),
    ("uint8", pa.array([1, 255], pa.uint8()), "uint8", known(1, 255)),
    ("uint16", pa.array([1, 65535], pa.uint16()), "uint16", known(1, 65535)),
    ("uint32 beyond int32", pa.array([1, 2**32 - 1], pa.uint32()), "uint32", known(1, 2**32 - 1)),
    ("uint64", pa.array([1, 2**63 - 1], pa.uint64()), "uint64", known(1, 2**63 - 1)),
    ("uint64 beyond int64", pa.array([1, 2**64 - 1], pa.uint64()), "uint64", unbounded()),
    ("bool", pa.array([True, None, False]), "bool", known(0, 1, 1)),
    ("string", pa.array(["b", "é", None]), "string", known(b"b", "é".encode(), 1, exact=False)),
    ("large string", pa.array(["a"], pa.large_string()), "string", known(b"a", b"a", exact=False)),
    ("dictionary", pa.array(["a", "c"]).dictionary_encode(), "string", known(b"a", b"c", exact=False)),
    ("string too long", pa.array(["x" * 5000]), "string", unbounded()),
    ("float without NaN", pa.array([1.5, -2.5], pa.float32()), "float", known(-2.5, 1.5, nans=None)),
    ("double with NaN", pa.array([1.0, NAN, 3.0]), "double", known(1.0, 3.0, nans=None)),
    ("only NaN", pa.array([NAN, NAN]), "double", unbounded(nans=None)),
    ("infinities", pa.array([math.inf, -math.inf]), "double", known(-math.inf, math.inf, nans=None)),
    ("zero is widened", pa.array([0.0]), "double", known(-0.0, 0.0, nans=None, exact=False)),
    ("all null", pa.array([None, None], pa.int32()), "int32", unbounded(2)),
    ("all null double", pa.array([None, None], pa.float64()), "double", unbounded(2, 0)),
    (
        "decimal",
        pa.array([D("-1.50"), D("300.25")], pa.decimal128(10, 2)),
        "decimal(10,2)",
        known(D("-1.50"), D(300.25)),
    ),
    (
        "decimal of 38 digits",
        pa.array([D("-" + "9" * 38), D("9" * 38)], pa.decimal128(38, 0)),
        "decimal(38,0)",
        known(D("-" + "9" * 38), D("9" * 38)),
    ),
    ("date", pa.array([dt.date(1969, 12, 31), dt.date(2020, 1, 1)]), "date", known(-1, 18262)),
    ("date before Gregory", pa.array([dt.date(1500, 1, 1), dt.date(2020, 1, 1)]), "date", unbounded()),
    ("first Gregorian date", pa.array([dt.date(1582, 10, 15)]), "date", known(-141427, -141427)),
    ("ms", pa.array([MODERN], pa.timestamp("ms")), "timestamp_ms", known(MODERN_MICROS, MODERN_MICROS)),
    ("us utc", pa.array([MODERN], pa.timestamp("us", "UTC")), "timestamp_us_utc", known(MODERN_MICROS, MODERN_MICROS)),
    (
        "us before 1900",
        pa.array([dt.datetime(1899, 12, 31), MODERN], pa.timestamp("us", "UTC")),
        "timestamp_us_utc",
        unbounded(),
    ),
    ("ms beyond int64 us", pa.array([2**62], pa.timestamp("ms")), "timestamp_ms", unbounded()),
    ("ns", pa.array([MODERN], pa.timestamp("ns")), None, {}),
    ("binary", pa.array([b"a"]), None, {}),
    ("float16", pa.array(np.array([1.0], np.float16)), None, {}),
    ("time", pa.array([1], pa.time32("ms")), None, {}),
    ("decimal256", pa.array([D(1)], pa.decimal256(50, 2)), None, {}),
    ("list", pa.array([[1]]), None, {}),
    ("struct", pa.array([{"c": 1}]), None, {}),
    ("null", pa.nulls(2), None, {}),
]


@pytest.mark.parametrize(("values", "family", "expected"), [p[1:] for p in PYARROW], ids=[p[0] for p in PYARROW])
def test_pyarrow(files: Lake, values: pa.Array, family: str | None, expected: dict[str, Any]) -> None:
    path = files.write("f.parquet", {"c": values})
    assert cells(path, "c") == {"family": family, "error": None, **expected}


def test_no_statistics_are_unknown_and_not_zero(files: Lake) -> None:
    path = files.write("f.parquet", {"c": [1, 2]}, write_statistics=False)
    assert cells(path, "c") == {"family": "int64", "error": None, **known(None, None, None, None, exact=False)}


def test_names_of_columns_are_kept_apart(files: Lake) -> None:
    table = pa.table({"a.b": [1], "a": [{"b": 7}], "x|y:z %é": [2], "l": [[9]]})
    row = read_footers([describe(files.write("f.parquet", table))]).to_pylist()[0]
    assert row["c:a%2Eb|int64|max"] == 1
    assert row["c:x%7Cy%3Az%20%25%C3%A9|int64|max"] == 2
    assert row["columns"] == '["a.b", "a", "x|y:z %é", "l"]'
    assert row["n:a/b|int64|max"] == 7
    assert sum(key.endswith("|max") for key in row) == 3
    assert row["fields"] == '[["a.b", null], ["a", [["b", null]]], ["x|y:z %é", null], ["l", null]]'


def test_a_name_that_occurs_twice_is_not_believed(files: Lake) -> None:
    path = files.write("f.parquet", pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["c", "c"]))
    assert cells(path, "c")["family"] is None


def test_schemas_that_differ_in_a_group_only_are_not_confused(files: Lake) -> None:
    first = files.write("1.parquet", {"a": [{"x": 1}]})
    second = files.write("2.parquet", {"b": [{"x": 1}]})
    third = files.write("3.parquet", {"t": pa.array([0], pa.timestamp("us"))})
    fourth = files.write("4.parquet", {"t": pa.array([0], pa.timestamp("us", "UTC"))})
    table = read_footers([describe(p) for p in (first, second, third, fourth)])
    assert table["columns"].to_pylist() == ['["a"]', '["b"]', '["t"]', '["t"]']
    assert table["c:t|timestamp_us|min"].to_pylist() == [None, None, 0, None]
    assert table["c:t|timestamp_us_utc|min"].to_pylist() == [None, None, None, 0]


def test_row_groups_follow_their_file(files: Lake) -> None:
    path = files.write("f.parquet", {"c": [3, 1, None, None, 9], "d": [1.0, 2.0, 3.0, 4.0, NAN]}, row_group_size=2)
    table = read_footers([describe(path), describe(path)])
    assert table["row_group"].to_pylist() == [None, 0, 1, 2] * 2
    assert table["rows"].to_pylist()[:4] == [5, 2, 2, 1]
    assert table["c:c|int64|min"].to_pylist()[:4] == [1, 1, None, 9]
    assert table["c:c|int64|max"].to_pylist()[:4] == [9, 3, None, 9]
    assert table["c:c|int64|nulls"].to_pylist()[:4] == [2, 0, 2, 0]
    # One group holds NaN only, so it has no bounds: unknown for the file.
    assert table["c:d|double|max"].to_pylist()[:4] == [None, 2.0, 4.0, None]


def test_empty_files(files: Lake) -> None:
    none = files.write("0.parquet", pa.table({"c": pa.array([], pa.int64())}))
    duckdb.sql(f"copy (select 1 c where false) to '{files.root}/1.parquet'")
    table = read_footers([describe(none), describe(files.root / "1.parquet")])
    assert table["rows"].to_pylist() == [0, 0]
    assert table["row_groups"].to_pylist() == [1, 0]
    assert table["error"].null_count == 2


@pytest.mark.parametrize("wrong", [(1, 0), (0, 1), (0, -1)], ids=["length", "later", "earlier"])
def test_a_file_that_is_not_the_one_listed_is_unknown(files: Lake, wrong: tuple[int, int]) -> None:
    path, length, mtime = describe(files.write("f.parquet", {"c": [1]}))
    row = read_footers([(path, length + wrong[0], mtime + wrong[1])]).to_pylist()[0]
    assert row["rows"] is None
    assert "expected" in row["error"]


def test_what_cannot_be_read_is_unknown(files: Lake) -> None:
    garbage = files.root / "g.parquet"
    garbage.write_bytes(b"PAR1 nonsense PAR1")
    good = files.write("f.parquet", {"c": [1]})
    cut = files.write("h.parquet", {"c": list(range(1000))})
    os.truncate(cut, 200)
    table = read_footers(
        [describe(garbage), ("file:/nowhere", 1, 1), ("what://x/y", 1, 1), describe(cut), describe(good)]
    )
    assert table["error"].is_null().to_pylist() == [False, False, False, False, True]
    assert table["rows"].to_pylist() == [None, None, None, None, 1]


def patched(path: Path, writer: bytes) -> Path:
    """The same file, signed by another writer: the text, its length before it, and the footer's length at the end."""
    content = path.read_bytes()
    signature = pq.read_metadata(path).created_by.encode()
    old, new = (bytes([len(text)]) + text for text in (signature, writer))
    assert content.count(old) == 1
    footer = int.from_bytes(content[-8:-4], "little") + len(new) - len(old)
    path.write_bytes(content[:-8].replace(old, new) + footer.to_bytes(4, "little") + b"PAR1")
    assert pq.read_metadata(path).created_by.encode() == writer
    return path


def test_strings_of_writers_that_compared_signed_bytes_are_refused(files: Lake) -> None:
    path = patched(files.write("f.parquet", {"c": ["a", "z"]}, store_schema=False), b"parquet-mr version 1.8.1")
    assert cells(path, "c")["min"] is None


def test_decimals_in_bytes_are_believed_of_known_writers_only(files: Lake) -> None:
    values = pa.array([D("-1.00"), D("5.00")], pa.decimal128(20, 2))
    for name, writer, low in [
        ("1", b"parquet-mr version 1.8.1", None),
        ("2", b"parquet-mr version 1.12.0", D(-1)),
        ("3", b"somebody else 1.0", None),
    ]:
        path = patched(files.write(f"{name}.parquet", {"c": values}), writer)
        assert cells(path, "c")["min"] == low, writer


MERGED = b"parquet-mr version 1.16.0 (build 402c3810c372d29603e181771acebfecc71bef61)"


@pytest.mark.parametrize(
    ("writer", "properties", "nans"),
    [
        (MERGED, {"org.apache.spark.version": "4.1.4"}, 0),
        (MERGED, {}, None),  # a tool that merges row groups signs the statistics of other writers
        (MERGED, {"org.apache.spark.version": "4.1.4", "merged": "yes"}, None),
        (MERGED.replace(b"1.16.0", b"1.9.0"), {"org.apache.spark.version": "2.2.0"}, None),
        (MERGED.replace(b"1.16.0", b"1.18.0"), {"org.apache.spark.version": "9.0.0"}, None),
        (MERGED.replace(b"1.16.0", b"1.12.3-fork"), {"org.apache.spark.version": "3.5.0"}, None),
    ],
)
def test_nan_is_excluded_for_spark_only(
    files: Lake, writer: bytes, properties: dict[str, str], nans: int | None
) -> None:
    path = files.root / "f.parquet"
    table = pa.table({"c": [1.0, 2.0]})
    with pq.ParquetWriter(path, table.schema, store_schema=False) as sink:
        sink.write_table(table)
        sink.add_key_value_metadata(properties)
    patched(path, writer)
    assert cells(path, "c") == {"family": "double", "error": None, **known(1.0, 2.0, nans=nans)}


def test_duckdb(files: Lake) -> None:
    path = files.root / "f.parquet"
    duckdb.sql(
        f"""copy (select * from (values
            (1.5::double, 2.5::float, 'a', 1.5::decimal(5,2), 1.5::decimal(30,2), true, date '2020-01-01',
             timestamp '2020-01-01', timestamptz '2020-01-01', 1::utinyint, null::int),
            ('nan'::double, 3.5::float, repeat('x', 5000), -2.5, -2.5, false, null, null, null, 2, null))
            t(d, f, s, d5, d30, b, dt, ts, tz, u, n)) to '{path}'"""
    )
    assert cells(path, "d")["nans"] is None
    assert cells(path, "f") == {"family": "float", "error": None, **known(2.5, 3.5, nans=None)}
    assert cells(path, "s")["min"] == b"a"
    assert cells(path, "s")["max"] >= b"x" * 256
    assert cells(path, "s")["maxexact"] is False
    for name, family in [("d5", "decimal(5,2)"), ("d30", "decimal(30,2)")]:
        assert cells(path, name) == {"family": family, "error": None, **known(D("-2.5"), D("1.5"))}
    assert cells(path, "b") == {"family": "bool", "error": None, **known(0, 1)}
    assert cells(path, "dt") == {"family": "date", "error": None, **known(18262, 18262, 1)}
    assert cells(path, "ts") == {"family": "timestamp_us", "error": None, **known(MODERN_MICROS, MODERN_MICROS, 1)}
    assert cells(path, "tz")["family"] == "timestamp_us_utc"
    assert cells(path, "u") == {"family": "uint8", "error": None, **known(1, 2)}
    assert cells(path, "n") == {"family": "int32", "error": None, **unbounded(2)}


def spark_file(spark: SparkSession, root: Path, sql: str, **options: str) -> Path:
    before = {key: spark.conf.get(key, None) for key in options}
    try:
        for key, value in options.items():
            spark.conf.set(key, value)
        spark.sql(sql).coalesce(1).write.mode("overwrite").parquet(str(root))
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
    return next(root.glob("*.parquet"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("(1), (3)", known(1.0, 3.0)),
        ("(1), (double('NaN')), (3)", unbounded(nans=None)),
        ("(double('NaN')), (-1), (null)", unbounded(1, nans=None)),
        ("(double('NaN'))", unbounded(nans=None)),
        ("(double('-Infinity')), (double('Infinity'))", known(-math.inf, math.inf)),
        ("(double('Infinity')), (double('NaN'))", unbounded(nans=None)),
        ("(double('0.0')), (5)", {**known(0.0, 5.0), "minexact": False}),
        ("(null)", unbounded(1, 0)),
    ],
)
@pytest.mark.parametrize("kind", ["double", "float"])
def test_spark_takes_nan_as_the_greatest(
    spark: SparkSession, files: Lake, values: str, expected: dict[str, Any], kind: str
) -> None:
    path = spark_file(spark, files.root / "t", f"select cast(x as {kind}) c from values {values} t(x)")
    assert cells(path, "c") == {"family": kind, "error": None, **expected}


def test_spark_with_nan_in_many_pages_and_groups(spark: SparkSession, files: Lake) -> None:
    """NaN in the last page must show in the whole chunk, with and without a dictionary."""
    for dictionary in ("true", "false"):
        frame = spark.range(0, 20000, 1, 1).selectExpr("if(id = 19990, double('NaN'), id * 1.0D) c", "id * 1.0D d")
        root = files.root / dictionary
        frame.write.option("parquet.enable.dictionary", dictionary).option("parquet.page.size", 2000).parquet(str(root))
        path = next(root.glob("*.parquet"))
        assert cells(path, "c")["nans"] is None
        assert cells(path, "c")["max"] is None
        assert cells(path, "d")["nans"] == 0
        assert cells(path, "d")["max"] == 19999.0


@pytest.mark.parametrize("legacy", ["true", "false"])
def test_spark_decimals(spark: SparkSession, files: Lake, legacy: str) -> None:
    path = spark_file(
        spark,
        files.root / "t",
        """select cast(x as decimal(5,2)) a, cast(x as decimal(15,2)) b, cast(x as decimal(38,10)) c
           from values ('-1.5'), ('300.25'), ('-200'), (null) t(x)""",
        **{"spark.sql.parquet.writeLegacyFormat": legacy},
    )
    for name, family in [("a", "decimal(5,2)"), ("b", "decimal(15,2)"), ("c", "decimal(38,10)")]:
        assert cells(path, name) == {"family": family, "error": None, **known(D(-200), D("300.25"), 1)}


OLD = """select date'1500-01-01' d, timestamp'1500-01-01 00:00:00' t
         union all select date'2020-01-01', timestamp'2020-01-01 00:00:00'"""


@pytest.mark.parametrize(("mode", "believed"), [("CORRECTED", True), ("LEGACY", False)])
def test_spark_dates_before_gregory(spark: SparkSession, files: Lake, mode: str, believed: bool) -> None:
    options = {
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
    path = spark_file(spark, files.root / "t", OLD, **options)
    assert cells(path, "d")["min"] == (-171664 if believed else None)
    assert cells(path, "t")["min"] == (-14831769600000000 if believed else None)
    assert cells(path, "d")["nulls"] == 0
    # What is believed is what Spark reads.
    days = spark.read.parquet(str(path)).selectExpr("datediff(min(d), date'1970-01-01')").first()
    assert days is not None
    assert days[0] == -171664


def test_hadoop_describes_files_as_we_do(spark: SparkSession, files: Lake) -> None:
    """Path text, length and time as Hadoop gives them, for a name with everything that URLs would escape."""
    files.write("p=a b%20/ü#?+&.parquet", {"c": [1]})
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    folder = hadoop.Path("file", "", str(files.root / "p=a b%20"))
    statuses = folder.getFileSystem(spark._jsc.hadoopConfiguration()).listStatus(folder)
    found = [(s.getPath().toString(), s.getLen(), s.getModificationTime()) for s in statuses if s.getLen() > 100]
    assert len(found) == 1
    assert read_footers(found)["error"].to_pylist() == [None]


def test_spark_types(spark: SparkSession, files: Lake) -> None:
    path = spark_file(
        spark,
        files.root / "t",
        """select timestamp'2020-01-01 00:00:00' t, true b, 1Y y, 2S s, 3 i, 4L l, 'é' st, repeat('x', 5000) big,
                  cast(null as int) n""",
    )
    nulls = 0 if int(pa.__version__.split(".")[0]) >= 22 else None  # Arrow tells nothing about int96 before
    assert cells(path, "t") == {"family": "int96", "error": None, **unbounded(nulls, nulls)}
    assert cells(path, "b") == {"family": "bool", "error": None, **known(1, 1)}
    for name, family, value in [("y", "int8", 1), ("s", "int16", 2), ("i", "int32", 3), ("l", "int64", 4)]:
        assert cells(path, name) == {"family": family, "error": None, **known(value, value)}
    assert cells(path, "st")["max"] == "é".encode()
    assert cells(path, "big") == {"family": "string", "error": None, **unbounded(None)}
    assert cells(path, "n") == {"family": "int32", "error": None, **unbounded(1)}


VALUES = st.one_of(
    st.tuples(st.just(pa.int32()), st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=30)),
    st.tuples(st.just(pa.uint32()), st.lists(st.none() | st.integers(0, 2**32 - 1), max_size=30)),
    st.tuples(st.just(pa.float64()), st.lists(st.none() | st.floats(), max_size=30)),
    st.tuples(st.just(pa.float32()), st.lists(st.none() | st.floats(width=32), max_size=30)),
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.text(max_size=5), max_size=30)),
    st.tuples(st.just(pa.bool_()), st.lists(st.none() | st.booleans(), max_size=30)),
    st.tuples(
        st.just(pa.decimal128(25, 3)),
        st.lists(st.none() | st.integers(1 - 10**25, 10**25 - 1).map(lambda v: D(f"{v}E-3")), max_size=30),
    ),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(typed=VALUES, size=st.integers(1, 12))
def test_bounds_hold_for_all_values(files: Lake, typed: tuple[pa.DataType, list[Any]], size: int) -> None:
    kind, values = typed
    path = files.write("f.parquet", {"c": pa.array(values, kind)}, row_group_size=size)
    table = read_footers([describe(path)])
    assert table["error"].null_count == len(table)
    keys = {name.split("|")[2]: name for name in table.column_names if name.startswith("c:")}
    for row in table.to_pylist():
        at = row["row_group"]
        part = values if at is None else values[at * size : (at + 1) * size]
        assert row["rows"] == len(part)
        plain = [v for v in part if v is not None and not (isinstance(v, float) and math.isnan(v))]
        raw = [v.encode() if isinstance(v, str) else v for v in plain]
        low, high, nulls, nans = (row[keys[s]] for s in ("min", "max", "nulls", "nans"))
        assert nulls in (None, sum(v is None for v in part))
        assert nans in (None, len(part) - len(plain) - sum(v is None for v in part))
        assert (low is None) == (high is None)
        if low is not None:
            assert all(low <= v <= high for v in raw)
            assert not row[keys["minexact"]] or low in raw
            assert not row[keys["maxexact"]] or high in raw
