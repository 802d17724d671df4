"""Casts between types: the range of the result from the range of the argument.

``CASTS`` holds a rule for each pair of kinds (see :func:`~secateur.evaluate.rules.intervals.kind`); those of dates and
timestamps are in ``times``. Whether a cast is ``cast`` in ANSI mode, in legacy mode or ``try_cast`` does not matter:
where it can fail, NULL is possible.

=====================  ======================================================================================
from, to               gives up, or NULL on top
=====================  ======================================================================================
integer to integer     any value where the target is too narrow (legacy mode wraps)
integer to float       nothing; bounds that are not exactly representable widen
integer to decimal     unknown where the precision is too small
float to integer       any value where it does not fit; a NaN may become 0
float to float         nothing; a double is widened by a place of a float
float to decimal       unknown where it does not fit; NaN and infinity become NULL
decimal to integer     any value where it does not fit
decimal to float       nothing; widened by more than the rounding
decimal to decimal     unknown where the precision is too small; rounds half up, as Spark does
boolean to any number  unknown if the target is a decimal that has no place for a 1
any number to boolean  nothing; NaN is true
anything else          no rule (a string has to be parsed; dates and timestamps are in ``times``)
=====================  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules import decimals as dec
from secateur.evaluate.rules import floats as flt
from secateur.evaluate.rules import integers as int_
from secateur.evaluate.rules import times
from secateur.evaluate.rules.intervals import (
    LIMITS,
    Interval,
    argument,
    decimals,
    derived,
    floats,
    holds,
    integers,
    kind,
    mask,
)
from secateur.evaluate.value_range import Numbers, ValueRange
from secateur.plan.columns import Mask
from secateur.plan.expressions import Call
from secateur.plan.types import DataType

Conversion = Callable[[ValueRange, DataType], ValueRange]


def _integer_to_integer(found: ValueRange, target: DataType) -> ValueRange:
    interval, fails = int_.within(*integers(found), np.zeros(1, np.bool_), target)
    return derived(target, [found], interval, fails=fails)


def _integer_to_float(found: ValueRange, target: DataType) -> ValueRange:
    low, high = integers(found)
    exact = 2**24 if target.name == "float" else 2**53
    wide = flt.outward(low.astype(np.float64), high.astype(np.float64), target)
    interval = tuple(
        np.where((end >= -exact) & (end <= exact), end.astype(np.float64), wider)
        for end, wider in zip((low, high), wide, strict=True)
    )
    return derived(target, [found], (interval[0], interval[1]))


def _integer_to_decimal(found: ValueRange, target: DataType) -> ValueRange:
    interval, fails = dec.of_integers(integers(found), target)
    return derived(target, [found], interval, fails=fails)


def _float_to_integer(found: ValueRange, target: DataType) -> ValueRange:
    low, high = (np.trunc(end) for end in floats(found))
    least, greatest = LIMITS[target.name]
    # 2**63 - 1 is no float, 2**63 is.
    fits = (low >= float(least)) & (high < float(greatest + 1))
    ints = [np.where(fits, end, 0.0).astype(np.int64) for end in (low, high)]
    nan = mask(found.may_hold_nan, len(low))
    interval = (
        np.where(fits, np.where(nan, np.minimum(ints[0], 0), ints[0]), least),
        np.where(fits, np.where(nan, np.maximum(ints[1], 0), ints[1]), greatest),
    )
    return derived(target, [found], interval, fails=~fits | nan, number=found.may_hold_nan)


def _float_to_float(found: ValueRange, target: DataType) -> ValueRange:
    low, high = floats(found)
    if target.name == "float" and found.type.name != "float":
        wide = flt.outward(low, high, target)
        low, high = np.where(_is_float32(low), low, wide[0]), np.where(_is_float32(high), high, wide[1])
    return derived(target, [found], (low, high))


def _float_to_decimal(found: ValueRange, target: DataType) -> ValueRange:
    interval, fails = dec.of_floats(floats(found), target)
    return derived(target, [found], interval, fails=mask(fails, len(interval[0])) | found.may_hold_nan)


def _decimal_to_integer(found: ValueRange, target: DataType) -> ValueRange:
    interval, fails = dec.as_integers(decimals(found), *LIMITS[target.name])
    return derived(target, [found], interval, fails=fails)


def _decimal_to_float(found: ValueRange, target: DataType) -> ValueRange:
    low, high = dec.as_floats(decimals(found))
    return derived(target, [found], flt.outward(low, high, target) if target.name == "float" else (low, high))


def _decimal_to_decimal(found: ValueRange, target: DataType) -> ValueRange:
    interval, fails = dec.rescaled(decimals(found), target)
    return derived(target, [found], interval, fails=fails)


def _integer_to_boolean(found: ValueRange, target: DataType) -> ValueRange:
    return _not_zero(found, integers(found), target)


def _float_to_boolean(found: ValueRange, target: DataType) -> ValueRange:
    return _not_zero(found, floats(found), target)


def _decimal_to_boolean(found: ValueRange, target: DataType) -> ValueRange:
    return _not_zero(found, dec.signs(decimals(found)), target)


def _not_zero(found: ValueRange, interval: Interval, target: DataType) -> ValueRange:
    only_zero = (interval[0] == 0) & (interval[1] == 0) & ~mask(found.may_hold_nan, len(interval[0]))
    low, high = np.where(holds(interval, 0), 0, 1), np.where(only_zero, 0, 1)
    return derived(target, [found], (low, high), number=found.may_hold_nan)


def _is_float32(values: Numbers) -> Mask:
    with np.errstate(all="ignore"):
        same: Mask = values.astype(np.float32).astype(np.float64) == values
    return same


def _converted(conversion: Conversion) -> Rule:
    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        found = argument(call.args[0], context)
        return conversion(found, call.type) if found else None

    return rule


CASTS: dict[tuple[str, str], Rule] = {
    ("integer", "integer"): _converted(_integer_to_integer),
    ("integer", "float"): _converted(_integer_to_float),
    ("integer", "decimal"): _converted(_integer_to_decimal),
    ("integer", "boolean"): _converted(_integer_to_boolean),
    ("float", "integer"): _converted(_float_to_integer),
    ("float", "float"): _converted(_float_to_float),
    ("float", "decimal"): _converted(_float_to_decimal),
    ("float", "boolean"): _converted(_float_to_boolean),
    ("decimal", "integer"): _converted(_decimal_to_integer),
    ("decimal", "float"): _converted(_decimal_to_float),
    ("decimal", "decimal"): _converted(_decimal_to_decimal),
    ("decimal", "boolean"): _converted(_decimal_to_boolean),
    ("boolean", "integer"): _converted(_integer_to_integer),
    ("boolean", "float"): _converted(_integer_to_float),
    ("boolean", "decimal"): _converted(_integer_to_decimal),
}
"""The rule of a cast by the kinds of its source and its target."""


def _cast(call: Call, context: EvalContext) -> ValueRange | None:
    if len(call.args) != 1:
        return None
    source, target = call.args[0].type, call.type
    rule = CASTS.get((kind(source), kind(target))) or times.CASTS.get((source.name, target.name))
    return rule(call, context) if rule else None


RULES: dict[str, Rule] = {"Cast": _cast}
