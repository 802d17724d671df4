"""Values at which comparisons go wrong: ends of types, zeros, NaN, calendars, accents."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.timezone.utc

_NAN, _INF = math.nan, math.inf
DOUBLES = [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e308, -1e308, _INF, -_INF, 2.5, 1500.0, 1500.0000000000002, None]
INTS = [0, 1, -1, 5, 4, 6, 100, 2**31 - 1, -(2**31), 2**31 - 5, 2**31 - 6, -(2**31) + 1, 46341, None]
DATES = [
    dt.date(*ymd)
    for ymd in (
        (1, 1, 2), (999, 12, 31), (1582, 10, 4), (1582, 10, 15), (1582, 10, 14), (1899, 12, 31), (1900, 1, 1),
        (1969, 12, 31), (1970, 1, 1), (2023, 12, 31), (2024, 1, 1), (2024, 2, 29), (9999, 12, 30),
    )
]  # fmt: skip
TIMES = [
    *(dt.datetime(d.year, d.month, d.day, tzinfo=UTC) for d in DATES),
    dt.datetime(2024, 3, 10, 6, 59, 59, 999999, UTC),
    dt.datetime(2024, 3, 31, 1, 0, 0, 1, UTC),
    dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),
    dt.datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
    dt.datetime(2023, 12, 31, 23, 0, tzinfo=UTC),
    dt.datetime(2024, 12, 31, 22, 59, 59, 999500, UTC),
]
STRINGS = [
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "ab\U0010ffff",
    "ab\uffff",
    "é",
    "ê",
    "è\U0010ffffz",
    "\x00",
    "abc\x00",
    "z" * 70,
]
DECIMALS = [Decimal(v) for v in ("0.00", "-0.01", "0.01", "9999999.99", "-9999999.99", "50.00", "50.01", "-50.00")]


def nasty_rows() -> list[dict[str, Any]]:
    columns: list[list[Any]] = [DOUBLES, INTS, TIMES, STRINGS, DECIMALS]
    length = max(map(len, columns))

    def at(values: list[Any], i: int) -> Any:
        return values[i % len(values)] if i < len(values) or i % 3 else None

    return [
        {
            "i": at(INTS, i),
            "x": at(DOUBLES, i),
            "y": _NAN if i % 4 == 0 else at(DOUBLES, i),
            "day": at(DATES, i),
            "ts": at(TIMES, i),
            "s": at(STRINGS, i),
            "m": at(DECIMALS, i),
        }
        for i in range(2 * length)
    ]


SCHEMA = pa.schema(
    {
        "i": pa.int32(), "x": pa.float64(), "y": pa.float64(), "day": pa.date32(), "ts": pa.timestamp("us", "UTC"),
        "s": pa.string(), "m": pa.decimal128(9, 2),
    }
)  # fmt: skip
