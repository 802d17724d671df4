"""Spark's data types, as far as secateur can reason about their values.

Every type that can be reasoned about has a *domain*: the Arrow type in which the bounds of a column and the literals of
a query are compared. Two values of one domain compare in Arrow exactly as they compare in Spark:

=====================================  ===================  ==========================================
Spark type                             domain               a value is
=====================================  ===================  ==========================================
tinyint, smallint, int, bigint         int64                the number
boolean                                int64                0 or 1
date                                   int64                days since 1970-01-01
timestamp, timestamp_ntz               int64                microseconds since 1970-01-01
interval of days to seconds            int64                microseconds
interval of years to months            int64                months
float, double                          float64              the number (NaN is never a bound, rule S5)
decimal(p, s)                          decimal128(38, s)    the number
string                                 binary               the UTF-8 bytes (rule S6)
=====================================  ===================  ==========================================

Everything else (binary, legacy intervals, collated strings, nested types) has no domain: unknown, hence kept (rule S1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
_FIELDS = ("day", "hour", "minute", "second")
DAY_TIME = tuple(
    f"interval {first}" if first == last else f"interval {first} to {last}"
    for i, first in enumerate(_FIELDS)
    for last in _FIELDS[i:]
)
YEAR_MONTH = ("interval year", "interval month", "interval year to month")
_INT64 = frozenset({*INTEGERS, *DAY_TIME, *YEAR_MONTH, "boolean", "date", "timestamp", "timestamp_ntz"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class DataType:
    """A Spark type by its catalog name.

    >>> parse_type("decimal(10,2)")
    DataType(name='decimal', precision=10, scale=2)
    >>> str(parse_type("decimal(10,2)")), str(parse_type("bigint"))
    ('decimal(10,2)', 'bigint')
    """

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def domain(self) -> pa.DataType | None:
        """The Arrow type in which values of this type are compared, None if secateur does not reason about them."""
        if self.name in _INT64:
            return pa.int64()
        if self.name in FLOATS:
            return pa.float64()
        if self.name == "decimal":
            return pa.decimal128(38, self.scale)
        if self.name == "string":
            return pa.binary()
        return None

    @property
    def is_float(self) -> bool:
        return self.name in FLOATS

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


@lru_cache(maxsize=10_000)
def parse_type(catalog_string: str) -> DataType:
    """The type that Spark's ``DataType.catalogString`` names.

    >>> parse_type("string").domain, parse_type("array<int>").domain
    (DataType(binary), None)
    """
    decimal = _DECIMAL.fullmatch(catalog_string)
    if decimal:
        return DataType("decimal", int(decimal[1]), int(decimal[2]))
    return DataType(catalog_string)


BOOLEAN = DataType("boolean")
