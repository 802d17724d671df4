from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from secateur.stats.listing import Listing

VALUES = [
    ("int", [1, None], [1, None]),
    ("boolean", [True, 0], [1, 0]),
    ("date", [18262], [18262]),
    ("timestamp", [1_577_836_800_000_000], [1_577_836_800_000_000]),
    ("string", ["é", None, ""], ["é".encode(), None, b""]),
    ("decimal(5,2)", ["1.5", None], [Decimal("1.50"), None]),
    ("double", [0.1, "Infinity", "-Infinity", None], [0.1, math.inf, -math.inf, None]),
    ("float", [0.10000000149011612], [0.10000000149011612]),
    ("decimal(5,2)", ["1.555"], None),
    ("int", ["x"], None),
    ("int", [1.5], None),
    ("binary", ["x"], None),
    ("string collate UNICODE", ["x"], None),
]


def wire(kind: str, values: list[Any]) -> dict[str, Any]:
    count = len(values)
    return {
        "fp": "f",
        "roots": ["file:/t"],
        "dirs": [f"file:/t/p={i}" for i in range(count)],
        "dir": list(range(count)),
        "names": ["x"] * count,
        "len": [1] * count,
        "mtime": [2] * count,
        "pcols": [["p", kind]],
        "pvals": [[v] for v in values],
    }


@pytest.mark.parametrize(("kind", "values", "expected"), VALUES)
def test_partition_values(kind: str, values: list[Any], expected: list[Any] | None) -> None:
    partitions = Listing.from_wire(wire(kind, values)).partitions
    assert (partitions["p"][1].to_pylist() if "p" in partitions else None) == expected


def test_nan_stays_a_value_and_no_null() -> None:
    values = Listing.from_wire(wire("double", ["NaN", None])).partitions["p"][1]
    assert values.null_count == 1
    assert math.isnan(values[0].as_py())


def test_paths_of_unordered_files() -> None:
    message = wire("int", [1, 2]) | {"dir": [1, 0, 1], "names": ["a b", "100%", "ü"], "len": [1] * 3, "mtime": [1] * 3}
    listing = Listing.from_wire(message)
    assert listing.paths.to_pylist() == ["file:/t/p=1/a b", "file:/t/p=0/100%", "file:/t/p=1/ü"]
    assert listing.partitions["p"][1].to_pylist() == [2, 1, 2]


def test_no_files() -> None:
    listing = Listing.from_wire(wire("int", []))
    assert listing.count == 0
    assert listing.partitions["p"][1].to_pylist() == []
