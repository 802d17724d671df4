"""What the log of a Delta table says, as values: which bounds and counts are believed, and how far."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.errors import WireError
from secateur.plan.columns import ScanColumn
from secateur.plan.types import parse_type
from secateur.stats.file_stats import ColumnStats
from secateur.stats.formats.delta import DeltaSource, DeltaTable
from tests.stats.jvm_columns import as_sent, flags, longs, texts
from tests.stats.lake import Lake, column, data, describe

ROWS = 10
SECOND = 1_000_000


def version(
    folder: Path,
    low: pa.Array,
    high: pa.Array,
    kind: str = "bigint",
    *,
    base: DeltaSource | None = None,
    count: int | None = None,
    widened: bool = False,
    pcols: list[list[str]] | None = None,
    pvals: list[list[Any]] | None = None,
    **columns: pa.Array,
) -> DeltaSource:
    """The version of a table with one column ``c``; files of ten rows without NULLs unless told otherwise."""
    files = len(low)
    sent = {
        "size": longs(*[100] * files),
        "deleted": longs(*[0] * files),
        "rows": longs(*[ROWS] * files),
        "wide": flags(*[False] * files),
        "nulls0": longs(*[0] * files),
        "partition": pa.array([0] * files, pa.int32()),
        "low0": low,
        "high0": high,
    } | columns
    wire = {
        "fp": "delta:/t@1",
        "roots": ["file:/t"],
        "cols": [[["c"], kind, int(widened), ["c"], -1]],
        "pcols": pcols or [],
        "pvals": pvals or [[]],
        "by_id": False,
        "count": files if count is None else count,
        "bulk": as_sent(folder, sent),
    }
    return DeltaSource.from_wire(wire, base)


def of_c(source: DeltaSource, kind: str = "bigint") -> ColumnStats:
    return column(DeltaTable.load(source, []).files, data("c", kind))


def doubles(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float64())


JAN_2024 = 1_704_067_200 * SECOND
IN_1970 = 86_400 * SECOND
TRUSTED: dict[str, tuple[str, pa.Array, pa.Array, Any, Any, bool]] = {
    # type, bounds as the log has them, bounds that are believed, whether they are values that occur
    "whole numbers": ("bigint", longs(-5), longs(9), -5, 9, True),
    "a bound is missing": ("bigint", longs(None), longs(9), None, 9, True),
    "text": ("string", texts("a"), texts("é"), b"a", "é".encode(), False),
    "text with a replacement character": ("string", texts("a\ufffd"), texts("b"), None, b"b", False),
    "double": ("double", doubles(0.1), doubles(0.25), 0.1, 0.25, False),
    "float": (
        "float",
        doubles(0.1),
        doubles(0.25),
        float(np.nextafter(np.float32(0.1), np.float32(-1))),
        float(np.nextafter(np.float32(0.25), np.float32(1))),
        False,
    ),
    "decimal": ("decimal(9,2)", texts("-1.50"), texts("2.25"), Decimal("-1.50"), Decimal("2.25"), True),
    "decimal with an exponent": ("decimal(9,2)", texts("1E+3"), texts("2E+3"), Decimal(1000), Decimal(2000), True),
    "decimal with more digits": ("decimal(9,2)", texts("1.234"), texts("2.25"), None, Decimal("2.25"), True),
    "date": ("date", texts("1970-01-02"), texts("1970-01-11"), 1, 10, True),
    "no date": ("date", texts("1970-1-2"), texts("1970-01-11"), None, 10, True),
    "no day of the calendar": ("date", texts("1970-02-30"), texts("1970-03-01"), None, 59, True),
    "local time": (
        "timestamp_ntz",
        texts("2024-01-01T00:00:00.000"),
        texts("2024-01-01T00:00:01.000"),
        JAN_2024,
        JAN_2024 + SECOND + 999,
        False,
    ),
    "moment": (
        "timestamp",
        texts("2024-01-01T01:00:00.000+01:00"),
        texts("2024-01-01T00:00:01.000Z"),
        JAN_2024,
        JAN_2024 + SECOND + 999,
        False,
    ),
    "moment before 1972 in a zone": (
        "timestamp",
        texts("1970-01-02T01:00:00.000+01:00"),
        texts("1970-01-02T01:00:00.000+01:00"),
        IN_1970 - 60 * SECOND,
        IN_1970 + 60 * SECOND + 999,
        False,
    ),
    "moment before 1972 in UTC": (
        "timestamp",
        texts("1970-01-02T00:00:00.000Z"),
        texts("1970-01-02T00:00:00.000Z"),
        IN_1970,
        IN_1970 + 999,
        False,
    ),
    "low above high": ("bigint", longs(9), longs(-5), None, None, True),
}


@pytest.mark.parametrize(("kind", "low", "high", "least", "most", "occurs"), TRUSTED.values(), ids=TRUSTED)
def test_bounds(tmp_path: Path, kind: str, low: pa.Array, high: pa.Array, least: Any, most: Any, occurs: bool) -> None:
    found = of_c(version(tmp_path, low, high, kind), kind)
    assert (found.low.to_pylist(), found.high.to_pylist()) == ([least], [most])
    assert (found.low_exact.tolist(), found.high_exact.tolist()) == ([occurs], [occurs])


def test_a_double_that_once_was_a_float_is_widened_like_one(tmp_path: Path) -> None:
    found = of_c(version(tmp_path, doubles(0.1), doubles(0.25), "double", widened=True), "double")
    assert found.low[0].as_py() < float(np.float32(0.1))
    assert found.high[0].as_py() > 0.25


def test_decimals_of_many_digits_are_moved_outwards(tmp_path: Path) -> None:
    kind, written = "decimal(25,2)", "12345678901234567000.00"
    found = of_c(version(tmp_path, texts(written), texts(written), kind), kind)
    assert found.low[0].as_py() < Decimal(written) < found.high[0].as_py()
    assert not found.low_exact.any()
    loose = of_c(version(tmp_path, texts(written), texts(written), kind, wide=flags(True)), kind)
    assert (loose.low.to_pylist(), loose.high.to_pylist()) == ([None], [None])


COUNTS: dict[str, tuple[int | None, int, bool, int | None, int | None, int | None, int | None, bool]] = {
    # rows, deleted, whether bounds are not tight, NULLs, bounds -> rows, NULLs, whether the bounds may occur
    "all is well": (10, 0, False, 3, 5, 10, 3, True),
    "no number of rows": (None, 0, False, 3, 5, None, 3, False),
    "NULLs are not counted": (10, 0, False, None, 5, 10, None, True),
    "more NULLs than rows": (10, 0, False, 11, 5, 10, None, True),
    "less than no NULLs": (10, 0, False, -1, 5, 10, None, True),
    "all NULL, yet bounds": (10, 0, False, 10, 5, 10, None, True),
    "all NULL": (10, 0, False, 10, None, 10, 10, True),
    "an empty file": (0, 0, False, 0, None, 0, 0, False),
    "some rows deleted, some NULL": (10, 4, False, 3, 5, 6, None, False),
    "some rows deleted, no NULL": (10, 4, False, 0, 5, 6, 0, False),
    "some rows deleted, all NULL": (10, 4, False, 10, None, 6, 6, False),
    "more rows deleted than there are": (10, 11, False, 0, 5, None, 0, False),
    "bounds are not tight": (10, 0, True, 3, 5, 10, None, False),
}


@pytest.mark.parametrize(
    ("rows", "deleted", "wide", "nulls", "bound", "left", "still_null", "occurs"), COUNTS.values(), ids=COUNTS
)
def test_counts(
    tmp_path: Path,
    rows: int | None,
    deleted: int,
    wide: bool,
    nulls: int | None,
    bound: int | None,
    left: int | None,
    still_null: int | None,
    occurs: bool,
) -> None:
    columns = {"rows": longs(rows), "deleted": longs(deleted), "wide": flags(wide), "nulls0": longs(nulls)}
    table = DeltaTable.load(version(tmp_path, longs(bound), longs(bound), **columns), [])
    found = column(table.files, data("c", "bigint"))
    assert table.files.rows.to_pylist() == [left]
    assert found.nulls.to_pylist() == [still_null]
    assert found.low_exact.tolist() == [occurs]
    contradiction = nulls is not None and rows is not None and not 0 <= nulls <= rows
    contradiction |= bound is not None and nulls is not None and nulls == rows
    assert found.low.to_pylist() == [None if contradiction else bound]
    assert table.missing.tolist() == [rows is None]


def test_nan_is_unknown_unless_there_is_no_value(tmp_path: Path) -> None:
    found = of_c(version(tmp_path, doubles(1.0, None), doubles(2.0, None), "double", nulls0=longs(0, ROWS)), "double")
    assert found.nans.to_pylist() == [None, 0]


UNREADABLE = {
    "read as another type": data("c", "int"),
    "not a column of the table": data("d", "bigint"),
    "a field of a struct": ScanColumn(1, "c", parse_type("bigint"), path=("x",)),
    "a hidden column": data("c", "bigint", "hidden"),
    "a type without order": data("c", "array<int>"),
    "no such partition": data("p", "int", "partition"),
}


@pytest.mark.parametrize("asked", UNREADABLE.values(), ids=UNREADABLE)
def test_nothing_is_known_of(tmp_path: Path, asked: ScanColumn) -> None:
    assert DeltaTable.load(version(tmp_path, longs(1), longs(2)), []).files.column(asked) is None


def test_partition_values(tmp_path: Path) -> None:
    source = version(
        tmp_path,
        longs(1, 1, 1),
        longs(2, 2, 2),
        pcols=[["p", "int"], ["bad", "int"]],
        pvals=[[7, 7], [None, "x"]],
        partition=pa.array([0, 1, 0], pa.int32()),
    )
    files = DeltaTable.load(source, []).files
    found = column(files, data("p", "int", "partition"))
    assert (found.low.to_pylist(), found.nulls.to_pylist()) == ([7, None, 7], [0, ROWS, 0])
    assert found.low_exact[[0, 2]].all()
    assert files.column(data("p", "bigint", "partition")) is None
    assert files.column(data("bad", "int", "partition")) is None


def test_a_later_version_takes_files_off_and_adds_some(tmp_path: Path) -> None:
    first = version(tmp_path, longs(*range(20)), longs(*range(20)))
    gone = {"gone": pa.array([0, 19], pa.int32())}
    second = version(tmp_path, longs(100), longs(100), base=first, count=19, **gone)
    assert of_c(second).low.to_pylist() == [*range(1, 19), 100]
    third = version(tmp_path, longs(), longs(), base=second, count=18, gone=pa.array([18], pa.int32()))
    assert of_c(third).low.to_pylist() == list(range(1, 19))
    assert of_c(first).low.to_pylist() == list(range(20))  # as it was
    with pytest.raises(WireError, match="has 20 files, but 19 came"):
        version(tmp_path, longs(100), longs(100), base=first, count=20, **gone)


def test_many_commits_are_put_together_and_stay_right(tmp_path: Path) -> None:
    source, expected = version(tmp_path, longs(0), longs(0)), [0]
    for i in range(1, 60):
        gone = [] if i % 3 else [0]
        expected = [*expected[len(gone) :], i]
        sent = pa.array(gone, pa.int32())
        source = version(tmp_path, longs(i), longs(i), base=source, count=len(expected), gone=sent)
    assert of_c(source).low.to_pylist() == expected
    assert source.facts["rows"].num_chunks <= 17


def test_files_without_statistics_get_those_of_their_footers(tmp_path: Path, files: Lake) -> None:
    path, size, time = describe(files.write("b.parquet", {"c": [7, None, 9]}))
    source = version(
        tmp_path,
        longs(1, None),
        longs(2, None),
        rows=longs(ROWS, None),
        nulls0=longs(0, None),
        path=texts(None, path),
        size=longs(100, size),
        time=longs(0, time),
    )
    before = DeltaTable.load(source, [files.store()])
    assert before.missing.tolist() == [False, True]
    assert before.uncollected is not None
    assert before.uncollected.paths.to_pylist() == [path]
    files.collect(before.uncollected)
    after = DeltaTable.load(source, [files.store()])
    found = column(after.files, data("c", "bigint"))
    assert (after.missing.tolist(), after.files.rows.to_pylist()) == ([False, False], [ROWS, 3])
    assert (found.low.to_pylist(), found.high.to_pylist(), found.nulls.to_pylist()) == ([1, 7], [2, 9], [0, 1])
    assert found.low_exact.tolist() == [True, False]


def test_where_the_files_are_is_asked_for_only_if_there_are_range_sets(tmp_path: Path) -> None:
    table = DeltaTable.load(version(tmp_path, longs(1, 2), longs(1, 2)), [])
    every = np.ones(0, np.bool_)
    assert (table.partial, table.values(None), table.wanted(every, {"c"}, filtered=True)) == (None, None, None)
    with pytest.raises(WireError, match="1 paths came for 2 files"):
        table.extend({"bulk": as_sent(tmp_path, {"path": texts("file:/t/a"), "time": longs(1)})})
    table.extend({"bulk": as_sent(tmp_path, {"path": texts("file:/t/a", "file:/t/b"), "time": longs(1, 2)})})
    values = table.values(["C"])
    assert values is not None
    assert (values.listing.paths.to_pylist(), values.columns) == (["file:/t/a", "file:/t/b"], frozenset({"c"}))


def test_row_groups_are_files(tmp_path: Path) -> None:
    table = DeltaTable.load(version(tmp_path, longs(1, 2, 3), longs(1, 2, 3)), [])
    groups, owner = table.row_groups(np.array([2, 0]))
    assert (column(groups, data("c", "bigint")).low.to_pylist(), owner.tolist()) == ([3, 1], [2, 0])
