"""Trails in feet and in metres: a predicate with a condition, a product and a pattern, over made-up statistics.

    IF(unit = 'feet', altit * 0.3048, altit) > 1500 AND name LIKE 'Marked-%-Ridge'

As Spark's optimizer hands it over: the multiplication is one of doubles or of decimals, depending on the type of
``altit``, and the pattern has come apart into a length, a prefix and a suffix.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Call, Column, Compare, Expression, IsNotNull, Like, Literal, StartsWith
from secateur.plan.types import BOOLEAN, DataType, parse_type
from secateur.stats.file_stats import ColumnStats, FileStats

STRING, INT, DOUBLE = parse_type("string"), parse_type("int"), parse_type("double")
DECIMAL = parse_type("decimal(8,2)")
UNIT, NAME = ScanColumn(10, "unit", STRING), ScanColumn(11, "name", STRING)
ALTIT = {
    str(type_): ScanColumn(20 + at, f"altit_{type_.name}", type_) for at, type_ in enumerate((DOUBLE, INT, DECIMAL))
}
COLUMNS = (UNIT, NAME, *ALTIT.values())


@dataclass(frozen=True, slots=True)
class Files:
    """What the files hold."""

    kinds: npt.NDArray[np.int64]
    """0: feet, 1: metres, 2: both."""
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    first: npt.NDArray[np.object_]
    last: npt.NDArray[np.object_]


def _files(count: int) -> Files:
    """Files in no order: a third of them in feet, a third in metres, the rest mixed; most may hold marked trails."""
    rng = np.random.default_rng(11)
    low = rng.integers(0, 8000, count)
    first = rng.choice(np.array([b"Blazed-0001-Gully", b"Marked-0100-Brook"], object), count)
    last = rng.choice(np.array([b"Zigzag-0400-Ridge", b"Little-0777-Creek"], object), count)
    last = np.where(first == b"Marked-0100-Brook", b"Marked-0990-Ridge", last)
    return Files(rng.integers(0, 3, count), low, low + rng.integers(10, 500, count), first, last)


def kept(count: int) -> int:
    """How many files have to be read: those that may hold a marked trail above 1,500 metres."""
    files = _files(count)
    highest = np.where(files.kinds == 0, files.high * 3048, files.high * 10000)
    return int(np.count_nonzero((highest > 15_000_000) & (files.last >= b"Marked-")))


def trails(count: int) -> FileStats:
    """The statistics of the files."""
    files = _files(count)
    units = np.array([b"feet", b"metres"], object)

    def bounds(column: ScanColumn) -> tuple[pa.Array, pa.Array]:
        if column.name == "unit":
            ends = units[np.where(files.kinds == 1, 1, 0)], units[np.where(files.kinds == 0, 0, 1)]
            return pa.array(ends[0], pa.binary()), pa.array(ends[1], pa.binary())
        if column.name == "name":
            return pa.array(files.first, pa.binary()), pa.array(files.last, pa.binary())
        domain = column.type.domain
        return pa.array(files.low).cast(domain), pa.array(files.high).cast(domain)

    def load(column: ScanColumn) -> ColumnStats:
        zeros, ones = pa.array(np.zeros(count, np.int64)), np.ones(count, np.bool_)
        return ColumnStats(*bounds(column), zeros, zeros, ones, ones)

    return FileStats(pa.array(np.full(count, 1000)), pa.array(np.full(count, 10**6)), load)


def refer(column: ScanColumn) -> Column:
    return Column(column.id, column.name, column.type)


def high_enough(type_: str) -> Expression:
    """``IF(unit = 'feet', altit * 0.3048, altit) > 1500``."""
    altit = refer(ALTIT[type_])
    feet = Compare("=", refer(UNIT), Literal(b"feet", STRING))
    in_metres: Expression
    otherwise: Expression
    match type_:
        case "double":
            in_metres, otherwise = Call("Multiply", (altit, Literal(0.3048, DOUBLE)), DOUBLE), altit
        case "int":
            wide = Call("Cast", (altit,), parse_type("decimal(10,0)"))
            in_metres, otherwise = _times(wide, parse_type("decimal(15,4)"), altit)
        case _:
            in_metres, otherwise = _times(altit, parse_type("decimal(13,6)"), altit)
    result = in_metres.type
    limit = Literal(1500.0, DOUBLE) if result == DOUBLE else Literal(Decimal(1500), result)
    return Compare(">", Call("If", (feet, in_metres, otherwise), result), limit)


def _times(altit: Expression, result: DataType, plain: Expression) -> tuple[Expression, Expression]:
    factor = Literal(Decimal("0.3048"), parse_type("decimal(4,4)"))
    return Call("Multiply", (altit, factor), result), Call("Cast", (plain,), result)


def marked() -> tuple[Expression, ...]:
    """``name LIKE 'Marked-%-Ridge'`` as Spark simplifies it."""
    name = refer(NAME)
    return (
        IsNotNull(name),
        Compare(">=", Call("Length", (name,), INT), Literal(13, INT)),
        StartsWith(name, b"Marked-"),
        Call("EndsWith", (name, Literal(b"-Ridge", STRING)), BOOLEAN),
    )


def slow_and_useless() -> Expression:
    """Something expensive that rules out no file: a pattern without a beginning on a text that is put together."""
    return Like(Call("Concat", (refer(NAME), refer(UNIT), refer(NAME)), STRING), "%e%-%e%")
