"""Arithmetic on intervals of decimals, exact in int64 or in Arrow's decimal256 and then rounded as Spark rounds.

Spark computes with at least one digit more than a decimal has and rounds half up to the scale of the result: that is
monotone, so rounded bounds are the bounds of rounded values. What does not fit in the precision of the result is
unknown, here a null, and NULL or an error in Spark. A quotient is the one thing that is computed in float64, and
widened.

Most decimals are small enough for int64, where all this is many times faster (see ``scaled``); both derive the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.rules import scaled
from secateur.evaluate.rules.intervals import Decimals, Interval, nulls
from secateur.evaluate.rules.scaled import Scaled
from secateur.evaluate.value_range import Numbers
from secateur.evaluate.verdict import Flags, either
from secateur.plan.columns import Mask
from secateur.plan.types import DataType
from secateur.stats.arrays import to_mask

DIGITS = 76
_EXACT = Context(prec=2 * DIGITS)
_SLOP = 1e-14
"""More than the relative error of a conversion between decimal and float64, and of a quotient."""

Checked = tuple[Decimals, Flags]
"""The interval and where the operation can fail; where it can, one of the bounds is unknown."""


def fit(values: pa.Array, type_: DataType, mode: str = "half_towards_infinity", digits: int | None = None) -> pa.Array:
    """Decimals rounded to a type's scale (or to fewer digits), null where they have too many digits for it."""
    digits = type_.scale if digits is None else digits
    if values.type.scale > digits:
        values = pc.round(values, digits, mode)
    if values.type.scale > type_.scale:
        values = values.cast(pa.decimal256(DIGITS, type_.scale))
    return below(values, type_.precision - type_.scale).cast(pa.decimal128(38, type_.scale))


def fitted(low: pa.Array, high: pa.Array, type_: DataType, mode: str = "half_towards_infinity") -> Checked:
    """Both bounds of a result rounded to its type."""
    return checked(fit(low, type_, mode), fit(high, type_, mode))


def checked(low: pa.Array, high: pa.Array) -> Checked:
    """An interval that can fail where one of its bounds is unknown."""
    return (low, high), either(nulls(low), nulls(high))


def below(values: pa.Array, digits: int) -> pa.Array:
    """The decimals, null where they have more than so many digits before the point."""
    if values.type.precision - values.type.scale <= digits:
        return values
    limit = pa.scalar(_EXACT.power(10, digits), pa.decimal256(DIGITS, values.type.scale))
    ends = pc.min_max(values)
    if _is_below(ends["max"], limit) and _is_below(pc.negate(ends["min"]), limit):
        return values
    small = pc.and_(pc.less(values, limit), pc.greater(values, pc.negate(limit)))
    return pc.if_else(small, values, pa.scalar(None, values.type))


def _is_below(value: pa.Scalar, limit: pa.Scalar) -> bool:
    return pc.less(value, limit).as_py() is not False


def add(a: Decimals, b: Decimals, type_: DataType) -> Checked | None:
    small = _small_sums((a[0], b[0]), (a[1], b[1]), type_, sign=1)
    return small or _exactly(pc.add, (a[0], b[0]), (a[1], b[1]), type_)


def subtract(a: Decimals, b: Decimals, type_: DataType) -> Checked | None:
    small = _small_sums((a[0], b[1]), (a[1], b[0]), type_, sign=-1)
    return small or _exactly(pc.subtract, (a[0], b[1]), (a[1], b[0]), type_)


def multiply(a: Decimals, b: Decimals, type_: DataType) -> Checked | None:
    small = _small_products(a, b, type_)
    if small:
        return small
    # Two factors of 38 digits have a product of 76, but Arrow wants one digit more.
    left = [below(x, 37 - x.type.scale).cast(pa.decimal256(37, x.type.scale)) for x in _ends(a)]
    right = [y.cast(pa.decimal256(38, y.type.scale)) for y in _ends(b)]
    products = [pc.multiply(x, y) for x in left for y in right]
    low = pc.min_element_wise(*products, skip_nulls=False)
    return fitted(low, pc.max_element_wise(*products, skip_nulls=False), type_)


def negate(a: Decimals, type_: DataType) -> Checked:
    low, high = (_negatable(x) for x in a)
    return rescaled((pc.negate(high), pc.negate(low)), type_)


