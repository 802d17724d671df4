"""Partition transforms of Iceberg, read backwards: from a partition's value to bounds of the column it was made from.

A condition on a column need not be lifted through the transform then: the bounds of each file get narrower, and the one
evaluator does the rest.

=====================  ======================================================================================
transform              a file whose partition has the value v holds
=====================  ======================================================================================
identity               v and nothing else
year, month, day,      what lies between the start of that unit and the start of the next, less one; for v <= 0 the
hour                   unit before it as well, since old writers rounded towards 1970
truncate[w]            numbers: v to v + w - 1; strings: v with anything after it
bucket[n]              values whose hash is v: no bounds (Iceberg's own test of partitions uses it)
void, or another       nothing is known
=====================  ======================================================================================

In each but the last, a NULL partition means that the column is NULL in every row, and any other that it is in none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.plan.types import DataType
from secateur.stats.arrays import null_mask

_TRUNCATE = re.compile(r"truncate\[(\d+)\]")
_UNITS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_STEP = {"date": "D", "timestamp": "us", "timestamp_ntz": "us"}
_FAR = {"year": 200_000, "month": 2_400_000, "day": 80_000_000, "hour": 1_900_000_000}
"""Units since 1970 beyond which microseconds would overflow."""
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Lifted:
    """Bounds of a column by the value of its partition, null = unknown; ``exact`` if they are values of the column."""

    low: pa.Array
    high: pa.Array
    exact: bool = False


def lift(transform: str, low: pa.Array, high: pa.Array, source: DataType) -> Lifted | None:
    """The bounds of the source column, where the partition lies between ``low`` and ``high``; None if nothing is known.

    >>> from secateur.plan.types import parse_type
    >>> days = pa.array([0, 19000])
    >>> lifted = lift("day", days, days, parse_type("timestamp"))
    >>> lifted.low.to_pylist(), lifted.high.to_pylist()
    ([-86400000000, 1641600000000000], [86399999999, 1641686399999999])
    """
    if source.domain is None:
        return None
    if transform == "identity":
        return Lifted(low, high, exact=True) if low.type == source.domain else None
    if transform.startswith("bucket["):
        return Lifted(pa.nulls(len(low), source.domain), pa.nulls(len(low), source.domain))
    if transform in _UNITS and source.name in _STEP and pa.types.is_int64(low.type):
        return Lifted(_start(transform, low, source, lower=True), _start(transform, high, source, lower=False))
    if (truncated := _TRUNCATE.fullmatch(transform)) and low.type == source.domain:
        return Lifted(low, _truncated_end(high, int(truncated[1])))
    return None


def _start(unit: str, values: pa.Array, source: DataType, *, lower: bool) -> pa.Array:
    """The first instant of each unit, or with ``lower`` unset the last."""
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    unknown = null_mask(values) | (np.abs(numbers) > _FAR[unit])
    numbers = np.where(unknown, 0, numbers)
    # Old writers rounded towards zero, so the unit -0.5 is in the partition 0.
    moved = np.where(numbers <= 0, numbers - 1, numbers) if lower else numbers + 1
    instants = moved.astype(f"datetime64[{_UNITS[unit]}]").astype(f"datetime64[{_STEP[source.name]}]").astype(np.int64)
    if unit == "hour" and source.name == "date":
        unknown = np.ones_like(unknown)
    return pa.array(instants if lower else instants - 1, mask=unknown)


def _truncated_end(values: pa.Array, width: int) -> pa.Array:
    if pa.types.is_binary(values.type):
        # No byte of UTF-8 is 0xFF, so this is above everything that starts with the value.
        return pc.binary_join_element_wise(values, pa.scalar(b"\xff"), pa.scalar(b""))
    if pa.types.is_int64(values.type):
        numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
        unknown = null_mask(values) | (numbers > _INT64.max - width)
        return pa.array(np.where(unknown, 0, numbers) + (width - 1), mask=unknown)
    if pa.types.is_decimal(values.type):
        distinct = values.dictionary_encode()
        step = Decimal(width - 1).scaleb(-values.type.scale)
        ends = [None if v is None or abs(v) > Decimal(10) ** 30 else v + step for v in distinct.dictionary.to_pylist()]
        return pa.array(ends, type=values.type).take(distinct.indices)
    return pa.nulls(len(values), values.type)
