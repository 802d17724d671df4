"""Arithmetic on intervals of integers; whatever could leave the result's type gives up (rule S5).

A failure is an overflow or a division by zero. Where one can overflow, any value of the type is possible (legacy mode
wraps around); where the divisor can be zero, only NULL comes on top.
"""

from __future__ import annotations

import numpy as np

from secateur.evaluate.rules.intervals import LIMITS, Interval, holds
from secateur.evaluate.value_range import Numbers
from secateur.plan.columns import Mask
from secateur.plan.types import DataType

_MIN, _MAX = LIMITS["bigint"]
_SURELY_FITS = 9.2233720368e18
"""Below 2**63 by more than the rounding errors of a product in float64."""

Checked = tuple[Interval, Mask]
"""The interval and where the operation can fail."""


def add(a: Interval, b: Interval, type_: DataType) -> Checked:
    (low, low_over), (high, high_over) = _sum(a[0], b[0]), _sum(a[1], b[1])
    return within(low, high, low_over | high_over, type_)


def subtract(a: Interval, b: Interval, type_: DataType) -> Checked:
    (low, low_over), (high, high_over) = _difference(a[0], b[1]), _difference(a[1], b[0])
    return within(low, high, low_over | high_over, type_)


def multiply(a: Interval, b: Interval, type_: DataType) -> Checked:
    pairs = [(x, y) for x in a for y in b]
    products = [x * y for x, y in pairs]
    sizes = [np.abs(x.astype(np.float64) * y.astype(np.float64)) for x, y in pairs]
    over = np.maximum.reduce(sizes) >= _SURELY_FITS
    return within(np.minimum.reduce(products), np.maximum.reduce(products), over, type_)


def negate(a: Interval, type_: DataType) -> Checked:
    return within(-a[1], -a[0], a[0] == LIMITS[type_.name][0], type_)


def absolute(a: Interval, type_: DataType) -> Checked:
    low, high = a
    nearest = np.where(low > 0, low, np.where(high < 0, -high, 0))
    return within(nearest, np.maximum(-low, high), low == LIMITS[type_.name][0], type_)


def divide(a: Interval, b: Interval, type_: DataType) -> Checked:
    """``a div b``, rounded towards zero; the one overflow is the least bigint by -1."""
    zero = holds(b, 0)
    over = (a[0] == _MIN) & holds(b, -1)
    quotients = [_truncated(x, np.where(zero, 1, y)) for x in a for y in b]
    below = _below(a)
    # A divisor is at least 1 in size if it is not zero, so the quotient is no larger than the dividend.
    low = np.where(zero, below, np.minimum.reduce(quotients))
    high = np.where(zero, -np.maximum(below, _MIN + 1), np.maximum.reduce(quotients))
    interval, over = within(low, high, over, type_)
    return interval, over | zero


def remainder(a: Interval, b: Interval, type_: DataType) -> Checked:
    """``a % b``: has the sign of a, is no larger than a and smaller than b; a itself if that is smaller than b."""
    reach = np.minimum(_below(b) + 1, 0)  # minus the largest remainder
    small = _below(a) > -_smallest(b)
    low = np.where(small, a[0], np.where(a[0] >= 0, 0, np.maximum(a[0], reach)))
    high = np.where(small, a[1], np.where(a[1] <= 0, 0, np.minimum(a[1], -reach)))
    return (low, high), holds(b, 0)


def positive_remainder(a: Interval, b: Interval, type_: DataType) -> Checked:
    """``pmod(a, b)``: below b and not negative for a positive b, else only smaller than b in size."""
    reach = -np.minimum(_below(b) + 1, 0)
    positive = b[0] > 0
    kept = positive & (a[0] >= 0)
    small = kept & (a[1] < b[0])
    low = np.where(small, a[0], np.where(positive, 0, -reach))
    high = np.where(small, a[1], np.where(kept, np.minimum(a[1], reach), reach))
    return (low, high), holds(b, 0)


def rounded(a: Interval, scale: int, type_: DataType) -> Checked:
    """``round(a, scale)``: at most half a unit of the last kept digit away."""
    if scale >= 0:
        return a, np.zeros(len(a[0]), np.bool_)
    if scale < -18:
        return within(*a, np.ones(len(a[0]), np.bool_), type_)
    half = np.int64(5 * 10 ** (-scale - 1))
    return add(a, (np.full_like(a[0], -half), np.full_like(a[0], half)), type_)


def within(low: Numbers, high: Numbers, over: Mask, type_: DataType) -> Checked:
    """The interval, any value of the type where that overflows."""
    least, greatest = LIMITS[type_.name]
    over = over | (low < least) | (high > greatest)
    return (np.where(over, least, low), np.where(over, greatest, high)), over


def _sum(x: Numbers, y: Numbers) -> tuple[Numbers, Mask]:
    total = x + y
    return total, ((x ^ total) & (y ^ total)) < 0


def _difference(x: Numbers, y: Numbers) -> tuple[Numbers, Mask]:
    total = x - y
    return total, ((x ^ y) & (x ^ total)) < 0


def _truncated(x: Numbers, y: Numbers) -> Numbers:
    with np.errstate(all="ignore"):
        down: Numbers = x // y
        up: Mask = (down * y != x) & ((x < 0) != (y < 0))
    return down + up


def _below(a: Interval) -> Numbers:
    """Minus the largest size of a value, since the least bigint has no positive counterpart."""
    return np.minimum(a[0], -np.maximum(a[1], _MIN + 1))


def _smallest(a: Interval) -> Numbers:
    """The smallest size of a value, 0 if the interval holds 0."""
    return np.where(a[0] > 0, a[0], np.where(a[1] < 0, -np.maximum(a[1], _MIN + 1), 0))