def absolute(a: Decimals, type_: DataType) -> Checked:
    low, high = (_negatable(x) for x in a)
    zero = pa.scalar(Decimal(0), low.type)
    far = pc.max_element_wise(pc.negate(low), high, skip_nulls=False)
    # The nearest to zero is the larger of low, -high and zero.
    near = pc.max_element_wise(low, pc.negate(high), zero, skip_nulls=False)
    return rescaled((near, far), type_)


def divide(a: Decimals, b: Decimals, type_: DataType) -> Checked:
    """``a / b``: anything if the divisor can be zero."""
    (alow, ahigh), (blow, bhigh) = as_floats(a), as_floats(b)
    zero = ~((blow > 0) | (bhigh < 0))
    with np.errstate(all="ignore"):
        quotients = [x / np.where(zero, np.nan, y) for x in (alow, ahigh) for y in (blow, bhigh)]
    return of_floats((np.minimum.reduce(quotients), np.maximum.reduce(quotients)), type_)


def remainder(a: Decimals, b: Decimals, type_: DataType) -> Checked:
    """``a % b``: has the sign of a and is no larger than either."""
    wide = pa.decimal256(DIGITS, max(a[0].type.scale, b[0].type.scale))
    (alow, ahigh), (blow, bhigh) = [x.cast(wide) for x in a], [x.cast(wide) for x in b]
    zero = pa.scalar(Decimal(0), wide)
    reach = pc.max_element_wise(pc.negate(blow), bhigh, skip_nulls=False)
    low = pc.min_element_wise(pc.max_element_wise(alow, pc.negate(reach), skip_nulls=False), zero, skip_nulls=False)
    high = pc.max_element_wise(pc.min_element_wise(ahigh, reach, skip_nulls=False), zero, skip_nulls=False)
    # A quotient of more than 39 digits is an error, whatever the remainder.
    return fitted(low, high, type_)[0], True


def rounded(a: Decimals, scale: int, type_: DataType, mode: str) -> Checked:
    """``round(a, scale)`` and its kind; a negative scale keeps no digit behind the point."""
    low, high = (x.cast(pa.decimal256(DIGITS, x.type.scale)) for x in a)
    digits = min(scale, type_.scale)
    return checked(fit(low, type_, mode, digits), fit(high, type_, mode, digits))


def of_integers(a: Interval, type_: DataType) -> Checked:
    """Integers as decimals."""
    small = _small([scaled.of_numbers(x, False, 0) for x in a], type_)
    if small:
        return small
    low, high = (pa.array(x).cast(pa.decimal256(DIGITS, type_.scale)) for x in a)
    return fitted(low, high, type_)


def rescaled(a: Decimals, type_: DataType) -> Checked:
    """Decimals of another precision and scale."""
    small = _small([scaled.of_arrow(x) for x in a], type_)
    if small:
        return small
    low, high = (x.cast(pa.decimal256(DIGITS, max(x.type.scale, type_.scale))) for x in a)
    return fitted(low, high, type_)


def of_floats(a: Interval, type_: DataType) -> Checked:
    """Floats as decimals, widened by more than Spark rounds; null where they are not finite or too large."""
    unit = 10.0**-type_.scale
    with np.errstate(all="ignore"):
        low, high = a[0] - (np.abs(a[0]) * _SLOP + unit), a[1] + (np.abs(a[1]) * _SLOP + unit)
    limit = 0.999 * 10.0 ** (type_.precision - type_.scale)
    return checked(_of_float(low, limit, type_), _of_float(high, limit, type_))


def _of_float(values: Numbers, limit: float, type_: DataType) -> pa.Array:
    outside = ~(np.abs(values) < limit)
    return pa.array(np.where(outside, 0.0, values), mask=outside).cast(pa.decimal128(38, type_.scale))


