"""What the rules share: arguments as intervals of arrays, results as Facts, and the choice between several values.

An interval is a pair of arrays, one entry each: no value of the entry that is a number lies outside of it.

* integers and booleans: int64 in numpy. What is unknown is the range of the type, which holds by itself;
* floats: float64 in numpy. What is unknown is infinite;
* decimals: decimal128(38, scale) in Arrow. What is unknown is null, and stays null through Arrow's arithmetic.

A rule says where it can *fail*. What Spark then does depends on the mode of the expression, which does not travel with
it: an error (ANSI), NULL (``try_add`` and its kind) or another value (integers wrap in legacy mode). So a failure
always makes NULL possible, and the rules for integers give up the bounds as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.expression_ranges import EvalContext, range_of
from secateur.evaluate.rules import scaled
from secateur.evaluate.rules.scaled import Scaled
from secateur.evaluate.value_range import Bound, Numbers, ValueRange
from secateur.evaluate.verdict import Flags, both, either
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression
from secateur.plan.types import FLOATS, INTEGERS, DataType
from secateur.stats.arrays import to_mask

Interval: TypeAlias = tuple[Numbers, Numbers]
Decimals: TypeAlias = tuple[pa.Array, pa.Array]

LIMITS = {
    "boolean": (0, 1),
    "tinyint": (-(2**7), 2**7 - 1),
    "smallint": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1),
}


def kind(type_: DataType) -> str:
    """How a rule distinguishes types.

    >>> from secateur.plan.types import parse_type
    >>> [kind(parse_type(t)) for t in ("smallint", "float", "decimal(9,2)", "boolean", "date")]
    ['integer', 'float', 'decimal', 'boolean', 'date']
    """
    if type_.name in INTEGERS:
        return "integer"
    return "float" if type_.name in FLOATS else type_.name


def argument(e: Expression, context: EvalContext) -> ValueRange | None:
    """What an argument can be: at worst any value of its type, None if that type has no domain."""
    found = range_of(e, context)
    if found is None or found.type.domain != e.type.domain:
        return anything(e.type, context.count)
    return found


def anything(type_: DataType, count: int) -> ValueRange | None:
    """Facts that say nothing."""
    if type_.domain is None:
        return None
    bound = Bound(pa.nulls(count, type_.domain), True)
    return ValueRange(type_, bound, bound, True, type_.is_float, True, True)


def integers(found: ValueRange) -> Interval:
    """The interval of an integer or a boolean."""
    least, greatest = LIMITS[found.type.name]
    return (
        np.clip(_known(found.low, least, np.int64), least, greatest),
        np.clip(_known(found.high, greatest, np.int64), least, greatest),
    )


def floats(found: ValueRange) -> Interval:
    """The interval of a float or a double."""
    low, high = _known(found.low, -np.inf, np.float64), _known(found.high, np.inf, np.float64)
    low = np.where(np.isnan(low), -np.inf, low)
    if found.high is found.low and found.low.unknown is False and isinstance(found.low.values, np.ndarray):
        return low, low  # a constant, and never NaN
    return low, np.where(np.isnan(high), np.inf, high)


def decimals(found: ValueRange) -> Decimals:
    """The interval of a decimal."""
    return found.low.values, found.high.values


def holds(interval: Interval, value: float) -> Mask:
    """Where the interval contains a value."""
    inside: Mask = (interval[0] <= value) & (interval[1] >= value)
    return inside


def derived(
    type_: DataType,
    arguments: Sequence[ValueRange],
    interval: Interval | Decimals,
    *,
    fails: Flags = False,
    nan: Flags = False,
    number: Flags = False,
) -> ValueRange:
    """The result of a function that is NULL if an argument is, and NaN if one is.

    ``nan``: where numbers may yield NaN. ``number``: where something else than numbers may yield a number.
    """
    null: Flags = fails
    numbers: Flags = True
    for found in arguments:
        null = either(null, found.may_hold_null)
        nan = either(nan, found.may_hold_nan)
        numbers = both(numbers, found.may_hold_number)
    nan = type_.is_float and nan
    number = either(number, numbers)
    low, high = (_bound(values) for values in interval)
    return ValueRange(type_, low, high, null, nan, number, either(nan, number))


def choice(
    type_: DataType, branches: Iterable[tuple[ValueRange, Flags]], count: int, *, null: Flags = False
) -> ValueRange:
    """One of several values: each can be the result where its flag is set; NULL also where ``null``."""
    nan: Flags = False
    number: Flags = False
    value: Flags = False
    numbers: list[tuple[ValueRange, Mask]] = []
    for found, taken in branches:
        null = either(null, both(taken, found.may_hold_null))
        nan = either(nan, both(taken, found.may_hold_nan))
        value = either(value, both(taken, found.may_hold_value))
        part = both(taken, found.may_hold_number)
        number = either(number, part)
        if part is not False:
            numbers.append((found, mask(part, count)))
    low = extreme([(found.low, part) for found, part in numbers], type_, count, least=True)
    high = extreme([(found.high, part) for found, part in numbers], type_, count, least=False)
    return ValueRange(type_, low, high, null, nan, number, value)


def extreme(bounds: Sequence[tuple[Bound, Mask]], type_: DataType, count: int, *, least: bool) -> Bound:
    """The least or greatest of bounds, each counted where its mask says; unknown where one that counts is."""
    if type_.domain not in (pa.int64(), pa.float64()):
        return _arrow_extreme(bounds, type_, count, least=least)
    pick = np.minimum if least else np.maximum
    best: Numbers = np.zeros(count, np.int64 if type_.domain == pa.int64() else np.float64)
    unknown, seen = np.zeros((2, count), np.bool_)
    for at, (bound, counts) in enumerate(bounds):
        if not isinstance(bound.values, np.ndarray):
            unknown = unknown | counts
            continue
        picked = np.where(seen, pick(best, bound.values), bound.values) if at else bound.values
        best = np.where(counts, picked, best)
        if bound.unknown is not False:
            unknown = unknown | (counts & bound.unknown)
        seen = seen | counts
    return Bound(best, unknown)


def _arrow_extreme(bounds: Sequence[tuple[Bound, Mask]], type_: DataType, count: int, *, least: bool) -> Bound:
    if type_.name == "decimal":
        small = _scaled_extreme(bounds, count, least=least)
        if small is not None:
            return _bound(small.to_arrow())
    pick = pc.min_element_wise if least else pc.max_element_wise
    best = pa.nulls(count, type_.domain)
    seen = np.zeros(count, np.bool_)
    for bound, counts in bounds:
        both_ways = pc.if_else(pa.array(seen), pick(best, bound.values, skip_nulls=False), bound.values)
        best = pc.if_else(pa.array(counts), both_ways, best)
        seen = seen | counts
    return _bound(best)


def _scaled_extreme(bounds: Sequence[tuple[Bound, Mask]], count: int, *, least: bool) -> Scaled | None:
    """The same for decimals that fit in int64."""
    pick = np.minimum if least else np.maximum
    best: Scaled | None = None
    seen: Mask = np.zeros(count, np.bool_)
    for bound, counts in bounds:
        found = scaled.of_arrow(bound.values)
        if found is None or (best is not None and best.scale != found.scale):
            return None
        values, unknown, reach = found.values, both(counts, found.unknown), found.reach
        if best is not None:
            values = np.where(counts, np.where(seen, pick(best.values, values), values), best.values)
            unknown, reach = either(best.unknown, unknown), max(best.reach, reach)
        best = Scaled(values, unknown, found.scale, reach)
        seen = seen | counts
    return best and replace(best, unknown=either(best.unknown, False if seen.all() else ~seen))


def mask(flags: Flags, count: int) -> Mask:
    """The flags as an array."""
    return np.broadcast_to(np.bool_(flags), count) if isinstance(flags, bool) else flags


def nulls(array: pa.Array) -> Flags:
    """Where an Arrow array has no value."""
    return to_mask(array.is_null()) if array.null_count else False


def _known(bound: Bound, instead: float, dtype: type) -> Numbers:
    if not isinstance(bound.values, np.ndarray):
        return np.full(len(bound.values), instead, dtype)
    return bound.values if bound.unknown is False else np.where(bound.unknown, dtype(instead), bound.values)


def _bound(values: Numbers | pa.Array) -> Bound:
    return Bound(values, False if isinstance(values, np.ndarray) else nulls(values))
