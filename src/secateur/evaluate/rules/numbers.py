"""Arithmetic and numeric functions: the range of the result from the ranges of the arguments.

NULL comes from an argument that is NULL, NaN from one that is NaN; what else there is:

============================  ==============================  ======================================================
function                      the interval                    gives up, or NULL and NaN on top
============================  ==============================  ======================================================
a + b, a - b, a * b           of the bounds' sums, products   integers: any value where it could overflow; decimals:
                                                              unknown where the result's precision is too small;
                                                              floats: NaN where infinities meet each other or zero
a / b                         of the bounds' quotients        anything where b can be zero, and NULL
a div b                       the same, towards zero          no larger than a where b can be zero, and NULL
a % b, pmod(a, b)             no larger than a, below b       NULL where b can be zero; pmod of decimals: no rule
-a, abs(a)                    mirrored, folded                the least integer has no counterpart: any value
round, bround                 half a unit around a            decimals: exactly as Spark rounds
floor, ceil                   rounded bounds                  a NaN becomes 0
sqrt                          grows with a                    NaN where a can be negative
log, log2, log10, log1p       grows with a                    NULL where a can be at or below 0 (log1p: -1)
log(b, a)                     of the bounds' logarithms       anything where b can be 1 or less
exp, cbrt, atan, …            grows with a
pow(a, b)                     of the bounds' powers           anything unless a is positive or b an even number
isnan                         what the kinds of rows say      never NULL
============================  ==============================  ======================================================

Least, greatest and nanvl choose between values: they are in :mod:`secateur.evaluate.rules.conditionals`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules import decimals as dec
from secateur.evaluate.rules import floats as flt
from secateur.evaluate.rules import integers as int_
from secateur.evaluate.rules.intervals import LIMITS, argument, decimals, derived, floats, integers, kind, mask
from secateur.evaluate.value_range import Bound, Numbers, ValueRange
from secateur.evaluate.verdict import either
from secateur.plan.expressions import Call, Literal
from secateur.plan.types import BOOLEAN

Operation = Callable[..., Any]
"""From intervals and the type of the result; what it returns depends on the kind of numbers, see their modules."""


def _arithmetic(
    on_integers: Operation | None = None, on_floats: Operation | None = None, on_decimals: Operation | None = None
) -> Rule:
    """The rule of a function whose arguments are all of the kind of its result."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        arguments = [argument(arg, context) for arg in call.args]
        known = [found for found in arguments if found is not None]
        if len(known) < len(arguments) or any(kind(found.type) != kind(call.type) for found in known):
            return None
        match kind(call.type):
            case "integer" if on_integers:
                interval, fails = on_integers(*map(integers, known), call.type)
                return derived(call.type, known, interval, fails=fails)
            case "float" if on_floats:
                interval, fails, nan = on_floats(*map(floats, known), call.type)
                return derived(call.type, known, interval, fails=fails, nan=nan)
            case "decimal" if on_decimals:
                done = on_decimals(*map(decimals, known), call.type)
                return derived(call.type, known, done[0], fails=done[1]) if done else None
        return None

    return rule


def _function(on_floats: Operation) -> Rule:
    return _arithmetic(on_floats=on_floats)


def _round(mode: str) -> Rule:
    """Rounding to a constant number of digits, which may be negative."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        match call.args:
            case (child, Literal(value=int(scale))) if abs(scale) <= 37:
                pass
            case _:
                return None
        found = argument(child, context)
        if found is None or kind(found.type) != kind(call.type):
            return None
        if mode in ("down", "up") and kind(call.type) != "decimal":
            return None
        match kind(call.type):
            case "integer":
                interval, fails = int_.rounded(integers(found), scale, call.type)
                return derived(call.type, [found], interval, fails=fails)
            case "float":
                interval, fails, nan = flt.rounded(floats(found), scale, call.type)
                return derived(call.type, [found], interval, fails=fails, nan=nan)
            case "decimal":
                rounded, overflow = dec.rounded(decimals(found), scale, call.type, mode)
                return derived(call.type, [found], rounded, fails=overflow)
        return None

    return rule


def _whole(function: Callable[[Any], Any], mode: str) -> Rule:
    """``floor`` and ``ceil``: a double becomes the bigint next to it (NaN becomes 0), a decimal keeps no digits."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        (child,) = call.args
        found = argument(child, context)
        if found is None:
            return None
        match kind(found.type), kind(call.type):
            case "integer", "integer":
                return derived(call.type, [found], integers(found))
            case "float", "integer":
                nan = mask(found.may_hold_nan, context.count)
                low, high = (_as_bigint(function(end)) for end in floats(found))
                interval = np.where(nan, np.minimum(low, 0), low), np.where(nan, np.maximum(high, 0), high)
                return derived(call.type, [found], interval, number=found.may_hold_nan)
            case "decimal", "decimal":
                rounded, fails = dec.rounded(decimals(found), 0, call.type, mode)
                return derived(call.type, [found], rounded, fails=fails)
        return None

    return rule


