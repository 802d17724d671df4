"""Each partition transform, forwards by its definition and backwards by ``lift``: a value is within its bounds."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from secateur.plan.types import parse_type
from secateur.stats.formats.iceberg_transforms import lift

DAY = 86_400_000_000
MOMENTS = [
    0,
    1,
    -1,
    DAY - 1,
    DAY,
    -DAY,
    -DAY - 1,
    1_709_164_800_000_000,
    -2_208_988_800_000_001,
    253_402_300_799_999_999,
]


def units(unit: str, moments: list[int], step: str) -> list[int]:
    counted = np.array(moments).astype(f"datetime64[{step}]").astype(f"datetime64[{unit}]").astype(np.int64)
    return [int(n) for n in counted]


@pytest.mark.parametrize(("transform", "unit"), [("year", "Y"), ("month", "M"), ("day", "D"), ("hour", "h")])
@pytest.mark.parametrize(("kind", "step"), [("timestamp", "us"), ("timestamp_ntz", "us"), ("date", "D")])
def test_times(transform: str, unit: str, kind: str, step: str) -> None:
    values = MOMENTS if step == "us" else [m // DAY for m in MOMENTS]
    partitions = pa.array(units(unit, values, step))
    lifted = lift(transform, partitions, partitions, parse_type(kind))
    assert lifted is not None
    for value, low, high in zip(values, lifted.low.to_pylist(), lifted.high.to_pylist(), strict=True):
        assert low is None or low <= value
        assert high is None or value <= high
    if (transform, kind) != ("hour", "date"):
        # Tight: the last value and the first of the next unit are told apart, above 1970.
        after = pa.array([units(unit, [MOMENTS[7] if step == "us" else MOMENTS[7] // DAY], step)[0] + 1])
        following = lift(transform, after, after, parse_type(kind))
        assert following is not None
        assert following.low[0].as_py() == lifted.high[7].as_py() + 1


def test_old_writers_rounded_towards_1970() -> None:
    """A moment half a day before 1970 may be in the partition of day 0."""
    zero = pa.array([0])
    lifted = lift("day", zero, zero, parse_type("timestamp"))
    assert lifted is not None
    assert lifted.low[0].as_py() <= -DAY // 2


@pytest.mark.parametrize("width", [1, 10, 100])
def test_truncated_numbers(width: int) -> None:
    values = [0, 1, 9, 10, -1, -10, -11, 2**62, -(2**62), 2**63 - 1]
    partitions = pa.array([v - v % width for v in values])
    lifted = lift(f"truncate[{width}]", partitions, partitions, parse_type("bigint"))
    assert lifted is not None
    for value, low, high in zip(values, lifted.low.to_pylist(), lifted.high.to_pylist(), strict=True):
        assert low <= value
        assert high is None or value <= high
    assert lifted.high[0].as_py() == width - 1


def test_truncated_decimals() -> None:
    values = [Decimal("0.00"), Decimal("10.65"), Decimal("-0.05"), Decimal("1e27")]
    partitions = pa.array(
        [(v - v % Decimal("0.50")) if v >= 0 else Decimal("-0.50") for v in values], pa.decimal128(38, 2)
    )
    lifted = lift("truncate[50]", partitions, partitions, parse_type("decimal(38,2)"))
    assert lifted is not None
    for value, low, high in zip(values, lifted.low.to_pylist(), lifted.high.to_pylist(), strict=True):
        assert low <= value <= high


def test_truncated_strings() -> None:
    values = ["", "a", "abc", "abcdef", "é€😀", "\U0010ffff" * 4]
    partitions = pa.array([v[:3].encode() for v in values], pa.binary())
    lifted = lift("truncate[3]", partitions, partitions, parse_type("string"))
    assert lifted is not None
    for value, low, high in zip(values, lifted.low.to_pylist(), lifted.high.to_pylist(), strict=True):
        assert low <= value.encode() < high


@pytest.mark.parametrize("transform", ["void", "unknown", "zorder[2]", "truncate[x]"])
def test_what_is_not_known_says_nothing(transform: str) -> None:
    assert lift(transform, pa.array([1]), pa.array([1]), parse_type("bigint")) is None


def test_buckets_have_no_bounds_but_know_of_null() -> None:
    lifted = lift("bucket[16]", pa.array([1, None]), pa.array([1, None]), parse_type("bigint"))
    assert lifted is not None
    assert lifted.low.null_count == lifted.high.null_count == 2


def test_far_values_and_nulls_are_unknown() -> None:
    far = pa.array([2**31 - 1, None])
    lifted = lift("year", far, far, parse_type("timestamp"))
    assert lifted is not None
    assert lifted.low.null_count == 2
