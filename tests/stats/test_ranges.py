"""Range-sets of files: what is read, what is not believed, and where they are kept."""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from secateur.evaluate.subfiles import values_of
from secateur.plan.columns import ScanColumn
from secateur.plan.types import parse_type
from secateur.stats.collect.collector import CollectReport, collect_ranges
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.formats.parquet import ParquetTable
from secateur.stats.listing import Listing, Values
from secateur.stats.narrowest_ranges import narrowest_ranges
from tests.stats.lake import Lake, data

NAN, INF = float("nan"), float("inf")
DAY = datetime.date
UTC = datetime.timezone.utc


def ranged(files: Lake, columns: list[str] | None = None, most: int = 20) -> CollectReport:
    files.collect()
    values = ParquetTable(files.listing(), [files.store()]).values(columns)
    return collect_ranges(values, [files.store()], most=most)


def loaded(files: Lake, column: ScanColumn, listing: Listing | None = None) -> FileRangeSets | None:
    return ParquetTable.load(listing or files.listing(), [files.store()]).files.range_sets(column)


def sets(files: Lake, column: ScanColumn) -> list[list[tuple[Any, Any]] | None]:
    """The ranges of each file, None = unknown."""
    found = loaded(files, column)
    assert found is not None
    ends = list(zip(found.lows.to_pylist(), found.highs.to_pylist(), strict=True))
    return [ends[found.offsets[i] : found.offsets[i + 1]] if found.known[i] else None for i in range(len(found.known))]


CASES = [
    ("bigint", pa.array([1, 2, 3, 90, None, -(2**63)]), [(-(2**63), -(2**63)), (1, 3), (90, 90)]),
    ("int", pa.array([5, 5, 7], pa.int32()), [(5, 5), (7, 7)]),
    ("smallint", pa.array([1, 200], pa.uint8()), [(1, 1), (200, 200)]),
    ("double", pa.array([1.5, NAN, -0.0, INF]), [(0.0, 0.0), (1.5, 1.5), (INF, INF)]),
    ("double", pa.array([0.1], pa.float32()), [(float(np.float32(0.1)),) * 2]),
    ("decimal(9,2)", pa.array([1, 3], pa.decimal128(8, 2)), [(Decimal(1), Decimal(1)), (Decimal(3), Decimal(3))]),
    ("date", pa.array([DAY(1970, 1, 2), DAY(1970, 1, 3), DAY(1971, 1, 1)]), [(1, 2), (365, 365)]),
    ("timestamp", pa.array([1, 2], pa.timestamp("ms", "UTC")), [(1000, 1000), (2000, 2000)]),
    ("timestamp_ntz", pa.array([1, 3], pa.timestamp("us")), [(1, 1), (3, 3)]),
    ("string", pa.array(["a", "é", "a"]), [(b"a", b"a"), ("é".encode(),) * 2]),
    ("string", pa.array(["x", "y"]).dictionary_encode(), [(b"x", b"x"), (b"y", b"y")]),
    ("string", pa.array(["x", "y"], pa.string_view()), [(b"x", b"x"), (b"y", b"y")]),
    ("string", pa.array(["x", "y"], pa.large_string()), [(b"x", b"x"), (b"y", b"y")]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "expected"), CASES)
def test_each_type_as_its_domain_has_it(files: Lake, kind: str, values: pa.Array, expected: list[Any]) -> None:
    files.write("a.parquet", {"c": values}, row_group_size=2)
    files.write("b.parquet", {"c": pa.nulls(2, values.type)})
    ranged(files)
    assert sets(files, data("c", kind)) == [expected, []]
    found = loaded(files, data("c", kind))
    assert found is not None
    assert found.null.tolist() == [values.null_count > 0, True]
    has_nan = pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py()
    assert found.nan.tolist() == [bool(has_nan), False]


def test_no_more_ranges_than_asked_for_and_the_widest_gaps(files: Lake) -> None:
    files.write("a.parquet", {"c": [0, 11, 12, 14, 22], "d": [1, 2, 3, 4, 5]})
    ranged(files, most=2)
    assert sets(files, data("c", "bigint")) == [[(0, 0), (11, 22)]]
    assert sets(files, data("d", "bigint")) == [[(1, 5)]]