def _as_bigint(whole: Numbers) -> Numbers:
    """As Java converts: what is too large becomes the largest."""
    below = np.clip(whole, -(2.0**63), np.nextafter(2.0**63, 0.0)).astype(np.int64)
    return np.where(whole >= 2.0**63, LIMITS["bigint"][1], below)


def _power(call: Call, context: EvalContext) -> ValueRange | None:
    base, exponent = (argument(arg, context) for arg in call.args)
    if base is None or exponent is None or not (base.type.is_float and exponent.type.is_float):
        return None
    (low, high), fails, nan = flt.power(floats(base), floats(exponent), call.type)
    # NaN to the power of 0 is 1.
    odd = mask(base.may_hold_nan, context.count)
    interval = np.where(odd, -np.inf, low), np.where(odd, np.inf, high)
    return derived(call.type, [base, exponent], interval, fails=fails, nan=nan, number=base.may_hold_nan)


def _is_nan(call: Call, context: EvalContext) -> ValueRange | None:
    found = argument(call.args[0], context)
    if found is None or not found.type.is_float:
        return None
    no = either(found.may_hold_number, found.may_hold_null)
    low = np.where(mask(no, context.count), 0, 1)
    high = np.where(mask(found.may_hold_nan, context.count), 1, 0)
    some = either(no, found.may_hold_nan)
    return ValueRange(BOOLEAN, Bound(low, False), Bound(high, False), False, False, some, some)


def _same(call: Call, context: EvalContext) -> ValueRange | None:
    """A wrapper that marks its child for Spark, or makes one NaN or zero of several."""
    return argument(call.args[0], context) if call.args[0].type == call.type else None


def _check_overflow(call: Call, context: EvalContext) -> ValueRange | None:
    found = argument(call.args[0], context)
    if found is None or kind(found.type) != "decimal" or kind(call.type) != "decimal":
        return None
    interval, fails = dec.rescaled(decimals(found), call.type)
    return derived(call.type, [found], interval, fails=fails)


RULES: dict[str, Rule] = {
    "Add": _arithmetic(int_.add, flt.add, dec.add),
    "Subtract": _arithmetic(int_.subtract, flt.subtract, dec.subtract),
    "Multiply": _arithmetic(int_.multiply, flt.multiply, dec.multiply),
    "Divide": _arithmetic(None, flt.divide, dec.divide),
    "IntegralDivide": _arithmetic(int_.divide),
    "Remainder": _arithmetic(int_.remainder, flt.remainder, dec.remainder),
    "Pmod": _arithmetic(int_.positive_remainder, flt.positive_remainder),
    "UnaryMinus": _arithmetic(int_.negate, flt.negate, dec.negate),
    "Abs": _arithmetic(int_.absolute, flt.absolute, dec.absolute),
    "Round": _round("half_towards_infinity"),
    "BRound": _round("half_to_even"),
    "RoundFloor": _round("down"),
    "RoundCeil": _round("up"),
    "Floor": _whole(np.floor, "down"),
    "Ceil": _whole(np.ceil, "up"),
    "Signum": _function(partial(flt.exactly, np.sign)),
    "Rint": _function(partial(flt.exactly, np.rint)),
    "Sqrt": _function(flt.square_root),
    "Exp": _function(partial(flt.increasing, np.exp)),
    "Expm1": _function(partial(flt.increasing, np.expm1)),
    "Cbrt": _function(partial(flt.increasing, np.cbrt)),
    "Atan": _function(partial(flt.increasing, np.arctan)),
    "Sinh": _function(partial(flt.increasing, np.sinh)),
    "Tanh": _function(partial(flt.increasing, np.tanh)),
    "ToDegrees": _function(partial(flt.increasing, np.degrees)),
    "ToRadians": _function(partial(flt.increasing, np.radians)),
    "Log": _function(partial(flt.logarithm, np.log, 0.0)),
    "Log2": _function(partial(flt.logarithm, np.log2, 0.0)),
    "Log10": _function(partial(flt.logarithm, np.log10, 0.0)),
    "Log1p": _function(partial(flt.logarithm, np.log1p, -1.0)),
    "Logarithm": _function(flt.logarithm_to),
    "Pow": _power,
    "IsNaN": _is_nan,
    "CheckOverflow": _check_overflow,
    "KnownNullable": _same,
    "KnownNotNull": _same,
    "KnownFloatingPointNormalized": _same,
    "NormalizeNaNAndZero": _same,
}
