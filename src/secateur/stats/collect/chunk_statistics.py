"""What one chunk of a Parquet column says of its values, and how far it is believed.

Like :mod:`secateur.stats.collect.footers` this module travels to Spark's executors by value and imports nothing of
secateur.

What is believed, and what is not:

=========================================  ==========================================================================
seen in the footer                         taken as
=========================================  ==========================================================================
no statistics, or ones Arrow refuses       everything unknown
null count missing                         null count unknown, never 0
null count or value count beyond the rows  everything unknown
min > max, or beyond the type's range      both bounds unknown
NaN as a bound                             both bounds unknown
float bounds, neither NaN                  bounds of the values that are not NaN; NaN count unknown, except that
                                           Spark with parquet-mr 1.10 to 1.17 takes NaN as the greatest value: none
a float bound of zero                      not exact: writers widen it to -0.0 or 0.0
a string bound                             not exact: it may be truncated, and pyarrow does not say
decimals in byte arrays                    only from writers known to compare them as numbers, since old ones
                                           compared the bytes and Arrow believes them
dates before 1582-10-15 and timestamps     both bounds unknown, unless Spark 3 or later wrote the file without
before 1900-01-01                          rebasing: what Spark reads may be shifted by days
=========================================  ==========================================================================
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow.parquet as pq

# (low, high, nulls, nans, low is exact, high is exact)
ChunkStatistics = tuple[Any, Any, "int | None", "int | None", bool, bool]
UNKNOWN: ChunkStatistics = (None, None, None, None, False, False)

_RANGES = {
    "bool": (0, 1),
    **{f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32)},
    "uint64": (0, (1 << 63) - 1),  # the domain is int64, greater values are not stored
    "date": (-(1 << 31), (1 << 31) - 1),
}
_MICROS = (-(1 << 63), (1 << 63) - 1)
GREGORIAN_DAYS = -141427  # 1582-10-15: Spark shifts dates before it when it reads a file in the legacy calendar
MODERN_MICROS = -2208988800000000  # 1900-01-01T00:00Z: the same for timestamps
# Releases that order NaN above all other values in their statistics (DoubleStatistics with Double.compare): 1.9 and
# before compared with < and >, 1.18 and later leave NaN out. Forks put a suffix behind the number: not believed.
_NAN_IS_GREATEST = re.compile(r"parquet-mr version 1\.1[0-7]\.\d+ \(build [0-9a-f]{40}\)")
_NUMERIC_BYTES = re.compile(r"parquet-mr version 1\.1\d\.\d|parquet-cpp-arrow version |DuckDB version ")


class Trust:
    """What a file's writer can be trusted with."""

    def __init__(self, writer: str, properties: dict[bytes, bytes]) -> None:
        # A tool can merge the row groups of other writers into a file that parquet-mr signs; Spark's own files carry
        # only Spark's properties.
        spark = b"org.apache.spark.version" in properties and all(
            k.startswith(b"org.apache.spark.") for k in properties
        )
        self.nan_is_greatest = spark and _NAN_IS_GREATEST.fullmatch(writer) is not None
        self.numeric_bytes = _NUMERIC_BYTES.match(writer) is not None
        # Spark compares its versions as strings, and so do we (DataSourceUtils.getRebaseSpec).
        version = properties.get(b"org.apache.spark.version", b"").decode("utf-8", "replace")
        legacy = any(key.startswith(b"org.apache.spark.legacy") for key in properties)
        self.calendar = version >= "3.0.0" and not legacy


def chunk_statistics(
    chunk: pq.ColumnChunkMetaData, rows: int, column: tuple[int, str, str, int], trust: Trust
) -> ChunkStatistics:
    """What one column chunk says, after the table in this module's docstring."""
    _, family, physical, precision = column
    floating = family in ("float", "double")
    if rows == 0:
        return (None, None, 0, 0, False, False)
    statistics = chunk.statistics
    if statistics is None or chunk.num_values != rows:
        return UNKNOWN
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls is not None and not 0 <= nulls <= rows:
        return UNKNOWN
    low, high = (statistics.min_raw, statistics.max_raw) if statistics.has_min_max else (None, None)
    if nulls == rows:
        # Bounds of no values: one of the two is wrong.
        return (None, None, nulls, 0, False, False) if low is None and high is None else UNKNOWN
    unbounded: ChunkStatistics = (None, None, nulls, None if floating else 0, False, False)
    if low is None or high is None or family == "int96":
        return unbounded
    if floating:
        if not low <= high:  # also if one of them is NaN
            return unbounded
        return (low, high, nulls, 0 if trust.nan_is_greatest else None, low != 0.0, high != 0.0)
    if family == "string":
        return (low, high, nulls, 0, False, False) if low <= high else unbounded
    if physical in ("FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"):
        if not trust.numeric_bytes:
            return unbounded
        low, high = int.from_bytes(low, "big", signed=True), int.from_bytes(high, "big", signed=True)
    low, high = _in_domain(int(low), family), _in_domain(int(high), family)
    least, greatest = _range(family, precision)
    if not least <= low <= high <= greatest:
        return unbounded
    if not trust.calendar and (
        (family == "date" and low < GREGORIAN_DAYS) or (family.startswith("timestamp") and low < MODERN_MICROS)
    ):
        return unbounded
    return (low, high, nulls, 0, True, True)


def _in_domain(value: int, family: str) -> int:
    if family == "uint32":
        return value & 0xFFFFFFFF  # Arrow hands out the physical, signed number
    if family == "uint64":
        return value & 0xFFFFFFFFFFFFFFFF
    return value * 1000 if family.startswith("timestamp_ms") else value


def _range(family: str, precision: int) -> tuple[int, int]:
    if family.startswith("decimal"):
        return 1 - int(10**precision), int(10**precision) - 1
    return _RANGES.get(family, _MICROS)


def merge(cells: list[ChunkStatistics], rows: list[int]) -> ChunkStatistics:
    """The cell of a file from those of its row groups: one that is unknown makes the file's unknown (rule S1).

    >>> merge([(1, 5, 0, 0, True, True), (None, None, 9, 0, False, False), (-2, 3, 1, 0, True, True)], [10, 9, 8])
    (-2, 5, 10, 0, True, True)
    >>> merge([(1, 5, 0, 0, True, True), (None, None, None, 0, False, False)], [10, 9])
    (None, None, None, 0, False, False)
    """
    nulls = None if any(c[2] is None for c in cells) else sum(c[2] or 0 for c in cells)
    nans = None if any(c[3] is None for c in cells) else sum(c[3] or 0 for c in cells)
    valued = [c for c, count in zip(cells, rows, strict=True) if c[2] != count]  # all-null groups hold no values
    if not valued or any(c[0] is None for c in valued):
        return (None, None, nulls, nans, False, False)
    low, high = min(c[0] for c in valued), max(c[1] for c in valued)
    low_exact = any(c[0] == low and c[4] for c in valued)
    high_exact = any(c[1] == high and c[5] for c in valued)
    return (low, high, nulls, nans, low_exact, high_exact)