def test_what_spark_may_shift_between_calendars_is_unknown(files: Lake) -> None:
    old = datetime.datetime(1850, 1, 1, tzinfo=UTC)
    new = datetime.datetime(2000, 1, 1, tzinfo=UTC)
    files.write("a.parquet", {"d": [DAY(1500, 1, 1), DAY(2000, 1, 1)], "t": [old, new]})
    files.write("b.parquet", {"d": [DAY(1600, 1, 1), DAY(2000, 1, 1)], "t": [new, new]})
    ranged(files)
    found = loaded(files, data("d", "date"))
    assert found is not None
    assert found.known.tolist() == [False, True]
    found = loaded(files, data("t", "timestamp"))
    assert found is not None
    assert found.known.tolist() == [False, True]


def test_long_strings_are_cut_outwards(files: Lake) -> None:
    low, high = "a" * 100, "b" * 63 + "ÿ" * 20
    files.write("a.parquet", {"c": [low, high, "zz" * 60]})
    ranged(files, most=2)
    (ends,) = sets(files, data("c", "string"))
    assert ends is not None
    assert ends[0][0] <= low.encode()
    assert ends[0][1] >= high.encode()
    assert all(len(end) <= 64 for pair in ends for end in pair)
    assert ends[1][0] > ends[0][1]


def test_only_the_columns_asked_for_and_each_file_once(files: Lake) -> None:
    files.write("a.parquet", {"c": [1, 9], "D": [1, 9], "s": [{"x": 1}, {"x": 2}]})
    assert ranged(files, ["C"]).files_ranged == 1
    assert ranged(files, ["c"]).files_ranged == 0
    assert sets(files, data("c", "bigint")) == [[(1, 1), (9, 9)]]
    assert loaded(files, data("d", "bigint")) is None
    assert ranged(files, ["d"]).files_ranged == 1
    assert sets(files, data("c", "bigint")) == [[(1, 1), (9, 9)]]  # still there
    assert sets(files, data("d", "bigint")) == [[(1, 1), (9, 9)]]
    assert ranged(files, ["c", "d"]).files_ranged == 1
    assert ranged(files, ["d"], most=30).files_ranged == 1
    assert loaded(files, data("s", "bigint", path=("x",))) is None


def test_a_file_that_changed_or_was_never_read_is_unknown(files: Lake) -> None:
    for name in "abc":
        files.write(f"{name}.parquet", {"c": [1, 9]})
    ranged(files)
    files.write("a.parquet", {"c": [5, 9, 5]})
    os.utime(files.root / "b.parquet", (1, 1))
    files.write("d.parquet", {"c": [5]})
    files.collect()
    assert sets(files, data("c", "bigint")) == [None, None, [(1, 1), (9, 9)], None]


