"""A snapshot of Iceberg as values: what manifests tell before they are opened, what files tell after, and no more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.plan.columns import ScanColumn
from secateur.plan.types import parse_type
from secateur.stats.file_stats import FileStats
from secateur.stats.formats.iceberg import IcebergTable
from secateur.stats.formats.iceberg_snapshot import Snapshot
from tests.stats.jvm_columns import as_sent, flags, longs, texts
from tests.stats.lake import column, data

_names = itertools.count()
C, D = 1, 2
FIELDS = [[["c"], C, "long"], [["d"], D, "string"]]


def snapshot(
    folder: Path,
    files: Sequence[int],
    *,
    fields: list[Any] | None = None,
    specs: dict[str, list[list[Any]]] | None = None,
    keys: list[str] | None = None,
    deletes: bool = False,
    **summaries: pa.Array,
) -> Snapshot:
    """A snapshot of so many manifests with so many files each, ten rows a file; its keys are new unless given."""
    sent = {
        "files": pa.array(files, pa.int32()),
        "spec": pa.array([0] * len(files), pa.int32()),
        "rows": longs(*[10 * n for n in files]),
    }
    wire = {
        "fp": f"iceberg:t@{next(_names)}",
        "count": sum(files),
        "deletes": deletes,
        "specs": specs or {"0": []},
        "fields": fields or FIELDS,
        "keys": keys or [f"manifest-{next(_names)}" for _ in files],
        "roots": ["file:/t"],
        "manifests": as_sent(folder, sent | {name.replace("_", "."): array for name, array in summaries.items()}),
    }
    return Snapshot.from_wire(wire)


def opened(
    folder: Path, table: IcebergTable, manifests: Sequence[int], columns: Sequence[int], **sent: pa.Array
) -> IcebergTable:
    """The table with what the JVM sends of the files of some manifests, ten rows each unless given."""
    deleted = sent.pop("deleted", None)
    count = len(next(iter(sent.values())))
    whole = {
        "rows": longs(*[10] * count),
        "sizes": longs(*[100] * count),
        "groups": pa.array([2] * count, pa.int32()),
        "orc": flags(*[False] * count),
    } | {name.replace("_", "."): array for name, array in sent.items()}
    wire = {
        "files": list(manifests),
        "columns": list(columns),
        "statistics": as_sent(folder, whole),
        "deletes": list(manifests) if deleted is not None else [],
        "deleted": as_sent(folder, {"deleted": deleted if deleted is not None else longs()}),
    }
    table.extend(wire)
    return table


def bounds(files: FileStats, scan: ScanColumn) -> list[tuple[Any, Any]]:
    found = column(files, scan)
    return list(zip(found.low.to_pylist(), found.high.to_pylist(), strict=True))


def test_nothing_is_known_of_manifests_that_are_not_opened(tmp_path: Path) -> None:
    table = IcebergTable(snapshot(tmp_path, [2, 3]))
    assert table.lacks(["c"])
    assert table.files.rows.to_pylist() == [None] * 5
    assert bounds(table.files, data("c", "bigint")) == [(None, None)] * 5
    assert table.wanted(np.array([False, True]), ["c", "d"], filtered=True) == {
        "fp": table._snapshot.fingerprint,
        "files": [1],
        "columns": [C, D],
        "deletes": [],
    }


def test_what_came_once_is_not_asked_for_again(tmp_path: Path) -> None:
    table, every = IcebergTable(snapshot(tmp_path, [2, 1])), np.array([True, True])
    opened(tmp_path, table, [1], [C], low_1=longs(5), high_1=longs(9))
    assert bounds(table.files, data("c", "bigint")) == [(None, None), (None, None), (5, 9)]
    assert table.files.rows.to_pylist() == [None, None, 10]
    wanted = table.wanted(every, ["c"], filtered=True)
    assert wanted is not None
    assert wanted["files"] == [0]
    opened(tmp_path, table, [0], [C], low_1=longs(1, 2), high_1=longs(3, 4))
    assert bounds(table.files, data("c", "bigint")) == [(1, 3), (2, 4), (5, 9)]
    assert table.wanted(every, ["c"], filtered=True) is None
    assert not table.lacks(["c"])
    assert table.lacks(["d"])
    again = table.wanted(every, ["c", "d"], filtered=True)
    assert again is not None
    assert (again["files"], again["columns"]) == ([0, 1], [C, D])
    opened(tmp_path, table, [0, 1], [C, D], low_2=texts("a", "b", "c"), high_2=texts("x", "y", "z"))
    assert bounds(table.files, data("c", "bigint")) == [(1, 3), (2, 4), (5, 9)]
    assert bounds(table.files, data("d", "string")) == [(b"a", b"x"), (b"b", b"y"), (b"c", b"z")]


def test_a_large_snapshot_is_not_opened_without_a_condition(tmp_path: Path) -> None:
    small, large = (IcebergTable(snapshot(tmp_path, [n])) for n in (10_000, 10_001))
    every = np.array([True])
    assert small.wanted(every, [], filtered=False) is not None
    assert large.wanted(every, [], filtered=False) is None
    assert large.wanted(every, [], filtered=True) is not None


def test_the_next_snapshot_shares_the_manifests_that_it_kept(tmp_path: Path) -> None:
    keys = [f"shared-{next(_names)}", f"shared-{next(_names)}"]
    first = opened(
        tmp_path, IcebergTable(snapshot(tmp_path, [1], keys=keys[:1])), [0], [C], low_1=longs(1), high_1=longs(2)
    )
    second = IcebergTable(snapshot(tmp_path, [1, 1], keys=keys))
    assert bounds(second.files, data("c", "bigint")) == [(1, 2), (None, None)]
    renamed = IcebergTable(snapshot(tmp_path, [1], keys=keys[:1], fields=[[["x"], C, "long"]]))
    assert bounds(renamed.files, data("x", "bigint")) == [(None, None)]
    assert first.files.rows.to_pylist() == [10]


def test_statistics_of_another_number_of_files_are_refused(tmp_path: Path) -> None:
    table = IcebergTable(snapshot(tmp_path, [2]))
    with pytest.raises(ValueError, match="statistics of 1 files for manifests with 2"):
        opened(tmp_path, table, [0], [C], low_1=longs(1), high_1=longs(2))
    assert bounds(table.files, data("c", "bigint")) == [(None, None)] * 2


def doubles(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float64())


KINDS: dict[str, tuple[str, str, dict[str, pa.Array], tuple[Any, Any], bool]] = {
    # Iceberg's type, Spark's, what is sent, bounds, whether they are values that occur
    "bigint": ("long", "bigint", {"low": longs(1), "high": longs(2)}, (1, 2), True),
    "int": ("int", "int", {"low": longs(-1), "high": longs(2)}, (-1, 2), True),
    "string": ("string", "string", {"low": texts("a"), "high": texts("b")}, (b"a", b"b"), False),
    "double": ("double", "double", {"low": doubles(1.5), "high": doubles(2.5)}, (1.5, 2.5), False),
    "zeros": ("double", "double", {"low": doubles(0.0), "high": doubles(-0.0)}, (-5e-324, 5e-324), False),
    "timestamp": ("timestamptz", "timestamp", {"low": longs(1), "high": longs(2)}, (1, 2), True),
    "timestamp in ORC": (
        "timestamptz",
        "timestamp",
        {"low": longs(1), "high": longs(2), "orc": flags(True)},
        (1, 2),
        False,
    ),
    "decimal": (
        "decimal(9, 2)",
        "decimal(9,2)",
        {"low": longs(150), "low.high": longs(0), "high": longs(-1), "high.high": longs(0)},
        (Decimal("1.50"), Decimal(2**64 - 1).scaleb(-2)),
        True,
    ),
    "negative decimal": (
        "decimal(9, 2)",
        "decimal(9,2)",
        {"low": longs(-150), "low.high": longs(-1), "high": longs(None), "high.high": longs(0)},
        (Decimal("-1.50"), None),
        True,
    ),
    "low above high": ("long", "bigint", {"low": longs(2), "high": longs(1)}, (None, None), True),
    "nothing sent": ("long", "bigint", {"nulls": longs(0)}, (None, None), True),
}


@pytest.mark.parametrize(("iceberg", "kind", "sent", "expected", "occurs"), KINDS.values(), ids=KINDS)
def test_bounds(
    tmp_path: Path, iceberg: str, kind: str, sent: dict[str, pa.Array], expected: tuple[Any, Any], occurs: bool
) -> None:
    named = {f"{n.partition('.')[0]}_1{'_high' if '.' in n else ''}": a for n, a in sent.items() if n != "orc"}
    extra = {"orc": sent["orc"]} if "orc" in sent else {}
    table = IcebergTable(snapshot(tmp_path, [1], fields=[[["c"], C, iceberg]]))
    opened(tmp_path, table, [0], [C], **named, **extra)
    found = column(table.files, data("c", kind))
    assert bounds(table.files, data("c", kind)) == [expected]
    assert (found.low_exact.tolist(), found.high_exact.tolist()) == ([occurs], [occurs])


UNREADABLE = {
    "read as another type": data("c", "int"),
    "not a column of the table": data("x", "bigint"),
    "a partition column": data("c", "bigint", "partition"),
    "values that are not compared": data("u", "string"),
}


@pytest.mark.parametrize("asked", UNREADABLE.values(), ids=UNREADABLE)
def test_nothing_is_known_of(tmp_path: Path, asked: ScanColumn) -> None:
    table = IcebergTable(snapshot(tmp_path, [1], fields=[*FIELDS, [["u"], 3, "uuid"]]))
    opened(tmp_path, table, [0], [C], low_1=longs(1), high_1=longs(2))
    assert table.files.column(asked) is None


def test_fields_of_structs_have_bounds_but_no_count_of_nulls(tmp_path: Path) -> None:
    table = IcebergTable(snapshot(tmp_path, [1], fields=[[["s", "x"], 7, "long"]]))
    opened(tmp_path, table, [0], [7], low_7=longs(1), high_7=longs(2), nulls_7=longs(0))
    asked = ScanColumn(1, "s", parse_type("bigint"), path=("x",))
    assert bounds(table.files, asked) == [(1, 2)]
    assert column(table.files, asked).nulls.to_pylist() == [None]


DELETED: dict[str, tuple[int | None, int | None, int | None, int | None, bool]] = {
    # rows known to be deleted, NULLs -> rows, NULLs, whether the bounds are values that occur
    "none": (0, 3, 10, 3, True),
    "some": (4, 3, 6, None, False),
    "some, no NULL": (4, 0, 6, 0, False),
    "unknown": (None, 3, None, None, False),
    "unknown, no NULL": (None, 0, None, 0, False),
    "all": (10, 0, 0, 0, False),
}


@pytest.mark.parametrize(("deleted", "nulls", "rows", "still_null", "occurs"), DELETED.values(), ids=DELETED)
def test_deletes_leave_bounds_true_but_not_exact(
    tmp_path: Path, deleted: int | None, nulls: int | None, rows: int | None, still_null: int | None, occurs: bool
) -> None:
    table = IcebergTable(snapshot(tmp_path, [1], deletes=True))
    assert table.wanted(np.array([True]), ["c"], filtered=True) == {
        "fp": table._snapshot.fingerprint,
        "files": [0],
        "columns": [C],
        "deletes": [0],
    }
    sent = {"low_1": longs(1), "high_1": longs(2), "nulls_1": longs(nulls), "nans_1": longs(0)}
    opened(tmp_path, table, [0], [C], **sent, deleted=longs(deleted))
    found = column(table.files, data("c", "bigint"))
    assert (bounds(table.files, data("c", "bigint")), table.files.rows.to_pylist()) == ([(1, 2)], [rows])
    assert (found.nulls.to_pylist(), found.low_exact.tolist()) == ([still_null], [occurs])


def test_summaries_of_partitions_judge_manifests(tmp_path: Path) -> None:
    """By identity, by year, and by a bucket, which says nothing; the third manifest is of another spec."""
    specs = {"0": [[C, "identity", "long"], [3, "year", "int"], [C, "bucket[4]", "int"]], "1": []}
    table = IcebergTable(
        snapshot(
            tmp_path,
            [1, 1, 1],
            fields=[*FIELDS, [["day"], 3, "date"]],
            specs=specs,
            spec=pa.array([0, 0, 1], pa.int32()),
            **{"low_0_0": longs(1, None, None), "high_0_0": longs(5, None, None)},
            **{"null_0_0": flags(False, True, True), "nan_0_0": flags(False, False, False)},
            **{"low_0_1": longs(1, 2, None), "high_0_1": longs(1, 3, None)},
            **{"null_0_1": flags(True, False, True), "nan_0_1": flags(False, False, False)},
            **{"low_0_2": longs(0, None, None), "high_0_2": longs(3, None, None)},
            **{"null_0_2": flags(False, True, True), "nan_0_2": flags(False, False, False)},
        )
    )
    groups = table.files.groups
    assert groups is not None
    assert groups.of.tolist() == [0, 1, 2]
    assert bounds(groups.stats, data("c", "bigint")) == [(1, 5), (None, None), (None, None)]
    assert column(groups.stats, data("c", "bigint")).nulls.to_pylist() == [0, 10, None]
    assert bounds(groups.stats, data("day", "date")) == [(365, 729), (730, 1460), (None, None)]
    assert column(groups.stats, data("day", "date")).nulls.to_pylist() == [None, 0, None]
    assert not column(groups.stats, data("c", "bigint")).low_exact.any()
    assert groups.stats.column(data("d", "string")) is None


def test_partition_values_narrow_the_bounds_of_files(tmp_path: Path) -> None:
    specs = {"0": [[C, "identity", "long"]]}
    summary = {"low_0_0": longs(1), "high_0_0": longs(9), "null_0_0": flags(True), "nan_0_0": flags(False)}
    table = IcebergTable(snapshot(tmp_path, [3], specs=specs, **summary))
    opened(
        tmp_path,
        table,
        [0],
        [C],
        **{"low_1": longs(None, 3, None), "high_1": longs(None, 3, None), "part_0_0": longs(7, 3, None)},
    )
    found = column(table.files, data("c", "bigint"))
    assert bounds(table.files, data("c", "bigint")) == [(7, 7), (3, 3), (None, None)]
    assert (found.nulls.to_pylist(), found.low_exact.tolist()[:2]) == ([0, 0, 10], [True, True])


def test_a_partition_that_was_not_sent_is_unknown_and_not_null(tmp_path: Path) -> None:
    specs = {"0": [[C, "identity", "long"]]}
    summary = {"low_0_0": longs(1), "high_0_0": longs(9), "null_0_0": flags(True), "nan_0_0": flags(False)}
    table = IcebergTable(snapshot(tmp_path, [1], specs=specs, **summary))
    opened(tmp_path, table, [0], [C], nulls_1=longs(None))
    assert column(table.files, data("c", "bigint")).nulls.to_pylist() == [None]


def test_row_groups_have_the_bounds_of_their_file(tmp_path: Path) -> None:
    table = IcebergTable(snapshot(tmp_path, [2]))
    sent = {"low_1": longs(1, 5), "high_1": longs(2, 6), "nulls_1": longs(0, 3)}
    opened(tmp_path, table, [0], [C], **sent, groups=pa.array([3, None], pa.int32()))
    groups, owner = table.row_groups(np.array([0, 1]))
    assert owner.tolist() == [0, 0, 0, 1]
    assert bounds(groups, data("c", "bigint")) == [(1, 2)] * 3 + [(5, 6)]
    found = column(groups, data("c", "bigint"))
    assert found.nulls.to_pylist() == [0, 0, 0, None]
    assert not found.low_exact.any()


def test_a_collection_finds_nothing_that_manifests_lack_but_values(tmp_path: Path) -> None:
    table = IcebergTable(snapshot(tmp_path, [1, 1]))
    assert (table.uncollected, table.missing.tolist()) == (None, [False, False])
    opened(tmp_path, table, [0], [C], path=texts("file:/t/a"), added=longs(8))
    values = table.values(["C"])
    assert (values.columns, values.by_id) == (frozenset({C}), True)
    assert values.listing.paths.to_pylist() == ["file:/t/a", None]
    assert values.listing.mtimes.tolist() == [~8, ~0]