def as_floats(a: Decimals) -> Interval:
    """Decimals as doubles, widened by more than Spark rounds; infinite where unknown."""
    low, high = (x.cast(pa.float64()).to_numpy(zero_copy_only=False) for x in a)
    low, high = low - np.abs(low) * _SLOP, high + np.abs(high) * _SLOP
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def as_integers(a: Decimals, least: int, greatest: int) -> tuple[Interval, Mask]:
    """Decimals cut off at the point, and where that may leave [least, greatest].

    In ANSI mode Spark goes through a double, which makes 2 of 1.99999999999999999999: so they are widened first.
    """
    low, high = (x.cast(pa.decimal256(DIGITS, max(x.type.scale, 7))) for x in a)
    slop = pa.scalar(Decimal("0.000001"), pa.decimal256(7, 6))
    low, high = _cut(pc.subtract(_room(low), slop)), _cut(pc.add(_room(high), slop))
    ends = pa.scalar(Decimal(least), low.type), pa.scalar(Decimal(greatest), low.type)
    inside = pc.and_(pc.greater_equal(low, ends[0]), pc.less_equal(high, ends[1])).fill_null(False)
    zero = pa.scalar(Decimal(0), low.type)
    ints = [pc.if_else(inside, x, zero).cast(pa.int64()).to_numpy() for x in (low, high)]
    outside = ~to_mask(inside)
    return (np.where(outside, least, ints[0]), np.where(outside, greatest, ints[1])), outside


def signs(a: Decimals) -> Interval:
    """-1, 0 or 1 for each bound; the unknown count as of either sign."""
    low, high = (pc.sign(x).cast(pa.float64()).to_numpy(zero_copy_only=False) for x in a)
    return np.where(np.isnan(low), -1.0, low), np.where(np.isnan(high), 1.0, high)


def _ends(a: Decimals) -> tuple[pa.Array, ...]:
    """Both bounds, or the one that a constant has."""
    return a[:1] if a[0] is a[1] else a


def _negatable(values: pa.Array) -> pa.Array:
    """The decimals, null where they have more than 34 digits: Spark negates with 34, and rounds the rest away."""
    return below(values, 34 - values.type.scale)


def _room(values: pa.Array) -> pa.Array:
    """The decimals with a digit of precision to spare, null where there is none."""
    return below(values, DIGITS - 2 - values.type.scale).cast(pa.decimal256(DIGITS - 2, values.type.scale))


def _cut(values: pa.Array) -> pa.Array:
    return pc.round(values.cast(pa.decimal256(DIGITS, values.type.scale)), 0, "towards_zero").cast(
        pa.decimal256(DIGITS, 0)
    )


def _small(bounds: Sequence[Scaled | None], type_: DataType) -> Checked | None:
    """Both bounds in int64 rounded to a type, None if that cannot be done there."""
    low, high = (bound and bound.fit(type_) for bound in bounds)
    if low is None or high is None:
        return None
    return (low.to_arrow(), high.to_arrow()), either(low.unknown, high.unknown)


def _small_products(a: Decimals, b: Decimals, type_: DataType) -> Checked | None:
    left, right = ([scaled.of_arrow(x) for x in _ends(factor)] for factor in (a, b))
    products = [x.times(y) if x and y else None for x in left for y in right]
    known = [product for product in products if product]
    if len(known) < len(products):
        return None
    unknown: Flags = False
    for product in known:
        unknown = either(unknown, product.unknown)
    reach = max(product.reach for product in known)
    ends = (reduce(pick, (product.values for product in known)) for pick in (np.minimum, np.maximum))
    return _small([Scaled(end, unknown, known[0].scale, reach) for end in ends], type_)


def _small_sums(
    lows: tuple[pa.Array, pa.Array], highs: tuple[pa.Array, pa.Array], type_: DataType, *, sign: int
) -> Checked | None:
    ends = []
    for pair in (lows, highs):
        scale = max(x.type.scale for x in pair)
        x, y = (found and found.to_scale(scale) for found in map(scaled.of_arrow, pair))
        ends.append(x.plus(y, sign) if x and y else None)
    return _small(ends, type_)


def _exactly(
    operation: Callable[[pa.Array, pa.Array], pa.Array],
    lows: tuple[pa.Array, pa.Array],
    highs: tuple[pa.Array, pa.Array],
    type_: DataType,
) -> Checked | None:
    """A sum or a difference: exact on the larger of the two scales."""
    scales = [x.type.scale for x in lows]
    if max(scales) - min(scales) > 36:
        return None
    wide = pa.decimal256(DIGITS - 1, max(scales))
    low, high = (operation(x.cast(wide), y.cast(wide)) for x, y in (lows, highs))
    return fitted(low, high, type_)