def test_a_file_that_is_replaced_while_it_is_read_is_a_failure(files: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = files.write("a.parquet", {"c": [1, 9]})
    files.collect()
    listing = files.listing()

    def touching(values: pa.Array, most: int) -> tuple[pa.Array, pa.Array]:
        os.utime(path, (9, 9))
        return narrowest_ranges(values, most)

    monkeypatch.setattr("secateur.stats.collect.range_scan.narrowest_ranges", touching)
    report = collect_ranges(Values(listing), [files.store()], most=20)
    assert (report.files_ranged, report.files_failed) == (0, 1)
    assert "modified at 9000" in str(report)
    assert loaded(files, data("c", "bigint"), listing) is None


def test_a_broken_file_is_named_and_the_others_have_theirs(files: Lake) -> None:
    files.write("a.parquet", {"c": [1, 9]})
    broken = files.write("b.parquet", {"c": list(range(1000))}, compression="NONE", use_dictionary=False)
    content = bytearray(broken.read_bytes())
    content[4:24] = b"\xff" * 20  # the header of the first page
    broken.write_bytes(content)
    report = ranged(files)
    assert (report.files_ranged, report.files_failed) == (1, 1)
    assert "b.parquet" in str(report)
    assert sets(files, data("c", "bigint")) == [[(1, 1), (9, 9)], None]


def test_a_collection_that_breaks_in_the_middle_keeps_nothing_and_says_so(
    files: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(5):
        files.write(f"{i}.parquet", {"c": [i, 100]})
    monkeypatch.setattr(
        "secateur.stats.collect.range_scan.cells_table", lambda *_: (_ for _ in ()).throw(MemoryError("no more"))
    )
    report = ranged(files)
    assert report.files_ranged == 0
    assert "collecting stopped: MemoryError: no more" in str(report)
    monkeypatch.undo()
    assert loaded(files, data("c", "bigint")) is None
    assert ranged(files).files_ranged == 5


def test_a_damaged_segment_is_set_aside(files: Lake) -> None:
    files.write("a.parquet", {"c": [1, 9]})
    ranged(files)
    (segment,) = (files.root / "_secateur" / "v1").glob("_ranges-*")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    assert loaded(files, data("c", "bigint")) is None
    assert list((files.root / "_secateur" / "damaged").iterdir())
    assert ranged(files).files_ranged == 1
    assert sets(files, data("c", "bigint")) == [[(1, 1), (9, 9)]]


def test_many_segments_become_one_and_lose_nothing(files: Lake) -> None:
    for i in range(9):
        files.write(f"{i}.parquet", {"c": [i, 100], "d": [i, 200]})
        ranged(files, ["c"])
        ranged(files, ["d"])
    segments = list((files.root / "_secateur" / "v1").glob("_ranges-*"))
    assert len(segments) <= 16
    assert sets(files, data("c", "bigint")) == [[(i, i), (100, 100)] for i in range(9)]
    assert sets(files, data("d", "bigint")) == [[(i, i), (200, 200)] for i in range(9)]


def test_other_types_and_missing_columns(files: Lake) -> None:
    files.write("a.parquet", {"c": pa.array([1, 9], pa.int32())})
    files.write("b.parquet", {"c": ["1", "9"]})
    files.write("c.parquet", {"x": [1]})
    files.write("d.parquet", {"c": [1], "C": [5]})
    ranged(files)
    assert sets(files, data("c", "bigint")) == [[(1, 1), (9, 9)], None, [], None]
    found = loaded(files, data("c", "bigint", has_default=True))
    assert found is not None
    assert found.known.tolist() == [True, False, False, False]
    assert found.null.tolist() == [False, True, True, True]


def test_contradictions_are_unknown() -> None:
    lows = pa.array([[5], [1, 2], [1, 1], [None], [1, 9], None, [3]], pa.list_(pa.int64()))
    highs = pa.array([[4], [3, 9], [2], [5], [2, 9], [1], [3]], pa.list_(pa.int64()))
    flags = pa.array([False] * 7)
    ranges = FileRangeSets.of_lists(lows, highs, flags, flags)
    assert ranges.known.tolist() == [False, False, False, False, True, False, True]
    assert ranges.lows.to_pylist() == [1, 9, 3]
    assert ranges.null.tolist() == [True, True, True, True, False, True, False]
    part = ranges.take(np.array([6, 0, 4]))
    assert (part.offsets.tolist(), part.highs.to_pylist()) == ([0, 1, 1, 3], [3, 2, 9])
    nans = pa.array([[NAN], [1.0]], pa.list_(pa.float64()))
    assert FileRangeSets.of_lists(nans, nans, flags[:2], flags[:2]).known.tolist() == [False, True]


def test_values_of_files_by_ranges_and_by_bounds(files: Lake) -> None:
    files.write("a.parquet", {"c": [1, 50]})
    files.write("b.parquet", {"c": [10, None, 60]})
    ranged(files)
    files.write("c.parquet", {"c": [70, 80]})
    files.write("d.parquet", {"c": pa.nulls(2, pa.int64())})
    stats, column = files.stats().files, data("c", "bigint")
    every = np.ones(4, np.bool_)
    held = values_of(stats, column, every)
    assert held is not None
    assert held.pairs() == [(1, 1), (10, 10), (50, 50), (60, 60), (70, 80)]
    assert (held.null, held.nan) == (True, False)
    held = values_of(stats, column, np.array([True, False, True, False]))
    assert held is not None
    assert (held.pairs(), held.null) == ([(1, 1), (50, 50), (70, 80)], False)


def test_values_of_a_file_without_statistics_can_be_anything(files: Lake) -> None:
    files.write("a.parquet", {"c": [1.0, NAN]})
    ranged(files)
    files.write("b.parquet", {"c": [2.0]}, write_statistics=False)
    stats, column = files.stats().files, data("c", "double")
    assert values_of(stats, column, np.array([True, True])) is None
    held = values_of(stats, column, np.array([True, False]))
    assert held is not None
    assert (held.pairs(), held.nan) == ([(1.0, 1.0)], True)


def test_partition_columns_have_no_range_sets(files: Lake) -> None:
    files.write("p=1/a.parquet", {"c": [1, 9]})
    ranged(files)
    assert loaded(files, ScanColumn(1, "p", parse_type("int"), "partition")) is None
