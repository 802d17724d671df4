"""Functions of the bits of integers: the range of the result from the ranges of the arguments.

==================  ====================================================================================================
function            range of the result
==================  ====================================================================================================
~a                  mirrored: -a - 1
a & b               from 0 to the lesser of both where none is negative; to the one that is not, if one can be
a | b, a ^ b        where none is negative: below the next power of two (from the greater of both on for |); else any
shiftright(a, n)    grows with a, for a constant n
shiftleft(a, n)     a times a power of two, for a constant n; any value where that overflows, for Spark wraps around
bit_count(a)        0 to 64; the negative tinyint, smallint and int count as bigint
==================  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules import integers as int_
from secateur.evaluate.rules.intervals import LIMITS, Interval, argument, derived, integers, kind
from secateur.evaluate.value_range import Numbers, ValueRange
from secateur.plan.expressions import Call, Literal

_BITS = {"int": 32, "bigint": 64}


def _not(call: Call, context: EvalContext) -> ValueRange | None:
    """``~a``: mirrored."""
    found = argument(call.args[0], context)
    if found is None or kind(found.type) != "integer" or found.type != call.type:
        return None
    low, high = integers(found)
    return derived(call.type, [found], (~high, ~low))


def _of_two(combine: Callable[[Interval, Interval, tuple[int, int]], Interval]) -> Rule:
    """An operation on the bits of two integers of one type."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        a, b = (argument(arg, context) for arg in call.args)
        if a is None or b is None or kind(call.type) != "integer" or not a.type == b.type == call.type:
            return None
        return derived(call.type, [a, b], combine(integers(a), integers(b), LIMITS[call.type.name]))

    return rule


def _and(a: Interval, b: Interval, limits: tuple[int, int]) -> Interval:
    """``a & b``: no bit that is not in both."""
    some = (a[0] >= 0) | (b[0] >= 0)
    high = np.where(a[0] >= 0, np.where(b[0] >= 0, np.minimum(a[1], b[1]), a[1]), b[1])
    return np.where(some, 0, limits[0]), np.where(some, high, limits[1])


def _or(a: Interval, b: Interval, limits: tuple[int, int]) -> Interval:
    """``a | b``: all bits of both."""
    low, high = _xor(a, b, limits)
    return np.where(low < 0, low, np.maximum(a[0], b[0])), high


def _xor(a: Interval, b: Interval, limits: tuple[int, int]) -> Interval:
    """``a ^ b``: no more bits than the longer of both."""
    positive = (a[0] >= 0) & (b[0] >= 0)
    ones = _ones(np.where(positive, np.maximum(a[1], b[1]), 0))
    return np.where(positive, 0, limits[0]), np.where(positive, ones, limits[1])


def _ones(values: Numbers) -> Numbers:
    """The least number of ones that is no less."""
    for shift in (1, 2, 4, 8, 16, 32):
        values = values | (values >> shift)
    return values


def _shift_right(call: Call, context: EvalContext) -> ValueRange | None:
    """``shiftright(a, n)``: Spark takes n modulo the number of bits."""
    found, places = argument(call.args[0], context), _places(call)
    if found is None or places is None or found.type != call.type:
        return None
    low, high = integers(found)
    return derived(call.type, [found], (low >> places, high >> places))


def _shift_left(call: Call, context: EvalContext) -> ValueRange | None:
    """``shiftleft(a, n)``: what overflows wraps around."""
    found, places = argument(call.args[0], context), _places(call)
    if found is None or places is None or found.type != call.type or places == _BITS[call.type.name] - 1:
        return None
    low, high = integers(found)
    factor = np.full_like(low, 1 << places)
    interval, _ = int_.multiply((low, high), (factor, factor), call.type)
    return derived(call.type, [found], interval)


def _places(call: Call) -> int | None:
    match call.args[1]:
        case Literal(value=int(places)) if call.type.name in _BITS:
            return places % _BITS[call.type.name]
    return None


def _count(call: Call, context: EvalContext) -> ValueRange | None:
    """``bit_count(a)``."""
    found = argument(call.args[0], context)
    if found is None or kind(found.type) not in ("integer", "boolean"):
        return None
    return derived(call.type, [found], (np.zeros(context.count, np.int64), np.full(context.count, 64)))


RULES: dict[str, Rule] = {
    "BitwiseNot": _not,
    "BitwiseAnd": _of_two(_and),
    "BitwiseOr": _of_two(_or),
    "BitwiseXor": _of_two(_xor),
    "ShiftRight": _shift_right,
    "ShiftLeft": _shift_left,
    "BitwiseCount": _count,
}
